"""How the program begins, and how it ends: stopped, mistaken, or with no one who reads it."""

import importlib
import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trained import labelproof_to_its_end, succeed

import labelproof
from labelproof import __version__
from labelproof.cli import options
from labelproof.cli.commands import NAMES, describe_command, load_command
from labelproof.data.download import MIRROR_VARIABLE
from labelproof.data.published import ROOT_VARIABLE
from labelproof.experiments.demo import SETTING
from labelproof.experiments.grids import GRIDS
from labelproof.losses.names import LOSS_FILES
from labelproof.models.text import NETWORKS
from labelproof.report.figures import FIGURES, SUFFIXES
from labelproof.report.tables import COMPARISONS, FORMATS
from labelproof.training import RunRecord
from labelproof.training.algorithms import ALGORITHMS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes are other there")

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


def python(code: str, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code to its end in a process of its own, with what it prints and complains of."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 300}
    return subprocess.run([sys.executable, "-c", code, *words], **(streams | options))


def test_ctrl_c_while_something_is_imported_ends_it_without_a_word() -> None:
    for module in ("typer", "torch"):
        done = python(STOPPED, "losses", module, preexec_fn=listening)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_all_names_of_the_package_are_to_be_had() -> None:
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
    done = python(HEAVY)
    loaded, *messages = done.stdout.splitlines()
    assert loaded == ""
    assert [message.partition(": ")[2] for message in messages] == [
        "pip install 'labelproof[lightning]'",
        "pip install 'labelproof[transformers]'",
    ], done.stderr


LOADED = """
import atexit, gc, sys
from labelproof.cli.main import run
atexit.register(lambda: print(*sorted({'torch', 'numpy'} & {*sys.modules})))
atexit.register(lambda: gc.isenabled() or print('nothing is collected'))
run()
"""


def test_what_needs_no_command_loads_none() -> None:
    for words, said in (
        (("--help",), "Find out which labels are wrong"),
        (("fitt",), "Did you mean 'fit'?"),
        (("fit", "--help"), "Train on your own data"),
    ):
        done = python(LOADED, *words)
        assert said in done.stdout + done.stderr
        assert "nothing is collected" not in done.stdout
        assert done.stdout.splitlines()[-1] == ""


def test_what_help_says_without_the_library_is_what_the_library_says() -> None:
    assert options.LOSS_FILES == LOSS_FILES
    for name, option, words in (
        ("fit", "network", NETWORKS),
        ("train", "algorithm", ALGORITHMS),
        ("bench", "tables", GRIDS),
        ("table", "name", GRIDS),
        ("table", "format", FORMATS),
        ("figure", "name", FIGURES),
        ("figure", "output", SUFFIXES),
        ("compare", "format", COMPARISONS),
    ):
        told = next(each.help for each in load_command(name).params if each.name == option)
        assert all(word in told for word in words), (name, option)
    data = load_command("data").commands["download"].params
    assert {each.envvar for each in data} >= {ROOT_VARIABLE, MIRROR_VARIABLE}
    for name in NAMES:
        description = describe_command(name)
        assert description
        assert load_command(name).help == description
        assert load_command(name).name == name


def test_a_command_takes_the_arguments_of_its_verb() -> None:
    for name in ("fit", "audit", "tune", "train"):
        command = {each.name: each for each in load_command(name).params}
        module = importlib.import_module(f"labelproof.verbs.{name}")
        verb = inspect.signature(getattr(module, name)).parameters
        taken = set(verb) - {"on_error", "progress", "settings", "configuration", "losses"}
        assert taken <= set(command)
        for each in taken & {"label", "decimal", "device", "epochs", "trials", "fresh"}:
            assert command[each].default == verb[each].default
    told = {each.name: each.help for each in load_command("audit").params}
    assert told["group"] == next(e.help for e in load_command("fit").params if e.name == "group")
    assert "without --epochs" in next(
        each.help for each in load_command("fit").params if each.name == "weights"
    )


def test_fit_says_that_it_reads_before_numpy_and_torch_are_imported() -> None:
    # Who is stopped by the import of numpy has shown what came before.
    terminal, end = os.openpty()
    done = python(STOPPED, "fit", "t.csv", "--label", "numpy", stdout=end, preexec_fn=listening)
    assert (done.returncode, os.read(terminal, 1000)) == (130, b"Reading the data ...")
    os.close(terminal)
    os.close(end)


def test_a_result_that_no_one_reads_ends_the_command_without_a_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = python("from labelproof.cli.main import run; run()", "losses", stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_commands_that_only_tell() -> None:
    for words, said in {
        "--version": (f"labelproof {__version__}",),
        "--help": ("demo", "losses"),
        "losses": ("ce", "gce", "q=0.7", "+sr", "lambda0=1.2"),
        "losses nce+mae+sr": ("nce+mae+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1,normalize=true)",),
    }.items():
        text = succeed(*words.split()).output
        assert all(part in text for part in said), words


def test_a_mistake_is_one_message_and_exit_code_two(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    sizes = [*(f"{row}.5" for row in range(40)), "about 3"]
    table.write_text("\n".join(["size,label", *(f"{size},{len(size) % 2}" for size in sizes)]))
    for words, said in (
        (("losses", "10*nce+may"), ("unknown loss 'may'; did you mean 'mae'?", "         ^")),
        (("demo", "--noisee", "none"), ("--noise",)),
        (("train", "--data", str(table)), ("'about 3' in line 42; fix them, or use --skip-unre",)),
        (("fit", str(table), "--strict"), ("fix them, or leave out --strict to treat them",)),
    ):
        result = labelproof_to_its_end(*words)
        assert result.returncode == 2
        assert all(part in result.stderr for part in said)
        assert "Traceback" not in result.stderr


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(SETTING, network="mlp(hidden=8,depth=1)")
    monkeypatch.setattr("labelproof.cli.demo.SETTING", small)


@pytest.mark.usefixtures("small_demo")
def test_the_demo_does_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def page(path: Path, _: object) -> Path:
        written.append(path)  # it has its own tests, and takes longer than the training
        return path

    def demo(*extra: str) -> str:
        arguments = ("demo", "--epochs", "1", "--seeds", "1", "--no-open", "--processes", "1")
        return succeed(*arguments, "--output", tmp_path, *extra).output

    monkeypatch.setattr("labelproof.cli.demo.write_demo_page", page)
    first = demo()
    assert "GCE+SR" in first
    assert "6 of 6" in first
    assert written == [tmp_path / "report.html"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("record.json")}
    assert len(before) == 6
    assert "6 of 6 runs are finished already" in demo()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    again = demo("--fresh", "--loss", "1e38*ce")
    assert "finished already" not in again
    assert "1e38*ce seed 1  training diverged" in again
    assert "GCE+SR" in again
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("record.json")}
    assert after.keys() == before.keys()
    assert all(after[path] > before[path] for path in before)


@pytest.mark.usefixtures("small_demo")
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: object) -> None:
        # It reaches every process of a terminal.
        for process in multiprocessing.active_children():
            os.kill(process.pid or 0, signal.SIGINT)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunRecord, "final_accuracy", property(press))
    arguments = ("demo", "--epochs", "20", "--seeds", "1", "--no-open", "--processes", "2")
    stopped = labelproof_to_its_end(*arguments, "--output", tmp_path)
    kept = list((tmp_path / "runs").glob("*/record.json"))
    assert stopped.returncode == 130, stopped.stderr
    assert stopped.stderr == ""
    assert 1 <= len(kept) < 6
    assert "Stopped. Finished runs are in" in stopped.stdout
    assert not list((tmp_path / "runs").glob(".*"))
    assert not (tmp_path / "report.html").exists()
    assert not multiprocessing.active_children()
