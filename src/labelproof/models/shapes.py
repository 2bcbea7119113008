"""Checks of the shape of one input at the door of a network."""

from __future__ import annotations

from collections.abc import Sequence

from labelproof.ranges import whole

__all__ = ["image_sizes", "sizes"]


def sizes(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape as whole numbers of at least 1, else say what came.

    >>> sizes("input_shape", [64])
    (64,)
    >>> sizes("input_shape", 64)
    Traceback (most recent call last):
        ...
    TypeError: input_shape: expected the sizes of one input such as (3, 32, 32) or (64,), got 64
    """
    if isinstance(shape, str) or not isinstance(shape, Sequence) or not shape:
        raise TypeError(
            f"{name}: expected the sizes of one input such as (3, 32, 32) or (64,), got {shape!r}"
        )
    return tuple(whole(name, size, 1) for size in shape)


def image_sizes(name: str, shape: Sequence[int], *, smallest: int = 1) -> tuple[int, int, int]:
    """Return channels, height and width, else say what came.

    Args:
        name: The argument's name, for the message.
        shape: What the caller gave.
        smallest: The least height and width.

    >>> image_sizes("image_shape", (3, 32, 32), smallest=8)
    (3, 32, 32)
    >>> image_sizes("image_shape", (64,))
    Traceback (most recent call last):
        ...
    ValueError: image_shape: expected (channels, height, width), got (64,);
    inputs of any other shape are for an MLP
    """
    found = sizes(name, shape)
    if len(found) != 3:
        raise ValueError(
            f"{name}: expected (channels, height, width), got {found}; "
            "inputs of any other shape are for an MLP"
        )
    channels, height, width = found
    if min(height, width) < smallest:
        raise ValueError(
            f"{name}: expected a height and width of at least {smallest}, which the pooling "
            f"brings down to 1, got {found}"
        )
    return channels, height, width
