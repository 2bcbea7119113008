"""The columns of a table's rows: read by name, and taken apart from those that are no features."""

from __future__ import annotations

from collections.abc import Sequence

from labelproof.data.columns import Columns
from labelproof.data.headers import check_header, refuse_missing
from labelproof.data.notices import count, notice
from labelproof.data.row_labels import find_column
from labelproof.data.splits import split_name
from labelproof.data.table_kind import COLUMNS
from labelproof.data.tables import Table

__all__ = [
    "DROPPED",
    "GROUPED",
    "drop_columns",
    "dropped_columns",
    "read_columns",
    "take_column",
    "take_splits",
]

DROPPED = "as was asked for"
"""Why a column is left out that a person does not want."""
GROUPED = "rows belong together by it"
"""Why the column is left out that says which rows stay on one side."""


def read_columns(
    table: Table, place: str, *, only: Sequence[str] | None = None
) -> tuple[dict[str, Sequence[str]], list[str]]:
    r"""The cells of each column that has a name, and how a person finds each row.

    Args:
        table: The table.
        place: What it is called in messages.
        only: The columns that are wanted, if not all are.

    Example:
        >>> from labelproof.data.tables import read_table
        >>> file = getfixture("tmp_path") / "table.csv"
        >>> _ = file.write_text("size,kind\n3,cat\n")
        >>> read_columns(read_table(file), "table.csv")
        ({'size': ('3',), 'kind': ('cat',)}, ['line 2'])
    """
    names = [name.strip() for name in table.columns]
    check_header(names, place, only=only)
    if only is not None:
        refuse_missing(only, [name for name in names if name], place)
    unnamed = names.count("")
    if unnamed and only is None:
        # Such as the row numbers that pandas writes, or a separator too many.
        notice(f"{place}: {count(unnamed, 'column')} without a name left out")
    given = {
        name: written
        for name, written in zip(names, table.columns, strict=True)
        if name and (only is None or name in only)
    }
    rows = list(table.read(list(given.values())))
    if not rows:
        found = "an empty file" if not names else "only the names of the columns"
        raise ValueError(f"{place}: expected a row for each example, got {found}")
    cells = zip(*(row.cells for row in rows), strict=True)
    return dict(zip(given, cells, strict=True)), [row.place for row in rows]


def dropped_columns(columns: Columns | None) -> list[str]:
    """The columns that were left out because they were not wanted.

    Args:
        columns: Of a table; `None` where there is none.

    >>> dropped_columns(Columns((), (("id", DROPPED), ("note", "always the same"))))
    ['id']
    """
    left_out = () if columns is None else columns.left_out
    return [name for name, reason in left_out if reason == DROPPED]


def drop_columns(
    table: dict[str, Sequence[str]], drop: Sequence[str], label: str, place: str
) -> list[str]:
    """Take columns out of a table that are not wanted, and say which they are.

    Args:
        table: Its columns; what is dropped is removed.
        drop: Names, in upper or lower case.
        label: The column of the labels, which cannot be dropped.
        place: What the table is called in messages.

    >>> table = {"size": ["3"], "Comment": ["large"]}
    >>> drop_columns(table, ["comment"], "kind", "t.csv"), table
    (['Comment'], {'size': ['3']})
    """
    names = list(table)
    dropped = [
        find_column([*names, label], wanted, place, argument="drop")
        for wanted in dict.fromkeys(drop)
    ]
    if label in dropped:
        raise ValueError(f"drop: expected columns beside the labels of {place}, got {label!r}")
    for name in dropped:
        table.pop(name, None)
    return list(dict.fromkeys(dropped))


def take_column(
    table: dict[str, Sequence[str]], wanted: str, label: str, place: str, *, argument: str
) -> tuple[str, Sequence[str]]:
    """Take a column out of a table that is no feature: its name, and its cells.

    Args:
        table: Its columns.
        wanted: The column's name, in upper or lower case.
        label: The column of the labels, which cannot be it.
        place: What the table is called in messages.
        argument: What it was asked for as.

    >>> table = {"size": ["3"], "Patient": ["ann"]}
    >>> take_column(table, "patient", "kind", "t.csv", argument="group"), table
    (('Patient', ['ann']), {'size': ['3']})
    """
    name = find_column([*table, label], wanted, place, argument=argument)
    if name == label:
        raise ValueError(
            f"{argument}: expected a column beside the labels of {place}, got {label!r}"
        )
    return name, table.pop(name)


def take_splits(
    table: dict[str, Sequence[str]], places: Sequence[str], place: str
) -> Sequence[str]:
    """The split of each row, by a column that is removed: it is no feature.

    Args:
        table: Its columns.
        places: How a person finds each row.
        place: What the table is called in messages.

    >>> take_splits({"split": ["Train", "val"], "size": ["3", "4"]}, ["line 2", "line 3"], "t.csv")
    ['train', 'validation']
    """
    folded = {name.casefold(): name for name in reversed(list(table))}
    for word in COLUMNS["split"]:
        if word not in folded:
            continue
        cells = table[folded[word]]
        splits = [split_name(cell) or cell.casefold() for cell in cells]
        # Only the first word is plain: a "set" may as well be a feature.
        if word != "split" and "train" not in splits:
            continue
        for split, where in zip(splits, places, strict=True):
            if not split:
                raise ValueError(
                    f"{place}: expected a split in {where}, such as train, got nothing"
                )
        del table[folded[word]]
        return splits
    return ["train"] * len(places)
