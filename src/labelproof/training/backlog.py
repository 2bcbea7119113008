"""Steps whose examples are counted later, many at a time.

What is reported of a step takes some thirty small operations, and on a CPU each costs as much for
two hundred examples as for ten thousand. So a step leaves its logits here, and they are counted
when some dozen steps have come together, or when someone asks.

The sums do not depend on when that is, to the last bit. A step has its place among the others by
its number, places that are empty are filled with zeros, and so every kernel meets the same shapes
and computes each example in the same way; then the steps are added up one by one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from labelproof.training.algorithms.base import Algorithm, Seen
from labelproof.training.feed import Fetched
from labelproof.training.tally import Tally

__all__ = ["Backlog"]

_MOST_STEPS = 64
_MOST_NUMBERS = 1 << 20


class _Kept(NamedTuple):
    loss: float
    logits: Tensor
    target: Tensor
    clean: Tensor
    seen: Seen


class Backlog:
    """Takes in the steps of a run for its tally.

    Args:
        tally: Where they are counted in the end.
        algorithm: One that `defers`.
        batch_size: Examples in a step, at most.
        num_classes: Number of classes.

    Example:
        >>> from labelproof import CrossEntropy
        >>> from labelproof.training.algorithms import Supervised
        >>> tally = Tally(["sparse_rate"], 2, torch.device("cpu"))
        >>> algorithm = Supervised(CrossEntropy(), num_classes=2, num_examples=1)
        >>> backlog = tally.backlog = Backlog(tally, algorithm, batch_size=1, num_classes=2)
        >>> label = torch.tensor([1])
        >>> fetched = Fetched(torch.zeros(1, 3), torch.tensor([0]), label, label)
        >>> backlog.add(torch.tensor(0.5), torch.tensor([[0.0, 9.0]]), fetched)
        >>> int(tally.count), tally.read().wait().sums["train_loss"], int(tally.count)
        (0, 0.5, 1)
    """

    def __init__(self, tally: Tally, algorithm: Algorithm, *, batch_size: int, num_classes: int):
        self.tally = tally
        self.algorithm = algorithm
        self.batch_size = batch_size
        self.num_classes = num_classes
        self.places = max(1, min(_MOST_STEPS, _MOST_NUMBERS // (batch_size * num_classes)))
        self._first = 0
        self._kept: list[_Kept] = []

    def add(
        self, total: Tensor, logits: Tensor, fetched: Fetched, seen: Seen | None = None
    ) -> None:
        """Take in one step.

        Args:
            total: Its loss.
            logits: What the network said.
            fetched: The examples.
            seen: What the loss made of the logits, where that is at hand.
        """
        if not self._kept:
            self._first = int(self.tally.count)
        loss = float(total.detach())
        if not math.isfinite(loss) and int(self.tally.diverged) < 0:
            self.tally.diverged.fill_(self._first + len(self._kept))
        logits = logits.detach()
        if seen is None:
            seen = self.algorithm.see(logits)
        self._kept.append(_Kept(loss, logits, fetched.target, fetched.clean, seen))
        if (self._first + len(self._kept)) % self.places == 0:
            self.settle()

    @torch.no_grad()
    def settle(self) -> None:
        """Count what has come together."""
        if not self._kept:
            return
        kept, self._kept = self._kept, []
        before = self._first % self.places
        sizes = [0] * before + [each.target.shape[0] for each in kept]
        sizes += [0] * (self.places - len(sizes))
        losses = [0.0] * before + [each.loss for each in kept]
        losses += [0.0] * (self.places - len(losses))
        predicted = self._place([each.logits for each in kept], before).argmax(dim=1)
        target = self._place([each.target for each in kept], before)
        known = any(each.clean is not each.target for each in kept)
        clean = self._place([each.clean for each in kept], before) if known else target
        totals = torch.tensor(losses, dtype=torch.float32).repeat_interleave(self.batch_size)
        parts = self.algorithm.example_parts(totals, self._place_seen(kept, before))
        named = [parts[name] for name in self.tally.names if name in parts]
        found = torch.stack([*map(_wide, named), *map(_wide, _memory(predicted, target, clean))])
        there = torch.arange(self.batch_size) < torch.tensor(sizes).unsqueeze(1)
        # `where`, not a product: a step that went wrong leaves what is not a number.
        shaped = found.view(len(found), self.places, self.batch_size)
        steps = torch.where(there, shaped, 0).sum(dim=2).t().tolist()
        sums = self.tally.sums.tolist()
        for place in range(before, before + len(kept)):
            of_step = [losses[place] * sizes[place], *steps[place]]
            sums = [old + new for old, new in zip(sums, of_step, strict=True)]
        self.tally.sums.copy_(torch.tensor(sums, dtype=self.tally.sums.dtype))
        self.tally.count += len(kept)

    def _place(self, pieces: list[Tensor], before: int) -> Tensor:
        """All pieces in one tensor, each with room for a whole batch."""
        shape = pieces[0].shape[1:]
        filled = pieces[0].new_zeros(before * self.batch_size, *shape)
        laid = [filled]
        for piece in pieces:
            laid.append(piece)
            if len(piece) < self.batch_size:
                laid.append(piece.new_zeros(self.batch_size - len(piece), *shape))
        rest = self.places - before - len(pieces)
        laid.append(filled.new_zeros(rest * self.batch_size, *shape))
        return torch.cat(laid)

    def _place_seen(self, kept: list[_Kept], before: int) -> Seen:
        likely = self._place([each.seen.log_probabilities for each in kept], before)
        penalties = [each.seen.penalty for each in kept if each.seen.penalty is not None]
        return Seen(likely, self._place(penalties, before) if penalties else None)


def _memory(predicted: Tensor, target: Tensor, clean: Tensor) -> list[Tensor]:
    """Of each example whether it adds to the counts of `MEMORY` and `SEEN`."""
    right, fitted = target == clean, target == predicted
    wrong = ~right
    return [right & fitted, wrong & fitted, wrong & (predicted == clean), right, wrong]


def _wide(values: Tensor) -> Tensor:
    return values.to(torch.float64)
