r"""Mean absolute error, $1 - u_y$, and generalised cross entropy, between it and cross entropy."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import LossSettings, PointwiseLoss
from labelproof.losses.numerics import check_clamp, clamp_log_probability, complement
from labelproof.ranges import within


class MeanAbsoluteError(PointwiseLoss):
    r"""Mean absolute error, $1 - u_y$, half of the l1 distance to the one-hot label.

    Example:
        >>> import torch
        >>> (2 * MeanAbsoluteError())(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(1.)

    Reference:
        Ghosh et al., "Robust Loss Functions under Label Noise for Deep Neural Networks", AAAI 2017.
    """

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        return 1 - log_probability.exp()

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        slope = log_probability.exp().neg_()
        return slope + 1, slope

    def quick_mean(self, logits: Tensor, target: Tensor) -> Tensor:
        """The mean over a batch."""
        return 1 + F.nll_loss(logits.softmax(dim=1), target)


class GeneralizedCrossEntropy(PointwiseLoss):
    r"""Generalised cross entropy, $(1 - u_y^q) / q$.

    Args:
        q: Robustness in (0, 1]; towards 0 it is cross entropy, at 1 mean absolute error.
        clamp: Floor of the probabilities; off unless given.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> import torch
        >>> GeneralizedCrossEntropy(q=1)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.5000)

    Reference:
        Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with
        Noisy Labels", NeurIPS 2018.
    """

    def __init__(
        self, q: float = 0.7, *, clamp: float | None = None, **settings: Unpack[LossSettings]
    ):
        super().__init__(**settings)
        # Float32 ends near 1e-38, and a q that rounds to 0 there would divide by it. At 1e-30 the
        # loss is cross entropy to the last digit already.
        self.q = max(within("q", q, 0, 1, open_low=True), 1e-30)
        self.clamp = check_clamp(clamp)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        # 1 - u ** q for small q is a difference of near equals.
        return complement(self.q * clamp_log_probability(log_probability, self.clamp)) / self.q

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        if self.clamp is not None:
            return super().value_and_slope(log_probability)
        power = self.q * log_probability
        return power.expm1().div_(-self.q), power.exp_().neg_()

    def quick_mean(self, logits: Tensor, target: Tensor) -> Tensor | None:
        """The mean over a batch of few classes."""
        # For a small q, 1 would be subtracted from what is close to 1.
        if self.clamp is not None or self.q < 0.1 or logits.shape[1] > 100:
            return None
        powers = (logits.log_softmax(dim=1) * self.q).exp()
        return torch.rsub(F.nll_loss(powers, target), 1 / self.q, alpha=-1 / self.q)
