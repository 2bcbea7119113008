"""When a run is no contender any more, judged against runs of other settings on the same fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from labelproof.tuning.trial import Trial, settled

__all__ = ["hopeless", "warm_up"]

_FREE = 5
"""Complete trials before any is let go: with fewer, half of them may simply be bad."""


def warm_up(epochs: int) -> int:
    """Epochs that every run is given.

    The penalty's weight grows over the run, and what it is for comes late: a setting that ends best
    is often among the worst for the first half.

    >>> warm_up(20)
    13
    """
    return math.ceil(0.65 * epochs)


def hopeless(trial: Trial, others: Sequence[Trial]) -> str | None:
    """Say why a trial is let go, or nothing where it may still come out first.

    Only its first fold is judged, against the complete trials at the same epoch of the same fold,
    so all of them are measured on the same examples. It has to be below their median, and also
    below the best of them by more than the standard error of a difference on so few examples.

    Args:
        trial: The one under way.
        others: All.
    """
    curve = trial.curves.get(0, {}).get("validation_accuracy", [])
    at = len(curve)
    complete = [other.curves[0]["validation_accuracy"] for other in others if _counts(other)]
    through = at == trial.epochs and len(trial.rows) == 1  # nothing is left to save
    if at < warm_up(trial.epochs) or through or len(complete) < _FREE:
        return None
    mine = settled(curve, epochs=trial.epochs)
    theirs = [settled(values[:at], epochs=trial.epochs) for values in complete]
    best = max(theirs)
    share = min(max(best / 100, 0.0), 1.0)
    # Two settings agree on most examples, so half of the variance of two separate samples is
    # still more than that of their difference.
    error = 100 * math.sqrt(share * (1 - share) / trial.rows[0])
    if mine < median(theirs) and mine < best - error:
        return f"{mine:.1f}% after {at} epochs, where the best had {best:.1f}%"
    return None


def _counts(trial: Trial) -> bool:
    return trial.state == "complete" and 0 in trial.curves
