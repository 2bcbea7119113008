"""Runs that are killed before one of their file operations, and how the same call ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from small_runs import load_small, outcome, small

from labelproof.training import Job, train_runs
from labelproof.training.execution import choose_execution

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")


def train(folder: Path) -> None:
    job = Job(small(epochs=2, network="mlp(hidden=4,depth=1)"), folder)
    list(train_runs([job], choose_execution("cpu"), load=load_small, checkpoint_seconds=0))


def watch(folder: Path, act: Callable[[], None]) -> None:
    """Act before every operation that changes the folder: Python tells its audit hooks of them."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_ACCMODE
        if (opened or event in CHANGES) and str(folder) in str(arguments[0]):
            act()

    sys.addaudithook(hook)


def kill_each(root: Path, step: int) -> None:
    """Train in a child for every `step`-th operation, which is killed there."""
    point = 0
    load_small(small())  # what it imports, no child has to import again
    while True:
        folder = root / f"killed-{point}"
        child = os.fork()
        if child == 0:
            left = [point]

            def count(left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            watch(folder, count)
            train(folder)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            return
        point += step


def lost(root: Path, *, step: int = 1) -> tuple[int, list[str]]:
    """How many runs were killed, and which of them did not end with the bytes of one that was not.

    Every `step`-th operation is a run of its own.
    """
    train(root / "whole")
    # A process that has trained nothing forks them: threads do not survive a fork.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__, str(root), str(step)]
    subprocess.run(command, check=True, timeout=600, env=environment)
    killed = sorted(root.glob("killed-*"))
    bad = []
    for folder in killed:
        try:
            train(folder)
            same = outcome(folder) == outcome(root / "whole")
        except Exception as error:
            same = False
            print(folder.name, error)
        if not same or list(folder.rglob(".labelproof-*")):
            bad.append(folder.name)
    return len(killed), bad


if __name__ == "__main__":
    kill_each(Path(sys.argv[1]), int(sys.argv[2]))
