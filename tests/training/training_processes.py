"""Processes that train and come to a bad end; run as a script by test_resume.py."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from small_runs import CPU, load_small, small

from labelproof.training import Configuration, Job, StopRequest, train_runs
from labelproof.training.checkpoint import load_checkpoint

CONFIGURATION = small(epochs=8, loss="nl+sr", augmentation="crop:1,flip")


def train(
    folder: Path, tell: Callable[[str], object], configuration: Configuration = CONFIGURATION
) -> int:
    """Train in a folder, say each event's kind, and give the code to exit with."""
    with StopRequest() as stop:
        job = Job(configuration, folder)
        for event in train_runs([job], CPU, load=load_small, stop=stop, checkpoint_seconds=0):
            tell(event.kind)
    return stop.exit_code


def fork(folder: Path) -> tuple[int, int]:
    """Train in a process of its own; its id, and what it says."""
    heard, said = os.pipe()
    child = os.fork()
    if child:
        os.close(said)
        return child, heard
    os.close(heard)
    with contextlib.suppress(BrokenPipeError):
        os._exit(train(folder, lambda kind: os.write(said, f"{kind}\n".encode())))
    os._exit(1)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def whole(folder: Path) -> float:
    """An undisturbed run beside the others, and how long it took."""
    start = time.perf_counter()
    child, heard = fork(folder / "whole")
    with os.fdopen(heard) as stream:
        stream.read()
    assert wait(child) == 0
    return time.perf_counter() - start


def place(folder: Path) -> str:
    """Where the newest checkpoint stands; empty before there is one."""
    checkpoint = load_checkpoint(folder / "checkpoint", on_problem=lambda _: None)
    return "" if checkpoint is None else f"{checkpoint.values['epoch']}"


def kill(folder: Path, rounds: int, took: float) -> list[list[Any]]:
    """Kill a run at random moments, over and over; give how it died and where it stood."""
    draw = random.Random(3)  # noqa: S311
    said: list[list[Any]] = []
    for round_ in range(rounds):
        child, heard = fork(folder / "killed")
        with os.fdopen(heard) as stream:
            # In every third round it may not even have started; else it may be in its first epoch
            # or in a later one, and then any moment is as good.
            for _ in range(0 if round_ % 3 == 2 else 1 + draw.randrange(2)):
                stream.readline()
            time.sleep(draw.uniform(0, took / CONFIGURATION.epochs))
            os.kill(child, signal.SIGKILL)
            said.append([wait(child), place(folder / "killed")])
    child, heard = fork(folder / "killed")
    with os.fdopen(heard) as stream:
        stream.read()
    return [*said, [wait(child), place(folder / "killed")]]


def ask(folder: Path) -> list[list[Any]]:
    """Ask a run to end, by either signal, and let it finish later."""
    said: list[list[Any]] = []
    for asked, epochs in ((signal.SIGTERM, 2), (signal.SIGINT, 4)):
        mine = folder / asked.name
        child, heard = fork(mine)
        with os.fdopen(heard) as stream:
            events = [stream.readline() for _ in range(1 + epochs)]
            os.kill(child, asked)
            events += stream.readlines()
        code = wait(child)
        child, heard = fork(mine)
        with os.fdopen(heard) as stream:
            rest = stream.read().split()
        assert wait(child) == 0
        said.append([asked.name, code, epochs, [event.strip() for event in events], rest])
    return said


def both(folder: Path) -> list[Any]:
    """Train where another process trains already."""
    child, heard = fork(folder)
    with os.fdopen(heard) as stream:
        stream.readline()
        message = ""
        try:
            train(folder, lambda _: None)
        except ValueError as error:
            message = str(error)
        left = stream.read().split()[-1]
    assert wait(child) == 0
    return [child, message, left]


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    load_small(CONFIGURATION)  # what it imports, no child has to import again
    took = whole(folder)
    found = {"kill": kill(folder, 6, took), "ask": ask(folder), "both": both(folder / "both")}
    print(json.dumps(found))
