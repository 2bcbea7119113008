"""Samples that belong together: copies of each other, and what is of one patient or one video.

What is learned about one of them is known of the others, so they are never cut apart: whoever
validates on a copy of what was learned from measures how well that was memorised.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.data.notices import count, few, notice, readable

__all__ = [
    "admit_groups",
    "few_enough",
    "group_values",
    "if_cuttable",
    "join_groups",
    "likely_group",
    "mark_grouping",
    "members_of",
    "report_likely_group",
    "report_shared_groups",
]

_WHOSE = frozenset(
    (
        *("patient", "subject", "participant", "person", "donor", "animal", "specimen", "slide"),
        *("customer", "client", "user", "household", "family", "pupil", "student", "driver"),
        *("speaker", "video", "recording", "proband", "patientin", "kunde"),
    )
)
"""What samples are often several of, as columns are called for it."""
_NUMBERED = re.compile(
    r"[\W_\d]*(?:id|no|nr|num|number|code|key|name|uid)?[\W_\d]*$", re.IGNORECASE
)
_FEW_COPIES = 10
_COMMON = 0.02
"""Rows that are alike are copies up to so many, or up to this share of all; of more, what they say
is simply common, and whoever kept them together would take it from those who learn."""
_UNKNOWN = frozenset({"", "?", "-", ".", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"})
"""What is written where it is not known whose a sample is, in lower case: it is nobody's."""
_FEWEST = 5
"""Values from which on a column is hardly a feature: a case of five kinds is none of many."""
_REPEATED = 0.8
"""Share of rows that may have a value of their own where others repeat."""


def group_values(values: Sequence[str]) -> list[list[int]]:
    """Which samples have the same value; one without any is in no group.

    >>> group_values(["ann", "bob", "ann", "", "", "NA", "NA"])
    [[0, 2]]
    """
    found: dict[str, list[int]] = defaultdict(list)
    for index, value in enumerate(values):
        if not _is_unknown(value):
            found[value].append(index)
    return [group for group in found.values() if len(group) > 1]


def join_groups(size: int, *kinds: Iterable[Sequence[int]]) -> NDArray[np.int64] | None:
    """A number for each sample, the same for those that belong together, in one way or another.

    Args:
        size: How many samples there are.
        kinds: Groups of indices. Groups that share a sample are one.

    Returns:
        For each sample the first of its group, `(N)`; `None` where every sample is alone.

    Example:
        >>> join_groups(6, [[0, 2]], [[2, 5], [3, 4]])
        array([0, 1, 0, 3, 3, 0])
        >>> join_groups(6, [[1]]) is None
        True
    """
    first = list(range(size))

    def find(index: int) -> int:
        while first[index] != index:
            first[index] = first[first[index]]
            index = first[index]
        return index

    for groups in kinds:
        for group in groups:
            for index in group[1:]:
                low, high = sorted((find(group[0]), find(index)))
                first[high] = low
    joined = np.array([find(index) for index in range(size)], dtype=np.int64)
    return None if (joined == np.arange(size)).all() else joined


def members_of(groups: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The samples of each group, by the groups' numbers.

    >>> members_of(np.array([4, 2, 4]))
    [array([1]), array([0, 2])]
    """
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def few_enough(groups: Iterable[Sequence[int]], samples: int) -> list[Sequence[int]]:
    """Those of some groups of equal rows that are copies, and not rows that say what many say.

    Args:
        groups: Rows that are equal.
        samples: How many rows there are.

    >>> few_enough([range(2), range(60)], 100)
    [range(0, 2)]
    """
    most = max(_FEW_COPIES, int(_COMMON * samples))
    return [group for group in groups if 1 < len(group) <= most]


def if_cuttable(groups: NDArray[np.int64] | None, labels: ArrayLike) -> NDArray[np.int64] | None:
    """Groups of copies, or `None` where a class is nothing but copies of one sample.

    Of such a class nothing could be both learned from and held out, and whoever tries a command on
    a picture that was copied ten times should see it work.

    Args:
        groups: A number for each sample.
        labels: Its class.

    >>> if_cuttable(np.array([0, 0, 2, 3]), [0, 0, 1, 1])
    >>> if_cuttable(np.array([0, 0, 2, 3]), [0, 1, 0, 1])
    array([0, 0, 2, 3])
    """
    if groups is None:
        return None
    given = np.asarray(labels)
    for label in np.unique(given):
        own = groups[given == label]
        if len(own) > 1 and (own == own[0]).all():
            return None
    return groups


def mark_grouping(values: Sequence[str]) -> str:
    """A short text that is another one when what belongs together may have changed.

    >>> mark_grouping(["ann", "bob"]) == mark_grouping(["ann", "ann"])
    False
    """
    written = "\0".join(values).encode("utf-8", "surrogateescape")
    return hashlib.sha256(written).hexdigest()[:16]


def admit_groups(groups: ArrayLike | None, samples: int) -> NDArray[np.int64] | None:
    """Return a group for each sample as an array, or say what is wrong with them.

    Args:
        groups: Numbers or names; `None`, NaN and empty ones are by themselves.
        samples: How many samples there are.

    >>> admit_groups(["ann", "bob", "ann", None, None], 5)
    array([0, 1, 0, 3, 4])
    >>> admit_groups([1, 2], 3)
    Traceback (most recent call last):
        ...
    ValueError: groups: expected one for each of 3 samples, got shape (2,)
    """
    if groups is None:
        return None
    given = np.asarray(groups)
    if given.shape != (samples,):
        raise ValueError(
            f"groups: expected one for each of {samples:,} samples, got shape {given.shape}"
        )
    if given.dtype.kind in "iub":
        return np.unique(given, return_inverse=True)[1].astype(np.int64)
    # Not sorted: names and missing values have no order. A sample without a group is alone.
    numbers: dict[object, int] = {}
    found = np.empty(samples, np.int64)
    for index, value in enumerate(given.tolist()):
        found[index] = index if _is_absent(value) else numbers.setdefault(value, index)
    return found


def _is_absent(value: object) -> bool:
    try:
        return value is None or value == "" or bool(value != value)
    except TypeError:  # the missing value of pandas does not say whether it equals itself
        return True


def _is_unknown(value: str) -> bool:
    return value.casefold() in _UNKNOWN


def likely_group(name: str) -> bool:
    """Whether a column is called as what samples are often several of.

    >>> list(filter(likely_group, ["Patient_ID", "subject", "PatientNo", "age", "username"]))
    ['Patient_ID', 'subject', 'PatientNo', 'username']
    """
    return _NUMBERED.sub("", name.strip()).casefold() in _WHOSE


def report_likely_group(place: str, column: str, values: Sequence[str]) -> None:
    """Say of a column that is called like one what it could be named for.

    Args:
        place: What the table is called in messages.
        column: Its name.
        values: Its cells.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     report_likely_group("t.csv", "patient", ["ann", "bob", "cem", "dan", "eve"] * 3)
        ...     report_likely_group("t.csv", "patient", ["ann", "bob", "cem", "dan", "eve"])
        >>> print(*(entry.message for entry in caught))
        t.csv: 'patient' has 5 values in 15 rows; if rows of one belong together, say so ...
    """
    given = [value for value in values if not _is_unknown(value)]
    different = len(set(given))
    if not _FEWEST <= different <= _REPEATED * len(given):
        return
    flag = shlex.quote(readable(column))
    notice(
        f"{place}: {column!r} has {different:,} values in {len(given):,} rows; if rows of one "
        f"belong together, say so (--group {flag}, the argument group): what is learned of some of "
        "them is known of the others, and the result looks better than it is"
    )


def report_shared_groups(
    place: str, column: str, values: Sequence[str], splits: Sequence[str]
) -> None:
    """Warn of groups that are learned from and measured on.

    Args:
        place: What the table is called in messages.
        column: The column that says what belongs together.
        values: Its cells.
        splits: The split of each row.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     splits = ["train", "train", "test"]
        ...     report_shared_groups("t.csv", "patient", ["ann", "bob", "ann"], splits)
        >>> print(caught[0].message)
        t.csv: 1 value of 'patient' is both in train and in test: ann; accuracy on them says ...
    """
    within: Mapping[str, set[str]] = defaultdict(set)
    for value, split in zip(values, splits, strict=True):
        if not _is_unknown(value):
            within[split].add(value)
    for split in sorted(within.keys() - {"train"}):
        both = sorted(within["train"] & within[split])
        if both:
            are = "is" if len(both) == 1 else "are"
            notice(
                f"{place}: {count(len(both), 'value')} of {column!r} {are} both in train and in "
                f"{split}: {few(both)}; accuracy on them says little"
            )
