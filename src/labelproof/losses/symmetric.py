r"""Symmetric cross entropy, $\alpha\,\mathrm{CE} + \beta\,\mathrm{RCE}$: learns and resists."""

from __future__ import annotations

from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import Loss, LossSettings
from labelproof.losses.cross_entropy import CrossEntropy
from labelproof.losses.outputs import Outputs
from labelproof.losses.reverse import LOG_ZERO, ReverseCrossEntropy
from labelproof.ranges import within

__all__ = ["SymmetricCrossEntropy", "symmetric_cross_entropy"]


def symmetric_cross_entropy(
    logits: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    log_zero: float = LOG_ZERO,
    clamp: float | None = None,
) -> Tensor:
    r"""Symmetric cross entropy of each example, $-\alpha \log u_y - \beta A (1 - u_y)$.

    Args:
        logits: `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        target: Class indices, or class probabilities of the logits' shape.
        alpha: Weight of cross entropy; larger fits more.
        beta: Weight of reverse cross entropy; larger resists more.
        log_zero: $A < 0$, which stands for $\log 0$.
        clamp: Floor of the reverse part's probabilities; off unless given.

    Returns:
        One value per example.

    Example:
        >>> import torch
        >>> symmetric_cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]), log_zero=-4)
        tensor([2.0693])

    Reference:
        Wang et al., "Symmetric Cross Entropy for Robust Learning with Noisy Labels", ICCV 2019.
    """
    loss = SymmetricCrossEntropy(alpha, beta, log_zero=log_zero, clamp=clamp, reduction="none")
    return loss(logits, target)


class SymmetricCrossEntropy(Loss):
    r"""Symmetric cross entropy, $-\alpha \log u_y - \beta A (1 - u_y)$.

    Args:
        alpha: Weight of cross entropy; larger fits more.
        beta: Weight of reverse cross entropy; larger resists more.
        log_zero: $A < 0$, which stands for $\log 0$.
        clamp: Floor of the reverse part's probabilities; off unless given.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> import torch
        >>> SymmetricCrossEntropy(log_zero=-4)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(2.0693)
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
        self._sum = self.alpha * CrossEntropy() + self.beta * ReverseCrossEntropy(
            log_zero, clamp=clamp
        )
        self.log_zero, self.clamp = log_zero, clamp

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the integer labels given, `(N, ...)`."""
        return self._sum.index_values(outputs, target)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every label an example could have had, `(N, C, ...)`."""
        return self._sum.label_values(outputs)

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return f"alpha={self.alpha:g}, beta={self.beta:g}"
