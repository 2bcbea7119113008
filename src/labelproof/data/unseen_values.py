"""Values of a category that training rows did not have, where there are too many to be normal."""

from __future__ import annotations

from collections.abc import Sequence

from labelproof.data.cells import folded
from labelproof.data.notices import few

__all__ = ["spelled_otherwise", "unseen"]

SHARE = 0.05
"""The share of cells up to which new values are normal."""
FEWEST = 5
"""How many there must be, unless they are most of the cells."""


def unseen(texts: Sequence[str], values: Sequence[str], *, rare: float = 0.0) -> str:
    """What to say of a column with many values that are not known, or `""` if nothing.

    A new value now and then is normal. Where many are new, the column is written in another way
    than it was, or means something else, and predictions are made without it.

    Args:
        texts: The cells, empty where missing.
        values: Those that have a feature of their own.
        rare: The share of the training cells that had another value.

    Example:
        >>> unseen(["BASIC", "PRO", "BASIC", ""], ["basic", "pro"])
        "3 of 3 cells have values that were not seen in training ('BASIC', 'PRO'); 'BASIC' differs from 'basic' only in case or spaces"
        >>> unseen(["basic"] * 30 + ["plus"], ["basic", "pro"])
        ''
    """  # noqa: E501
    known = set(values)
    present = sum(map(bool, texts))
    strange = [text for text in texts if text and text not in known]
    # As many as training rows had, and what chance adds to them, say nothing.
    usual = present * (SHARE + rare) + 3 * (present * rare * (1 - rare)) ** 0.5
    if len(strange) <= usual or (len(strange) < FEWEST and 2 * len(strange) <= present):
        return ""
    different = list(dict.fromkeys(strange))
    seen = "seldom or not seen" if rare else "not seen"
    return (
        f"{len(strange):,} of {present:,} cells have values that were {seen} in training "
        f"({few([repr(text) for text in different])})"
        f"{spelled_otherwise(different, values)}"
    )


def spelled_otherwise(strange: Sequence[str], known: Sequence[str]) -> str:
    """A hint that one of some unknown names is a known one in another spelling; else `""`.

    >>> spelled_otherwise(["maybe", "YES "], ["no", "yes"])
    "; 'YES ' differs from 'yes' only in case or spaces"
    """
    alike = {folded(name): name for name in known}
    twin = next((name for name in strange if folded(name) in alike), None)
    if twin is None:
        return ""
    return f"; {twin!r} differs from {alike[folded(twin)]!r} only in case or spaces"
