"""Real datasets for tests: unpacked once, outside the checkout, and skipped where there are none.

They are looked for in the folder that `LABELPROOF_SHARED` names, or in `shared/data` beside the
repository. Its `unpack.py` writes them in their publishers' layouts; that takes about 20 seconds
and 380 MB, once.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
from filelock import FileLock

REPOSITORY = Path(__file__).resolve().parents[1]
PARTS = ("mnist", "cifar10", "cifar100", "cifarn")


def shared_data(part: str) -> Path:
    """The root below which a real dataset lies, or skip the test that asks for it."""
    folder, reason = _unpacked(part)
    if folder is None:
        pytest.skip(reason)
    return folder


@functools.cache
def _unpacked(part: str) -> tuple[Path | None, str]:
    if part not in PARTS:
        raise ValueError(f"part: expected one of {', '.join(PARTS)}, got {part!r}")
    source = Path(os.environ.get("LABELPROOF_SHARED") or REPOSITORY.parent / "shared" / "data")
    script = source / "unpack.py"
    if not script.is_file():
        return None, f"no real data: {script} is not there (LABELPROOF_SHARED names its folder)"
    # Another version of the data is unpacked anew.
    version = hashlib.sha256((source / "CHECKSUMS").read_bytes()).hexdigest()[:12]
    target = platformdirs.user_cache_path("labelproof-tests", appauthor=False) / version
    target.mkdir(parents=True, exist_ok=True)
    # Two workers ask at the same time; one unpacks and the other waits.
    with FileLock(target / f"{part}.lock"):
        done = target / f"{part}.done"
        if not done.exists():
            problem = _unpack(script, target, part)
            if problem:
                return None, problem
            done.touch()
    return target, ""


def _unpack(script: Path, target: Path, part: str) -> str:
    """Unpack into a folder of its own first: a test run may be stopped at any time."""
    fresh = target / f"{part}.unpacking"
    shutil.rmtree(fresh, ignore_errors=True)
    command = [sys.executable, str(script), str(fresh), part]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        return f"no real {part}: unpacking took more than five minutes"
    if result.returncode:
        last = (result.stdout + result.stderr).strip().splitlines()[-1:]
        return f"no real {part}: unpack.py failed: {' '.join(last)}"
    for folder in fresh.iterdir():
        shutil.rmtree(target / folder.name, ignore_errors=True)
        folder.rename(target / folder.name)
    fresh.rmdir()
    return ""
