"""The metrics of an epoch: sums on the device, read once at its end.

On the CPU a step's examples are counted later, many steps at a time. What is reported of a step
takes some thirty small operations, each of which costs as much for two hundred examples as for ten
thousand. So a step leaves its logits in a `Backlog`. The sums do not depend on when they are
counted, to the last bit: a step has its place among the others by its number, empty places are
filled with zeros so that every kernel meets the same shapes, and the steps are added one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelproof.losses import Loss, SparseRegularized
from labelproof.training.algorithms.base import Algorithm, Seen
from labelproof.training.batches import Fetched
from labelproof.training.configuration import Configuration, parse_learning_rate
from labelproof.training.examples import Examples

MEMORY = ("clean_fitted", "wrong_fitted", "wrong_corrected")
"""Counted where clean labels are known: right labels that are predicted, wrong labels that are
predicted, and wrong labels in whose place the true class is."""

SEEN = ("clean_seen", "wrong_seen")
"""How many labels were right, and how many wrong, that they are shares of."""


class Counted(NamedTuple):
    """The sums of an epoch, on the host."""

    sums: dict[str, float]
    """Over the training examples, by name."""
    correct: int
    """Test examples that are predicted right."""
    held_correct: int
    """Examples that were held out and whose given label is predicted."""
    held_predicted: list[int]
    """How often each class is predicted for those."""
    diverged: int
    """The first step whose loss was NaN or infinite, or -1."""


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
        # The first step whose loss was NaN or infinite, or -1. It is read between epochs, because
        # reading it at every step would make the host wait for the device.
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
        """Add one step."""
        self.sums += counted
        bad = ~torch.isfinite(total) & (self.diverged < 0)
        self.diverged.copy_(torch.where(bad, self.count, self.diverged))
        self.count += 1

    def start_epoch(self) -> None:
        """Forget the sums of the epoch before."""
        self._settle()
        self.sums.zero_()

    def read(self) -> Reading:
        """Ask for the values as they are now; on CUDA they arrive while the host continues."""
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
        """Count the steps that are waiting."""
        if not self._kept:
            return
        kept = self._kept
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
        # `where`, not a product: a step that diverged leaves NaN.
        shaped = found.view(len(found), self.places, self.batch_size)
        steps = torch.where(there, shaped, 0).sum(dim=2).t().tolist()
        sums = self.tally.sums.tolist()
        for place in range(before, before + len(kept)):
            of_step = [losses[place] * sizes[place], *steps[place]]
            sums = [old + new for old, new in zip(sums, of_step, strict=True)]
        # Together, at the end: an error on the way leaves all steps to be counted.
        self._kept = []
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


class DivergedError(ArithmeticError):
    """Training diverged: the loss is NaN or infinite."""


@dataclass(frozen=True)
class Epoch:
    """What the host knows of an epoch, until the device's sums arrive.

    Attributes:
        number: Counted from 0.
        reading: The sums, on their way.
        schedules: Values that move with the epoch.
        examples: How many were trained on.
    """

    number: int
    reading: Reading
    schedules: dict[str, float]
    examples: int


def schedules_at(epoch: int, configuration: Configuration, loss: Loss) -> dict[str, float]:
    """The learning rate and, for a sparse-regularized loss, its weight and temperature.

    >>> from labelproof import CrossEntropy
    >>> schedules_at(0, Configuration("digits", learning_rate=0.1), CrossEntropy())
    {'learning_rate': 0.1}
    """
    schedule = parse_learning_rate(configuration.schedule)
    rate = schedule.over(configuration.learning_rate, epochs=configuration.epochs)
    values = {"learning_rate": rate(epoch)}
    if isinstance(loss, SparseRegularized):
        values["weight"] = loss.weight_schedule(epoch)
        values["temperature"] = loss.temperature_schedule(epoch)
    return values


def epoch_metrics(epoch: Epoch, counted: Counted, examples: Examples) -> dict[str, float]:
    """An epoch's line in the log.

    Args:
        epoch: The epoch.
        counted: What the tally summed up.
        examples: Where the labels came from.

    Returns:
        Means over the examples as they passed, accuracies in percent, the schedules, and, where
        the clean labels are known, shares of the labels in `tally.MEMORY`. `validation_accuracy` is
        by the labels as they are given, wrong ones among them, and `predicted_classes` says over
        how many classes the predictions there spread: the exponential of their entropy.
    """
    sums = counted.sums
    metrics: dict[str, float] = {"epoch": epoch.number}
    metrics |= {
        name: value / max(epoch.examples, 1)
        for name, value in sums.items()
        if name not in (*MEMORY, *SEEN)
    }
    if "test" in examples.dataset.splits:
        metrics["test_accuracy"] = 100 * counted.correct / max(len(examples.dataset.test), 1)
    if len(examples.held):
        metrics["validation_accuracy"] = 100 * counted.held_correct / len(examples.held)
        metrics["predicted_classes"] = spread(counted.held_predicted)
    metrics |= epoch.schedules
    if examples.clean is not None:
        for name in MEMORY:
            seen = "clean_seen" if name == "clean_fitted" else "wrong_seen"
            metrics[name] = sums[name] / max(sums[seen], 1)
    return metrics


def spread(counts: Sequence[int]) -> float:
    """Over how many classes counts spread: all of them when even, 1 when all are of one.

    >>> spread([5, 5, 5, 5]), spread([0, 9, 0, 0])
    (4.0, 1.0)
    """
    total = max(sum(counts), 1)
    shares = [count / total for count in counts if count]
    return round(math.exp(-sum(share * math.log(share) for share in shares)), 6)


def explain_divergence(
    step: int, steps_per_epoch: int, configuration: Configuration, loss: Loss
) -> str:
    """Say at which step training diverged, and what was set then."""
    epoch, within = divmod(step, max(steps_per_epoch, 1))
    names = {"learning_rate": "learning rate", "weight": "lambda", "temperature": "tau"}
    said = ", ".join(
        f"{names[name]} {value:g}"
        for name, value in schedules_at(epoch, configuration, loss).items()
    )
    helps = ["a lower learning rate"]
    if isinstance(loss, SparseRegularized):
        helps.append("a smaller lambda0")
    if configuration.precision != "float32":
        helps.append("--set precision=float32")
    return (
        f"training diverged: the loss is NaN since step {within + 1} of epoch {epoch + 1} "
        f"({said}); what often helps: {', '.join(helps)}"
    )
