"""A trial of the search: a loss, what its runs came to by the noisy labels, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

__all__ = ["STATES", "Trial", "last_epochs", "settled"]

STATES = ("waiting", "complete", "pruned", "collapsed", "failed")
"""Not all folds are trained; all are; let go as no contender; let go as collapsed; not a number."""


def last_epochs(epochs: int) -> int:
    """Over how many of the last epochs an accuracy is averaged, which is less chance than one.

    >>> [last_epochs(epochs) for epochs in (1, 10, 40, 120)]
    [1, 1, 4, 5]
    """
    return min(max(epochs // 10, 1), 5)


def settled(accuracies: Sequence[float], *, epochs: int) -> float:
    """The accuracy that a run has come to: the mean over its last few epochs.

    Args:
        accuracies: One for each epoch so far.
        epochs: Of the whole run, which decides how many are averaged.

    Example:
        >>> settled([10, 50, 54, 56], epochs=20)
        55.0
    """
    return fmean(accuracies[-last_epochs(epochs) :])


@dataclass
class Trial:
    """One setting that is tried.

    Attributes:
        number: Counted from 0, in the order of their proposal.
        loss: As canonical text.
        origin: Where it comes from: `start`, `asked` for, `search` or `back-off`.
        state: One of `STATES`.
        why: What was seen when it was let go.
        curves: For each fold that was trained, or begun, its metrics by name, one for each epoch.
        finished: The folds that were trained to the end.
        rows: How many examples each fold validates on.
        epochs: Of a whole run.

    Example:
        >>> trial = Trial(0, "gce(q=0.7)", "start", rows=[400], epochs=1)
        >>> _ = trial.add(0, {"validation_accuracy": 50.0, "predicted_classes": 9.5})
        >>> trial.finished.append(0)
        >>> trial.accuracy, trial.standard_error
        (50.0, 2.5)
    """

    number: int
    loss: str
    origin: str
    rows: Sequence[int]
    epochs: int
    state: str = "waiting"
    why: str = ""
    curves: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    finished: list[int] = field(default_factory=list)

    @property
    def trained(self) -> int:
        """Epochs of all folds together."""
        return sum(len(curve["validation_accuracy"]) for curve in self.curves.values())

    @property
    def scores(self) -> dict[int, float]:
        """The accuracy that each finished fold came to, by the noisy labels, in percent."""
        return {
            fold: settled(self.curves[fold]["validation_accuracy"], epochs=self.epochs)
            for fold in self.finished
        }

    @property
    def accuracy(self) -> float | None:
        """Over the finished folds, each counting by its examples; `None` before the first."""
        scores = self.scores
        rows = sum(self.rows[fold] for fold in scores)
        return (
            sum(self.rows[fold] * score for fold, score in scores.items()) / rows if rows else None
        )

    @property
    def standard_error(self) -> float | None:
        """How far the accuracy may be off because the validated examples are few, in percent.

        That of a share of so many examples. How much another seed would change is not in it.
        """
        accuracy, rows = self.accuracy, sum(self.rows[fold] for fold in self.finished)
        if accuracy is None:
            return None
        share = min(max(accuracy / 100, 0.5 / rows), 1 - 0.5 / rows)
        return 100 * math.sqrt(share * (1 - share) / rows)

    def add(self, fold: int, metrics: Mapping[str, float]) -> dict[str, list[float]]:
        """Take in an epoch of a fold; its curve so far."""
        curve = self.curves.setdefault(fold, {"validation_accuracy": [], "predicted_classes": []})
        for name, values in curve.items():
            values.append(round(metrics[name], 4))
        return curve

    def forget_begun(self) -> None:
        """Drop the curves of folds that were not trained to the end, which begin anew."""
        if self.state == "waiting":
            self.curves = {fold: self.curves[fold] for fold in self.finished}

    def as_values(self) -> dict[str, Any]:
        """As plain values that JSON takes, with what follows from them for whoever reads it."""
        return {
            "number": self.number,
            "loss": self.loss,
            "origin": self.origin,
            "state": self.state,
            "why": self.why,
            "accuracy": self.accuracy,
            "standard_error": self.standard_error,
            "trained": self.trained,
            "finished": sorted(self.finished),
            "curves": {str(fold): curve for fold, curve in sorted(self.curves.items())},
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any], *, rows: Sequence[int], epochs: int) -> Trial:
        """Back from plain values."""
        return cls(
            number=values["number"],
            loss=values["loss"],
            origin=values["origin"],
            rows=rows,
            epochs=epochs,
            state=values["state"],
            why=values["why"],
            curves={int(fold): dict(curve) for fold, curve in values["curves"].items()},
            finished=list(values["finished"]),
        )
