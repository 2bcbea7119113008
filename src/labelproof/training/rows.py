"""The rows of a table on a device: standardised once, then taken batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelproof.data.dataset import Dataset
from labelproof.training.augmentation import Augmentation
from labelproof.training.feed import (
    EpochPlan,
    Feed,
    Fetched,
    Labels,
    ResidentFeed,
    ResidentInputs,
)

__all__ = ["ResidentRows", "RowFeed", "standardize"]

_CHUNK = 1 << 16

_AHEAD = 1 << 19
"""Numbers that are gathered at once: what a core's cache holds while the steps read them."""


class ResidentRows(ResidentInputs):
    """A table's rows on a device, shared by all runs there.

    Args:
        dataset: A tabular one.
        device: Where they go.
    """

    def __init__(self, dataset: Dataset, device: torch.device):
        super().__init__(dataset, device)
        self.train = self._bring("train")
        self.test = self._bring("test") if self.has_test else None

    def _bring(self, split: str) -> Tensor:
        rows = self.dataset.splits[split].array
        return standardize(rows, mean=self.dataset.mean, std=self.dataset.std).to(self.device)

    def make_feed(
        self,
        augmentation: Augmentation,
        count: int,
        *,
        labels: Labels,
        dtype: torch.dtype,
        batch_size: int,
    ) -> Feed:
        """What gives a run its batches."""
        if augmentation.columns:
            raise ValueError(
                f"augmentation: expected none for the rows of a table, got {augmentation}"
            )
        if self.device.type != "cpu":
            return super().make_feed(
                augmentation, count, labels=labels, dtype=dtype, batch_size=batch_size
            )
        ahead = _AHEAD // self.train.shape[1]
        return RowFeed(self, augmentation, count, labels=labels, dtype=dtype, ahead=ahead)

    def prepare(self, inputs: Tensor, crop: int) -> Tensor:
        """Rows as they are: they were standardised once for all."""
        return inputs

    def gather(
        self, index: Tensor, draws: Tensor, augmentation: Augmentation, dtype: torch.dtype
    ) -> Tensor:
        """A batch of training rows."""
        return self.train.index_select(0, index).to(dtype)


class RowFeed(ResidentFeed):
    """Batches on the CPU, cut from some thousand rows that are gathered at once.

    There a step of a small network lasts as long as a few lookups; a cut is next to nothing.

    Args:
        images: The rows.
        augmentation: None.
        count: Examples in an epoch.
        labels: Of all training examples.
        dtype: In which the network takes its inputs.
        ahead: How many rows are gathered at once; a batch at least.
    """

    def __init__(
        self,
        images: ResidentInputs,
        augmentation: Augmentation,
        count: int,
        *,
        labels: Labels,
        dtype: torch.dtype = torch.float32,
        ahead: int,
    ):
        super().__init__(images, augmentation, count, labels=labels, dtype=dtype)
        self.ahead = ahead
        self._size = 0
        self._cut: list[Fetched] = []
        # Where the tensor would be; `None` where it is right, and where others may move it.
        self._at: int | None = None

    def load(self, plan: EpochPlan, *, start: int = 0) -> None:
        """Take over an epoch's plan, with the first `start` steps behind it."""
        super().load(plan, start=start)
        self._at, self._cut = None, []
        # All batches of an epoch are alike but for the last.
        self._size = plan.steps[start].local if start < len(plan.steps) else 0

    def fetch(self, size: int) -> Fetched:
        """The next `size` examples."""
        # Compiled, it would be compiled anew for every position.
        if size != self._size or torch.compiler.is_compiling():
            self._settle()
            return super().fetch(size)
        if self._at is None:
            self._at, self._cut = int(self.position), []
        if not self._cut:
            self._cut = self._gather(self._at, size)
        self._at += size
        return self._cut.pop()

    @property
    def state(self) -> dict[str, Tensor]:
        """The position; the rest is planned anew."""
        self._settle()
        return super().state

    def _settle(self) -> None:
        if self._at is not None:
            self.position.fill_(self._at)
            self._at = None

    def _gather(self, position: int, size: int) -> list[Fetched]:
        """The next batches, the last of them first."""
        last = position + max(1, self.ahead // size) * size
        index, draws = self.order[position:last], self.draws[position:last]
        inputs = self.images.gather(index, draws, self.augmentation, self.dtype)
        given, clean, weight = self.labels.at(index)
        targets = given.split(size)
        cuts = zip(
            inputs.split(size),
            index.split(size),
            targets,
            targets if clean is given else clean.split(size),
            [None] * len(targets) if weight is None else weight.split(size),
            strict=True,
        )
        return [Fetched(*each) for each in cuts][::-1]


def standardize(
    rows: NDArray[np.generic], *, mean: Sequence[float], std: Sequence[float]
) -> Tensor:
    """Rows as a network takes them: each feature with mean 0 and deviation 1 in training.

    >>> standardize(np.array([[3.0, 5.0]], dtype=np.float32), mean=[1, 5], std=[2, 1])
    tensor([[1., 0.]])
    """
    standard = torch.empty(rows.shape, dtype=torch.float32)
    for start in range(0, len(rows), _CHUNK):
        # In float64: the year's day of a date or a price in cents is lost beside its mean in less.
        wide = (rows[start : start + _CHUNK].astype(np.float64) - mean) / std
        standard[start : start + _CHUNK] = torch.from_numpy(wide)
    return standard
