"""Which examples of the estimator stay together where some are held out: groups, and copies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.duplicates import find_duplicate_rows
from labelproof.data.splits import admit_groups, joined_groups
from labelproof.integrations.estimator_inputs import refuse_absent

__all__ = ["admit_row_groups", "keep_together", "merge_groups"]

_LARGEST = 1 / 3
"""Share of all examples that copies may chain groups into; past it, too little is left to split."""


def admit_row_groups(groups: Any, rows: int) -> NDArray[np.int64] | None:
    """A number for each row, the same for rows of one group, or `None` where there are no groups.

    Raises:
        ValueError: There is not one for each row.

    Example:
        >>> admit_row_groups(["ann", "bob", "ann"], 3)
        array([0, 1, 0])
        >>> admit_row_groups(["ann", None, "ann"], 3)
        Traceback (most recent call last):
            ...
        ValueError: groups: expected a group for each row, got none in 1 of them: row 1; give ...
    """
    if groups is None:
        return None
    given = (
        np.array(groups, dtype=object) if isinstance(groups, list | tuple) else np.asarray(groups)
    )
    if given.dtype.kind == "f":  # a column of numbers in which some are missing
        given = given.astype(object)
    refuse_absent(
        "groups: expected a group", given, "give each of those rows one of its own, or leave it out"
    )
    return admit_groups(given, rows)


def keep_together(
    inputs: NDArray[Any], groups: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """A number for each example, the same for those that are never split apart.

    Args:
        inputs: Rows `(N, F)` or images.
        groups: A number for each that was given, or `None`.

    Returns:
        `None` where each is alone.

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


def merge_groups(
    together: NDArray[np.int64] | None, became: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """What stays together once some examples are taken for one.

    Args:
        together: A number for each example of before, or `None`.
        became: For each of them which it became.

    Example:
        >>> merge_groups(np.array([0, 1, 1, 3]), np.array([2, 0, 1, 2]))
        array([0, 0, 2])
    """
    if together is None:
        return None
    first = np.unique(became, return_index=True)[1]
    joined = joined_groups(together, became)
    return joined_groups((np.arange(len(became)) if joined is None else joined)[first])
