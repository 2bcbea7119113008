"""Rows of numbers that came as arrays: their features have no names but a place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from labelproof.data.columns import Columns
from labelproof.data.dataset import Rows
from labelproof.data.notices import few

__all__ = ["array_names", "encode_arrays"]


def array_names(num_features: int) -> list[str]:
    """What the columns of an array are called.

    >>> array_names(3)
    ['x0', 'x1', 'x2']
    """
    return [f"x{number}" for number in range(num_features)]


def encode_arrays(
    arrays: Mapping[str, NDArray[Any]],
    place: str,
    *,
    on_error: str = "raise",
    like: Columns | None = None,
) -> tuple[Columns, dict[str, Rows]]:
    """Turn arrays `(N, F)` of numbers into rows, with missing values filled from `"train"`.

    All columns stay, in their order: who made an array has chosen them.

    Args:
        arrays: An array for each split.
        place: What they are called in messages.
        on_error: What becomes of infinite values: `"raise"` refuses them, `"skip"` takes them for
            missing, with a warning.
        like: Columns that were learned elsewhere, to fill missing values from in place of
            `"train"`.

    Raises:
        ValueError: An array holds no numbers, or rows of another length than the others or than
            those learned from.

    Example:
        >>> import numpy as np
        >>> train = np.array([[1.0, 7.0], [np.nan, 7.0], [3.0, 7.0]])
        >>> columns, rows = encode_arrays({"train": train, "test": train[1:2]}, "a.npz")
        >>> columns.feature_names, rows["test"]
        (('x0', 'x0: missing', 'x1'), array([[2., 1., 7.]], dtype=float32))
        >>> encode_arrays({"train": train[:, :1]}, "b.npz", like=columns)
        Traceback (most recent call last):
            ...
        ValueError: b.npz: expected rows of 2 numbers, as those learned from, got 1
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
    columns = like
    if columns is None:
        columns = Columns.learn(names, train.T, place=place, on_error=on_error, leave_out=False)
    else:
        _check_like(columns, names, place)
    return columns, {
        split: columns.encode(
            names,
            array.T,
            place=place,
            # Said already of training rows, while their columns were learned.
            on_error="quiet" if split == "train" and like is None else on_error,
        )
        for split, array in arrays.items()
    }


def _check_like(columns: Columns, names: list[str], place: str) -> None:
    """Refuse rows of another length than those that columns were learned from."""
    wanted = list(columns.names)
    # All columns of an array are kept, so as many are expected; of a table some may be left out.
    if wanted == array_names(len(wanted)) and not columns.left_out:
        if len(names) != len(wanted):
            raise ValueError(
                f"{place}: expected rows of {len(wanted)} numbers, as those learned from, got "
                f"{len(names)}"
            )
    elif not set(wanted) <= set(names):
        listed = few([repr(name) for name in wanted])
        raise ValueError(
            f"{place}: expected a table with the columns {listed}, as the one learned from, got an "
            "array, whose columns have no names"
        )
