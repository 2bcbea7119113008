"""How the program ends when it is stopped before it has begun."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import get_args

import pytest

from labelproof.cli.commands import NAMES, describe_command, load_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")

STOPPED = """
import os, runpy, signal, sys

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Stop())
runpy.run_module("labelproof", run_name="__main__", alter_sys=False)
"""


def listening() -> None:
    """A shell's background jobs ignore Ctrl-C and pass that on; a person's terminal does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("module", ["typer", "torch"])
def test_ctrl_c_while_something_is_imported_ends_it_without_a_word(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, "losses", module],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=listening,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_all_names_of_the_package_are_to_be_had() -> None:
    import labelproof

    for name in labelproof.__all__:
        assert getattr(labelproof, name) is not None
        assert name in dir(labelproof)
    assert labelproof.losses.CrossEntropy is labelproof.CrossEntropy
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = labelproof.nonsense


HEAVY = """
import sys
import labelproof.integrations, labelproof.verbs.fit
heavy = {"sklearn", "scipy", "matplotlib", "sympy", "torch._dynamo", "torch._inductor"}
print(*{*heavy, "lightning", "pytorch_lightning", "transformers", "skorch"} & set(sys.modules))
sys.modules["lightning"] = sys.modules["pytorch_lightning"] = sys.modules["transformers"] = None
for module in ("lightning", "transformers"):
    try:
        __import__(f"labelproof.integrations.{module}")
    except ImportError as error:
        print(error)
"""


def test_a_library_is_loaded_by_who_asks_for_it_and_missed_with_advice() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAVY], capture_output=True, text=True, timeout=300
    )
    loaded, *messages = done.stdout.splitlines()
    assert loaded == ""
    assert [message.partition(": ")[2] for message in messages] == [
        "pip install 'labelproof[lightning]'",
        "pip install 'labelproof[transformers]'",
    ], done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--help",), "Find out which labels are wrong"),
        (("fitt",), "Did you mean 'fit'?"),
        (("fit", "--help"), "Train on your own data"),
    ],
)
def test_what_needs_no_command_loads_none(words: tuple[str, ...], said: str) -> None:
    code = (
        "import atexit, gc, sys; from labelproof.cli.main import run; "
        "atexit.register(lambda: print(*sorted({'torch', 'numpy'} & {*sys.modules})));"
        "atexit.register(lambda: gc.isenabled() or print('nothing is collected'));"
        f"sys.argv = ['labelproof', *{words!r}]; run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert said in done.stdout + done.stderr
    assert "nothing is collected" not in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_what_help_says_without_the_library_is_what_the_library_says() -> None:
    from labelproof.cli import options
    from labelproof.data.published import ROOT_VARIABLE
    from labelproof.losses.names import LOSS_FILES
    from labelproof.models.text import NETWORKS

    assert ", ".join(NETWORKS) == options.NETWORKS
    assert options.LOSS_FILES == LOSS_FILES
    assert get_args(options.Root)[1].envvar == ROOT_VARIABLE


def test_fit_says_what_it_reads_before_numpy_and_torch_are_imported() -> None:
    # Who is stopped by the import of numpy has shown what came before.
    terminal, end = os.openpty()
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, "fit", "my table.csv", "--label", "numpy"],
        stdout=end,
        env=os.environ | {"TERM": "xterm"},
        check=False,
        timeout=300,
        preexec_fn=listening,
    )
    assert (done.returncode, os.read(terminal, 1000)) == (130, b"Reading my table.csv ...")
    os.close(terminal)
    os.close(end)


def test_a_command_is_described_as_it_describes_itself() -> None:
    for name in NAMES:
        description = describe_command(name)
        assert description
        assert load_command(name).help == description
        assert load_command(name).name == name
