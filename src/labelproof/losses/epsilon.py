r"""Losses of the $\epsilon$-softmax: an output drawn close to one-hot before the loss sees it.

The largest probability is raised, $u' = (u + m\,1[\arg\max]) / (m + 1)$. Within a distance of
$1/(m + 1)$ the output is one-hot, and any loss of a one-hot output is robust.

Reference:
    Wang et al., "epsilon-Softmax: Approximating One-Hot Vectors for Mitigating Label Noise",
    NeurIPS 2024.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import FormulaLoss, LossSettings, PointwiseLoss
from labelproof.losses.batch import Outputs
from labelproof.losses.cross_entropy import CrossEntropy, Focal
from labelproof.losses.numerics import check_clamp, clamp_log_probability, log_mixed, own
from labelproof.ranges import within


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
        # Elsewhere 1, whose logarithm has a finite gradient: log 0 would bring a NaN along.
        raised = log_mixed(torch.where(largest, log_probability, 0), self.m)
        shrunk = log_probability - math.log1p(self.m)
        mixed = torch.where(largest, raised, shrunk)
        return self._base.pointwise(clamp_log_probability(mixed, self.clamp))


class EpsilonCrossEntropy(_Epsilon):
    r"""Cross entropy of the $\epsilon$-softmax, whose largest probability is raised by $m$.

    It is $-\log u'_y$ with $u' = (u + m\,1[\arg\max]) / (m + 1)$.

    Args:
        m: How much the largest probability is raised; 0 is cross entropy.
        clamp: Floor of $u'$, as the authors' code has with 1e-8; off unless given.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> EpsilonCrossEntropy(m=1)(torch.tensor([[0.0, 0.1]]), torch.tensor([1]))
        tensor(0.2712)
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
        clamp: Floor of $u'$, as the authors' code has with 1e-8; off unless given.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> EpsilonFocal(m=1, gamma=1)(torch.tensor([[0.0, 0.1]]), torch.tensor([1]))
        tensor(0.0644)
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
