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
    assert names == {*NEEDS, "planted_errors"}
    described = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"{name}.py" in described for name in names)


def spent() -> float:
    """Seconds of a core that finished processes of this one took, however busy the machine is."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.parametrize("name", NEEDS)
def test_the_robust_loss_is_better(name: str, tmp_path: Path):
    for library in NEEDS[name]:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{name} needs {library}, which is not installed")
    before = spent()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        # One thread: the networks are small, and other tests run beside this one.
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=10 * SECONDS,
    )
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^(plain|robust) +([\d.]+)%", done.stdout, re.MULTILINE))
    assert set(found) == {"plain", "robust"}, done.stdout
    assert float(found["robust"]) > float(found["plain"])
    assert spent() - before < SECONDS
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
