r"""Normalised losses, $L(u, y) / \sum_i L(u, i)$: any loss made symmetric, at a price."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from labelproof.losses.base import Loss
from labelproof.losses.foreign import as_loss
from labelproof.losses.inputs import may_read
from labelproof.losses.outputs import Outputs

__all__ = ["Normalized"]


class Normalized(Loss):
    r"""A loss divided by its sum over all labels, $L(u, y) / \sum_{i=1}^k L(u, i)$.

    Over the labels it sums to 1 by definition, so it satisfies the symmetric condition and is
    robust to symmetric noise. Alone it tends to underfit; the active passive losses add a second
    robust loss to it: `10 * Normalized(CrossEntropy()) + 0.1 * MeanAbsoluteError()`.

    Nothing in it is drawn: of `NegativeLearning` the expected value is taken, since one with a
    drawn label would not sum to 1.

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

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the integer labels given, `(N, ...)`."""
        values = self._values(outputs)
        return _share(values.gather(1, target.unsqueeze(1)), values).squeeze(1)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every label an example could have had, `(N, C, ...)`."""
        values = self._values(outputs)
        return _share(values, values)

    def _values(self, outputs: Outputs) -> Tensor:
        if outputs.num_classes < 2:
            raise ValueError("logits: a normalised loss needs at least 2 classes, got 1")
        return self.base.label_values(outputs)


def _share(own: Tensor, values: Tensor) -> Tensor:
    """What labels have of the sum over all labels, also where one of probability 0 costs infinity.

    There the limit is taken: such labels have the whole sum, in equal parts, and the others none of
    it, so that the shares still add up to 1. Nothing small moves them, so their gradient is 0.
    """
    total = values.sum(dim=1, keepdim=True)
    # One look at a number for each example spares the usual batch three passes over all classes.
    if may_read(total) and math.isfinite(total.detach().sum()):
        return own / total
    infinite = own == math.inf
    parts = 1 / (values == math.inf).sum(dim=1, keepdim=True).clamp_min(1).to(own.dtype)
    return torch.where(infinite, parts, torch.where(infinite, 0, own) / total)
