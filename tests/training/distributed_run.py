"""Trainings that `torchrun` starts in several processes; `test_distributed.py` compares them.

python -m torch.distributed.run --nproc-per-node 2 distributed_run.py NETWORK FOLDER[:STOP_AFTER]...
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from labelproof.data import load_digits
from labelproof.training import (
    Configuration,
    Examples,
    Execution,
    Job,
    StopRequest,
    choose_examples,
    choose_execution,
)
from labelproof.training.distributed import taking_part
from labelproof.training.runner import train_runs


def train_one_after_the_other(network: str, runs: Sequence[tuple[Path, int]]) -> None:
    """Train in each folder; where a number of epochs comes with it, stop after so many."""
    configuration = Configuration(
        "digits",
        noise="symmetric:0.3",
        loss="ce+sr(tau=0.5,p=0.1,lambda0=1,rho=1.1,normalize=false)",
        network=network,
        epochs=3,
        batch_size=96,  # leaves a last batch of 3 examples, which two processes share unequally
    )
    examples = choose_examples(configuration, load_digits())
    with taking_part(choose_execution("cpu")) as execution:
        for folder, stop_after in runs:
            train(Job(configuration, folder), examples, execution, stop_after=stop_after)


def train(job: Job, examples: Examples, execution: Execution, *, stop_after: int) -> None:
    with StopRequest() as stop:
        events = train_runs(
            [job],
            execution,
            load=lambda _: examples,
            checkpoint_seconds=1e9,
            stop=stop,
        )
        for event in events:
            # Only one process is told: the others have to hear of it from this one.
            stopping = event.kind == "epoch" and event.value["epoch"] + 1 == stop_after
            if stopping and execution.rank == execution.world_size - 1:
                os.kill(os.getpid(), signal.SIGTERM)
            if execution.rank == 0:
                print(event.kind, flush=True)


def parse_run(text: str) -> tuple[Path, int]:
    folder, _, stop_after = text.partition(":")
    return Path(folder), int(stop_after or 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    train_one_after_the_other(sys.argv[1], [parse_run(text) for text in sys.argv[2:]])
