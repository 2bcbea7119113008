r"""Cross entropy, $-\log u_y$, mean absolute error, $1 - u_y$, and losses related to them.

Reverse cross entropy is $-A (1 - u_y)$, and symmetric cross entropy adds cross entropy to it.

Losses of the $\epsilon$-softmax use an output close to one-hot: the largest probability is raised,
$u' = (u + m\,1[\arg\max]) / (m + 1)$. It is one-hot to within a distance of $1/(m + 1)$, and any
loss of a one-hot output is robust.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import FormulaLoss, LossSettings, PointwiseLoss
from labelproof.losses.batch import Outputs
from labelproof.losses.numerics import (
    LOG_TINY,
    check_clamp,
    clamp_log_probability,
    complement,
    log_mixed,
    others,
    own,
)
from labelproof.ranges import finite, flag, whole, within

LOG_ZERO = math.log(1e-4)
"""The value used for log 0 in published code; papers that quote -4 were run with it."""


class CrossEntropy(PointwiseLoss):
    r"""Cross entropy, $-\log u_y$; `torch.nn.CrossEntropyLoss` that can be added to other losses.

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
        clamp: Floor of the probabilities; off by default.
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
        # A q that underflows to 0 in float32 would divide by zero. At 1e-30 the loss already equals
        # cross entropy to the last digit.
        self.q = max(within("q", q, 0, 1, open_low=True), 1e-30)
        self.clamp = check_clamp(clamp)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        # For small q, 1 - u ** q would lose its digits to cancellation.
        return complement(self.q * clamp_log_probability(log_probability, self.clamp)) / self.q

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        if self.clamp is not None:
            return super().value_and_slope(log_probability)
        power = self.q * log_probability
        return power.expm1().div_(-self.q), power.exp_().neg_()

    def quick_mean(self, logits: Tensor, target: Tensor) -> Tensor | None:
        """The mean over a batch of few classes."""
        # For small q, the subtraction would lose its digits to cancellation.
        if self.clamp is not None or self.q < 0.1 or logits.shape[1] > 100:
            return None
        powers = (logits.log_softmax(dim=1) * self.q).exp()
        return torch.rsub(F.nll_loss(powers, target), 1 / self.q, alpha=-1 / self.q)


class TaylorCrossEntropy(PointwiseLoss):
    r"""Taylor cross entropy, $\sum_{i=1}^t (1 - u_y)^i / i$: its truncated series at 1.

    Args:
        terms: Number of terms $t$ of the series, at most 100; 1 is mean absolute error, and more
            are closer to cross entropy.
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
        floored = log_probability.clamp_min(LOG_TINY)
        factor = complement(floored).clamp_min(smallest) ** self.gamma
        if self.detach:
            factor = factor.detach()
        return -factor * log_probability


class PartiallyHuberizedCrossEntropy(PointwiseLoss):
    r"""Partially Huberised cross entropy: $-\log u_y$, linear where $u_y < 1/\tau$.

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
        # A slope that overflows float32, times a probability of 0, would be NaN.
        self.tau = within("tau", tau, 1, 1e30, open_low=True)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        log_tau = math.log(self.tau)
        tangent = 1 + log_tau - self.tau * log_probability.exp()
        return torch.where(log_probability > -log_tau, -log_probability, tangent)


class ReverseCrossEntropy(PointwiseLoss):
    r"""Reverse cross entropy, $-A (1 - u_y)$, mean absolute error scaled by $-A$.

    Args:
        log_zero: $A < 0$, which stands for $\log 0$.
        clamp: Floor of each probability before it is summed; off by default.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
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
        self.label_alone = clamp is None

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability, without a clamp."""
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
        beta: Weight of reverse cross entropy; larger is more robust.
        log_zero: $A < 0$, which stands for $\log 0$.
        clamp: Floor of the reverse part's probabilities; off by default.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
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
        self.label_alone = clamp is None

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability, without a clamp."""
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


class _Epsilon(FormulaLoss):
    def __init__(
        self, base: PointwiseLoss, m: float, clamp: float | None, **settings: Unpack[LossSettings]
    ):
        super().__init__(**settings)
        self._base = base
        self.m = within("m", m, 0, 1e30)
        self.clamp = check_clamp(clamp)

    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """Value for the labels, or for every label."""
        log_probability = own(outputs.log_probabilities, labels)
        largest = outputs.logits.argmax(dim=1, keepdim=True)
        if labels is None:
            none = torch.zeros_like(log_probability, dtype=torch.bool)
            largest = none.scatter(1, largest, True)
        else:
            largest = labels == largest
        # Elsewhere 1, whose logarithm has a finite gradient: that of log 0 would be NaN.
        raised = log_mixed(torch.where(largest, log_probability, 0), self.m)
        shrunk = log_probability - math.log1p(self.m)
        mixed = torch.where(largest, raised, shrunk)
        return self._base.pointwise(clamp_log_probability(mixed, self.clamp))


class EpsilonCrossEntropy(_Epsilon):
    r"""Cross entropy of the $\epsilon$-softmax, whose largest probability is raised by $m$.

    It is $-\log u'_y$ with $u' = (u + m\,1[\arg\max]) / (m + 1)$.

    Args:
        m: How much the largest probability is raised; 0 is cross entropy.
        clamp: Floor of $u'$, 1e-8 in the authors' code; off by default.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> EpsilonCrossEntropy(m=1)(torch.tensor([[0.0, 0.1]]), torch.tensor([1]))
        tensor(0.2712)

    Reference:
        Wang et al., "epsilon-Softmax: Approximating One-Hot Vectors for Mitigating Label Noise",
        NeurIPS 2024.
    """

    def __init__(
        self, m: float = 1e4, *, clamp: float | None = None, **settings: Unpack[LossSettings]
    ):
        super().__init__(CrossEntropy(), m, clamp, **settings)


class EpsilonFocal(_Epsilon):
    r"""Focal loss of the $\epsilon$-softmax, $-(1 - u'_y)^\gamma \log u'_y$.

    Args:
        m: How much the largest probability is raised; 0 is focal loss.
        gamma: Focusing exponent $\gamma \ge 0$; 0 is cross entropy.
        clamp: Floor of $u'$, 1e-8 in the authors' code; off by default.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> EpsilonFocal(m=1, gamma=1)(torch.tensor([[0.0, 0.1]]), torch.tensor([1]))
        tensor(0.0644)

    Reference:
        Wang et al., "epsilon-Softmax: Approximating One-Hot Vectors for Mitigating Label Noise",
        NeurIPS 2024.
    """

    def __init__(
        self,
        m: float = 1e4,
        gamma: float = 0.5,
        *,
        clamp: float | None = None,
        **settings: Unpack[LossSettings],
    ):
        super().__init__(Focal(gamma), m, clamp, **settings)
        self.gamma = float(gamma)
