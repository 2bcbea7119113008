"""For every class, the sum over the other classes, without losing digits."""

from __future__ import annotations

from torch import Tensor

__all__ = ["sum_of_others"]


def sum_of_others(values: Tensor) -> Tensor:
    """For each class on axis 1, the sum of the values of all others.

    The total minus the own value would lose every small value beside a large one, so the largest is
    taken out before the sum and put back where it belongs.

    Args:
        values: At least 0, `(N, C, ...)`.

    Returns:
        `(N, C, ...)`.

    Example:
        >>> import torch
        >>> sum_of_others(torch.tensor([[1e9, 1.0, 2.0]]))
        tensor([[3.0000e+00, 1.0000e+09, 1.0000e+09]])
    """
    largest = values.argmax(dim=1, keepdim=True)
    small = values.scatter(1, largest, 0)
    top = values.gather(1, largest).expand_as(values).scatter(1, largest, 0)
    return small.sum(dim=1, keepdim=True) - small + top
