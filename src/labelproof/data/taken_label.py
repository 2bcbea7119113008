"""Which column of a table its labels were taken from, so that others are read by the same."""

from __future__ import annotations

import warnings
from pathlib import Path

from labelproof.data.columns import Columns
from labelproof.data.notices import DataWarning, readable
from labelproof.data.row_labels import find_column, find_label
from labelproof.data.table_files import table_kind
from labelproof.data.table_kind import COLUMNS, find_image_column
from labelproof.data.tables import Table, read_table

__all__ = ["column_names", "found_label", "left_label", "taken_label"]


def column_names(table: Table) -> list[str]:
    """The names of a table's columns, as they are compared; those without one are not there."""
    return [name.strip() for name in table.columns if name.strip()]


def found_label(table: Table, path: Path) -> str | None:
    r"""The column that labels are taken from if nobody names one; `None` if it cannot be told.

    Args:
        table: The table, of features or of images.
        path: Where it is.

    Example:
        >>> file = getfixture("tmp_path") / "new.csv"
        >>> _ = file.write_text("size,kind,note\n3,cat,x\n")
        >>> found_label(read_table(file), file)
        'note'
    """
    images = find_image_column(table, path.parent)
    if images is not None:
        return None if images.label is None else images.label.strip()
    with warnings.catch_warnings():
        # It is said by whoever reads the labels.
        warnings.simplefilter("ignore", DataWarning)
        return find_label(column_names(table), None, readable(str(path)))


def left_label(table: Table, columns: Columns) -> str | None:
    r"""The column of a table that is no feature and was not left out: that of its labels.

    Args:
        table: What was learned from.
        columns: What became of it.

    Returns:
        `None` if there is not exactly one, as where the table has changed since.

    Example:
        >>> file = getfixture("tmp_path") / "table.csv"
        >>> _ = file.write_text("size,kind,split\n3,cat,train\n4,dog,train\n")
        >>> left_label(read_table(file), Columns.learn(["size"], [["3", "4"]]))
        'kind'
    """
    known = {*columns.names, *(name for name, _ in columns.left_out)}
    rest = [name for name in column_names(table) if name not in known]
    if len(rest) > 1:
        rest = [name for name in rest if name.casefold() not in COLUMNS["split"]]
    return rest[0] if len(rest) == 1 else None


def taken_label(path: Path, columns: Columns | None, label: str | None = None) -> str | None:
    r"""The column that the labels of what was learned from were taken from.

    Args:
        path: What was read; only tables have columns.
        columns: What became of a table of features; `None` for one of images.
        label: The column that was asked for, in upper or lower case.

    Example:
        >>> file = getfixture("tmp_path") / "table.csv"
        >>> _ = file.write_text("size,kind\n3,cat\n4,dog\n")
        >>> taken_label(file, Columns.learn(["size"], [["3", "4"]]))
        'kind'
        >>> taken_label(file, None, "KIND")
        'kind'
    """
    path = path.expanduser()
    if not table_kind(path) or not path.is_file():
        return None
    table = read_table(path)
    if label is not None:
        return find_column(column_names(table), label, readable(str(path)), argument="label")
    return found_label(table, path) if columns is None else left_label(table, columns)
