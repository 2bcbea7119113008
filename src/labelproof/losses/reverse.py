r"""Reverse cross entropy, $-A (1 - u_y)$: cross entropy with prediction and label exchanged."""

from __future__ import annotations

import math

from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import LossSettings, PointwiseLoss
from labelproof.losses.clamp import check_clamp
from labelproof.losses.numerics import others_of_label
from labelproof.losses.others import sum_of_others
from labelproof.losses.outputs import Outputs
from labelproof.ranges import finite

__all__ = ["LOG_ZERO", "ReverseCrossEntropy", "reverse_cross_entropy"]

LOG_ZERO = math.log(1e-4)
"""What stands for log 0 in the field's code; papers that quote -4 were run with it."""


def reverse_cross_entropy(
    logits: Tensor, target: Tensor, *, log_zero: float = LOG_ZERO, clamp: float | None = None
) -> Tensor:
    r"""Reverse cross entropy of each example, $-\sum_i u_i \log (e_y)_i = -A (1 - u_y)$.

    Args:
        logits: `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        target: Class indices, or class probabilities of the logits' shape.
        log_zero: $A < 0$, which stands for $\log 0$.
        clamp: Lift each probability to at least this value before it is summed; off unless given.

    Returns:
        One value per example.

    Example:
        >>> import torch
        >>> reverse_cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]), log_zero=-4)
        tensor([2.])

    Reference:
        Wang et al., "Symmetric Cross Entropy for Robust Learning with Noisy Labels", ICCV 2019.
    """
    return ReverseCrossEntropy(log_zero, clamp=clamp, reduction="none")(logits, target)


class ReverseCrossEntropy(PointwiseLoss):
    r"""Reverse cross entropy, $-A (1 - u_y)$, mean absolute error scaled by $-A$.

    Args:
        log_zero: $A < 0$, which stands for $\log 0$.
        clamp: Lift each probability to at least this value before it is summed; off unless given.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> import torch
        >>> ReverseCrossEntropy(-4)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(2.)
    """

    def __init__(
        self,
        log_zero: float = LOG_ZERO,
        *,
        clamp: float | None = None,
        **settings: Unpack[LossSettings],
    ):
        super().__init__(**settings)
        self.log_zero = finite("log_zero", log_zero)
        if self.log_zero >= 0:
            raise ValueError(f"log_zero: expected a number below 0, got {log_zero!r}")
        self.clamp = check_clamp(clamp)

    @property
    def label_alone(self) -> bool:
        """Whether it is a function of the label's probability alone."""
        return self.clamp is None

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability, where nothing is clamped."""
        return self.log_zero * (log_probability.exp() - 1)

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        slope = self.log_zero * log_probability.exp()
        return slope - self.log_zero, slope

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the integer labels given, `(N, ...)`."""
        if self.clamp is None:
            return super().index_values(outputs, target)
        # The reference sums the clamped probabilities of the other classes, which is more than
        # 1 - u_y by up to clamp * C; summed without the label, so that no digits cancel.
        lifted = outputs.log_probabilities.exp().clamp_min(self.clamp)
        return -self.log_zero * others_of_label(lifted, target)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every label an example could have had, `(N, C, ...)`."""
        if self.clamp is None:
            return super().label_values(outputs)
        lifted = outputs.log_probabilities.exp().clamp_min(self.clamp)
        return -self.log_zero * sum_of_others(lifted)

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return f"log_zero={self.log_zero:g}, clamp={self.clamp}"
