"""A column of new rows that is carried along, so that what is said about them finds them again."""

from __future__ import annotations

import os
from pathlib import Path

from labelproof.data.columns import Columns
from labelproof.data.notices import readable
from labelproof.data.row_labels import written_column
from labelproof.data.row_numbers import is_counter_name
from labelproof.data.tables import read_table

__all__ = ["id_of", "read_ids"]


def read_ids(path: str | os.PathLike[str], column: str) -> list[str]:
    r"""The cells of one column of a table, a text for each row.

    Args:
        path: A table as for `load_rows`.
        column: Its name, in upper or lower case.

    Raises:
        ValueError: The table cannot be read, or has no such column.

    Example:
        >>> table = getfixture("tmp_path") / "new.csv"
        >>> _ = table.write_text("customer,size\nA7,3\nA9,5\n")
        >>> read_ids(table, "customer")
        ['A7', 'A9']
    """
    file = Path(path)
    table = read_table(file)
    name = written_column(table, column, readable(str(file)), argument="id")
    return [row.cells[0] for row in table.read([name])]


def id_of(columns: Columns) -> str | None:
    """The column of the training rows that names each of them, if there is one.

    >>> id_of(Columns((), (("comment", "different in every row"), ("customer_id", "a number ..."))))
    'customer_id'
    """
    return next((name for name, _ in columns.left_out if is_counter_name(name)), None)
