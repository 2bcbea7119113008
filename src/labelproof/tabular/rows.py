"""Labelled rows: standardised, equal ones merged, groups kept together, cut into folds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelproof.data.columns import Columns
from labelproof.data.duplicates import find_duplicate_rows
from labelproof.data.images import Statistics
from labelproof.data.splits import Holdout, folds, joined_groups, splittable

Floats = NDArray[np.float64]
_FARTHEST = 1e6
"""In standard deviations from the mean: a feature farther away is clipped to this."""
_FOLDS = 5
_CUTS = 2
_CUT_ROWS = 3_000
"""Most rows of all cuts together, if a table is cut more than once."""
_FEWEST = 30
"""Number of rows from which on the noise is estimated; with fewer, no label counts as wrong."""
SMALL = 256
"""Number of rows up to which equal ones are merged."""
_LARGEST = 1 / 3
"""Largest share of all examples in one group that copies chain together; above it, they do not."""


def row_statistics(rows: Floats, weight: Floats) -> Statistics:
    """Weighted mean and standard deviation of each feature; a weight of 2 equals a repeated row.

    The deviation of a constant feature is 1.

    >>> row_statistics(np.array([[1.0, 5.0], [4.0, 5.0]]), np.array([2.0, 1.0]))
    ((2.0, 5.0), (1.4142135623730951, 1.0))
    """
    share = weight / weight.sum()
    # Scaled by the largest number, or the squares of 1e200 would overflow.
    scale = np.maximum(np.abs(rows).max(axis=0), np.finfo(np.float64).tiny)
    mean = share @ (rows / scale)
    std = np.sqrt(share @ np.square(rows / scale - mean)) * scale
    # Not std == 0: rounding gives a constant feature a little spread.
    flat = (rows.max(axis=0) == rows.min(axis=0)) | (std < 1e-30)
    return tuple((mean * scale).tolist()), tuple(np.where(flat, 1.0, std).tolist())


def standardize_rows(rows: NDArray[Any], statistics: Statistics) -> NDArray[np.float32]:
    """Rows as the network sees them: each feature with mean 0 and deviation 1.

    In float64 until the mean is subtracted: float32 rounds today's Unix time to 128 seconds.

    >>> standardize_rows(np.array([[3.0, 1e300]]), ((1.0, 0.0), (2.0, 1.0)))
    array([[1.e+00, 1.e+06]], dtype=float32)
    """
    mean, std = statistics
    wide = (rows.astype(np.float64) - mean) / std
    return np.clip(wide, -_FARTHEST, _FARTHEST).astype(np.float32)


@dataclass(frozen=True)
class LabelledRows:
    """Labelled rows, cut into folds.

    Attributes:
        rows: `(N, F)`, without ids.
        given: The given labels, class indices, `(N)`.
        weight: Of each row, `(N)`.
        class_weight: Of each class, `(C)`.
        cuts: Each cuts all rows into folds.
        became: The index in `rows` of each original row.
        groups: The group of each row, `(N)`, all of which stays in one fold; `None` without groups.
        terms: The ids of the terms of each row's texts, `(N, L)`.
        ids: Where these were among the features.
        words: The features in `rows` that stand for words of texts.
    """

    rows: Floats
    given: NDArray[np.int64]
    weight: Floats
    class_weight: Floats
    cuts: list[list[Holdout]]
    became: NDArray[np.int64] | slice = field(default_factory=lambda: slice(None))
    groups: NDArray[np.int64] | None = None
    terms: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    words: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @cached_property
    def labels(self) -> Floats:
        """The given labels as probabilities, `(N, C)`."""
        return np.eye(len(self.class_weight))[self.given]

    @cached_property
    def held_labels(self) -> NDArray[np.int64]:
        """The given labels, once for each cut."""
        return np.tile(self.given, len(self.cuts))

    @cached_property
    def held_share(self) -> Floats:
        """The weights of the rows, once for each cut; they sum to 1."""
        return np.tile(self.weight / self.weight.sum(), len(self.cuts)) / len(self.cuts)

    @property
    def too_few(self) -> bool:
        """Whether rows are too few to hold some out: then no label counts as wrong."""
        return len(self.rows) < _FEWEST or not self.cuts


def label_rows(
    rows: NDArray[Any],
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    *,
    weight: Floats | None = None,
    class_weight: Any = None,
    groups: NDArray[np.int64] | None = None,
    columns: Columns | None = None,
    seed: int,
) -> LabelledRows:
    """Rows and labels, cut into folds; groups and copies stay in one fold.

    Args:
        rows: `(N, F)`.
        labels: Class indices, `(N)`.
        classes: The class of each index, `(C)`.
        weight: Of each row, `(N)`; 1 by default.
        class_weight: `"balanced"`, a weight for each class, or `None`.
        groups: The group of each row, `(N)`.
        columns: The columns that the features are from, to find texts.
        seed: Random seed of the folds.
    """
    weight = np.ones(len(rows)) if weight is None else weight
    rows, given, weight, together, became = merge_rows(rows, labels, weight, groups)
    together = splittable(together, given)
    units = len(rows) if together is None else len(np.unique(together))
    # Few rows are cut more than once, since a choice by a single cut is largely chance.
    cuts = [
        folds(given, min(_FOLDS, units), seed=seed + cut, groups=together)
        for cut in range(min(max(_CUT_ROWS // len(rows), 1), _CUTS) if units > 1 else 0)
    ]
    check_class_weight(class_weight)
    from sklearn.utils.class_weight import compute_class_weight

    present = np.unique(given)
    balance = np.ones(len(classes))
    balance[present] = compute_class_weight(
        class_weight, classes=classes[present], y=classes[given]
    )
    columns = Columns(()) if columns is None else columns
    ids = columns.ids
    words = np.flatnonzero(np.isin(np.delete(np.arange(rows.shape[1]), ids), columns.words))
    rest, terms = split_ids(rows, ids)
    return LabelledRows(rest, given, weight, balance, cuts, became, together, terms, ids, words)


def split_ids(rows: NDArray[Any], ids: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Rows without the ids of terms, and these."""
    return np.delete(rows, ids, axis=1) if len(ids) else rows, rows[:, ids].astype(np.int32)


class MergedRows(NamedTuple):
    """Merged rows, their labels, weights and groups, and the new index of each original row."""

    rows: Floats
    labels: NDArray[np.int64]
    weight: Floats
    together: NDArray[np.int64] | None
    became: NDArray[np.int64] | slice


def merge_rows(
    rows: NDArray[Any],
    labels: NDArray[np.int64],
    weight: Floats,
    groups: NDArray[np.int64] | None = None,
) -> MergedRows:
    """Merge equal rows with equal labels into one with their total weight, if there are few rows.

    Merged rows are sorted, so that repeating, weighting or reordering examples trains the same
    model. Rows of different groups are never merged.

    Example:
        >>> rows, labels, weight = np.array([[2.0], [1.0], [2.0]]), np.array([0, 1, 0]), np.ones(3)
        >>> merge_rows(rows, labels, weight)[1:]
        (array([1, 0]), array([1., 2.]), None, array([1, 0, 1]))
        >>> merge_rows(rows, labels, weight, np.array([5, 6, 7])).became
        array([1, 0, 2])
    """
    rows = rows.astype(np.float64)
    together = keep_together(rows, groups)
    if len(rows) > SMALL:
        return MergedRows(rows, labels, weight, together, slice(None))
    parts = [] if groups is None else [groups]
    keys = np.column_stack([rows, labels, *parts]).astype(np.float64)
    unique, first, became = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    became, merged = became.ravel(), np.zeros(len(unique))
    np.add.at(merged, became, weight)
    if together is not None:
        joined = joined_groups(together, became)
        together = joined_groups((np.arange(len(became)) if joined is None else joined)[first])
    return MergedRows(rows[first], labels[first], merged, together, became)


def keep_together(
    inputs: NDArray[Any], groups: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """The group of each example, joined with its copies; a group is never split.

    `None` means that each example is its own group.

    Example:
        >>> rows = np.arange(30.0)[:, None] % 28
        >>> keep_together(rows, None)[[0, 1, 2, 28, 29]]
        array([0, 1, 2, 0, 1])
        >>> keep_together(rows, np.arange(30) // 2)[[0, 1, 2, 28, 29]]
        array([0, 0, 2, 0, 0])
    """
    together = joined_groups(groups, find_duplicate_rows(inputs))
    if groups is not None and together is not None:
        allowed = max(_LARGEST * len(inputs), np.bincount(groups).max())
        if np.bincount(together).max() > allowed:
            return joined_groups(groups)
    return together


def check_class_weight(class_weight: Any) -> None:
    """Refuse negative weights; scikit-learn refuses anything else that is wrong."""
    weights = class_weight.values() if isinstance(class_weight, dict) else ()
    if not all(value >= 0 for value in weights):
        raise ValueError(f"class_weight: expected no negative weights, got {class_weight!r}")
