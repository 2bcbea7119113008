"""The batches of a run, from data on the device.

An epoch's order and draws are made on the host and copied once. A step then needs nothing from the
host: it gathers and augments the images at a position, a counter on the device, and advances it. So
a whole step can be captured as one graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelproof.data.dataset import Dataset
from labelproof.seeds import derive_seed
from labelproof.training.augmentation import (
    draw_augmentation,
    gather_images,
    parse_augmentation,
    prepare_images,
)
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import TYPES


def generator_for(seed: int, purpose: str, epoch: int = 0) -> torch.Generator:
    """A generator on the CPU, seeded for one purpose in one epoch.

    >>> torch.rand(2, generator=generator_for(1, "order"))
    tensor([0.8866, 0.1006])
    """
    return torch.Generator().manual_seed(derive_seed(seed, purpose, epoch))


class Share(NamedTuple):
    """The size of a process's share of a batch."""

    local: int
    """Number of examples in this process."""
    whole: int
    """Number of examples in all processes."""


class EpochPlan(NamedTuple):
    """The random choices of an epoch, for one process."""

    order: Tensor
    """Indices of the examples, in order, `(n)`."""
    draws: Tensor
    """Random numbers for the augmentation of each, `(n, K)`."""
    steps: list[Share]
    """The sizes of the batches, consecutive in `order`."""


def plan_epoch(
    used: NDArray[np.int64],
    epoch: int,
    configuration: Configuration,
    *,
    rank: int = 0,
    world_size: int = 1,
) -> EpochPlan:
    """Shuffle the examples, draw their augmentation, and split the batches among processes.

    The last batch may be smaller, as in the paper. A last batch with a single example, for which
    batch norm fails, or with fewer examples than processes is dropped.

    >>> plan = plan_epoch(np.arange(10), 0, Configuration("digits", batch_size=4))
    >>> plan.order
    tensor([4, 5, 0, 6, 8, 3, 7, 9, 2, 1])
    >>> [share.local for share in plan.steps]
    [4, 4, 2]
    """
    seed, batch_size = configuration.seed, configuration.batch_size
    augmentation = parse_augmentation(configuration.augmentation)
    shuffled = torch.randperm(len(used), generator=generator_for(seed, "order", epoch))
    order = torch.from_numpy(used)[shuffled]
    draws = draw_augmentation(augmentation, len(used), generator_for(seed, "augmentation", epoch))
    steps, rows = [], []
    for start in range(0, len(order), batch_size):
        whole = min(batch_size, len(order) - start)
        if whole < max(2, world_size):
            break
        first, last = whole * rank // world_size, whole * (rank + 1) // world_size
        steps.append(Share(last - first, whole))
        rows.append(torch.arange(start + first, start + last))
    chosen = torch.cat(rows) if rows else torch.zeros(0, dtype=torch.int64)
    return EpochPlan(order[chosen], draws[chosen], steps)


class Fetched(NamedTuple):
    """A step's examples on the device."""

    inputs: Tensor
    """Inputs of a network, `(B, ...)`."""
    indices: Tensor
    """Indices of the examples, `(B)`."""
    target: Tensor
    """The given labels, `(B)`."""
    clean: Tensor
    """The true labels, `(B)`; the given ones if unknown."""
    weight: Tensor | None = None
    """The weight of each example, `(B)`, or `None` for equal weights."""


class Feed(ABC):
    """The batches of a run.

    Args:
        inputs: The inputs.
        examples: Their labels and weights.
        configuration: Its augmentation and precision are used; the precision is not `auto`.
    """

    def __init__(self, inputs: DeviceInputs, examples: Examples, configuration: Configuration):
        self.augmentation = parse_augmentation(configuration.augmentation)
        self.dtype = TYPES[configuration.precision]
        self.mean, self.std = inputs.mean, inputs.std
        to_device = partial(torch.as_tensor, device=inputs.device)
        self.given = to_device(examples.given)
        self.clean = self.given if examples.clean is None else to_device(examples.clean)
        self.weight = None if examples.weight is None else to_device(examples.weight)

    @abstractmethod
    def load(self, plan: EpochPlan, *, start: int = 0) -> None:
        """Load an epoch's plan, from step `start` on."""

    @abstractmethod
    def fetch(self, size: int) -> Fetched:
        """The next `size` examples, on the device."""

    def augment(self, images: Tensor, index: Tensor | None, draws: Tensor) -> Tensor:
        """See `gather_images`."""
        return gather_images(
            images,
            index,
            draws,
            self.augmentation,
            mean=self.mean,
            std=self.std,
            dtype=self.dtype,
        )

    def with_labels(self, inputs: Tensor, indices: Tensor) -> Fetched:
        """Inputs with their labels and weights."""
        target = self.given[indices]
        # On a CPU a second lookup costs as much as the first.
        clean = target if self.clean is self.given else self.clean[indices]
        weight = None if self.weight is None else self.weight[indices]
        return Fetched(inputs, indices, target, clean, weight)

    def stage(self) -> None:  # noqa: B027 (resident inputs are there already)
        """Called on the host before a step, to copy its batch to the device."""

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors that a step changes, by name."""
        return {}


CHUNK = 500
"""Batch size of evaluation: large enough to keep a GPU busy, small enough to need little memory."""


class DeviceInputs(ABC):
    """A dataset's images, or the rows of a table, for a device."""

    resident: ClassVar[bool]
    """Whether all of them are on the device, so that no step waits for the host."""

    def __init__(self, dataset: Dataset, device: torch.device):
        self.dataset = dataset
        self.device = device
        self.mean = torch.tensor(dataset.mean, device=device)
        self.std = torch.tensor(dataset.std, device=device)

    @abstractmethod
    def evaluated(self, held: Tensor | None = None, *, crop: int = 0) -> Iterator[Tensor]:
        """The test inputs, or the training inputs `held`, `CHUNK` at a time, ready for a network.

        Args:
            held: Indices on the device.
            crop: Side of the centre crop.
        """

    @abstractmethod
    def feed(self, examples: Examples, configuration: Configuration) -> Feed:
        """The batches of a run."""

    def close(self) -> None:  # noqa: B027 (most have nothing to do)
        """Stop the processes that decode images."""


class ResidentInputs(DeviceInputs):
    """A dataset's images or rows, all of them on the device and shared by its runs.

    Images are augmented and normalised batch by batch; rows are standardised once.
    """

    resident = True

    def __init__(self, dataset: Dataset, device: torch.device):
        super().__init__(dataset, device)
        self.train = self._to_device("train")
        self.test = self._to_device("test") if "test" in dataset.splits else self.train[:0]

    def _to_device(self, split: str) -> Tensor:
        array = self.dataset.splits[split].array
        if self.dataset.tabular:
            rows = standardize(array, mean=self.dataset.mean, std=self.dataset.std)
            return rows.to(self.device)
        return torch.from_numpy(array).to(self.device).permute(0, 2, 3, 1).contiguous()

    def evaluated(self, held: Tensor | None = None, *, crop: int = 0) -> Iterator[Tensor]:
        """The test inputs, or the training inputs `held`, ready for a network."""
        for part in (self.test if held is None else held).split(CHUNK):
            inputs = part if held is None else self.train[part]
            if not self.dataset.tabular:
                inputs = prepare_images(inputs, mean=self.mean, std=self.std, size=crop or None)
            yield inputs

    def feed(self, examples: Examples, configuration: Configuration) -> Feed:
        """The batches of a run."""
        return ResidentFeed(self, examples, configuration)


class ResidentFeed(Feed):
    """Batches of inputs that are on the device."""

    def __init__(self, inputs: ResidentInputs, examples: Examples, configuration: Configuration):
        super().__init__(inputs, examples, configuration)
        self.train, self.tabular = inputs.train, inputs.dataset.tabular
        device, count = inputs.device, len(self.given)
        self.order = torch.zeros(count, dtype=torch.int64, device=device)
        self.draws = torch.zeros(count, self.augmentation.num_draws, device=device)
        self.position = torch.zeros((), dtype=torch.int64, device=device)

    def load(self, plan: EpochPlan, *, start: int = 0) -> None:
        """Load an epoch's plan, from step `start` on."""
        for buffer, planned in ((self.order, plan.order), (self.draws, plan.draws)):
            # Pinned, so that the copy is asynchronous in the run's stream.
            source = planned.pin_memory() if buffer.is_cuda else planned
            buffer[: len(planned)].copy_(source, non_blocking=True)
        self.position.fill_(sum(share.local for share in plan.steps[:start]))

    def fetch(self, size: int) -> Fetched:
        """The next `size` examples."""
        rows = self.position + torch.arange(size, device=self.position.device)
        indices = self.order[rows]
        if self.tabular:
            inputs = self.train.index_select(0, indices).to(self.dtype)
        else:
            inputs = self.augment(self.train, indices, self.draws[rows])
        self.position += size
        return self.with_labels(inputs, indices)

    @property
    def state(self) -> dict[str, Tensor]:
        """The position; `load` restores the rest."""
        return {"position": self.position}


_CHUNK = 1 << 16


def standardize(
    rows: NDArray[np.generic], *, mean: Sequence[float], std: Sequence[float]
) -> Tensor:
    """Standardise rows: each feature has mean 0 and standard deviation 1 in training.

    >>> standardize(np.array([[3.0, 5.0]], dtype=np.float32), mean=[1, 5], std=[2, 1])
    tensor([[1., 0.]])
    """
    standard = torch.empty(rows.shape, dtype=torch.float32)
    for start in range(0, len(rows), _CHUNK):
        # In float64: float32 would lose the day of a date or the cents of a price beside its mean.
        wide = (rows[start : start + _CHUNK].astype(np.float64) - mean) / std
        standard[start : start + _CHUNK] = torch.from_numpy(wide)
    return standard
