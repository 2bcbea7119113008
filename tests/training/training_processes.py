"""Processes that train and come to a bad end; run as a script by test_resume.py."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from small_runs import CPU, load_small, outcome, small

from labelproof.training import Configuration, Job, StopRequest, train_runs
from labelproof.training.checkpoint import load_checkpoint

CONFIGURATION = small(epochs=12, loss="nl+sr", augmentation="crop:1,flip")


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
    checkpoint = load_checkpoint(folder / "checkpoint", on_problem=print)
    return "" if checkpoint is None else f"{checkpoint.values['epoch']}"


def kill(folder: Path, rounds: int) -> None:
    """Kill a run at random moments, over and over; print how it died and where it stood."""
    draw = random.Random(3)  # noqa: S311
    took = whole(folder)
    for round_ in range(rounds):
        child, heard = fork(folder / "killed")
        with os.fdopen(heard) as stream:
            # In every third round it may not even have started; else it may be in its first epoch
            # or in a later one, and then any moment is as good.
            for _ in range(0 if round_ % 3 == 2 else 1 + draw.randrange(2)):
                stream.readline()
            time.sleep(draw.uniform(0, took / CONFIGURATION.epochs))
            os.kill(child, signal.SIGKILL)
            print(json.dumps([wait(child), place(folder / "killed")]), flush=True)
    child, heard = fork(folder / "killed")
    with os.fdopen(heard) as stream:
        stream.read()
    print(json.dumps([wait(child), place(folder / "killed")]), flush=True)


def ask(folder: Path) -> None:
    """Ask a run to end, by either signal, and let it finish later."""
    whole(folder)
    for asked, epochs in ((signal.SIGTERM, 2), (signal.SIGINT, 6)):
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
        said = [asked.name, code, epochs, [event.strip() for event in events], rest]
        print(json.dumps(said), flush=True)


def both(folder: Path) -> None:
    """Train where another process trains already."""
    child, heard = fork(folder)
    with os.fdopen(heard) as stream:
        stream.readline()
        message = ""
        try:
            train(folder, lambda _: None)
        except RuntimeError as error:
            message = str(error)
        left = stream.read().split()[-1]
    assert wait(child) == 0
    print(json.dumps([child, message, left]), flush=True)


def fill(disk: Path, rooms: list[int]) -> None:
    """Train on a disk on which so many kilobytes are left after the second epoch."""
    configuration = small(network="cnn4(width=4)", epochs=4)
    train(disk.parent / "whole", lambda _: None, configuration)
    for room in rooms:
        fill_but(disk, room, configuration)


def fill_but(disk: Path, room: int, configuration: Configuration) -> None:
    folder, stuffing = disk / f"run{room}", disk / "stuffing"
    epochs = 0

    def tell(kind: str) -> None:
        nonlocal epochs
        epochs += kind == "epoch"
        if kind == "epoch" and epochs == 2:
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            stuffing.write_bytes(bytes(max(free - room * 1024, 0)))

    kind = message = ""
    try:
        train(folder, tell, configuration)
    except OSError as error:
        kind, message = type(error).__name__, str(error)
    found: list[str] = []
    kept = load_checkpoint(folder / "checkpoint", on_problem=found.append)
    name = None if kept is None else f"{kept.values['epoch']:05}-{kept.values['step']:07}"
    done = 0 if kept is None else kept.values["epoch"]
    stuffing.unlink()
    train(folder, lambda _: None, configuration)
    after = "same" if outcome(folder) == outcome(disk.parent / "whole") else "other"
    shutil.rmtree(folder)
    print(json.dumps([kind, message, name, done, after]), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    task, folder, *rest = sys.argv[1:]
    if task == "kill":
        kill(Path(folder), int(rest[0]))
    elif task == "fill":
        fill(Path(folder), [int(room) for room in rest])
    else:
        {"ask": ask, "both": both}[task](Path(folder))
