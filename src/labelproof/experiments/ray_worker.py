"""What a worker of a cluster does with a run; it needs no files of its own, and no Ray to read."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import platform
import signal
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch

from labelproof.data.dataset import Dataset
from labelproof.training.examples import Examples
from labelproof.training.execution import choose_execution
from labelproof.training.runner import Job, train_runs
from labelproof.training.stop_request import StopRequest
from labelproof.version import __version__

__all__ = ["Labels", "Means", "train_one"]


@dataclass(frozen=True)
class Labels:
    """Examples without their dataset, which many runs share; see `Examples`.

    Attributes:
        values: Every attribute of the examples but the dataset, by its name.

    Example:
        >>> from labelproof.data import load_digits
        >>> from labelproof.training import Configuration, choose_examples
        >>> examples = choose_examples(Configuration("digits"), load_digits())
        >>> Labels.of(examples).on(examples.dataset).noise_rate
        0.0
    """

    values: Mapping[str, Any]

    @classmethod
    def of(cls, examples: Examples) -> Labels:
        """All that examples are, but for the dataset."""
        names = [field.name for field in fields(examples) if field.name != "dataset"]
        return cls({name: getattr(examples, name) for name in names})

    @property
    def digest(self) -> str:
        """The same text for the same labels alone."""
        return hashlib.sha256(pickle.dumps(self.values)).hexdigest()

    def on(self, dataset: Dataset) -> Examples:
        """The examples again, all labels copied: what comes from the object store is read-only."""
        splits = {
            name: replace(split, labels=split.labels.copy())
            for name, split in dataset.splits.items()
        }
        values = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in self.values.items()
        }
        return Examples(dataset=replace(dataset, splits=splits), **values)


@dataclass(frozen=True)
class Means:
    """With what a worker trains.

    Attributes:
        device: `cpu` or `cuda`.
        threads: Of the CPU.
        checkpoint_seconds: Time between two checkpoints of a run.
        version: Of the package, on the machine that gave the job.
    """

    device: str
    threads: int = 1
    checkpoint_seconds: float = 30.0
    version: str = __version__


def train_one(
    job: Job, dataset: Dataset, labels: Labels, means: Means
) -> Iterator[tuple[str, Any]]:
    """Do one job and yield the kind and the value of each of its events.

    A termination, of a machine that is taken away for example, saves the run, and its last event is
    `"stopped"`. Ray cancels a task by an interrupt, which saves it too; but nothing can be told
    from a cancelled task, so that its events are kept back then.

    Args:
        job: What to train; its folder is one on this machine.
        dataset: What it learns from; its arrays may be read-only.
        labels: Which of it is used, and the labels that are given.
        means: With what.

    Raises:
        ValueError: The package is of another version here.

    Example:
        >>> from labelproof.data import load_digits
        >>> from labelproof.training import Configuration, choose_examples
        >>> run = Configuration("digits", network="mlp(hidden=8,depth=1)", epochs=1)
        >>> labels = Labels.of(choose_examples(run, load_digits()))
        >>> [kind for kind, _ in train_one(Job(run), load_digits(), labels, Means("cpu"))]
        ['started', 'epoch', 'finished']
    """
    if means.version != __version__:
        raise ValueError(
            f"labelproof: {__version__} is installed on {platform.node()}, but {means.version} "
            "where the jobs come from; results of two versions may differ"
        )
    examples = labels.on(dataset)
    execution = choose_execution(means.device, workers=means.threads)
    with _threads(means.threads), _read_only_images(), StopRequest() as stop:
        for event in train_runs(
            [job],
            execution,
            load=lambda _: examples,
            checkpoint_seconds=means.checkpoint_seconds,
            stop=stop,
        ):
            if stop.signal != signal.SIGINT:
                yield event.kind, event.value


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    # Sums may depend on it in their last digit, so that it must not be the machine's number of
    # cores, and a run takes no more of the machine than was set aside for it.
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _read_only_images() -> Iterator[None]:
    """Images lie in memory that all workers of a machine share; nothing ever writes to them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        yield
