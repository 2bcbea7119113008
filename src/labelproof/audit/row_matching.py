"""Which row of the predictions is about which sample."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelproof.data.notices import count, few, notice, readable
from labelproof.data.whole_numbers import alike

__all__ = ["RowIds", "SampleFiles", "match_rows"]


@dataclass(frozen=True)
class RowIds:
    """What rows say they are about.

    Attributes:
        ids: A name for each row.
        column: The column of those; empty if it has no name.
        place: The file.
    """

    ids: Sequence[str]
    column: str
    place: str

    @property
    def where(self) -> str:
        """The column, for messages."""
        column = f"the column {self.column!r}" if self.column else "the column without a name"
        return f"{column} of {self.place}"


@dataclass(frozen=True)
class SampleFiles:
    """The files of samples.

    Attributes:
        paths: The whole path of each.
        folders: Where paths may begin that are not whole.
    """

    paths: Sequence[str]
    folders: Sequence[str]


def match_rows(
    rows: RowIds,
    samples: Sequence[str],
    *,
    labels: str,
    known: Sequence[Sequence[str]] = (),
    files: SampleFiles | None = None,
) -> NDArray[np.int64] | None:
    """The row of each sample by what rows say they are about; `None` where that tells nothing.

    Numbers are compared without leading zeros and `.0`, unless that makes one of two.

    Args:
        rows: What each row is about.
        samples: What each sample is called.
        labels: Where the samples are from, for the message.
        known: Other names of the samples, such as those in a column of the same name.
        files: The samples' files, where they have some; rows may name them by any path.

    Raises:
        ValueError: Some samples have a row and others have none, one has more than one, or two
            have the same.

    Warns:
        DataWarning: Rows are about samples that are not there.

    Example:
        >>> match_rows(RowIds(["b", "a"], "id", "p.csv"), ["a", "b"], labels="t.csv")
        array([1, 0])
    """
    numbers = [str(number) for number in range(len(samples))]
    _refuse_row_numbers(rows, numbers, known, labels)
    ways = [(rows.ids, names) for names in known]
    ways.append((rows.ids, samples) if files is None else _as_paths(rows.ids, files))
    for ids, names in ways:
        ours, theirs = alike(names, ids)
        if not set(theirs).isdisjoint(name for name in ours if name):
            return _find(ours, theirs, names, rows, labels)
    # Numbers alone may be counted from anywhere, so nothing less than all of them is a match.
    ours, theirs = alike(numbers, rows.ids)
    if set(theirs) == set(numbers):
        return _find(ours, theirs, numbers, rows, labels)
    return None


def _find(
    ours: Sequence[str],
    theirs: Sequence[str],
    names: Sequence[str],
    rows: RowIds,
    labels: str,
) -> NDArray[np.int64]:
    """The place of each of our names in theirs."""
    places = {name: row for row, name in enumerate(theirs) if name}
    lacking = [name for form, name in zip(ours, names, strict=True) if form not in places]
    by_order = "remove the column to match rows by their order"
    if lacking:
        raise ValueError(
            f"probabilities: expected a row for each of {count(len(names), 'sample')} of "
            f"{labels}, got none for {len(lacking):,} by {rows.where}: "
            f"{few([name or 'one without a name' for name in lacking])}; add them, or {by_order}"
        )
    shared = [name for name, times in Counter(ours).items() if times > 1]
    if shared:
        raise ValueError(
            f"probabilities: expected one sample of {labels} for each row, got more than one "
            f"called {few(shared)} by {rows.where}; give each a name of its own, or {by_order}"
        )
    wanted = set(ours)
    twice = [name for name, times in Counter(theirs).items() if times > 1 and name in wanted]
    if twice:
        raise ValueError(
            f"probabilities: expected a row for each sample, got more than one for {few(twice)} "
            f"in {rows.where}"
        )
    more = sum(name not in wanted for name in theirs)
    if more:
        notice(f"{rows.place}: {count(more, 'row')} of samples that are not in {labels} left out")
    return np.array([places[name] for name in ours], dtype=np.int64)


def _as_paths(ids: Sequence[str], files: SampleFiles) -> tuple[list[str], list[str]]:
    """Whole paths of rows and samples, from the folder where most of the rows' files are."""
    paths = [_plain(path) for path in files.paths]
    there = set(paths)
    found: list[str] = []
    most = -1
    for folder in dict.fromkeys(files.folders):
        whole = [_plain(os.path.join(readable(folder), name)) if name else "" for name in ids]
        hits = sum(path in there for path in whole)
        if hits > most:
            found, most = whole, hits
        if hits == len(there):
            break
    return found, paths


def _plain(path: str) -> str:
    # As tables have it: in UTF-8, and perhaps from a system with backslashes.
    return os.path.abspath(readable(path).strip().replace("\\", "/"))


def _refuse_row_numbers(
    rows: RowIds, numbers: Sequence[str], known: Sequence[Sequence[str]], labels: str
) -> None:
    """Refuse numbers that pandas gave to rows, where those of the data are in another order.

    A table that was shuffled keeps the numbers from before, and a table of predictions is numbered
    anew: what looks like a match of all is none.
    """
    if rows.column or list(rows.ids) != list(numbers):
        return
    for names in known:
        if set(names) == set(numbers) and list(names) != list(numbers):
            raise ValueError(
                f"probabilities: cannot tell whether the numbers 0, 1, 2, ... in {rows.where} are "
                f"those of the column without a name of {labels}, which has them in another order; "
                "remove the column to match rows by their order, or call both id"
            )
