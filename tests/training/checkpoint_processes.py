"""Processes that save checkpoints and come to a bad end; run as a script by test_checkpoint.py."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from labelproof.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from labelproof.training.run_folder import owning


def filled(epoch: int, size: int = 60_000) -> Checkpoint:
    """A checkpoint whose every number is its epoch."""
    weights = {"weight": torch.full((size,), float(epoch)), "steps": torch.tensor(epoch)}
    return Checkpoint(weights, {"moment": torch.full((size,), epoch)}, {"epoch": epoch})


def assert_consistent(checkpoint: Checkpoint) -> int:
    epoch = checkpoint.values["epoch"]
    for tensor in (*checkpoint.weights.values(), *checkpoint.state.values()):
        assert (tensor == epoch).all(), (epoch, tensor)
    return epoch


def kill(folder: Path, rounds: int) -> None:
    """Kill a writer at random moments; print what was announced and what was then found."""
    draw = random.Random(20)  # noqa: S311
    last = -1
    for round_ in range(rounds):
        keep = 1 + round_ % 2
        same_name = round_ % 4 == 3  # replaces the one folder, the other way to lose everything
        heard, said = os.pipe()
        child = os.fork()
        if child == 0:
            for epoch in range(last + 1, last + 100_000):
                name = "same" if same_name else f"{epoch:05}"
                save_checkpoint(folder, name, filled(epoch), keep=keep)
                os.write(said, f"{epoch}\n".encode())
        os.close(said)
        with os.fdopen(heard) as stream:
            first = stream.readline()  # it is under way: from now on any moment is as good
            time.sleep(draw.uniform(0, 0.05))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            announced = [int(line) for line in (first + stream.read()).split()]
        problems: list[str] = []
        checkpoint = load_checkpoint(folder, on_problem=problems.append)
        assert checkpoint is not None
        last = assert_consistent(checkpoint)
        hidden = sorted(p.name.split("-")[0] for p in folder.iterdir() if p.name.startswith("."))
        print(json.dumps([announced[-1], last, problems, hidden]), flush=True)


def hold(folder: Path) -> None:
    with owning(folder):
        print("holding", flush=True)
        time.sleep(60)


def fill(folder: Path) -> None:
    """Save ever larger checkpoints until the disk is full, then on a read-only one; print both."""
    try:
        for epoch in range(100):
            save_checkpoint(folder, f"{epoch:05}", filled(epoch, 20_000 * (epoch + 1)))
    except OSError as error:
        report(folder, error)
    assert os.system(f"mount -o remount,ro {folder.parent}") == 0  # noqa: S605
    try:
        save_checkpoint(folder, "99999", filled(9))
    except OSError as error:
        report(folder, error)


def report(folder: Path, error: OSError) -> None:
    names = sorted(path.name for path in folder.iterdir())
    checkpoint = load_checkpoint(folder, on_problem=print)
    assert checkpoint is not None
    print(json.dumps([str(error), error.errno, names, assert_consistent(checkpoint)]), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    task, folder, *rest = sys.argv[1:]
    if task == "kill":
        kill(Path(folder), int(rest[0]))
    else:
        {"hold": hold, "fill": fill}[task](Path(folder))
