r"""Focal loss, $-(1 - u_y)^\gamma \log u_y$: cross entropy that looks away from easy examples."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import LossSettings, PointwiseLoss
from labelproof.losses.numerics import LOG_ZERO, complement
from labelproof.ranges import flag, within

__all__ = ["Focal", "focal"]


def focal(logits: Tensor, target: Tensor, *, gamma: float = 0.5, detach: bool = False) -> Tensor:
    r"""Focal loss of each example, $-(1 - u_y)^\gamma \log u_y$.

    Args:
        logits: `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        target: Class indices, or class probabilities of the logits' shape.
        gamma: Focusing exponent $\gamma \ge 0$; 0 is cross entropy.
        detach: Stop the gradient through the factor $(1 - u_y)^\gamma$, as the reference code of
            the sparse-regularization paper does.

    Returns:
        One value per example.

    Example:
        >>> focal(torch.tensor([[0.0, 0.0]]), torch.tensor([1]), gamma=1)
        tensor([0.3466])

    Reference:
        Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017.
    """
    return Focal(gamma, detach=detach, reduction="none")(logits, target)


class Focal(PointwiseLoss):
    r"""Focal loss, $-(1 - u_y)^\gamma \log u_y$.

    Args:
        gamma: Focusing exponent $\gamma \ge 0$; 0 is cross entropy.
        detach: Stop the gradient through the factor $(1 - u_y)^\gamma$.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> Focal(gamma=1)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.3466)
    """

    def __init__(
        self, gamma: float = 0.5, *, detach: bool = False, **settings: Unpack[LossSettings]
    ):
        super().__init__(**settings)
        self.gamma = within("gamma", gamma, 0)
        self.detach = flag("detach", detach)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        # At u = 1 the power's slope is infinite for gamma < 1 and meets log u = 0: a NaN. The
        # clamp keeps the slope finite, and where it acts the gradient is the true limit, zero.
        smallest = torch.finfo(log_probability.dtype).tiny
        # At u = 0 the factor's slope is 0 and meets log u = -inf: a NaN again. Below the floor u is
        # 0 in any precision, so it changes no value, and it lets no gradient through.
        floored = log_probability.clamp_min(LOG_ZERO)
        factor = complement(floored).clamp_min(smallest) ** self.gamma
        if self.detach:
            factor = factor.detach()
        return -factor * log_probability

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return f"gamma={self.gamma:g}, detach={self.detach}"
