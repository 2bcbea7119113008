"""The names of a table's columns: whether they are names, and each a different one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from labelproof.data.cells import folded, parse_numbers
from labelproof.data.notices import few
from labelproof.ranges import suggest

__all__ = ["check_header", "refuse_missing", "refuse_twice"]


def check_header(
    names: Sequence[str], place: str, *, of: str = "columns", only: Collection[str] | None = None
) -> None:
    """Refuse a first line that is a row, and names that several columns have.

    Args:
        names: The first line, without the space around.
        place: What the table is called in messages.
        of: What is named there.
        only: The columns that matter, if not all do.

    Raises:
        ValueError: Most names are numbers as rows have them, or one occurs more than once.

    Example:
        >>> check_header(["0.5", "0.5"], "p.csv", of="classes")
        Traceback (most recent call last):
            ...
        ValueError: p.csv: expected the names of the classes first, got 0.5, 0.5, which look like...
    """
    numbers = [name for name in names if name and not parse_numbers([name])[1]]
    # The cells of that row would be lost, and no one would know. But whole numbers that differ may
    # be names: pandas gives such to columns that have none.
    if len(numbers) * 2 > len(names) and (
        len(set(numbers)) < len(numbers) or any("." in name for name in numbers)
    ):
        raise ValueError(
            f"{place}: expected the names of the {of} first, got {few(names)}, which look like "
            "a row; add a line of names"
        )
    refuse_twice([name for name in names if name], place, only=only)


def refuse_twice(names: Sequence[str], place: str, *, only: Collection[str] | None = None) -> None:
    """Refuse names that several columns have, where they matter.

    >>> refuse_twice(["a", "b", "a"], "t.csv", only=["b"])
    """
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if only is not None:
        twice = [name for name in twice if name in only]
    if twice:
        raise ValueError(
            f"{place}: expected columns of different names, got more than one called "
            f"{few([repr(name) for name in twice])}; rename or remove one"
        )


def refuse_missing(wanted: Sequence[str], names: Sequence[str], place: str) -> None:
    """Refuse a table that lacks columns, and say which may be meant.

    Args:
        wanted: The columns that are needed.
        names: Those that are there.
        place: What the table is called in messages.

    Raises:
        ValueError: Some are not there.

    Example:
        >>> refuse_missing(["Age", "Size"], ["AGE", "SIZE"], "t.csv")
        Traceback (most recent call last):
            ...
        ValueError: t.csv: expected the columns 'Age', 'Size', found 'AGE', 'SIZE'; rename 'AGE'...
    """
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    # Names that are wanted as they are cannot stand for others.
    alike = {folded(name): name for name in names if name not in wanted}
    twins = [(alike[folded(name)], name) for name in missing if folded(name) in alike]
    hint = ""
    if twins:
        renamed = few([f"{found!r} to {name!r}" for found, name in twins], shown=8)
        verb = "they differ" if len(twins) > 1 else "it differs"
        hint = f"; rename {renamed}: {verb} only in case or spaces"
    elif len(missing) == 1:
        hint = suggest(missing[0], names)
    raise ValueError(
        f"{place}: expected the {'columns' if len(missing) > 1 else 'column'} "
        f"{few([repr(name) for name in missing], shown=8)}, found "
        f"{few([repr(name) for name in names], shown=8) or 'none'}{hint}"
    )
