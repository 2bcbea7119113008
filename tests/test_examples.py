"""Every example runs, within a minute, and the robust loss comes out ahead on clean labels."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NEEDS = {
    "lightning_digits": ("lightning",),
    "plain_loop": (),
    "skorch_digits": ("skorch",),
    "transformers_text": ("transformers", "accelerate"),
}
SECONDS = 60


def test_every_example_is_run_and_described():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    # This one trains nothing: it draws the folder of the tutorial, which has a test of its own.
    assert names == {*NEEDS, "every_verb", "planted_errors"}
    described = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"{name}.py" in described for name in names)


def spent() -> float:
    """Seconds of a core that finished processes of this one took, however busy the machine is."""
    times = os.times()
    return times.children_user + times.children_system


def printed_by(name: str, folder: Path, **environment: str) -> str:
    before = spent()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        cwd=folder,
        # One thread: the networks are small, and other tests run beside this one.
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        timeout=10 * SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert spent() - before < SECONDS
    return done.stdout


def test_every_verb_finds_wrong_labels_and_learns_despite_them(tmp_path: Path):
    printed = printed_by("every_verb", tmp_path, TMPDIR=str(tmp_path))
    numbers = [float(number) for number in re.findall(r"([\d.]+)%", printed)]
    assert min(numbers) > 85, printed
    suspects, wrong = map(int, re.findall(r"(\d+) suspects, (\d+) of them wrong", printed)[0])
    assert wrong >= 0.8 * suspects > 20, printed
    assert "chose" in printed


@pytest.mark.parametrize("name", NEEDS)
def test_the_robust_loss_is_better(name: str, tmp_path: Path):
    for library in NEEDS[name]:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{name} needs {library}, which is not installed")
    printed = printed_by(name, tmp_path)
    found = dict(re.findall(r"^(plain|robust) +([\d.]+)%", printed, re.MULTILINE))
    assert set(found) == {"plain", "robust"}, printed
    assert float(found["robust"]) > float(found["plain"])
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
