"""The metrics of an epoch, summed on the device and read once at its end."""

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
from labelproof.training.execution import Execution, autocast

MEMORY = ("clean_fitted", "wrong_fitted", "wrong_corrected")
"""Counts, if clean labels are known: right labels that are predicted, wrong labels that are
predicted, and wrong labels for which the true class is predicted."""

SEEN = ("clean_seen", "wrong_seen")
"""Number of right and of wrong labels seen: the denominators of `MEMORY`."""


ENDS = ("correct", "diverged")
"""Number of correct test predictions, and the first step whose loss was NaN or infinite."""


class Tally:
    """Sums over an epoch's examples, the number of steps, and the step that diverged."""

    def __init__(self, parts: Sequence[str], num_classes: int, device: torch.device):
        self.names = ("train_loss", *parts, *MEMORY, *SEEN)
        # Apple's GPUs have no float64; float32 is precise enough to sum a million small values.
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.sums = torch.zeros(len(self.names), dtype=dtype, device=device)
        self.correct = torch.zeros((), dtype=torch.int64, device=device)
        # On held-out examples: correct predictions and predictions of each class. Counted anew at
        # the end of every epoch, so not part of a checkpoint.
        self.held = torch.zeros(2, num_classes, dtype=torch.int64, device=device)
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        # The first step whose loss was NaN or infinite, or -1. Read between epochs, because reading
        # it at every step would make the host wait for the device.
        self.diverged = torch.full((), -1, dtype=torch.int64, device=device)

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors of a checkpoint, by name."""
        return {name: getattr(self, name) for name in ("sums", "correct", "count", "diverged")}

    @torch.no_grad()
    def add(
        self, loss: Tensor, parts: Mapping[str, Tensor], logits: Tensor, fetched: Fetched
    ) -> None:
        """Add one step."""
        means = torch.stack([loss, *parts.values()])
        counts, dtype = count_fitted(logits.argmax(dim=1), fetched), self.sums.dtype
        self.sums += torch.cat([means.to(dtype) * len(logits), counts.to(dtype)])
        bad = ~torch.isfinite(loss) & (self.diverged < 0)
        self.diverged.copy_(torch.where(bad, self.count, self.diverged))
        self.count += 1

    def all_reduce(self) -> None:
        """Sum the counts over all processes; `diverged` is the largest of theirs."""
        for tensor in (self.sums, self.correct, self.held):
            torch.distributed.all_reduce(tensor)
        torch.distributed.all_reduce(self.diverged, op=torch.distributed.ReduceOp.MAX)


def count_fitted(predicted: Tensor, fetched: Fetched) -> Tensor:
    """The counts `MEMORY` and `SEEN` of a batch, `(5)`."""
    target, clean = fetched.target, fetched.clean
    right, fitted = target == clean, target == predicted
    corrected = ~right & (predicted == clean)
    kinds = [right & fitted, ~right & fitted, corrected, right, ~right]
    return torch.stack(kinds).sum(dim=1)


class DivergedError(ArithmeticError):
    """Training diverged: the loss is NaN or infinite."""


class EpochSums:
    """The sums of a finished epoch; on CUDA they are copied while the host continues.

    Args:
        tally: The sums; copied.
        number: The epoch, counted from 0.
        schedules: Its learning rate, and the loss's scheduled values.
        examples: Number of examples trained on.
    """

    def __init__(self, tally: Tally, number: int, schedules: dict[str, float], examples: int):
        self.number, self.schedules, self.examples = number, schedules, examples
        self.names, self.classes = (*tally.names, *ENDS), tally.held.shape[1]
        dtype = tally.sums.dtype
        ends = torch.stack([tally.correct, tally.diverged]).to(dtype)
        self.values = packed = torch.cat([tally.sums, ends, tally.held.flatten().to(dtype)])
        self.event: Any = None
        if packed.is_cuda:
            self.values = torch.empty(packed.shape, dtype=packed.dtype, pin_memory=True)
            self.values.copy_(packed, non_blocking=True)
            self.event = torch.cuda.Event()
            self.event.record()

    def wait(self) -> tuple[dict[str, float], list[float], list[float]]:
        """Wait for the sums and return them by name.

        Also the correct predictions and the predictions of each class on held-out examples.
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


def epoch_metrics(epoch: EpochSums, examples: Examples) -> dict[str, float]:
    """An epoch's line in the log.

    Returns:
        Means over the training examples, accuracies in percent, the schedules, and, if clean labels
        are known, the shares in `MEMORY`. `validation_accuracy` is on the given labels, wrong ones
        included. `predicted_classes` is the effective number of classes among the predictions on
        them: the exponential of the entropy.
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
    """The effective number of classes of some counts: the exponential of their entropy.

    >>> spread([5, 5, 5, 5]), spread([0, 9, 0, 0])
    (4.0, 1.0)
    """
    total = max(sum(counts), 1)
    shares = [count / total for count in counts if count]
    return round(math.exp(-sum(share * math.log(share) for share in shares)), 6)


def explain_divergence(
    step: int, steps_per_epoch: int, configuration: Configuration, loss: Loss
) -> str:
    """The message of a `DivergedError`: the step, and the schedules at it."""
    if step == 0:
        return (
            "training diverged: the loss is NaN at the first step, before any update of the "
            "weights; look at the loss, at the network's outputs and at the inputs"
        )
    epoch, place = divmod(step, max(steps_per_epoch, 1))
    names = {"learning_rate": "learning rate", "weight": "lambda", "temperature": "tau"}
    values = schedules_at(epoch, configuration, loss)
    settings = ", ".join(f"{names[name]} {value:g}" for name, value in values.items())
    advice = ["a lower learning rate"]
    advice += ["a smaller lambda0"] if "weight" in values else []
    advice += ["precision=float32"] if configuration.precision != "float32" else []
    return (
        f"training diverged: the loss is NaN since step {place + 1} of epoch {epoch + 1} "
        f"({settings}); what often helps: {', '.join(advice)}"
    )


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Inside, the network is in evaluation mode and gradients are off."""
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
    execution: Execution,
) -> Tensor:
    """Correct predictions and predictions of each class, `(2, C)`."""
    counts = torch.zeros(2, num_classes, dtype=torch.int64, device=labels.device)
    with evaluating(network):
        for number, (inputs, target) in enumerate(zip(batches, labels.split(CHUNK), strict=True)):
            if number % execution.world_size != execution.rank:
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
    """Logits of all inputs in order, `(N, C)`, as a run saves them."""
    logits = []
    with evaluating(network):
        for inputs in batches:
            with autocast(precision, inputs.device):
                logits.append(network(inputs).float().cpu())
    # float16 is precise enough; beyond its range, where logits are clipped, softmax is saturated.
    largest = np.finfo(np.float16).max
    return np.clip(torch.cat(logits).numpy(), -largest, largest).astype(np.float16)
