"""Collapse: how to detect it early from noisy labels alone, and what to do then.

If sparse regularization is too strong, predicting one class for everything minimises the loss: the
output is one-hot and the labels are ignored. The predictions show this long before the run ends.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from labelproof.losses import format_loss, parse_loss
from labelproof.ranges import whole, within
from labelproof.text import format_value
from labelproof.training import Configuration, Examples
from labelproof.training.metrics import spread
from labelproof.tuning.trial import Trial, settled

_SLOW_STEPS = 120
"""Steps that a healthy run may spend on a single class before it finds the others."""

_WEAKEST = 0.01
"""The product of lambda0 and p below which the penalty is negligible."""

_RISE = 1.15
"""A run whose spread of predictions or accuracy rises by this factor is learning, if slowly."""


def collapse(
    curve: Mapping[str, Sequence[float]], *, classes: float, patience: int = 5
) -> str | None:
    """Why a run counts as collapsed, or `None` if it learns.

    A run has collapsed when for `patience` epochs in a row its predictions stay with a few classes
    and neither their spread nor the accuracy rises. Many healthy runs start with one class, so a
    rise of either gives a run more time.

    Args:
        curve: Metrics of the epochs so far: `validation_accuracy` in percent and
            `predicted_classes`.
        classes: The effective number of classes of the held-out labels: the exponential of their
            entropy, which is the number of classes if all are equally frequent.
        patience: Number of epochs without a rise.

    Returns:
        The reason as a sentence, or `None`.

    Example:
        >>> stuck = {"validation_accuracy": [10.1] * 5, "predicted_classes": [1.0] * 5}
        >>> print(collapse(stuck, classes=10))
        it gives nearly every example the same class (a spread of 1.0 where the labels have 10.0),
        and has not got better for 5 epochs
        >>> slow = {"validation_accuracy": [9, 9, 10, 12, 15], "predicted_classes": [1, 1, 1, 1, 2]}
        >>> collapse(slow, classes=10) is None
        True
    """
    patience = whole("patience", patience, 2)
    classes = within("classes", classes, 1)
    spread = list(curve["predicted_classes"])[-patience:]
    accuracy = list(curve["validation_accuracy"])[-patience:]
    # If almost all labels are of one class, predicting it for everything is right.
    if len(spread) < patience or classes < 1.5 or max(spread) > 1 + 0.15 * (classes - 1):
        return None
    # From the lowest point on: a recovery after a fall counts as a rise.
    if spread[-1] > _RISE * min(spread) or accuracy[-1] > _RISE * min(accuracy) + 1:
        return None
    given = "nearly every example the same class" if max(spread) < 1.5 else "only a few classes"
    return (
        f"it gives {given} (a spread of {spread[-1]:.1f} where the labels have {classes:.1f}), "
        f"and has not got better for {patience} epochs"
    )


def patience_for(*, epochs: int, steps: int) -> int:
    """Number of epochs in which a run has to show that it learns.

    A network learns in steps, and an epoch of a small dataset has few. `epochs` is the number of
    epochs of the run, `steps` the number of steps of an epoch.

    Example:
        >>> patience_for(epochs=40, steps=300), patience_for(epochs=40, steps=14)
        (8, 9)
    """
    return max(min(epochs // 5, 10), 4, math.ceil(_SLOW_STEPS / max(steps, 1)))


def back_off(loss: str) -> str | None:
    r"""The same loss with a weaker penalty, for a run that collapsed.

    The first weight $\lambda_0$ is halved, and at most $1/(2p)$: below $1/p$, the penalty does not
    outweigh the labels at the start. `None` if the penalty is negligible, or there is none.

    Example:
        >>> back_off("ce+sr(tau=0.1,p=0.1,lambda0=4,rho=2,r=5,normalize=false)")
        'ce+sr(tau=0.1,p=0.1,lambda0=2,rho=2,r=5,normalize=false)'
        >>> back_off("ce+sr(lambda0=30)")
        'ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.03,r=1,normalize=true)'
        >>> back_off("gce(q=0.7)") is None
        True
    """
    # In canonical text, p and lambda0 are side by side.
    canonical = format_loss(parse_loss(loss))
    weaker = re.sub(r"p=([^,()]+),lambda0=([^,()]+)", _halve, canonical)
    return None if weaker == canonical else weaker


def _halve(match: re.Match[str]) -> str:
    p, weight = float(match[1]), float(match[2])
    if weight * p <= _WEAKEST:
        return match[0]
    return f"p={match[1]},lambda0={format_value(float(f'{min(weight / 2, 0.5 / p):.4g}'))}"


_FREE = 5
"""Complete trials before any is abandoned: with fewer, half of them may simply be bad."""

_WARM_UP = 0.65
"""Share of its epochs that every run is given: the penalty's weight grows over the run, and a
setting that ends best is often among the worst for the first half."""


def hopeless(trial: Trial, others: Sequence[Trial]) -> str | None:
    """Why a trial is abandoned, or `None` if it may still be the best.

    Only its first fold is judged, against the complete trials at the same epoch of the same fold,
    so all of them are measured on the same examples. It has to be below their median, and also
    below the best of them by more than the standard error of a difference on so few examples.
    """
    curve = trial.curves.get(0, [])
    complete = [other.curves[0] for other in others if other.state == "complete"]
    at = len(curve)
    through = at == trial.epochs and len(trial.rows) == 1  # nothing is left to save
    if at < _WARM_UP * trial.epochs or through or len(complete) < _FREE:
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


class Watch:
    """Watches the epochs of a run for a collapse."""

    def __init__(self, examples: Examples, configuration: Configuration):
        self.classes = spread(np.bincount(examples.given[examples.held]).tolist())
        steps = -(-len(examples.used) // configuration.batch_size)
        self.patience = patience_for(epochs=configuration.epochs, steps=steps)
        self.curve: dict[str, list[float]] = {"validation_accuracy": [], "predicted_classes": []}

    def look(self, metrics: Mapping[str, float]) -> str | None:
        """Add an epoch; why the network counts as collapsed now, from which it may recover."""
        for name, values in self.curve.items():
            values.append(metrics[name])
        return collapse(self.curve, classes=self.classes, patience=self.patience)
