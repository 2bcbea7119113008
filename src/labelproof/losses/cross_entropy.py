r"""Cross entropy, $-\log u_y$: learns fast, and fits wrong labels as eagerly as right ones."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import LossSettings, PointwiseLoss
from labelproof.losses.numerics import complement
from labelproof.losses.outputs import Outputs
from labelproof.ranges import whole, within

__all__ = ["CrossEntropy", "TaylorCrossEntropy", "cross_entropy"]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    r"""Cross entropy of each example, $-\log u_y$ with $u = \mathrm{softmax}(z)$.

    Args:
        logits: `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        target: Class indices, or class probabilities of the logits' shape.

    Returns:
        One value per example.

    Example:
        >>> cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor([0.6931])
    """
    return CrossEntropy(reduction="none")(logits, target)


class CrossEntropy(PointwiseLoss):
    r"""Cross entropy, $-\log u_y$; `torch.nn.CrossEntropyLoss` that can be added to others.

    Example:
        >>> CrossEntropy()(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6931)
    """

    @property
    def label_alone(self) -> bool:
        """Always; `reduce_batch` gives the same."""
        return True

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        return -log_probability

    def reduce_batch(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Loss of an admitted batch, by torch's own operation where that is all of it."""
        if outputs.counted and self.class_weight is None and type(self) is CrossEntropy:
            return F.cross_entropy(outputs.logits, target, reduction=self.reduction)
        return super().reduce_batch(outputs, target)

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        return -log_probability, torch.full_like(log_probability, -1)


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

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return f"terms={self.terms}"
