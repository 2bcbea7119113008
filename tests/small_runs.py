"""Runs of a second or less: a few digits, a small network, and the CPU."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from labelproof.data import load_digits
from labelproof.data.dataset import Dataset, Split
from labelproof.training import Configuration, Event, Examples, Execution, Job, StopRequest
from labelproof.training.batches import EpochPlan, ResidentInputs, plan_epoch
from labelproof.training.checkpoint import newest_whole
from labelproof.training.examples import choose_examples
from labelproof.training.runner import train_runs
from labelproof.training.trainer import Trainer

CPU = Execution(torch.device("cpu"), convolution="torch")

SMALL: dict[str, Any] = {
    "noise": "symmetric:0.4",
    "loss": "ce+sr",
    "network": "mlp(hidden=16,depth=1,batch_norm=true)",
    "epochs": 3,
    "batch_size": 32,
    "learning_rate": 0.1,
}


@cache
def small_digits(train: int = 200, test: int = 100, *, clean: bool = True) -> Dataset:
    """The first digits of each split; 200 make seven batches of 32, the last of 8."""
    digits = load_digits()
    splits = {
        name: Split(digits.splits[name].array[:count], digits.splits[name].labels[:count])
        for name, count in (("train", train), ("test", test))
        if count
    }
    return replace(digits, splits=splits, clean=clean)


def small(**changes: Any) -> Configuration:
    """A configuration that trains on them in a fraction of a second."""
    return Configuration("digits", **{**SMALL, **changes})


def dropping(num_classes: int) -> nn.Module:
    """A user's network, `small_runs:dropping` as text, that draws from torch's own generator."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, num_classes)
    )


def load_small(configuration: Configuration) -> Examples:
    return choose_examples(configuration, small_digits())


def small_run(
    configuration: Configuration, execution: Execution = CPU, dataset: Dataset | None = None
) -> Trainer:
    """A run that nothing has been done to yet."""
    dataset = dataset or small_digits()
    images = ResidentInputs(dataset, execution.device)
    return Trainer(configuration, choose_examples(configuration, dataset), images, execution)


def plan_of(run: Trainer, epoch: int) -> EpochPlan:
    """What chance decides in an epoch of a run."""
    return plan_epoch(run.examples.used, epoch, run.configuration)


def train_epoch(run: Trainer) -> dict[str, float]:
    """One epoch, and its metrics."""
    run.begin()
    while not run.advance():
        pass
    return run.collect(run.end())


class StopAfter(StopRequest):
    """A wish to stop that is there once it was asked for so many times: after so many steps."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps
        self.asked = 0

    @property
    def wanted(self) -> bool:
        self.asked += 1
        return self.asked > self.steps  # the first time before anything is done


def train(
    jobs: Iterable[Job] | Job,
    *,
    execution: Execution = CPU,
    load: Callable[[Configuration], Examples] = load_small,
    **options: Any,
) -> list[Event]:
    """Do jobs, with a checkpoint after every epoch, and give all events."""
    jobs = [jobs] if isinstance(jobs, Job) else jobs
    options = {"checkpoint_seconds": 0, **options}
    return list(train_runs(jobs, execution, load=load, **options))


def names(folder: Path) -> list[str]:
    """Of all that is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def kinds(events: Iterable[Event]) -> list[str]:
    return [event.kind for event in events]


def outcome(folder: Path) -> dict[str, bytes]:
    """The bytes that two runs of one configuration have in common, however they came about."""
    kept = newest_whole(folder / "checkpoint")[1]
    return {
        "metrics": (folder / "metrics.jsonl").read_bytes(),
        "weights": save(kept.weights),
        "state": save(kept.state),
        "predictions": (folder / "predictions.npz").read_bytes(),
    }


def weights_of(checkpoints: Path) -> dict[str, torch.Tensor]:
    """Those of the newest checkpoint."""
    return newest_whole(checkpoints)[1].weights


def reference_optimizer(configuration: Configuration, network: nn.Module) -> torch.optim.Optimizer:
    """Torch's own, with a configuration's settings."""
    rate, decay = configuration.learning_rate, configuration.weight_decay
    if configuration.optimizer == "adamw":
        betas = (configuration.momentum, 0.999)
        return torch.optim.AdamW(network.parameters(), rate, betas=betas, weight_decay=decay)
    return torch.optim.SGD(
        network.parameters(),
        rate,
        momentum=configuration.momentum,
        nesterov=configuration.nesterov,
        weight_decay=decay,
    )
