"""The metrics of an epoch: sums on the device, read once at its end, and its evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch import Tensor, nn

from labelproof.losses import Loss, SparseRegularized
from labelproof.training.batches import CHUNK, Fetched
from labelproof.training.configuration import Configuration, learning_rate
from labelproof.training.examples import Examples
from labelproof.training.execution import autocast

MEMORY = ("clean_fitted", "wrong_fitted", "wrong_corrected")
"""Counted where clean labels are known: right labels that are predicted, wrong labels that are
predicted, and wrong labels in whose place the true class is."""

SEEN = ("clean_seen", "wrong_seen")
"""How many labels were right, and how many wrong, that they are shares of."""


ENDS = ("correct", "diverged")
"""How many test examples are predicted right, and the first step whose loss was NaN or infinite."""


class Tally:
    """Sums over an epoch's examples, the number of steps, and the first step that went wrong."""

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

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors, by name."""
        return {name: getattr(self, name) for name in ("sums", "correct", "count", "diverged")}

    @torch.no_grad()
    def add(
        self, loss: Tensor, parts: Mapping[str, Tensor], logits: Tensor, fetched: Fetched
    ) -> None:
        """Add one step."""
        means = torch.stack([loss, *parts.values()])
        counts, kind = count_fitted(logits.argmax(dim=1), fetched), self.sums.dtype
        self.sums += torch.cat([means.to(kind) * len(logits), counts.to(kind)])
        bad = ~torch.isfinite(loss) & (self.diverged < 0)
        self.diverged.copy_(torch.where(bad, self.count, self.diverged))
        self.count += 1

    def share(self) -> None:
        """Make what each process counted that of all; the first step that broke is theirs."""
        for tensor in (self.sums, self.correct, self.held):
            torch.distributed.all_reduce(tensor)
        torch.distributed.all_reduce(self.diverged, op=torch.distributed.ReduceOp.MAX)


def count_fitted(predicted: Tensor, fetched: Fetched) -> Tensor:
    """How many examples of a batch add to each of `MEMORY` and `SEEN`, `(5)`."""
    target, clean = fetched.target, fetched.clean
    right, fitted = target == clean, target == predicted
    corrected = ~right & (predicted == clean)
    kinds = [right & fitted, ~right & fitted, corrected, right, ~right]
    return torch.stack(kinds).sum(dim=1)


class DivergedError(ArithmeticError):
    """Training diverged: the loss is NaN or infinite."""


class Epoch:
    """An epoch that has ended; on CUDA its sums arrive while the host continues.

    Args:
        tally: Its sums, as they are now.
        number: Counted from 0.
        schedules: Values that move with the epoch.
        examples: How many were trained on.
    """

    def __init__(self, tally: Tally, number: int, schedules: dict[str, float], examples: int):
        self.number, self.schedules, self.examples = number, schedules, examples
        self.names, self.classes = (*tally.names, *ENDS), tally.held.shape[1]
        kind = tally.sums.dtype
        ends = torch.stack([tally.correct, tally.diverged]).to(kind)
        self.values = packed = torch.cat([tally.sums, ends, tally.held.flatten().to(kind)])
        self.event: Any = None
        if packed.is_cuda:
            self.values = torch.empty(packed.shape, dtype=packed.dtype, pin_memory=True)
            self.values.copy_(packed, non_blocking=True)
            self.event = torch.cuda.Event()
            self.event.record()

    def wait(self) -> tuple[dict[str, float], list[float], list[float]]:
        """The sums by name, and how often each class is rightly predicted, and at all, if held out.

        They are on the host.
        """
        if self.event is not None:
            self.event.synchronize()
        sizes = [len(self.names), self.classes, self.classes]
        sums, right, predicted = map(Tensor.tolist, self.values.split(sizes))
        return dict(zip(self.names, sums, strict=True)), right, predicted


def schedules_at(epoch: int, configuration: Configuration, loss: Loss) -> dict[str, float]:
    """The learning rate and, for a sparse-regularized loss, its weight and temperature."""
    rate = learning_rate(
        configuration.schedule, configuration.learning_rate, epochs=configuration.epochs
    )
    values = {"learning_rate": rate(epoch)}
    if isinstance(loss, SparseRegularized):
        values["weight"] = loss.weight_schedule(epoch)
        values["temperature"] = loss.temperature_schedule(epoch)
    return values


def epoch_metrics(epoch: Epoch, examples: Examples) -> dict[str, float]:
    """An epoch's line in the log.

    Returns:
        Means over the examples as they passed, accuracies in percent, the schedules, and, where
        the clean labels are known, shares of the labels in `tally.MEMORY`. `validation_accuracy` is
        by the labels as they are given, wrong ones among them, and `predicted_classes` says over
        how many classes the predictions there spread: the exponential of their entropy.
    """
    sums, right, predicted = epoch.wait()
    metrics: dict[str, float] = {"epoch": epoch.number}
    for name, value in sums.items():
        if name not in (*MEMORY, *SEEN, *ENDS):
            metrics[name] = value / max(epoch.examples, 1)
    if "test" in examples.dataset.splits:
        metrics["test_accuracy"] = 100 * sums["correct"] / max(len(examples.dataset.test), 1)
    if len(examples.held):
        metrics["validation_accuracy"] = 100 * sum(right) / len(examples.held)
        metrics["predicted_classes"] = spread(predicted)
    metrics |= epoch.schedules
    if examples.clean is not None:
        for name in MEMORY:
            seen = "clean_seen" if name == "clean_fitted" else "wrong_seen"
            metrics[name] = sums[name] / max(sums[seen], 1)
    return metrics


def spread(counts: Sequence[float]) -> float:
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
    return (
        f"training diverged: the loss is NaN since step {within + 1} of epoch {epoch + 1} "
        f"({said}); what often helps: a lower learning rate, a smaller lambda0, float32"
    )


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Inside, the network is in evaluation mode and nothing is remembered for gradients."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(was_training)


def count_predictions(
    network: nn.Module,
    batches: Iterable[Tensor],
    labels: Tensor,
    *,
    num_classes: int,
    precision: str,
    rank: int = 0,
    world_size: int = 1,
) -> Tensor:
    """How often each class is predicted rightly, and how often at all, as a tensor `(2, C)`."""
    counts = torch.zeros(2, num_classes, dtype=torch.int64, device=labels.device)
    with evaluating(network):
        for number, (inputs, target) in enumerate(zip(batches, labels.split(CHUNK), strict=True)):
            if number % world_size != rank:
                continue
            with autocast(precision, inputs.device):
                predicted = network(inputs).argmax(dim=1)
            right = (predicted == target).to(torch.int64)
            counts[0].index_add_(0, predicted, right)
            counts[1].index_add_(0, predicted, torch.ones_like(right))
    return counts


def predict_logits(
    network: nn.Module, batches: Iterable[Tensor], *, precision: str
) -> NDArray[np.float16]:
    """Logits of all inputs in order, `(N, C)`, as a run keeps them."""
    found = []
    with evaluating(network):
        for inputs in batches:
            with autocast(precision, inputs.device):
                found.append(network(inputs).float().cpu())
    # Half precision tells classes apart; what is beyond its range is as sure as can be.
    largest = np.finfo(np.float16).max
    return np.clip(torch.cat(found).numpy(), -largest, largest).astype(np.float16)
