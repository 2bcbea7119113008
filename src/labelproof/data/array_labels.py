"""Labels in arrays, whichever way they are written, as class indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.array_files import decode_text
from labelproof.data.classes import order_classes
from labelproof.data.notices import count

__all__ = ["as_words", "class_indices"]


def as_words(array: NDArray[Any]) -> list[str]:
    """The elements of an array as text, without spaces around them.

    >>> as_words(np.array([" cat", "dog"]))
    ['cat', 'dog']
    """
    return [str(value).strip() for value in decode_text(array).tolist()]


def class_indices(
    given: Mapping[str, NDArray[Any]], names: tuple[str, ...] | None, place: str, what: str
) -> tuple[tuple[str, ...], dict[str, NDArray[np.int64]]]:
    """Class names and indices; integers are names too, unless an array names them.

    Args:
        given: The labels of each split: integers, text, or one-hot rows.
        names: What integers count, where that is known.
        place: What the file is called in messages.
        what: What an example is called, a row or an image.

    Raises:
        ValueError: They are no classes, or some are missing.

    Example:
        >>> class_indices({"train": np.array(["b", "a", "b"])}, None, "f.npz", "row")
        (('a', 'b'), {'train': array([1, 0, 1])})
    """
    columns = {split: _column(array, f"{place}: labels", what) for split, array in given.items()}
    if names is not None and all(column.dtype.kind in "iu" for column in columns.values()):
        for column in columns.values():
            if column.size and (column.min() < 0 or column.max() >= len(names)):
                worst = column.min() if column.min() < 0 else column.max()
                raise ValueError(
                    f"{place}: expected labels from 0 to {len(names) - 1}, as there are "
                    f"{len(names)} class names, got {worst}"
                )
        return names, {split: column.astype(np.int64) for split, column in columns.items()}
    words = {split: as_words(column) for split, column in columns.items()}
    ordered = order_classes(word for split in words.values() for word in split)
    index = {name: number for number, name in enumerate(ordered)}
    return ordered, {
        split: np.array([index[word] for word in values], dtype=np.int64)
        for split, values in words.items()
    }


def _column(array: NDArray[Any], place: str, what: str) -> NDArray[Any]:
    """Labels as one column of integers or text; `what` is an example called."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2 and array.dtype.kind in "iufb":
        if ((array == 0) | (array == 1)).all() and (array.sum(axis=1) == 1).all():
            return array.argmax(axis=1)
        raise ValueError(
            f"{place}: expected one label for each {what}, got {array.shape[1]}; several are not "
            "taken: give the majority of them, or train on soft targets in a loop of your own"
        )
    if array.ndim != 1 or array.dtype.kind not in "iufbUS":
        raise ValueError(
            f"{place}: expected integers or text of shape (N), got {array.dtype} {array.shape}"
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError(f"{place}: {count(int((~np.isfinite(array)).sum()), 'label')} missing")
        if (array != np.floor(array)).any():
            raise ValueError(
                f"{place}: expected classes, got {array[array != np.floor(array)][0]:g}, which "
                "looks like a measurement"
            )
        array = array.astype(np.int64)
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        missing = int((array < 0).sum())
        raise ValueError(
            f"{place}: expected classes from 0, got {array.min()}; remove the "
            f"{count(missing, what)} without a label"
        )
    return array.astype(np.int64) if array.dtype.kind == "b" else array
