"""Rows of a table that are alike, which matters most where they are labelled differently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from labelproof.data.notices import count, few, notice

__all__ = ["find_alike", "report_alike"]

_FEWEST = 20
"""Rows from which on it can be told what is chance: of fewer, anyone sees which are alike."""


def find_alike(columns: Sequence[Sequence[str]]) -> list[list[int]]:
    """Groups of rows that have the same in all columns, in the order of their first.

    Where columns are few and coarse, such as answers of yes and no, most rows have their like by
    chance, and nothing is found. It is no chance where at least half of the rows have none, or a
    column has another value in most rows that differ.

    Args:
        columns: The cells of each.

    Example:
        >>> ages = [str(age) for age in range(30)]
        >>> find_alike([[*ages, "3", "7"], ["yes", "no"] * 16])
        [[7, 31]]
        >>> find_alike([["yes", "no"] * 16])
        []
    """
    groups: dict[int, list[int]] = defaultdict(list)
    # Of a row only its hash is kept: of 64 bits, no two rows of a table share one by chance.
    for row, content in enumerate(map(hash, zip(*columns, strict=True))):
        groups[content].append(row)
    found = [group for group in groups.values() if len(group) > 1]
    alone = len(groups) - len(found)
    total = alone + sum(map(len, found))
    if not found or total < _FEWEST:
        return []
    if 2 * alone >= total or _has_telling(columns, groups.values()):
        return found
    return []


def report_alike(
    place: str,
    columns: Sequence[Sequence[str]],
    labels: Sequence[str],
    splits: Sequence[str],
    places: Sequence[str],
) -> None:
    """Warn of rows that are alike: with different labels, in two splits, or just so.

    Args:
        place: What the table is called in messages.
        columns: The cells of the columns that are learned from.
        labels: The label of each row.
        splits: Its split.
        places: How a person finds it.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     ages = [*map(str, range(30)), "3"]
        ...     report_alike("t.csv", [ages], ["yes"] * 30 + ["no"], ["train"] * 31, ages)
        >>> print(caught[0].message)
        t.csv: 2 rows have their like with another label, such as 3 (yes) with 3 (no): all ...
    """
    in_conflict, conflicts, shared, copies = 0, [], [], []
    for group in find_alike(columns):
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
            f"{place}: {in_conflict:,} rows have their like with another label, such as "
            f"{few(conflicts, shown=2)}: all columns that are learned from agree, so at most one "
            "of the labels is right, or a column is missing that tells them apart"
        )
    if shared:
        notice(
            f"{place}: {count(len(shared), 'row')} found in the training split too, such as "
            f"{few(shared, shown=2)}; accuracy on them says little"
        )
    if copies:
        are = "is a copy of another" if len(copies) == 1 else "are copies of others"
        notice(
            f"{place}: {count(len(copies), 'row')} {are}, such as {few(copies, shown=2)}; all are "
            "kept. Where a copy is validated on that was learned from, the result looks better "
            "than it is"
        )


def _has_telling(columns: Sequence[Sequence[str]], groups: Iterable[Sequence[int]]) -> bool:
    """Whether some column has a value of its own for most rows that differ."""
    first = [group[0] for group in groups]
    if len(first) < _FEWEST:
        return False
    return any(2 * len({cells[row] for row in first}) > len(first) for cells in columns)
