r"""Symmetric cross entropy, $\alpha\,\mathrm{CE} + \beta\,\mathrm{RCE}$: learns and resists."""

from __future__ import annotations

from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import LossSettings, PointwiseLoss, of_label
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


class SymmetricCrossEntropy(PointwiseLoss):
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
        self._reverse = ReverseCrossEntropy(log_zero, clamp=clamp)
        self.log_zero, self.clamp = log_zero, clamp

    @property
    def label_alone(self) -> bool:
        """Whether it is a function of the label's probability alone."""
        return self.clamp is None

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability, where nothing is clamped."""
        return self.beta * self._reverse.pointwise(log_probability) - self.alpha * log_probability

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        value, slope = self._reverse.value_and_slope(log_probability)
        value = (self.beta * value).sub_(log_probability, alpha=self.alpha)
        return value, (self.beta * slope).sub_(self.alpha)

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the integer labels given, `(N, ...)`."""
        reverse = self._reverse.index_values(outputs, target)
        return self.beta * reverse - self.alpha * of_label(outputs.log_probabilities, target)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every label an example could have had, `(N, C, ...)`."""
        reverse = self._reverse.label_values(outputs)
        return self.beta * reverse - self.alpha * outputs.log_probabilities

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return f"alpha={self.alpha:g}, beta={self.beta:g}"
