"""Every example runs, and the robust loss comes out ahead on clean labels."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NEEDS = {
    "every_verb": (),
    "lightning_digits": ("lightning",),
    "plain_loop": (),
    "skorch_digits": ("skorch",),
    "transformers_text": ("transformers", "accelerate"),
}
# In one process: torch is loaded once for all of them.
RUN = """
import runpy, sys
for path in sys.argv[1:]:
    print("#", path, flush=True)
    runpy.run_path(path, run_name="__main__")
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each example prints whose libraries are here."""
    folder, temporary = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("temporary")
    names = [name for name, needs in NEEDS.items() if all(map(importlib.util.find_spec, needs))]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *(str(EXAMPLES / f"{name}.py") for name in names)],
        capture_output=True,
        text=True,
        cwd=folder,
        # One thread: the networks are small, and other tests run beside this one.
        env=os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir()), "an example leaves nothing behind"
    parts = re.split(r"^# .*?(\w+)\.py$", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_example_is_run_and_described():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    # This one trains nothing: it draws the folder of the tutorial, which has a test of its own.
    assert names == {*NEEDS, "planted_errors"}
    described = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"{name}.py" in described for name in names)


def test_every_verb_finds_wrong_labels_and_learns_despite_them(printed: dict[str, str]):
    text = printed["every_verb"]
    numbers = [float(number) for number in re.findall(r"([\d.]+)%", text)]
    assert min(numbers) > 85, text
    suspects, wrong = map(int, re.findall(r"(\d+) suspects, (\d+) of them wrong", text)[0])
    assert wrong >= 0.8 * suspects > 20, text
    assert "chose" in text


@pytest.mark.parametrize("name", sorted(set(NEEDS) - {"every_verb"}))
def test_the_robust_loss_is_better(name: str, printed: dict[str, str]):
    if name not in printed:
        pytest.skip(f"{name} needs {' and '.join(NEEDS[name])}")
    found = dict(re.findall(r"^(plain|robust) +([\d.]+)%", printed[name], re.MULTILINE))
    assert set(found) == {"plain", "robust"}, printed[name]
    assert float(found["robust"]) > float(found["plain"])
