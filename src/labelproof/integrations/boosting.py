r"""XGBoost and LightGBM: any loss of this package as the objective of a boosted ensemble.

Boosting needs, for the raw scores \(z\) of each row, the gradient \(\partial \ell / \partial z_c\)
and a positive curvature \(h_c\) in place of the second derivative. The gradient is that of the
loss, by automatic differentiation. The curvature is the exact diagonal of the Hessian where that is
positive. Robust losses are bounded and so not convex: where the diagonal is not positive, a Newton
step would lead uphill, and the curvature is raised to a small floor.

    objective = boosting_objective("gce(q=0.7)")
    xgboost.XGBClassifier(objective=objective)  # and lightgbm.LGBMClassifier(objective=objective)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from labelproof.losses import as_loss, parse_loss

__all__ = ["Derivatives", "boosting_objective", "differentiate"]

FLOOR = 1e-2
"""The smallest curvature: a step in a leaf is at most a hundred times its mean gradient."""


class Derivatives(NamedTuple):
    """Derivatives of the loss of each row by each of its scores."""

    gradient: NDArray[np.float64]
    """`(N, C)`."""
    hessian: NDArray[np.float64]
    """The diagonal, `(N, C)`; entries may be negative."""


def differentiate(loss: str | nn.Module, scores: ArrayLike, labels: ArrayLike) -> Derivatives:
    """The gradient and the exact diagonal of the Hessian of a loss over raw scores.

    The loss of a row depends on its own scores alone, so one pass over the classes gives the second
    derivatives of all rows. For a loss that mixes the rows of a batch this ignores how rows affect
    each other.

    Args:
        loss: A text such as `"gce(q=0.7)"` or `"ce+sr"`, or a loss.
        scores: `(N, C)`, before the softmax.
        labels: Class indices, `(N)`.

    Raises:
        ValueError: The scores are not `(N, C)` for `N` labels.

    Example:
        >>> gradient, hessian = differentiate("ce", [[0.0, 0.0]], [0])
        >>> gradient, hessian
        (array([[-0.5,  0.5]]), array([[0.25, 0.25]]))
    """
    logits = torch.tensor(np.asarray(scores, np.float64), requires_grad=True)
    given = torch.tensor(np.asarray(labels).astype(np.int64))
    if logits.ndim != 2 or given.shape != logits.shape[:1]:
        sizes = f"{given.numel()} labels, got {tuple(logits.shape)}"
        raise ValueError(f"scores: expected (N, C) with a row for each of {sizes}")
    own = parse_loss(loss, reduction="none") if isinstance(loss, str) else as_loss(loss)
    if own.reduction != "none":
        raise ValueError(f"loss: expected the reduction 'none', got {own.reduction!r}")
    values = own(logits, given)
    (gradient,) = torch.autograd.grad(values.sum(), logits, create_graph=True)
    hessian = torch.zeros_like(logits)
    for column in range(logits.shape[1]):
        if gradient.requires_grad:
            (second,) = torch.autograd.grad(
                gradient[:, column].sum(), logits, retain_graph=True, materialize_grads=True
            )
            hessian[:, column] = second[:, column]
    return Derivatives(gradient.detach().numpy(), hessian.detach().numpy())


def boosting_objective(
    loss: str | nn.Module, *, floor: float = FLOOR
) -> Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """A loss as the `objective` of `XGBClassifier` or `LGBMClassifier`.

    Args:
        loss: A text such as `"gce(q=0.7)"`, or a loss.
        floor: The smallest curvature.

    Returns:
        A function of labels, raw scores and optional weights. Scores `(N)` of two classes are those
        of the second class; those of the first are 0.

    Example:
        >>> objective = boosting_objective("ce")
        >>> objective(np.array([1]), np.array([0.0]))  # two classes: one score
        (array([-0.5]), array([0.25]))
    """

    def objective(
        labels: ArrayLike, scores: ArrayLike, weight: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        raw, given = np.asarray(scores, np.float64), np.asarray(labels)
        single = raw.ndim == 1 or raw.shape[1] == 1
        table = np.column_stack([np.zeros(len(given)), raw.ravel()]) if single else raw
        gradient, hessian = differentiate(loss, table, given)
        # Sharpening has no second derivative where all scores are 0, as before the first tree.
        hessian = np.where(hessian > floor, hessian, floor)
        if weight is not None:
            share = np.asarray(weight, np.float64)[:, None]
            gradient, hessian = gradient * share, hessian * share
        if not single:
            return gradient, hessian
        return gradient[:, 1].reshape(raw.shape), hessian[:, 1].reshape(raw.shape)

    return objective
