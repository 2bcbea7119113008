r"""Cross entropy, $-\log u_y$: learns fast, and fits wrong labels as eagerly as right ones."""

from __future__ import annotations

import torch
from torch import Tensor

from labelproof.losses.base import PointwiseLoss

__all__ = ["CrossEntropy", "cross_entropy"]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    r"""Cross entropy of each example, $-\log u_y$ with $u = \mathrm{softmax}(z)$.

    Args:
        logits: `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        target: Class indices, or class probabilities of the logits' shape.

    Returns:
        One value per example.

    Example:
        >>> cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor([0.6931])
    """
    return CrossEntropy(reduction="none")(logits, target)


class CrossEntropy(PointwiseLoss):
    r"""Cross entropy, $-\log u_y$; `torch.nn.CrossEntropyLoss` that can be added to others.

    Example:
        >>> CrossEntropy()(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6931)
    """

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        return -log_probability

    def slope(self, log_probability: Tensor) -> Tensor:
        """Derivative of `pointwise`."""
        return torch.full_like(log_probability, -1)
