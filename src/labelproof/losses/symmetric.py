r"""Reverse cross entropy, $-A (1 - u_y)$, and symmetric cross entropy, which adds cross entropy."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import LossSettings, PointwiseLoss
from labelproof.losses.batch import Outputs
from labelproof.losses.numerics import check_clamp, others, own
from labelproof.ranges import finite, within

LOG_ZERO = math.log(1e-4)
"""What stands for log 0 in the field's code; papers that quote -4 were run with it."""


class ReverseCrossEntropy(PointwiseLoss):
    r"""Reverse cross entropy, $-A (1 - u_y)$, mean absolute error scaled by $-A$.

    Args:
        log_zero: $A < 0$, which stands for $\log 0$.
        clamp: Floor of each probability before it is summed; off unless given.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> import torch
        >>> ReverseCrossEntropy(-4)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(2.)

    Reference:
        Wang et al., "Symmetric Cross Entropy for Robust Learning with Noisy Labels", ICCV 2019.
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

    def quick_mean(self, logits: Tensor, target: Tensor) -> Tensor:
        """The mean over a batch."""
        return -self.log_zero * (1 + F.nll_loss(logits.softmax(dim=1), target))

    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """Value for the labels, or for every label."""
        if self.clamp is None:
            return super().formula(outputs, labels)
        # The reference sums the clamped probabilities of the other classes, which is more than
        # 1 - u_y by up to clamp * C; summed without the label, so that no digits cancel.
        clamped = outputs.log_probabilities.exp().clamp_min(self.clamp)
        return -self.log_zero * others(clamped, labels)


class SymmetricCrossEntropy(PointwiseLoss):
    r"""Symmetric cross entropy, $-\alpha \log u_y - \beta A (1 - u_y)$.

    Args:
        alpha: Weight of cross entropy; larger fits more.
        beta: Weight of reverse cross entropy; larger resists more.
        log_zero: $A < 0$, which stands for $\log 0$.
        clamp: Floor of the reverse part's probabilities; off unless given.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> import torch
        >>> SymmetricCrossEntropy(log_zero=-4)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(2.0693)

    Reference:
        Wang et al., "Symmetric Cross Entropy for Robust Learning with Noisy Labels", ICCV 2019.
    """

    def __init__(
        self,
        alpha: float = 0.1,
        beta: float = 1.0,
        *,
        log_zero: float = LOG_ZERO,
        clamp: float | None = None,
        **settings: Unpack[LossSettings],
    ):
        super().__init__(**settings)
        self.alpha = within("alpha", alpha, 0)
        self.beta = within("beta", beta, 0)
        self._reverse = ReverseCrossEntropy(log_zero, clamp=clamp)
        self.log_zero, self.clamp = log_zero, clamp

    @property
    def label_alone(self) -> bool:
        """Whether it is a function of the label's probability alone."""
        return self.clamp is None

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability, where nothing is clamped."""
        return self.beta * self._reverse.pointwise(log_probability) - self.alpha * log_probability

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        value, slope = self._reverse.value_and_slope(log_probability)
        value = (self.beta * value).sub_(log_probability, alpha=self.alpha)
        return value, (self.beta * slope).sub_(self.alpha)

    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """Value for the labels, or for every label."""
        reverse = self._reverse.formula(outputs, labels)
        return self.beta * reverse - self.alpha * own(outputs.log_probabilities, labels)
