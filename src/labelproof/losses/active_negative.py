r"""Normalised negative losses, the passive half of active negative learning.

A loss $L$ turned over, $L(u_{\min}) - L(u_i)$, is large where a class is likely. Its share of the
sum over all classes is the label's; what is left is the loss. Summed over the labels it is $k - 1$
whatever the output, so it is symmetric, as mean absolute error is, but learns from unlikely classes
too.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import Loss, LossSettings, PointwiseLoss
from labelproof.losses.cross_entropy import CrossEntropy
from labelproof.losses.focal import Focal
from labelproof.losses.numerics import others_of_label
from labelproof.losses.others import sum_of_others
from labelproof.losses.outputs import Outputs

__all__ = ["NormalizedNegativeCrossEntropy", "NormalizedNegativeFocal"]

_LOG_FLOOR = math.log(1e-7)
"""Probabilities are lifted to 1e-7, as the authors' code does; below it there is no gradient."""


class _NormalizedNegative(Loss):
    def __init__(self, active: PointwiseLoss, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        self._active = active
        self._highest = float(active.pointwise(torch.tensor(_LOG_FLOOR, dtype=torch.float64)))

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the integer labels given, `(N, ...)`."""
        values = self._turned(outputs)
        return others_of_label(values, target) / values.sum(dim=1)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every label an example could have had, `(N, C, ...)`."""
        values = self._turned(outputs)
        return sum_of_others(values) / values.sum(dim=1, keepdim=True)

    def _turned(self, outputs: Outputs) -> Tensor:
        lifted = outputs.log_probabilities.clamp_min(_LOG_FLOOR)
        # At the floor rounding may leave less than 0.
        return (self._highest - self._active.pointwise(lifted)).clamp_min(0)


class NormalizedNegativeCrossEntropy(_NormalizedNegative):
    r"""Normalised negative cross entropy, $1 - (A + \log u_y) / \sum_i (A + \log u_i)$.

    Here $A = -\log 10^{-7}$, and probabilities are lifted to at least $10^{-7}$. ANL-CE is
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
    r"""Normalised negative focal loss: focal loss in the place of cross entropy.

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

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return f"gamma={self.gamma:g}"
