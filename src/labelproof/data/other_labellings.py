"""Columns of a table that look like another labelling of its rows, such as one annotator's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from labelproof.data.cells import folded, parse_numbers, text_of
from labelproof.data.column import Column

__all__ = ["agreement_asked", "agrees", "classes_said", "kappa", "votes_tell"]

_LEAST_SURE = 5.0
"""Standard deviations above chance: no column of hundreds is so far from it by luck."""
_FEWEST_VOTERS = 3
"""Of two there is no majority."""
_VOTES_RIGHT = 0.99
"""Of the rows that have a majority."""


def classes_said(
    column: Column, values: NDArray[np.float64], class_names: Sequence[str]
) -> NDArray[np.int64] | None:
    """The class that a column says of each row, -1 where it says none.

    `None` if it holds anything but names of classes, in whatever case, or fewer than two of them.

    Args:
        column: What became of it.
        values: Of each row, the place of its category, or its number; -inf where missing.
        class_names: A name for each class.

    Example:
        >>> column = Column("rater", "category", values=("Cat", "dog"), missing=1)
        >>> classes_said(column, np.array([0.0, 1.0, 2.0]), ["bird", "cat", "dog"])
        array([ 1,  2, -1])
        >>> classes_said(column, np.array([0.0, 1.0, 2.0]), ["cat", "horse"]) is None
        True
    """
    names = {folded(name): number for number, name in enumerate(class_names)}
    if column.kind == "category":
        # Rare values have no feature, and neither have those past the 50th class.
        written = dict(enumerate(column.values))
    elif column.kind == "boolean":
        written = {0: "false", 1: "true"}
    elif column.kind == "number":
        different = np.unique(values[np.isfinite(values)])
        if len(different) > len(names):
            return None
        written = {value: text_of(value) for value in different.tolist()}
    else:
        return None
    return _translated(values, {value: names.get(folded(text)) for value, text in written.items()})


def kappa(
    said: NDArray[np.int64], labels: NDArray[np.int64], num_classes: int
) -> tuple[float, float]:
    """How far a column agrees with the labels beyond chance, 1 where always, and how surely.

    This is Cohen's kappa, `(a - e) / (1 - e)`, for a share `a` of rows that agree and a share `e`
    that would if both were drawn independently with the frequencies they have. Rows without a
    class in the column do not count.

    Args:
        said: What the column says of each row, -1 where it says nothing.
        labels: What the label says.
        num_classes: How many classes there are.

    Returns:
        Kappa, and how many standard deviations of chance it is away from 0.

    Example:
        >>> kappa(np.array([0, 1, 0, 1, -1]), np.array([0, 1, 1, 1, 0]), 2)
        (0.5, 1.0)
    """
    known = said >= 0
    total = max(int(known.sum()), 1)
    first = np.bincount(said[known], minlength=num_classes) / total
    second = np.bincount(labels[known], minlength=num_classes) / total
    chance = float(first @ second)
    if not 0 < chance < 1:
        return 0.0, 0.0
    agreed = float((said[known] == labels[known]).sum()) / total
    value = (agreed - chance) / (1 - chance)
    return value, value * math.sqrt(total * (1 - chance) / chance)


def agreement_asked(class_names: Sequence[str]) -> float:
    """The kappa from which on a column of class names is taken for another labelling.

    Names alone prove little where many columns share them by nature. Answers of yes and no, and
    codes 0 and 1, are in every second table, and good predictors among them agree a lot: who is a
    woman and who survived the Titanic, in 79% of rows (0.54); an earlier default and a rejected
    credit, both coded 0 and 1, in 86% (0.71). Marks from 1 to 5 for parts of a thing agree with
    its mark on the whole (below 0.5, unless they are nearly the same). But that a column has three
    words that are classes is no accident, so moderate agreement will do.

    >>> agreement_asked(["0", "1"]), agreement_asked(["no", "yes"])
    (0.8, 0.6)
    >>> agreement_asked(["1", "2", "3"]), agreement_asked(["cat", "dog", "eel"])
    (0.5, 0.4)
    """
    numbers = not parse_numbers(class_names)[1]
    if len(class_names) == 2:
        return 0.8 if numbers else 0.6
    return 0.5 if numbers else 0.4


def agrees(
    said: NDArray[np.int64], labels: NDArray[np.int64], num_classes: int, *, least: float
) -> bool:
    """Whether a column agrees with the labels, and not by luck.

    Args:
        said: What the column says of each row, -1 where it says nothing.
        labels: What the label says.
        num_classes: How many classes there are.
        least: The kappa that is asked for.

    >>> labels = np.arange(90) % 3
    >>> agrees(np.where(np.arange(90) < 60, labels, 0), labels, 3, least=0.4)
    True
    """
    value, sure = kappa(said, labels, num_classes)
    return value >= least and sure >= _LEAST_SURE


def votes_tell(
    said: Sequence[NDArray[np.int64]], labels: NDArray[np.int64], num_classes: int
) -> bool:
    """Whether the label is what most of some columns say, as that of several annotators is.

    Together they may tell it though each alone agrees only partly. Rows where as many say one as
    another do not count.

    Args:
        said: For each column, what it says of each row; -1 where it says nothing.
        labels: What the label says.
        num_classes: How many classes there are.

    Example:
        >>> first, second, third = np.array([[0, 1, 1], [0, 0, 1], [1, 1, 1]])
        >>> votes_tell([first, second, third], np.array([0, 1, 1]), 2)
        True
    """
    if len(said) < _FEWEST_VOTERS:
        return False
    votes = np.zeros((len(labels), num_classes), np.int32)
    for column in said:
        known = np.flatnonzero(column >= 0)
        votes[known, column[known]] += 1
    ahead = np.sort(votes, axis=1)
    clear = ahead[:, -1] > ahead[:, -2]
    right = (votes.argmax(axis=1) == labels)[clear]
    return len(right) * 2 > len(labels) and float(right.mean()) >= _VOTES_RIGHT


def _translated(
    values: NDArray[np.float64], classes: Mapping[float, int | None]
) -> NDArray[np.int64] | None:
    known = {value: number for value, number in classes.items() if number is not None}
    if len(known) < len(classes) or len(set(known.values())) < 2:
        return None
    said = np.full(len(values), -1, np.int64)
    for value, number in known.items():
        said[values == value] = number
    return said
