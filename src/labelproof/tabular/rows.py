"""Labelled rows: standardised, equal ones merged, groups kept together, cut into folds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelproof.data.duplicates import find_duplicate_rows
from labelproof.data.images import Statistics
from labelproof.data.splits import Holdout, folds, joined_groups, splittable

Floats = NDArray[np.float64]
_FARTHEST = 1e6
"""In deviations from the mean: past it a row is so far out that its distance says nothing."""
_FOLDS = 5
_CUTS = 2
_CUT_ROWS = 3_000
"""Rows that all cuts of a table have together, if it has fewer."""
_FEWEST = 30
"""Rows from which on the noise is estimated; of fewer, all labels are taken to be right."""
SMALL = 256
"""Up to so many rows, equal ones are taken for one that counts as much."""
_LARGEST = 1 / 3
"""Share of all examples that copies may chain groups into; past it, too little is left to split."""


def row_statistics(rows: Floats, weight: Floats) -> Statistics:
    """Mean and deviation of each feature of weighed rows: a weight of 2 is a row twice here too.

    The deviation of a feature that is always the same is 1.

    >>> row_statistics(np.array([[1.0, 5.0], [4.0, 5.0]]), np.array([2.0, 1.0]))
    ((2.0, 5.0), (1.4142135623730951, 1.0))
    """
    share = weight / weight.sum()
    # Scaled by the largest number, or the squares of 1e200 would be infinite.
    scale = np.maximum(np.abs(rows).max(axis=0), np.finfo(np.float64).tiny)
    mean = share @ (rows / scale)
    std = np.sqrt(share @ np.square(rows / scale - mean)) * scale
    # Not std == 0: rounding gives equal numbers a little spread.
    flat = (rows.max(axis=0) == rows.min(axis=0)) | (std < 1e-30)
    return tuple((mean * scale).tolist()), tuple(np.where(flat, 1.0, std).tolist())


def standardize_rows(rows: NDArray[Any], statistics: Statistics) -> NDArray[np.float32]:
    """Rows as the network sees them: each feature with mean 0 and deviation 1.

    In float64 until the mean is off: a year of dates in seconds is lost beside its mean in less.

    >>> standardize_rows(np.array([[3.0, 1e300]]), ((1.0, 0.0), (2.0, 1.0)))
    array([[1.e+00, 1.e+06]], dtype=float32)
    """
    mean, std = statistics
    wide = (rows.astype(np.float64) - mean) / std
    return np.clip(wide, -_FARTHEST, _FARTHEST).astype(np.float32)


@dataclass(frozen=True)
class LabelledRows:
    """What to learn from.

    Attributes:
        rows: `(N, F)`.
        given: The labels as they came, class indices.
        weight: How much each row counts.
        class_weight: How much each class counts, `(C)`.
        cuts: Each cuts all rows into folds.
        became: For each row that came, which of these it is: equal ones may be taken for one.
        groups: A number for each row, the same for rows that have to stay in one fold, if there are
            such.
    """

    rows: Floats
    given: NDArray[np.int64]
    weight: Floats
    class_weight: Floats
    cuts: list[list[Holdout]]
    became: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None

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
        """The weights of rows, once for each cut, to a sum of 1."""
        return np.tile(self.weight / self.weight.sum(), len(self.cuts)) / len(self.cuts)

    @property
    def too_few(self) -> bool:
        """Whether rows are too few to hold some out: all labels are then taken to be right."""
        return len(self.rows) < _FEWEST or not self.cuts


def label_rows(
    rows: NDArray[Any],
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    *,
    weight: Floats | None = None,
    class_weight: Any = None,
    groups: NDArray[np.int64] | None = None,
    seed: int,
) -> LabelledRows:
    """Rows and labels, cut into folds; groups and copies stay in one fold.

    Args:
        rows: `(N, F)`.
        labels: A class index for each.
        classes: What the indices stand for.
        weight: How much each row counts; all alike unless given.
        class_weight: `"balanced"`, a weight for each class, or `None`.
        groups: A number for each row, the same for rows of one group.
        seed: Of the folds.
    """
    weight = np.ones(len(rows)) if weight is None else weight
    rows, given, weight, together, became = merge_rows(rows, labels, weight, groups)
    together = splittable(together, given)
    apart = len(rows) if together is None else len(np.unique(together))
    # Few rows are cut several times, since what is chosen by one cut is chance; very few are never
    # cut, and their labels taken to be right.
    cuts = [
        folds(given, min(_FOLDS, apart), seed=seed + cut, groups=together)
        for cut in range(min(max(_CUT_ROWS // len(rows), 1), _CUTS) if apart > 1 else 0)
    ]
    if class_weight is not None:
        check_class_weight(class_weight)
    from sklearn.utils.class_weight import compute_class_weight

    present = np.unique(given)
    balance = np.ones(len(classes))
    balance[present] = compute_class_weight(
        class_weight, classes=classes[present], y=classes[given]
    )
    return LabelledRows(rows, given, weight, balance, cuts, became, together)


class MergedRows(NamedTuple):
    """Rows, labels and weights, what is never split apart, and what each row that came became."""

    rows: Floats
    labels: NDArray[np.int64]
    weight: Floats
    together: NDArray[np.int64] | None
    became: NDArray[np.int64] | None


def merge_rows(
    rows: NDArray[Any],
    labels: NDArray[np.int64],
    weight: Floats,
    groups: NDArray[np.int64] | None = None,
    *,
    grouped: bool = True,
) -> MergedRows:
    """Take equal rows with equal labels for one that counts as much, where there are few rows.

    They come back in an order of their own, so that examples that are repeated, examples that are
    weighed and examples in another order are all learned from in the same way. Rows of different
    groups are never taken for one. Without `grouped`, nothing has to stay together.

    Example:
        >>> rows, labels, weight = np.array([[2.0], [1.0], [2.0]]), np.array([0, 1, 0]), np.ones(3)
        >>> merge_rows(rows, labels, weight)[1:]
        (array([1, 0]), array([1., 2.]), None, array([1, 0, 1]))
        >>> merge_rows(rows, labels, weight, np.array([5, 6, 7])).became
        array([1, 0, 2])
    """
    rows = rows.astype(np.float64)
    together = keep_together(rows, groups) if grouped else None
    if len(rows) > SMALL:
        return MergedRows(rows, labels, weight, together, None)
    parts = [] if groups is None or not grouped else [groups]
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
    """A number for each example, the same for those that are never split apart.

    `None` stands for no groups, and comes back where each example is alone.

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
    """Refuse what is neither `"balanced"` nor a weight of at least 0 for each class."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return
    if not isinstance(class_weight, dict):
        raise ValueError(
            "class_weight: expected None, 'balanced' or a dictionary of weights by class, got "
            f"{class_weight!r}"
        )
    for name, value in class_weight.items():
        if not value >= 0:
            raise ValueError(f"class_weight: expected no negative weights, got {name!r}: {value!r}")
