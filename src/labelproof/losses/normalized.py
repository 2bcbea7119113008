r"""Normalised losses, $L(u, y) / \sum_i L(u, i)$: any loss made symmetric, at a price."""

from __future__ import annotations

from torch import Tensor, nn

from labelproof.losses.base import Loss
from labelproof.losses.foreign import as_loss
from labelproof.losses.outputs import Outputs

__all__ = ["Normalized"]


class Normalized(Loss):
    r"""A loss divided by its sum over all labels, $L(u, y) / \sum_{i=1}^k L(u, i)$.

    Over the labels it sums to 1 by definition, so it satisfies the symmetric condition and is
    robust to symmetric noise. Alone it tends to underfit; the active passive losses add a second
    robust loss to it: `10 * Normalized(CrossEntropy()) + 0.1 * MeanAbsoluteError()`.

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
        return self.base.index_values(outputs, target) / self._sums(outputs).sum(dim=1)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every label an example could have had, `(N, C, ...)`."""
        values = self._sums(outputs)
        return values / values.sum(dim=1, keepdim=True)

    def _sums(self, outputs: Outputs) -> Tensor:
        if outputs.num_classes < 2:
            raise ValueError("logits: a normalised loss needs at least 2 classes, got 1")
        return self.base.label_values(outputs)
