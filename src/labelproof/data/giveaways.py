"""Columns of a table that give the label away: copies of it, and what was made from it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from labelproof.data.column import Column
from labelproof.data.columns import Columns
from labelproof.data.dataset import Rows
from labelproof.data.notices import few, notice, readable
from labelproof.data.other_labellings import agreement_asked, agrees, classes_said, votes_tell

__all__ = ["find_giveaways", "report_giveaways", "rows_told_by_ranges", "rows_told_by_values"]

# Of measurements on things that differ, one alone hardly ever tells 99% of labels, the less so as
# some of these are wrong. Where one class is most rows, 99% is easy, so of the other rows' labels
# 95% are asked for too.
_EXCEPTIONS = 0.01
_EXCEPTIONS_OF_REST = 0.05

_FEWEST_ROWS = 50
"""Of fewer rows, anyone sees what is in them, and chance cannot be told from a rule."""
_FEWEST_FOR_RANGES = 150
"""Small tables are often of things so different that a measurement of them tells: the petals of two
kinds of iris, 100 flowers."""
_FEWEST_OF_REST = 20
"""Rows outside the largest class: three in a thousand stand side by side in some of many columns by
chance, twenty in none."""
_ROWS_EACH = 10
"""Rows for each class, and for each value: of two rows with the same value, both have the same
label by chance."""
_MOST_VALUES = 52
"""A feature for each of 50 values, one for others and one for missing ones."""
_RANGES_EACH = 2
"""Ranges of numbers for each class."""
_MOST_STEPS = 10**8
"""Past it, ranges are not looked for: that is hundreds of classes."""
_SAMPLE = 4000
"""Rows that a column is first judged by, with double the exceptions, since most tell nothing."""
_SHOWN = 8
"""Columns that are named."""
_AGREEMENT_OF_MANY = 0.3
"""The kappa of each of several columns of class names whose majority may be the label."""


def report_giveaways(
    place: str,
    columns: Columns,
    rows: Rows,
    labels: NDArray[np.int64],
    class_names: Sequence[str],
) -> None:
    """Warn of columns that give the label away, if there are any.

    Args:
        place: What the table is called in messages.
        columns: How columns became features.
        rows: The features of the training rows.
        labels: The labels of the training rows.
        class_names: A name for each class.

    Example:
        >>> import warnings
        >>> codes = ["x", "y"] * 40
        >>> columns = Columns.learn(["code"], [codes])
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     rows = columns.encode(["code"], [codes])
        ...     report_giveaways("t.csv", columns, rows, np.arange(80) % 2, ["no", "yes"])
        >>> print(caught[0].message)
        t.csv: the column 'code' seems to give the label away: its 2 values tell it in all rows...
    """
    found = find_giveaways(columns, rows, labels, class_names)
    if not found:
        return
    if len(found) == 1:
        ((name, seen),) = found.items()
        start = f"the column {name!r} seems to give the label away: {seen}"
        them, they = "it", "it"
    else:
        listed = few([f"{name!r} ({seen})" for name, seen in found.items()], shown=_SHOWN)
        start = f"{len(found):,} columns seem to give the label away: {listed}"
        them, they = "them", "they"
    flags = " ".join(f"--drop {shlex.quote(readable(name))}" for name in list(found)[:_SHOWN])
    more = " ..." if len(found) > _SHOWN else ""
    notice(
        f"{place}: {start}. Who learns from {them} repeats the label, right or wrong: results look "
        f"better than they are, and wrong labels are not found. Leave {them} out with "
        f"{flags}{more} (the argument drop), unless {they} will be known for new rows too"
    )


def find_giveaways(
    columns: Columns, rows: Rows, labels: NDArray[np.int64], class_names: Sequence[str]
) -> dict[str, str]:
    """The columns that give the label away, and what speaks for it.

    Such a column has few values of which each belongs to one class; or numbers of which each class
    has its ranges; or names of classes, and they agree with the label.

    Args:
        columns: How columns became features.
        rows: The features of the training rows.
        labels: The labels of the training rows.
        class_names: A name for each class.

    Example:
        >>> sizes, colours = np.arange(180) * 0.07 % 9, ["red", "blue", "red"] * 60
        >>> columns = Columns.learn(["size", "colour"], [sizes, colours])
        >>> rows = columns.encode(["size", "colour"], [sizes, colours])
        >>> find_giveaways(columns, rows, (sizes > 5).astype(int), ["small", "large"])
        {'size': 'a few ranges of it tell it in all rows'}
        >>> find_giveaways(columns, rows, np.arange(180) % 2, ["early", "late"])
        {}
    """
    sizes = np.bincount(labels, minlength=len(class_names))
    total, classes = len(labels), int((sizes > 0).sum())
    if total < max(_FEWEST_ROWS, _ROWS_EACH * classes) or total - sizes.max() < _FEWEST_OF_REST:
        return {}
    chosen = np.arange(total)
    if total > _SAMPLE:
        chosen = np.sort(np.random.default_rng(0).choice(total, _SAMPLE, replace=False))
    num_classes = len(class_names)
    found: dict[str, str] = {}
    labellings: dict[str, NDArray[np.int64]] = {}
    both = zip(_by_column(columns, rows), _by_column(columns, rows[chosen]), strict=True)
    for (column, features), (_, sample) in both:
        values = _values(column, sample)
        said = classes_said(column, values, class_names)
        if said is not None and agrees(said, labels[chosen], num_classes, least=_AGREEMENT_OF_MANY):
            labellings[column.name] = said
        if total > _SAMPLE:
            if not _tells(column, values, labels[chosen], classes, allowed=2.0):
                continue
            values = _values(column, features)
        if seen := _tells(column, values, labels, classes):
            found[column.name] = seen
    together = votes_tell(list(labellings.values()), labels[chosen], num_classes)
    least = agreement_asked(class_names)
    for column, features in _by_column(columns, rows):
        if column.name not in labellings:
            continue
        said = classes_said(column, _values(column, features), class_names)
        if said is None or not (together or agrees(said, labels, num_classes, least=least)):
            continue
        share = _share(int((said == labels).sum()), int((said >= 0).sum()))
        found[column.name] = f"it holds names of classes, in {share} the label"
        if together:
            most = f"one of {len(labellings)} columns of class names whose majority is the label"
            found[column.name] = most
    # In the order of the table.
    return {name: found[name] for name in columns.names if name in found}


def rows_told_by_values(values: NDArray[np.float64], labels: NDArray[np.int64]) -> int:
    """How many rows have the label that most rows with the same value have.

    >>> rows_told_by_values(np.array([7.0, 7.0, 7.0, 2.0]), np.array([0, 0, 1, 1]))
    3
    """
    different, value = np.unique(values, return_inverse=True)
    num_classes = int(labels.max()) + 1
    counts = np.bincount(value * num_classes + labels, minlength=len(different) * num_classes)
    return int(counts.reshape(-1, num_classes).max(axis=1).sum())


def rows_told_by_ranges(
    values: NDArray[np.float64], labels: NDArray[np.int64], *, most: int, exceptions: float
) -> int:
    """How many rows have the label of their range, if the best few ranges of values are taken.

    Args:
        values: A number a row.
        labels: Its class.
        most: How many ranges there may be.
        exceptions: Rows that may have another label. If there must be more, 0 is returned early.

    Example:
        >>> numbers = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        >>> rows_told_by_ranges(numbers, np.array([0, 0, 1, 1, 0, 1]), most=2, exceptions=2)
        5
    """
    order = np.lexsort((labels, values))
    values, labels = values[order], labels[order]
    new_value, new_label = values[1:] != values[:-1], labels[1:] != labels[:-1]
    # No range ends between rows of one value, so these stay together. And none need end between
    # values of one class, so these are one block.
    unit = np.concatenate([[0], np.cumsum(new_value)])
    mixed = np.zeros(unit[-1] + 1, dtype=bool)
    mixed[unit[1:][new_label & ~new_value]] = True
    border = new_value & (new_label | mixed[unit[:-1]] | mixed[unit[1:]])
    block = np.concatenate([[0], np.cumsum(border)])
    num_blocks, num_classes = int(block[-1]) + 1, int(labels.max()) + 1
    # An exception cuts a range in two and is a block of its own.
    if num_blocks > 2 * exceptions + most or num_blocks * most * num_classes > _MOST_STEPS:
        return 0
    counts = np.bincount(block * num_classes + labels, minlength=num_blocks * num_classes)
    # For each number of ranges and each class of the last one, the most rows that can be told.
    told = np.zeros((most, num_classes), np.int64)
    for rows in counts.reshape(num_blocks, num_classes):
        told[1:] = np.maximum(told[1:], told[:-1].max(axis=1, keepdims=True))
        told += rows
    return int(told.max())


def _tells(
    column: Column,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    classes: int,
    *,
    allowed: float = 1.0,
) -> str:
    """How a column tells the label, empty if it does not; `allowed` times the usual exceptions."""
    total = len(labels)
    rest = total - int(np.bincount(labels).max())
    exceptions = allowed * min(_EXCEPTIONS * total, _EXCEPTIONS_OF_REST * rest)
    number = _few(values, total // _ROWS_EACH)
    if number:
        told, seen = rows_told_by_values(values, labels), f"its {number} values tell it"
    elif column.kind == "category" or total < _FEWEST_FOR_RANGES:
        return ""
    else:
        most = _RANGES_EACH * classes
        told = rows_told_by_ranges(values, labels, most=most, exceptions=exceptions)
        seen = "a few ranges of it tell it"
    return f"{seen} in {_share(told, total)}" if total - told <= exceptions else ""


def _few(values: NDArray[np.float64], most: int) -> int:
    """How many different values there are; 0 if more than `most`, or just many."""
    most = min(most, _MOST_VALUES)
    # The first rows tell it of most columns, at less cost than all of them.
    if len(np.unique(values[: 4 * most])) > most:
        return 0
    number = len(np.unique(values))
    return number if number <= most else 0


def _by_column(columns: Columns, rows: Rows) -> Iterator[tuple[Column, Rows]]:
    start = 0
    for column in columns.columns:
        stop = start + len(column.feature_names)
        yield column, rows[:, start:stop]
        start = stop


def _values(column: Column, features: Rows) -> NDArray[np.float64]:
    """A number a row: the place of its category among the features, or what the number was.

    A missing one is -inf. Where cells are missing can give the label away as well: only who left
    has a date of leaving.
    """
    if column.kind == "category":
        return features.argmax(axis=1).astype(np.float64)
    values = features[:, 0].astype(np.float64) + column.offset
    if column.missing:
        values[features[:, 1] > 0] = -np.inf
    return values


def _share(part: int, whole: int) -> str:
    """A part of rows in words, never rounded up to all.

    >>> _share(80, 80), _share(9999, 10000)
    ('all rows', '99.9% of rows')
    """
    return "all rows" if part == whole else f"{part * 1000 // whole / 10:.1f}% of rows"
