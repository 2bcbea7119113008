"""What an epoch came to, from the sums of the device and what the host knows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labelproof.losses import Loss, SparseRegularized
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.learning_rate import parse_learning_rate
from labelproof.training.tally import MEMORY, SEEN, Counted, Reading

__all__ = [
    "DivergedError",
    "Epoch",
    "epoch_metrics",
    "explain_divergence",
    "schedules_at",
    "spread",
]


class DivergedError(ArithmeticError):
    """The loss was not a number any more."""


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
    """Say at which step a loss stopped being a number, and what had been set then."""
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
        helps.append("--precision float32")
    return (
        f"the loss is not a number any more since step {within + 1} of epoch {epoch + 1} ({said}); "
        f"what often helps: {', '.join(helps)}"
    )
