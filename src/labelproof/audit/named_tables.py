"""Tables in memory whose columns and rows have names, of pandas or alike.

Known by what they have, so that nothing of theirs is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelproof.data.notices import few
from labelproof.data.whole_numbers import is_whole

__all__ = ["column_names", "refuse_other_index", "refuse_other_order"]


def column_names(table: Any) -> tuple[str, ...] | None:
    """What columns are called, or `None` where they have no names but their places.

    >>> column_names(np.eye(2))
    """
    names = _columns(table)
    return None if names is None or names == list(range(len(names))) else tuple(map(_said, names))


def refuse_other_order(table: Any, *, place: str = "probabilities") -> None:
    """Refuse columns that are numbered in another way than by their places.

    Args:
        table: `(N, C)`, perhaps with names.
        place: What it is called, for the message.

    Raises:
        ValueError: Columns are called by whole numbers, and not by 0, 1, 2 and so on.
    """
    names = _columns(table)
    if names is None:
        return
    places = [_number(name) for name in names]
    if None in places or places == list(range(len(places))):
        return
    raise ValueError(
        f"{place}: expected columns 0 to {len(names) - 1} in that order, got "
        f"{few([_said(name) for name in names], shown=6)}; a label is the place of a column: sort "
        f"them, or give {place}.to_numpy() and labels that are places"
    )


def refuse_other_index(table: Any, labels: Any, *, place: str = "probabilities") -> None:
    """Refuse labels of other rows, or in another order, where both sides say which is which.

    Args:
        table: `(N, C)`, perhaps with names for its rows.
        labels: `(N)`, likewise.
        place: What the table is called, for the message.

    Raises:
        ValueError: Both have an index, and not the same one.
    """
    ours, theirs = _index(table), _index(labels)
    if ours is None or theirs is None or _equal(ours, theirs):
        return
    raise ValueError(
        f"labels: expected the index of the {place}, got another; align them with "
        f"labels.loc[{place}.index], or give labels.to_numpy() where they have one order already"
    )


def _columns(table: Any) -> list[Any] | None:
    if not all(hasattr(table, part) for part in ("columns", "dtypes", "__array__")):
        return None
    return list(table.columns)


def _index(data: Any) -> Any:
    # A list has an index too, but that is a function.
    index = getattr(data, "index", None)
    return None if callable(index) or not hasattr(data, "__array__") else index


def _equal(ours: Any, theirs: Any) -> bool:
    # By their own word first, which takes a missing value for equal to itself.
    if hasattr(ours, "equals"):
        return bool(ours.equals(theirs))
    return np.array_equal(np.asarray(ours), np.asarray(theirs))


def _number(name: Any) -> float | None:
    """The number that a column is called by, or `None` where it is called by a word."""
    if isinstance(name, str):
        return float(name) if is_whole(name.strip()) else None
    try:
        return float(name)
    except (TypeError, ValueError):
        return None


def _said(name: Any) -> str:
    return str(name).strip()
