r"""Cross entropy, $-\log u_y$, mean absolute error, $1 - u_y$, and what lies around and between."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import LossSettings, PointwiseLoss
from labelproof.losses.numerics import LOG_ZERO, check_clamp, clamp_log_probability, complement
from labelproof.ranges import flag, whole, within


class CrossEntropy(PointwiseLoss):
    r"""Cross entropy, $-\log u_y$; `torch.nn.CrossEntropyLoss` that can be added to others.

    Example:
        >>> CrossEntropy()(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6931)
    """

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        return -log_probability

    def quick_mean(self, logits: Tensor, target: Tensor) -> Tensor:
        """The mean over a batch, by torch's own operation."""
        return F.cross_entropy(logits, target)

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        return -log_probability, torch.full_like(log_probability, -1)


class MeanAbsoluteError(PointwiseLoss):
    r"""Mean absolute error, $1 - u_y$, half of the l1 distance to the one-hot label.

    Example:
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


class TaylorCrossEntropy(PointwiseLoss):
    r"""Taylor cross entropy, $\sum_{i=1}^t (1 - u_y)^i / i$: its series at 1, cut off.

    Args:
        terms: How many terms $t$ of the series, at most 100; 1 is mean absolute error, and more are
            closer to cross entropy.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> TaylorCrossEntropy(terms=2)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6250)

    Reference:
        Feng et al., "Can Cross Entropy Loss Be Robust to Label Noise?", IJCAI 2020.
    """

    def __init__(self, terms: int = 2, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        self.terms = whole("terms", within("terms", terms, 1, 100))

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        distance = complement(log_probability)
        total = distance / self.terms
        for power in range(self.terms - 1, 0, -1):
            total = distance * (total + 1 / power)
        return total


class Focal(PointwiseLoss):
    r"""Focal loss, $-(1 - u_y)^\gamma \log u_y$.

    Args:
        gamma: Focusing exponent $\gamma \ge 0$; 0 is cross entropy.
        detach: Stop the gradient through the factor $(1 - u_y)^\gamma$.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> Focal(gamma=1)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.3466)

    Reference:
        Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017.
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


class PartiallyHuberizedCrossEntropy(PointwiseLoss):
    r"""Partially Huberised cross entropy: $-\log u_y$, linear where $u_y \le 1/\tau$.

    Args:
        tau: Bound $\tau > 1$ on the slope; larger is closer to cross entropy.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> loss = PartiallyHuberizedCrossEntropy(tau=2)
        >>> loss(torch.tensor([[0.0, 9.0]]), torch.tensor([0]))
        tensor(1.6929)

    Reference:
        Menon et al., "Can Gradient Clipping Mitigate Label Noise?", ICLR 2020.
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
