"""What is summed up over an epoch on the device, and read once at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from labelproof.training.backlog import Backlog

__all__ = ["MEMORY", "SEEN", "Counted", "Reading", "Tally"]

MEMORY = ("clean_fitted", "wrong_fitted", "wrong_corrected")
"""Counted where clean labels are known: right labels that are predicted, wrong labels that are
predicted, and wrong labels in whose place the true class is."""

SEEN = ("clean_seen", "wrong_seen")
"""How many labels were right, and how many wrong, that they are shares of."""


class Counted(NamedTuple):
    """What an epoch came to, on the host."""

    sums: dict[str, float]
    """Over the training examples, by name."""
    correct: int
    """Test examples that are predicted right."""
    held_correct: int
    """Examples that were held out and whose given label is predicted."""
    held_predicted: list[int]
    """How often each class is predicted for those."""
    diverged: int
    """The first step whose loss was not a number, or -1."""


class Tally:
    """Sums over an epoch's examples, the number of steps, and the first step that went wrong.

    Args:
        parts: Names of the parts of the loss.
        num_classes: Number of classes.
        device: Where the steps run.
    """

    def __init__(self, parts: Sequence[str], num_classes: int, device: torch.device):
        self.names = ("train_loss", *parts, *MEMORY, *SEEN)
        # Apple's GPUs have no float64; a million small numbers still add up well enough there.
        kind = torch.float32 if device.type == "mps" else torch.float64
        self.sums = torch.zeros(len(self.names), dtype=kind, device=device)
        self.correct = torch.zeros((), dtype=torch.int64, device=device)
        # On examples that are held out: how often each class is predicted rightly, and at all.
        # Counted anew at the end of every epoch, so a checkpoint has no need of it.
        self.held = torch.zeros(2, num_classes, dtype=torch.int64, device=device)
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        # The first step whose loss was not a number, or -1. It is read between epochs, since a
        # look at every step would make the host wait for the device.
        self.diverged = torch.full((), -1, dtype=torch.int64, device=device)
        # Steps that are yet to be counted, where that is left for later.
        self.backlog: Backlog | None = None

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors, by name, with all steps counted."""
        self._settle()
        return {
            "sums": self.sums,
            "correct": self.correct,
            "count": self.count,
            "diverged": self.diverged,
        }

    def add(self, total: Tensor, counted: Tensor) -> None:
        """Take in one step."""
        self.sums += counted
        bad = ~torch.isfinite(total) & (self.diverged < 0)
        self.diverged.copy_(torch.where(bad, self.count, self.diverged))
        self.count += 1

    def start_epoch(self) -> None:
        """Forget the sums of the epoch before."""
        self._settle()
        self.sums.zero_()

    def read(self) -> Reading:
        """Ask for the values as they are now; on CUDA they arrive while the host goes on."""
        self._settle()
        return Reading(self)

    def _settle(self) -> None:
        if self.backlog is not None:
            self.backlog.settle()


class Reading:
    """Values on their way from the device."""

    def __init__(self, tally: Tally):
        self.names = tally.names
        device = tally.sums.device
        kind = tally.sums.dtype
        self.classes = tally.held.shape[1]
        ends = torch.stack([tally.correct, tally.diverged]).to(kind)
        packed = torch.cat([tally.sums, tally.held.flatten().to(kind), ends])
        self.event: Any = None
        if device.type == "cuda":
            self.values = torch.empty(packed.shape, dtype=packed.dtype, pin_memory=True)
            self.values.copy_(packed, non_blocking=True)
            self.event = torch.cuda.Event()
            self.event.record()
        else:
            self.values = packed

    def wait(self) -> Counted:
        """What they are."""
        if self.event is not None:
            self.event.synchronize()
        *values, correct, diverged = self.values.tolist()
        sums, held = values[: len(self.names)], values[len(self.names) :]
        right, predicted = held[: self.classes], held[self.classes :]
        return Counted(
            dict(zip(self.names, sums, strict=True)),
            int(correct),
            int(sum(right)),
            [int(each) for each in predicted],
            int(diverged),
        )
