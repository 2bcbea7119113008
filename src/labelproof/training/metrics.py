"""What an epoch came to, from the sums of the device and what the host knows."""

from __future__ import annotations

from dataclasses import dataclass

from labelproof.losses import Loss, SparseRegularized
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.learning_rate import parse_learning_rate
from labelproof.training.tally import MEMORY, SEEN, Reading

__all__ = ["DivergedError", "Epoch", "epoch_metrics", "explain_divergence", "schedules_at"]


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


def epoch_metrics(
    epoch: Epoch, sums: dict[str, float], correct: int, examples: Examples
) -> dict[str, float]:
    """An epoch's line in the log.

    Args:
        epoch: The epoch.
        sums: What the tally summed up, by name.
        correct: Test examples predicted right.
        examples: Where the labels came from.

    Returns:
        Means over the examples as they passed, test accuracy in percent, the schedules, and, where
        the clean labels are known, shares of the labels in `tally.MEMORY`.
    """
    metrics: dict[str, float] = {"epoch": epoch.number}
    metrics |= {
        name: value / max(epoch.examples, 1)
        for name, value in sums.items()
        if name not in (*MEMORY, *SEEN)
    }
    if "test" in examples.dataset.splits:
        metrics["test_accuracy"] = 100 * correct / max(len(examples.dataset.test), 1)
    metrics |= epoch.schedules
    if examples.clean is not None:
        for name in MEMORY:
            seen = "clean_seen" if name == "clean_fitted" else "wrong_seen"
            metrics[name] = sums[name] / max(sums[seen], 1)
    return metrics


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
