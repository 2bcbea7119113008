r"""Losses divided by their sum over all labels: `Normalized`, and normalised negative losses."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from labelproof.losses.algebra import as_loss
from labelproof.losses.base import FormulaLoss, LossSettings, PointwiseLoss
from labelproof.losses.batch import Outputs, may_read
from labelproof.losses.cross_entropy import CrossEntropy, Focal
from labelproof.losses.numerics import others, own


class Normalized(FormulaLoss):
    r"""A loss divided by its sum over all labels, $L(u, y) / \sum_{i=1}^k L(u, i)$.

    Over the labels it sums to 1 by definition, so it satisfies the symmetric condition and is
    robust to symmetric noise. Alone it tends to underfit; the active passive losses add a second
    robust loss to it: `10 * Normalized(CrossEntropy()) + 0.1 * MeanAbsoluteError()`.

    Of `NegativeLearning` it uses the expected values, since those of drawn labels would not sum
    to 1.

    Args:
        base: Any loss of this package, or a module over (logits, target) that can return one
            value per example. Its reduction and class weights become this loss's.

    Example:
        >>> import torch
        >>> from labelproof import CrossEntropy
        >>> Normalized(CrossEntropy())(torch.zeros(1, 4), torch.tensor([1]))
        tensor(0.2500)

    Reference:
        Ma et al., "Normalized Loss Functions for Deep Learning with Noisy Labels", ICML 2020.
    """

    def __init__(self, base: nn.Module):
        base = as_loss(base)
        super().__init__(**base.settings)
        self.base = base

    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """Value for the labels, or for every label."""
        if outputs.num_classes < 2:
            raise ValueError("logits: a normalised loss needs at least 2 classes, got 1")
        values = self.base.label_values(outputs)
        return _share(own(values, labels), values)


def _share(part: Tensor, values: Tensor) -> Tensor:
    """The share of labels in the sum over all labels, even if a label of probability 0 is infinite.

    Then it is the limit: such labels have the whole sum, in equal parts, and the others none of it,
    so that the shares still add up to 1. Small changes do not move them, so their gradient is 0.
    """
    total = values.sum(dim=1, keepdim=True)
    # Reading one number per example saves the usual batch three passes over all classes.
    if may_read(total) and math.isfinite(total.detach().sum()):
        return part / total
    infinite = part == math.inf
    equal = 1 / (values == math.inf).sum(dim=1, keepdim=True).clamp_min(1).to(part.dtype)
    return torch.where(infinite, equal, torch.where(infinite, 0, part) / total)


_LOG_FLOOR = math.log(1e-7)
"""Floor of the probabilities, as in the authors' code; below it there is no gradient."""


class _NormalizedNegative(FormulaLoss):
    def __init__(self, active: PointwiseLoss, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        self._active = active
        self._highest = float(active.pointwise(torch.tensor(_LOG_FLOOR, dtype=torch.float64)))

    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """Value for the labels, or for every label."""
        clamped = outputs.log_probabilities.clamp_min(_LOG_FLOOR)
        # At the floor, rounding may give less than 0.
        values = (self._highest - self._active.pointwise(clamped)).clamp_min(0)
        return others(values, labels) / values.sum(dim=1, keepdim=True)


class NormalizedNegativeCrossEntropy(_NormalizedNegative):
    r"""Normalised negative cross entropy, $1 - (A + \log u_y) / \sum_i (A + \log u_i)$.

    Here $A = -\log 10^{-7}$, and probabilities are clamped to at least $10^{-7}$. ANL-CE is
    `5*nce+5*negce`.

    Args:
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> loss = NormalizedNegativeCrossEntropy()
        >>> loss(torch.tensor([[0.0, 0.0, 0.0, 0.0]]), torch.tensor([1]))
        tensor(0.7500)

    Reference:
        Ye et al., "Active Negative Loss Functions for Learning with Noisy Labels", NeurIPS 2023.
    """

    def __init__(self, **settings: Unpack[LossSettings]):
        super().__init__(CrossEntropy(), **settings)


class NormalizedNegativeFocal(_NormalizedNegative):
    r"""Normalised negative focal loss: focal loss in place of cross entropy.

    It is $1 - (A - L(u_y)) / \sum_i (A - L(u_i))$ with $L(u) = -(1 - u)^\gamma \log u$ and
    $A = L(10^{-7})$. ANL-FL is `5*nfl+5*negfl`.

    Args:
        gamma: Focusing exponent $\gamma \ge 0$; 0 is normalised negative cross entropy.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> NormalizedNegativeFocal()(torch.zeros(1, 4), torch.tensor([1]))
        tensor(0.7500)

    Reference:
        Ye et al., "Active Negative Loss Functions for Learning with Noisy Labels", NeurIPS 2023.
    """

    def __init__(self, gamma: float = 0.5, **settings: Unpack[LossSettings]):
        super().__init__(Focal(gamma), **settings)
        self.gamma = float(gamma)
