r"""Losses that are divergences of the output from the label: Jensen-Shannon and bi-tempered."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import FormulaLoss, LossSettings, PointwiseLoss
from labelproof.losses.batch import Outputs
from labelproof.losses.numerics import LOG_TINY, complement, log_mixed, own
from labelproof.ranges import within


class JensenShannon(PointwiseLoss):
    r"""Jensen-Shannon divergence of label and output, between cross entropy and absolute error.

    It is $\pi\,\mathrm{KL}(e_y \| m) + (1 - \pi)\,\mathrm{KL}(u \| m)$ with
    $m = \pi e_y + (1 - \pi) u$, divided by $-(1 - \pi) \log(1 - \pi)$. It depends on $u_y$ alone.

    Args:
        pi: Weight of the label in the mixture; towards 0 it is cross entropy, towards 1 mean
            absolute error.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> JensenShannon(pi=0.5)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6226)

    Reference:
        Englesson and Azizpour, "Generalized Jensen-Shannon Divergence Loss for Learning with Noisy
        Labels", NeurIPS 2021.
    """

    def __init__(self, pi: float = 0.5, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        # Outside, the divisor is so small that float32 keeps too few digits.
        self.pi = within("pi", pi, 0.01, 0.99)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        # Floored, since 0 * log 0 would be a NaN; below it u is 0 in any precision.
        own = log_probability.clamp_min(LOG_TINY)
        rest = 1 - self.pi
        mixture = log_mixed(own, self.pi / rest)
        terms = rest * own.exp() * (own - mixture) - self.pi * mixture
        return terms / (-rest * math.log(rest)) + complement(own)


class BiTempered(FormulaLoss):
    r"""Bi-tempered logistic loss: a bounded logarithm of a softmax with heavy tails.

    With $\log_t x = (x^{1-t} - 1) / (1 - t)$ and the tempered softmax $u$ of $t_2$ it is
    $-\log_{t_1} u_y - (1 - \sum_i u_i^{2 - t_1}) / (2 - t_1)$.

    Args:
        t1: Temperature of the logarithm, in [0, 1]; below 1 the loss is bounded.
        t2: Temperature of the softmax, in [1, 4]; above 1 its tails are heavy. With both at 1 it is
            cross entropy.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> BiTempered(t1=0.5, t2=2)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.3905)

    Reference:
        Amid et al., "Robust Bi-Tempered Logistic Loss Based on Bregman Divergences", NeurIPS 2019.
    """

    def __init__(self, t1: float = 0.8, t2: float = 1.2, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        self.t1, self.t2 = within("t1", t1, 0, 1), within("t2", t2, 1, 4)

    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """Value for the labels, or for every label."""
        tempered = tempered_log_softmax(outputs.logits, self.t2)
        rest, power, label = 1 - self.t1, 2 - self.t1, own(tempered, labels)
        distance = complement(rest * label) / rest if rest else -label
        return distance - (1 - (power * tempered).exp().sum(dim=1, keepdim=True)) / power


_STEPS = 6
"""With the two traced ones, enough for 100,000 classes and every temperature in float64."""


def tempered_log_softmax(logits: Tensor, temperature: float) -> Tensor:
    r"""Logarithm of the tempered softmax over axis 1, $u_i = \exp_t(z_i - \lambda)$.

    Here $\exp_t(x) = [1 + (1 - t) x]^{1 / (1 - t)}$, and $\lambda$ is such that $u$ sums to 1. With
    $S(\lambda)$ the sum, $S^{1 - t}$ is concave and nearly linear in $\lambda$, so Newton's method
    for $S^{1 - t} = 1$ converges from the left in few steps:
    $\lambda \leftarrow \lambda + (S^t - S) / ((t - 1) \sum_i u_i^t)$.

    Only the last two steps are traced. The first makes the first derivative of $\lambda$ right, the
    second the second derivative.

    Args:
        logits: `(N, C, ...)`.
        temperature: $t \ge 1$; 1 is the softmax.

    Example:
        >>> tempered_log_softmax(torch.tensor([[0.0, 0.0]]), 2.0).exp()
        tensor([[0.5000, 0.5000]])
    """
    if temperature == 1:
        return torch.log_softmax(logits, dim=1)
    # The result does not change with a shift, so neither does its gradient.
    logits = logits - logits.detach().amax(dim=1, keepdim=True)
    shift = torch.zeros_like(logits[:, :1])
    for _ in range(_STEPS):
        shift = _newton(logits.detach(), shift.detach(), temperature)
    for _ in range(2):
        shift = _newton(logits, shift, temperature)
    return _tempered_exponent(logits, shift, temperature)


def _tempered_exponent(logits: Tensor, shift: Tensor, temperature: float) -> Tensor:
    excess = temperature - 1
    return -torch.log1p(excess * (shift - logits)) / excess


def _newton(logits: Tensor, shift: Tensor, temperature: float) -> Tensor:
    excess = temperature - 1
    exponent = _tempered_exponent(logits, shift, temperature)
    total = exponent.exp().sum(dim=1, keepdim=True)
    slope = (temperature * exponent).exp().sum(dim=1, keepdim=True)
    return shift + total * torch.expm1(excess * total.log()) / (excess * slope)
