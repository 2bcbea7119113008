r"""Mean absolute error, $1 - u_y$: symmetric, so robust, and slow to learn with many classes."""

from __future__ import annotations

from torch import Tensor

from labelproof.losses.base import PointwiseLoss

__all__ = ["MeanAbsoluteError", "mean_absolute_error"]


def mean_absolute_error(logits: Tensor, target: Tensor) -> Tensor:
    r"""Mean absolute error of each example, $1 - u_y$.

    This is half of the l1 distance $\|u - e_y\|_1 = 2 (1 - u_y)$; write `2 * MeanAbsoluteError()`
    for the distance itself.

    Args:
        logits: `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        target: Class indices, or class probabilities of the logits' shape.

    Returns:
        One value per example.

    Example:
        >>> import torch
        >>> mean_absolute_error(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor([0.5000])

    Reference:
        Ghosh et al., "Robust Loss Functions under Label Noise for Deep Neural Networks", AAAI 2017.
    """
    return MeanAbsoluteError(reduction="none")(logits, target)


class MeanAbsoluteError(PointwiseLoss):
    r"""Mean absolute error, $1 - u_y$, half of the l1 distance to the one-hot label.

    Example:
        >>> import torch
        >>> (2 * MeanAbsoluteError())(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(1.)
    """

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        return 1 - log_probability.exp()

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative."""
        slope = log_probability.exp().neg_()
        return slope + 1, slope
