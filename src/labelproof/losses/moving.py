"""Tensors that go where their module goes, and keep their values on the way."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

__all__ = ["follow"]


def follow(values: Tensor, move: Callable[[Tensor], Tensor]) -> Tensor:
    """Bring values to the device and the type that a module's `_apply` would give them.

    The move itself is not asked for the values: that of `to_empty` leaves memory as it was found,
    for a checkpoint to fill, and what is no part of a checkpoint would stay so. For the same reason
    they stay where they are when the module moves to `meta`, which has no memory for them.

    Args:
        values: A tensor with one axis.
        move: What the module is moved with.

    >>> import torch
    >>> follow(torch.tensor([1.0, 2.0]), lambda tensor: torch.empty_like(tensor).double())
    tensor([1., 2.], dtype=torch.float64)
    """
    # A part of the same memory, so that a move that is done in place, to shared memory, is done.
    like = move(values[:0])
    return values.to("cpu" if like.is_meta else like.device, like.dtype)
