"""The loss that tells wrong labels from hard ones."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.findings import FEWEST
from labelproof.fitting.recipe import Inputs

__all__ = ["audit_loss"]

_ROBUST = 0.7
_MANY = 20
"""Classes from which on generalised cross entropy is set nearer to plain cross entropy."""
_NEARLY_PLAIN = 0.15

_HEARD = 0.18
"""The share of its weight that a label keeps, at least, of which the network has only learned how
frequent it is. With q = 0.7 a class of 5% keeps 0.12, which is enough; one of 3% keeps 0.08, is
never learned, and all its labels pass for wrong (`benchmarks/audit_rare.py`)."""


def audit_loss(inputs: Inputs, labels: NDArray[np.int64] | None = None) -> str:
    r"""The loss of the networks behind an audit, where none is named.

    Generalised cross entropy: from the first step a label that the network finds absurd moves it
    little, so wrong labels are not learned, and what is hard still is. Sparse regularization ends
    with better networks, but takes more epochs than a cross-validation can spare. With many
    classes, where the labels of a fresh network all look absurd, it is set nearer to plain cross
    entropy.

    So it is where a class is rare, as fraud is. The first thing a network learns is how frequent
    classes are, and a label weighs \(u_y^q\) then, with \(u_y\) the share of its class.

    Args:
        inputs: What the data are.
        labels: As they came, class indices; without them classes are taken to be equally frequent.

    Example:
        >>> audit_loss(Inputs("images", (3, 32, 32), 50_000, 10))
        'gce(q=0.7)'
        >>> audit_loss(Inputs("rows", (8,), 1000, 2), np.repeat([0, 1], [970, 30]))
        'gce(q=0.49)'
    """
    q = _ROBUST if inputs.classes <= _MANY else _NEARLY_PLAIN
    counts = np.full(inputs.classes, FEWEST) if labels is None else np.bincount(labels)
    learned = counts[counts >= FEWEST]
    if len(learned) > 1:
        rarest = float(learned.min() / counts.sum())
        q = min(q, math.log(_HEARD) / math.log(rarest))
    return f"gce(q={round(q, 2):g})"
