"""Rows of numbers that came as arrays: their features have no names but a place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from labelproof.data.columns import Columns
from labelproof.data.dataset import Rows

__all__ = ["array_names", "encode_arrays"]


def array_names(num_features: int) -> list[str]:
    """What the columns of an array are called.

    >>> array_names(3)
    ['x0', 'x1', 'x2']
    """
    return [f"x{number}" for number in range(num_features)]


def encode_arrays(
    arrays: Mapping[str, NDArray[Any]], place: str, *, on_error: str = "raise"
) -> tuple[Columns, dict[str, Rows]]:
    """Turn arrays `(N, F)` of numbers into rows, with missing values filled from `"train"`.

    All columns stay, in their order: who made an array has chosen them.

    Args:
        arrays: An array for each split.
        place: What they are called in messages.
        on_error: What becomes of infinite values: `"raise"` refuses them, `"skip"` takes them for
            missing, with a warning.

    Example:
        >>> import numpy as np
        >>> train = np.array([[1.0, 7.0], [np.nan, 7.0], [3.0, 7.0]])
        >>> columns, rows = encode_arrays({"train": train, "test": train[1:2]}, "a.npz")
        >>> columns.feature_names, rows["test"]
        (('x0', 'x0: missing', 'x1'), array([[2., 1., 7.]], dtype=float32))
    """
    train = arrays["train"]
    for split, array in arrays.items():
        if array.dtype.kind not in "iufb" or not array.size:
            raise ValueError(f"{place}: expected rows of numbers, got {array.dtype} {array.shape}")
        if array.shape[1] != train.shape[1]:
            raise ValueError(
                f"{place}: expected rows of {train.shape[1]} numbers in {split}, as in train, got "
                f"{array.shape[1]}"
            )
    names = array_names(train.shape[1])
    columns = Columns.learn(names, train.T, place=place, on_error=on_error, leave_out=False)
    return columns, {
        split: columns.encode(
            names,
            array.T,
            place=place,
            # Said already of training rows, while their columns were learned.
            on_error="quiet" if split == "train" else on_error,
        )
        for split, array in arrays.items()
    }
