"""What the scikit-learn estimator is given, as the engine takes it: rows or images, and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.data.columns import Columns, are_numbers
from labelproof.data.images import channel_statistics
from labelproof.data.notices import few, quoted
from labelproof.data.table import NO_NAME

__all__ = [
    "Standard",
    "admit_images",
    "admit_label_kinds",
    "as_frame",
    "fill_missing",
    "first_text",
    "is_frame",
    "learn_columns",
    "medians",
    "merge_duplicates",
    "refuse_absent",
    "standardize_rows",
]

_FARTHEST = 1e6
"""In deviations from the mean: past it a row is so far out that its distance says nothing."""
_CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class Standard:
    """What inputs are brought to mean 0 and deviation 1 with.

    Attributes:
        mean: Of each feature, or of each channel scaled to 0..1.
        std: Likewise; 1 for a feature that is always the same.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def of_rows(cls, rows: NDArray[np.float64], weight: NDArray[np.float64]) -> Standard:
        """Of weighed rows, so that a weight of 2 is a row twice here too.

        >>> Standard.of_rows(np.array([[1.0, 5.0], [4.0, 5.0]]), np.array([2.0, 1.0]))
        Standard(mean=(2.0, 5.0), std=(1.4142135623730951, 1.0))
        """
        share = weight / weight.sum()
        # Scaled by the largest number, or the squares of 1e200 would be infinite.
        scale = np.maximum(np.abs(rows).max(axis=0), np.finfo(np.float64).tiny)
        mean = share @ (rows / scale)
        std = np.sqrt(share @ np.square(rows / scale - mean)) * scale
        # Not std == 0: rounding gives equal numbers a little spread.
        flat = (rows.max(axis=0) == rows.min(axis=0)) | (std < 1e-30)
        centre = (mean * scale).tolist()
        return cls(tuple(centre), tuple(np.where(flat, 1.0, std).tolist()))

    @classmethod
    def of_images(cls, images: NDArray[np.uint8]) -> Standard:
        """Of images `(N, C, H, W)`.

        >>> Standard.of_images(np.array([[[[0, 255]]]], np.uint8)).mean
        (0.5,)
        """
        return cls(*channel_statistics(images))


def standardize_rows(rows: NDArray[Any], standard: Standard) -> NDArray[np.float32]:
    """Rows as the network sees them.

    In float64 until the mean is off: a year of dates in seconds is lost beside its mean in less.

    >>> standardize_rows(np.array([[3.0, 1e300]]), Standard((1.0, 0.0), (2.0, 1.0)))
    array([[1.e+00, 1.e+06]], dtype=float32)
    """
    wide = (rows.astype(np.float64) - standard.mean) / standard.std
    return np.clip(wide, -_FARTHEST, _FARTHEST).astype(np.float32)


def admit_images(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Images `(N, H, W)` or `(N, H, W, C)`, of bytes or of numbers from 0 to 1, as `(N, C, H, W)`.

    Raises:
        ValueError: They have other axes, or numbers that are no pixels.

    Example:
        >>> admit_images(np.ones((2, 8, 6))).shape
        (2, 1, 8, 6)
        >>> admit_images(np.full((2, 8, 8, 3), 200.0))
        Traceback (most recent call last):
            ...
        ValueError: X: expected images of uint8, or of numbers from 0 to 1, got float64 from 200 to
        200; bytes that became floats are divided by 255, or brought back with X.astype("uint8")
    """
    if images.ndim not in (3, 4):
        raise ValueError(
            f"X: expected rows (N, F), images (N, H, W) or images (N, H, W, C), got {images.ndim} "
            f"dimensions: {images.shape}"
        )
    if 0 in images.shape:
        raise ValueError(f"X: expected at least one image with pixels, got shape {images.shape}")
    if images.ndim == 4 and images.shape[1] in _CHANNELS and images.shape[3] not in _CHANNELS:
        raise ValueError(
            f"X: expected images with their channels last, (N, H, W, C), got {images.shape}, which "
            "looks like channels first; turn them with X.transpose(0, 2, 3, 1)"
        )
    if images.dtype != np.uint8:
        images = _bytes(images)
    last = images[..., np.newaxis] if images.ndim == 3 else images
    return np.ascontiguousarray(last.transpose(0, 3, 1, 2))


def _bytes(images: NDArray[Any]) -> NDArray[np.uint8]:
    if images.dtype.kind not in "fiub":
        raise ValueError(
            f"X: expected images of uint8, or of numbers from 0 to 1, got {images.dtype}"
        )
    low, high = images.min(), images.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError("X: expected images without NaN or infinity, got some")
    if images.dtype.kind in "iu" and low >= 0 and high <= 255:
        return images.astype(np.uint8)
    if low < 0 or high > 1:
        raise ValueError(
            f"X: expected images of uint8, or of numbers from 0 to 1, got {images.dtype} from "
            f"{low:g} to {high:g}; {_way_back(images, float(low), float(high))}"
        )
    return np.rint(images.astype(np.float32) * 255).astype(np.uint8)


def _way_back(images: NDArray[Any], low: float, high: float) -> str:
    """How numbers that are no pixels become some; a cast of what is no byte would wrap around."""
    if low >= 0 and high <= 255:
        whole = bool((images == np.rint(images)).all())
        back = ', or brought back with X.astype("uint8")' if whole else ""
        return f"bytes that became floats are divided by 255{back}"
    scaled = f"X / {high:g}" if low >= 0 else f"(X - {low:g}) / ({high:g} - {low:g})"
    # Windows of sensors have three axes too, and are no images.
    windows = "; rows of moments are given as X.reshape(len(X), -1)" if images.ndim == 3 else ""
    return (
        f"bring all of them to that by one range, such as {scaled}, and new images by the same"
        f"{windows}"
    )


def is_frame(data: Any) -> bool:
    """Whether data is a table with named columns, of pandas or alike."""
    return hasattr(data, "columns") and hasattr(data, "dtypes") and hasattr(data, "__array__")


def first_text(features: Any) -> str | None:
    """A text in an array or a list of rows that is no number, or `None` where there is none.

    >>> first_text([["3", "C100"], ["4", "C101"]]), first_text([[3.0, None]])
    ('C100', None)
    """
    try:
        array = np.asarray(features)
    except ValueError:  # rows of different lengths
        return None
    if array.dtype.kind not in "USOT":
        return None
    texts = [cell for cell in array.ravel().tolist() if isinstance(cell, str)]
    numbers = are_numbers(texts)
    return next((text for text, number in zip(texts, numbers, strict=True) if not number), None)


def as_frame(table: Any) -> pd.DataFrame:
    """A table as pandas has it, its columns named by text."""
    frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def learn_columns(table: pd.DataFrame) -> Columns | None:
    """How a table's columns become features, or `None` where all of them are plain numbers.

    >>> learn_columns(pd.DataFrame({"a": [1.0, 2.0]}))
    >>> learn_columns(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})).feature_names
    ('a', ...)
    """
    # Infinity is left to scikit-learn's own check, which says so; only NaN is a missing value.
    if all(pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes) and not table.isna().any(
        axis=None
    ):
        return None
    return Columns.learn(table, place="X")


def medians(rows: NDArray[Any]) -> tuple[float, ...]:
    """What stands for a missing number in each column, as in a table that lacked some.

    >>> medians(np.array([[1.0, 5.0], [2.0, 5.0], [9.0, 6.0]]))
    (2.0, 5.0)
    """
    # One by one: of all columns at once NumPy would copy the whole table.
    return tuple(float(np.median(column)) for column in rows.T)


def fill_missing(rows: NDArray[Any], fills: tuple[float, ...]) -> NDArray[Any]:
    """Put each column's fill where a number is missing; rows that lack none are given back.

    >>> fill_missing(np.array([[np.nan, 1.0]]), (2.0, 5.0))
    array([[2., 1.]])
    """
    missing = np.isnan(rows)
    return np.where(missing, np.asarray(fills, rows.dtype), rows) if missing.any() else rows


def admit_label_kinds(labels: Any) -> None:
    """Refuse labels of different kinds, and missing ones, in words that help.

    >>> admit_label_kinds(["cat", "", "dog", "nan"])
    Traceback (most recent call last):
        ...
    ValueError: y: expected a label for each row, got none ('', 'nan') in 2 of them: row 1, 3;
    leave those rows out, or rename what is really called so
    >>> admit_label_kinds(np.array(["cat", 3], dtype=object))
    Traceback (most recent call last):
        ...
    ValueError: y: expected labels of one kind, got int and str, such as 3 and 'cat'; make them
    all text: [str(label) for label in y]
    """
    found = np.asarray(labels) if not isinstance(labels, list) else np.array(labels, dtype=object)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    refuse_absent("y: expected a label", found, "leave those rows out")
    if found.dtype.kind != "O" or found.ndim != 1:
        return
    values = found.tolist()
    kinds = {type(value).__name__: value for value in values}
    if "str" in kinds and len({name == "str" or name.startswith("str") for name in kinds}) > 1:
        others = sorted(name for name in kinds if not name.startswith("str"))
        raise ValueError(
            f"y: expected labels of one kind, got {others[0]} and str, such as "
            f"{kinds[others[0]]!r} and {kinds['str']!r}; make them all text: "
            "[str(label) for label in y]"
        )


def refuse_absent(expected: str, values: NDArray[Any], advice: str) -> None:
    """Refuse texts and objects of which some are missing, or are what is written for that.

    Args:
        expected: Where they are from and what is taken, the beginning of the message.
        values: One for each row; numbers are let through.
        advice: What to do about rows that have none.

    Example:
        >>> refuse_absent("y: expected a label", np.array(["cat", " "]), "leave those rows out")
        Traceback (most recent call last):
            ...
        ValueError: y: expected a label for each row, got none (' ') in 1 of them: row 1; leave ...
    """
    if values.dtype.kind not in "OUT" or values.ndim != 1:
        return
    listed = values.tolist()
    missing = [row for row, value in enumerate(listed) if _is_absent(value)]
    if not missing:
        return
    texts = sorted({listed[row] for row in missing if isinstance(listed[row], str)})
    written = f" ({few([quoted(text) for text in texts])})" if texts else ""
    rename = ", or rename what is really called so" if texts else ""
    raise ValueError(
        f"{expected} for each row, got none{written} in {len(missing):,} of them: row "
        f"{few([str(row) for row in missing])}; {advice}{rename}"
    )


def _is_absent(label: Any) -> bool:
    if isinstance(label, str):
        return label.strip() in NO_NAME
    try:
        return label is None or bool(label != label)
    except TypeError:  # the missing value of pandas does not say whether it equals itself
        return True


def merge_duplicates(
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    weight: NDArray[np.float64],
    groups: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Take equal rows with equal labels for one that counts as much as all of them.

    They come back in an order of their own, so that examples that are repeated, examples that are
    weighed and examples in another order are all learned from in the same way.

    Args:
        rows: `(N, F)`.
        labels: A class index for each.
        weight: How much each counts.
        groups: A number for each; rows of different groups are not taken for one, which could be
            on either side of a cut between them.

    Returns:
        The index of a row for each that stays; for each row which of them it became; and how much
        those that stay count.

    Example:
        >>> rows, labels, weight = np.array([[2.0], [1.0], [2.0]]), np.array([0, 1, 0]), np.ones(3)
        >>> merge_duplicates(rows, labels, weight)
        (array([1, 0]), array([1, 0, 1]), array([1., 2.]))
        >>> merge_duplicates(rows, labels, weight, np.array([5, 6, 7]))
        (array([1, 0, 2]), array([1, 0, 2]), array([1., 1., 1.]))
    """
    grouped = [] if groups is None else [groups]
    keys = np.column_stack([rows, labels, *grouped]).astype(np.float64)
    unique, first, became = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    merged = np.zeros(len(unique))
    np.add.at(merged, became.ravel(), weight)
    return first, became.ravel(), merged
