r"""Partially Huberised cross entropy: cross entropy made linear where it would be steep."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import LossSettings, PointwiseLoss
from labelproof.ranges import within

__all__ = ["PartiallyHuberizedCrossEntropy", "partially_huberized_cross_entropy"]


def partially_huberized_cross_entropy(
    logits: Tensor, target: Tensor, *, tau: float = 10.0
) -> Tensor:
    r"""Partially Huberised cross entropy of each example.

    It is $-\log u_y$ where $u_y > 1/\tau$ and its tangent there, $-\tau u_y + \log\tau + 1$, below:
    the gradient of an example the network disbelieves is bounded by $\tau$.

    Args:
        logits: `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        target: Class indices, or class probabilities of the logits' shape.
        tau: Bound $\tau > 1$ on the slope; larger is closer to cross entropy.

    Returns:
        One value per example.

    Example:
        >>> partially_huberized_cross_entropy(torch.tensor([[0.0, 9.0]]), torch.tensor([0]), tau=2)
        tensor([1.6929])

    Reference:
        Menon et al., "Can Gradient Clipping Mitigate Label Noise?", ICLR 2020.
    """
    return PartiallyHuberizedCrossEntropy(tau, reduction="none")(logits, target)


class PartiallyHuberizedCrossEntropy(PointwiseLoss):
    r"""Partially Huberised cross entropy: $-\log u_y$, linear where $u_y \le 1/\tau$.

    Args:
        tau: Bound $\tau > 1$ on the slope; larger is closer to cross entropy.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> loss = PartiallyHuberizedCrossEntropy(tau=2)
        >>> loss(torch.tensor([[0.0, 9.0]]), torch.tensor([0]))
        tensor(1.6929)
    """

    def __init__(self, tau: float = 10.0, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        # Float32 ends near 1e38, and an infinite slope times a probability of 0 is no number.
        self.tau = within("tau", tau, 1, 1e30, open_low=True)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        log_tau = math.log(self.tau)
        tangent = 1 + log_tau - self.tau * log_probability.exp()
        return torch.where(log_probability > -log_tau, -log_probability, tangent)

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return f"tau={self.tau:g}"
