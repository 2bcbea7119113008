"""The loss that tells wrong labels from hard ones."""

from __future__ import annotations

from labelproof.fitting.recipe import Inputs

__all__ = ["audit_loss"]

_MANY = 20
"""Classes from which on generalised cross entropy is set nearer to plain cross entropy."""


def audit_loss(inputs: Inputs) -> str:
    """The loss of the networks behind an audit, where none is named.

    Generalised cross entropy: from the first step a label that the network finds absurd moves it
    little, so wrong labels are not learned, and what is hard still is. Sparse regularization ends
    with better networks, but takes more epochs than a cross-validation can spare. With many
    classes, where the labels of a fresh network all look absurd, it is set nearer to plain cross
    entropy.

    Args:
        inputs: What the data are.

    Example:
        >>> audit_loss(Inputs("images", (3, 32, 32), 50_000, 10))
        'gce(q=0.7)'
    """
    return "gce(q=0.7)" if inputs.classes <= _MANY else "gce(q=0.15)"
