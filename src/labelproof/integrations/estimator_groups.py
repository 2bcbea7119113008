"""Which examples of the estimator stay together where some are held out: groups, and copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.groups import admit_groups, few_enough, join_groups, members_of
from labelproof.integrations.estimator_inputs import refuse_absent

__all__ = ["admit_row_groups", "find_copies", "keep_together", "merge_groups"]

_FEWEST = 20
"""Examples from which on it can be told what is chance."""
_DIFFERENT = 0.5
"""Share of rows that differ, at least: of fewer, columns are so coarse that rows are alike by
chance."""
_LARGEST = 1 / 3
"""Share of all examples that copies may chain groups into: of more, there is little left to cut."""


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
    """A number for each example, the same for those that are never cut apart.

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
    copies = find_copies(inputs)
    if groups is None:
        return join_groups(len(inputs), copies)
    known = [each.tolist() for each in members_of(groups)]
    together = join_groups(len(inputs), known, copies)
    if copies and together is not None:
        allowed = max(_LARGEST * len(inputs), *map(len, known))
        if np.bincount(together).max() > allowed:
            return join_groups(len(inputs), known)
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
    return join_groups(
        int(became.max()) + 1, [became[each].tolist() for each in members_of(together)]
    )


def find_copies(inputs: NDArray[Any]) -> list[Sequence[int]]:
    """Groups of examples that are equal, whatever their labels, in the order of their first.

    Where rows are alike by chance, as those of few coarse columns are, nothing is found.

    >>> find_copies(np.arange(30)[:, None] % 28)
    [[0, 28], [1, 29]]
    >>> find_copies(np.arange(30)[:, None] % 2)
    []
    """
    if len(inputs) < _FEWEST:
        return []
    # Plus nothing, so that -0.0 is 0.0 in bytes too.
    comparable = np.ascontiguousarray(inputs + 0.0 if inputs.dtype.kind == "f" else inputs)
    found: dict[int, list[int]] = defaultdict(list)
    # Of an example only its hash is kept: of 64 bits, no two of a table share one by chance.
    for index, example in enumerate(comparable):
        found[hash(example.tobytes())].append(index)
    if len(found) < _DIFFERENT * len(inputs):
        return []
    return few_enough(found.values(), len(inputs))
