"""What is summed up over an epoch on the device, and read once at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["MEMORY", "SEEN", "Reading", "Tally"]

MEMORY = ("clean_fitted", "wrong_fitted", "wrong_corrected")
"""Counted where clean labels are known: right labels that are predicted, wrong labels that are
predicted, and wrong labels in whose place the true class is."""

SEEN = ("clean_seen", "wrong_seen")
"""How many labels were right, and how many wrong, that they are shares of."""


class Tally:
    """Sums over an epoch's examples, the number of steps, and the first step that went wrong.

    Args:
        parts: Names of the parts of the loss.
        device: Where the steps run.
    """

    def __init__(self, parts: Sequence[str], device: torch.device):
        self.names = ("train_loss", *parts, *MEMORY, *SEEN)
        # Apple's GPUs have no float64; a million small numbers still add up well enough there.
        kind = torch.float32 if device.type == "mps" else torch.float64
        self.sums = torch.zeros(len(self.names), dtype=kind, device=device)
        self.correct = torch.zeros((), dtype=torch.int64, device=device)
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        # The first step whose loss was not a number, or -1. It is read between epochs, since a
        # look at every step would make the host wait for the device.
        self.diverged = torch.full((), -1, dtype=torch.int64, device=device)

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors, by name."""
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
        self.sums.zero_()

    def read(self) -> Reading:
        """Ask for the values as they are now; on CUDA they arrive while the host goes on."""
        return Reading(self)


class Reading:
    """Values on their way from the device."""

    def __init__(self, tally: Tally):
        self.names = tally.names
        device = tally.sums.device
        kind = tally.sums.dtype
        values = [*tally.sums, tally.correct.to(kind), tally.diverged.to(kind)]
        packed = torch.stack(values)
        self.event: Any = None
        if device.type == "cuda":
            self.values = torch.empty(packed.shape, dtype=packed.dtype, pin_memory=True)
            self.values.copy_(packed, non_blocking=True)
            self.event = torch.cuda.Event()
            self.event.record()
        else:
            self.values = packed

    def wait(self) -> tuple[dict[str, float], int, int]:
        """The sums by name, the test examples predicted right, and the step that diverged or -1."""
        if self.event is not None:
            self.event.synchronize()
        *sums, correct, diverged = self.values.tolist()
        return dict(zip(self.names, sums, strict=True)), int(correct), int(diverged)
