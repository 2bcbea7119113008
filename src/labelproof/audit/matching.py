"""Which column of the predictions is which class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelproof.data.notices import count, few, notice, readable
from labelproof.data.whole_numbers import alike, is_whole, plain_number
from labelproof.ranges import suggest

__all__ = ["MatchedClasses", "match_classes"]


class MatchedClasses(NamedTuple):
    """The columns of predictions as classes."""

    columns: NDArray[np.int64]
    """For each class of the labels, its column."""
    names: tuple[str, ...]
    """For each column, its class."""


def match_classes(
    vocabulary: Sequence[str],
    *,
    columns: int,
    names: Sequence[str] | None,
    labels: str,
    predictions: str = "the probabilities",
    numbered: bool = True,
) -> MatchedClasses:
    """Find the column of each class.

    By name, where columns have names; numbers may be written in several ways, such as `7`, `07` and
    `7.0`. Else they are taken for the classes in their order, if there are as many. Labels that are
    whole numbers and neither, are taken for the places of columns, counted from 0; a notice says so
    where that is a guess. Where columns are called by numbers, they are not.

    Args:
        vocabulary: The classes of the labels, in order.
        columns: How many columns the predictions have.
        names: What those are called, if that is known.
        labels: Where the labels are from, for the message.
        predictions: Where the predictions are from.
        numbered: Whether whole numbers may be places of columns; those of images are names of
            folders, and all of them are known.

    Raises:
        ValueError: A class has no column, shares it with another, or it cannot be told which.

    Warns:
        DataWarning: Labels are taken for places of columns.

    Example:
        >>> match_classes(["cat", "dog"], columns=3, names=["dog", "fox", "cat"], labels="t.csv")
        MatchedClasses(columns=array([2, 0]), names=('dog', 'fox', 'cat'))
        >>> match_classes(["0", "2"], columns=3, names=None, labels="t.csv").names
        ('0', '1', '2')
    """
    written = [readable(name).strip() for name in vocabulary]
    if names is None and len(vocabulary) == columns:
        return MatchedClasses(np.arange(columns), tuple(vocabulary))
    ours, theirs = alike(written, [] if names is None else names)
    places = {name: place for place, name in enumerate(theirs)}
    missing = [name for name, form in zip(written, ours, strict=True) if form not in places]
    if names is not None and not missing:
        _refuse_ambiguous(written, names, labels, predictions)
        found = [places[form] for form in ours]
        return _named(found, vocabulary, list(names), labels, predictions)
    # Of columns that are called by numbers, one that lacks is not to be found by counting.
    words = names is None or not any(is_whole(plain_number(name)) for name in names)
    if numbered and words and all(is_whole(name) and _within(name, columns) for name in written):
        if names is not None or "0" not in written:
            called = "" if names is None else f", and not for names such as {names[0]!r}"
            notice(
                f"{labels}: the labels are taken for places of the columns of {predictions}, "
                f"counted from 0{called}"
            )
        numbers = [str(number) for number in range(columns)]
        return _named([int(name) for name in written], vocabulary, numbers, labels, predictions)
    if names is None:
        raise ValueError(
            f"probabilities: expected {len(vocabulary)} columns, one for each class of {labels} in "
            f"this order: {few(vocabulary)}; got {columns}; if some classes have no label, say how "
            "the columns are called: class names in the first line of a .csv, or --class-names"
        )
    hint = suggest(missing[0], list(names)) if len(missing) == 1 else ""
    raise ValueError(
        f"labels: {count(len(missing), 'class', 'classes')} of {labels} without a column in "
        f"{predictions}: {few([repr(name) for name in missing])}; its columns are "
        f"{few([repr(name) for name in names], shown=6)}{hint}"
    )


def _within(number: str, columns: int) -> bool:
    # Not by int() at once, which refuses very long numbers.
    digits = number.lstrip("0") or "0"
    return len(digits) <= len(str(columns)) and int(digits) < columns


def _named(
    found: list[int], vocabulary: Sequence[str], called: list[str], labels: str, predictions: str
) -> MatchedClasses:
    """The columns that were found, each called as the labels call it."""
    again = [place for place, times in Counter(found).items() if times > 1]
    if again:
        same = [name for name, place in zip(vocabulary, found, strict=True) if place == again[0]]
        raise ValueError(
            f"labels: expected a column of {predictions} for each class of {labels}, got one, "
            f"{called[again[0]]!r}, for {' and '.join(repr(name) for name in same)}; rename or "
            "merge them"
        )
    for place, name in zip(found, vocabulary, strict=True):
        called[place] = name
    return MatchedClasses(np.array(found, dtype=np.int64), tuple(called))


def _refuse_ambiguous(
    written: Sequence[str], names: Sequence[str], labels: str, predictions: str
) -> None:
    """Refuse a number that several columns are called by, in other ways than the labels have it.

    Leading zeros are lost where labels are read as numbers, and with them which one was meant.
    """
    ways: dict[str, list[str]] = {}
    for name in names:
        ways.setdefault(plain_number(name), []).append(name)
    known = set(written)
    for name in written:
        same = ways.get(plain_number(name), [])
        if len(same) > 1 and not known.issuperset(same):
            raise ValueError(
                f"labels: expected one column of {predictions} for the class {name!r} of {labels}, "
                f"got {' and '.join(repr(way) for way in same)}; rename one of them"
            )
