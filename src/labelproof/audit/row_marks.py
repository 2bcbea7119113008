"""By what a row of a table is known again, besides its line."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.loading import TABLES
from labelproof.data.tables import read_table

__all__ = ["mark_cells", "mark_rows", "marks_of", "read_cells"]

Cells = list[tuple[str, str]]


def read_cells(table: Path) -> dict[str, Cells]:
    """For each row of a table, by its place: the columns and what is written in them."""
    content = read_table(table)
    columns = list(content.columns)
    return {row.place: list(zip(columns, row.cells, strict=True)) for row in content.read(columns)}


def mark_rows(table: Path, places: Sequence[str]) -> NDArray[np.uint32]:
    r"""A mark for each row that is another one when anything in the row is changed.

    A row is called by its line, and whoever sorts a table gives every row another name.

    Args:
        table: The file.
        places: The rows, such as `line 7`.

    Example:
        >>> file = getfixture("tmp_path") / "t.csv"
        >>> _ = file.write_text("a,b\n1,x\n2,y\n")
        >>> before = mark_rows(file, ["line 2", "line 3"])
        >>> _ = file.write_text("a,b\n2,y\n1,x\n")
        >>> (mark_rows(file, ["line 3", "line 2"]) == before).all()
        np.True_
    """
    cells = read_cells(table)
    return np.array([mark_cells(cells.get(place, [])) for place in places], dtype=np.uint32)


def marks_of(
    dataset: Dataset, data: str | os.PathLike[str], samples: Sequence[str]
) -> NDArray[np.uint32] | None:
    """The marks of a dataset's rows; `None` where they are not rows of a table."""
    table = Path(data).expanduser()
    if not dataset.tabular or table.suffix.lower() not in TABLES or not table.exists():
        return None
    return mark_rows(table, samples)


def mark_cells(cells: Cells) -> int:
    """The mark of one row."""
    return zlib.crc32("\0".join(f"{name}\0{text}" for name, text in cells).encode())
