"""Rows of a table that are alike, which matters most where they are labelled differently."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from labelproof.data.groups import few_enough
from labelproof.data.notices import count, few, notice

__all__ = ["find_alike", "report_alike"]

_FEWEST = 20
"""Rows from which on it can be told what is chance: of fewer, anyone sees which are alike."""

_MORE_THAN_CHANCE = 10
"""How many times as many pairs must be alike as would be if columns had nothing to do with each
other, which they have."""

_TELLING = 0.25
"""The values that a column has for each row, at least, if it tells rows apart."""


def find_alike(columns: Sequence[Sequence[str]]) -> list[list[int]]:
    """Groups of rows that have the same in all columns, in the order of their first.

    Where columns are few and coarse, such as answers of yes and no, rows have their like by chance.
    Then nothing is found.

    Args:
        columns: The cells of each.

    Example:
        >>> ages = [str(age) for age in range(30)]
        >>> find_alike([[*ages, "7"], [*["yes", "no"] * 15, "no"]])
        [[7, 30]]
        >>> find_alike([["yes", "no"] * 16])
        []
    """
    groups: dict[int, list[int]] = defaultdict(list)
    # Of a row only its hash is kept: of 64 bits, no two rows of a table share one by chance.
    for row, content in enumerate(map(hash, zip(*columns, strict=True))):
        groups[content].append(row)
    found = [group for group in groups.values() if len(group) > 1]
    total = sum(map(len, groups.values()))
    if not found or total < _FEWEST:
        return []
    share = sum(math.comb(len(group), 2) for group in found) / math.comb(total, 2)
    if share > _MORE_THAN_CHANCE * _chance(columns, range(total)):
        return found
    # Where most rows are there twice, copies make every column look coarse. So judge by rows that
    # differ, if a column has values enough to tell them apart.
    different = [group[0] for group in groups.values()]
    telling = len(columns) > 1 and max(len(set(cells)) for cells in columns) >= _TELLING * total
    if telling and share > _MORE_THAN_CHANCE * _chance(columns, different):
        return found
    return []


def report_alike(
    place: str,
    columns: Sequence[Sequence[str]],
    labels: Sequence[str],
    splits: Sequence[str],
    places: Sequence[str],
) -> list[Sequence[int]]:
    """Warn of rows that are alike: with different labels, in two splits, or just so.

    Args:
        place: What the table is called in messages.
        columns: The cells of the columns that are learned from.
        labels: The label of each row.
        splits: Its split.
        places: How a person finds it.

    Returns:
        Groups of rows that are copies of each other.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     ages, plans = [*map(str, range(30)), "3"], [*"abc" * 10, "a"]
        ...     report_alike("t.csv", [ages, plans], ["yes"] * 30 + ["no"], ["train"] * 31, ages)
        [[3, 30]]
        >>> print(caught[0].message)
        t.csv: 2 rows found with more than one label, such as 3 (yes) with 3 (no): all ...
    """
    in_conflict, conflicts, shared, copies = 0, [], [], []
    groups = find_alike(columns)
    for group in groups:
        first = group[0]
        relabelled = [row for row in group if labels[row] != labels[first]]
        if relabelled:
            in_conflict += len(group)
            conflicts.append(
                f"{places[first]} ({labels[first]}) with {places[relabelled[0]]} "
                f"({labels[relabelled[0]]})"
            )
        seen: dict[tuple[str, str], int] = {}
        for row in group:
            before = seen.setdefault((labels[row], splits[row]), row)
            if before != row:
                copies.append(f"{places[row]} of {places[before]}")
        trained = next((row for row in group if splits[row] == "train"), None)
        if trained is not None:
            shared += [
                f"{places[row]} of {splits[row]} as {places[trained]}"
                for row in group
                if splits[row] != "train"
            ]
    if conflicts:
        notice(
            f"{place}: {in_conflict:,} rows found with more than one label, such as "
            f"{few(conflicts, shown=2)}: all columns that are learned from agree, so at most one "
            "of the labels is right, or a column is missing that tells them apart"
        )
    if shared:
        notice(
            f"{place}: {count(len(shared), 'row')} found in the training split too, such as "
            f"{few(shared, shown=2)}; accuracy on them says little"
        )
    few_alike = few_enough(groups, len(labels))
    if copies:
        together = ", and stay on one side of every cut" * (len(few_alike) == len(groups))
        are = "is a copy of another" if len(copies) == 1 else "are copies of others"
        notice(
            f"{place}: {count(len(copies), 'row')} {are} in all columns that are learned from, "
            f"such as {few(copies, shown=2)}; all are kept{together}"
        )
    return few_alike


def _chance(columns: Sequence[Sequence[str]], rows: Sequence[int]) -> float:
    """How probably two rows have the same in all columns, if these had nothing in common.

    Args:
        columns: The cells of each.
        rows: Those that it is judged by.
    """
    chance = 1.0
    for cells in columns:
        counts = Counter(cells[row] for row in rows).values()
        chance *= sum(math.comb(number, 2) for number in counts) / max(math.comb(len(rows), 2), 1)
    return chance
