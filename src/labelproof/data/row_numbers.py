"""Columns that number the rows: they say nothing about rows to come, whatever they are called."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

__all__ = ["is_counter_name", "numbers_rows"]

FEWEST = 50
"""Numbers from which on a range that is nearly filled is no chance."""
SPARSEST = 2
"""How many numbers of the range there may be to one that is used: some customers have left."""

_WHOLE_NAMES = frozenset({"id", "index", "idx", "row", "no", "nr", "rowid", "row_number", "uuid"})
# Less than above: what ends in "index" or "row" may as well be measured, as a price index is.
_LAST_WORDS = frozenset({"id", "idx", "no", "nr", "nbr", "num", "number", "nummer", "uuid"})
_COMPOUNDS = ("nr", "number", "nummer")
# Where a word begins within a name: after what is no letter or digit, or at a capital.
_WORDS = re.compile(r"[^\W_]+?(?=(?<=[a-zäöüß\d])[A-ZÄÖÜ]|[\W_]|$)")


def is_counter_name(name: str) -> bool:
    """Whether a name is one that row numbers have.

    >>> [is_counter_name(name) for name in ("PassengerId", "patient_no", "Kundennr", "lfd. Nr.")]
    [True, True, True, True]
    >>> [is_counter_name(name) for name in ("num_rooms", "acid", "price_index", "Unnamed: 0")]
    [False, False, False, True]
    """
    word = name.strip().casefold().replace(" ", "_")
    # What pandas calls an index that was written without a name begins with "Unnamed:".
    if word in _WHOLE_NAMES or word.startswith("unnamed:"):
        return True
    words = _WORDS.findall(name)
    last = words[-1].casefold() if words else ""
    return last in _LAST_WORDS or last.endswith(_COMPOUNDS) or name.endswith(("Id", "ID"))


def numbers_rows(name: str, values: NDArray[np.float64]) -> bool:
    """Whether numbers are there to tell rows apart: each occurs once, and it has to be so.

    It has to be so by the column's name, or because many whole numbers fill a range nearly, in any
    order: of what is measured, some would occur twice.

    Args:
        name: The column's name.
        values: Its numbers, without missing ones.

    Example:
        >>> numbers_rows("customer", np.arange(100.0)[::-1]), numbers_rows("age", np.arange(9.0))
        (True, False)
        >>> numbers_rows("customer number", np.array([7.0, 1200.0, 31.0]))
        True
    """
    if not (values == np.floor(values)).all() or len(np.unique(values)) < len(values):
        return False
    if is_counter_name(name):
        return True
    return len(values) >= FEWEST and bool(np.ptp(values) < SPARSEST * len(values))
