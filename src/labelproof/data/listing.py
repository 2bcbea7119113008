"""The images that a table names: which columns say what, and where the files are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labelproof.data.notices import few, readable
from labelproof.data.row_labels import written_column
from labelproof.data.table_kind import COLUMNS, ImageColumn, find_image_column, usual_column
from labelproof.data.tables import Table, read_table
from labelproof.data.unicode_forms import StoredFiles

__all__ = ["ListedFile", "find_columns", "read_beside", "read_listing", "resolve"]


@dataclass(frozen=True)
class ListedFile:
    """An image that a table names.

    Attributes:
        place: The row, as a person finds it.
        written: How the table names the file.
        path: Where the file is; `None` if there is none.
        beside: What else was asked for of the row.
    """

    place: str
    written: str
    path: str | None
    beside: str = ""


def read_listing(path: Path, column: str | None = None) -> Iterator[ListedFile]:
    r"""The images that a table names, row by row; labels need not be there.

    Args:
        path: The table.
        column: One more column to read, in upper or lower case.

    Raises:
        ValueError: The table cannot be read, names no images, or has no such column.

    Example:
        >>> table = getfixture("tmp_path") / "new.csv"
        >>> _ = table.write_text("file,key\n1.png,k7\n2.png,k8\n")
        >>> _ = (table.parent / "1.png").write_bytes(b"")
        >>> [(each.written, each.path is None, each.beside) for each in read_listing(table, "Key")]
        [('1.png', False, 'k7'), ('2.png', True, 'k8')]
    """
    table, place = read_table(path), readable(str(path))
    names = [_paths(table, place, find_image_column(table, path.parent))]
    if column is not None:
        names.append(written_column(table, column, place, argument="id"))
    files = StoredFiles()
    for row in table.read(names):
        file = resolve(path.parent, row.cells[0], files)
        yield ListedFile(row.place, row.cells[0], file, *row.cells[1:])


def read_beside(path: Path, column: str) -> dict[str, str]:
    r"""What a table of images has in one more column, for the whole path of each image.

    Args:
        path: The table.
        column: The column's name.

    Example:
        >>> table = getfixture("tmp_path") / "labels.csv"
        >>> _ = table.write_text("file,label,key\n1.png,cat,k7\n")
        >>> _ = (table.parent / "1.png").write_bytes(b"")
        >>> [(Path(file).name, key) for file, key in read_beside(table, "key").items()]
        [('1.png', 'k7')]
    """
    beside: dict[str, str] = {}
    for listed in read_listing(path, column):
        if listed.path is not None:
            # The first of several rows of an image is the one that is kept.
            beside.setdefault(os.path.abspath(listed.path), listed.beside)
    return beside


def find_columns(
    table: Table, path: Path, label: str | None, group: str | None = None
) -> dict[str, str]:
    """For each kind of column its name in a table: path, label and perhaps split and group.

    Args:
        table: It.
        path: Where it is, which its paths are relative to.
        label: The column with the labels, in upper or lower case; without it, it is found.
        group: The column by which images belong together, likewise; without it there is none.

    Raises:
        ValueError: There is no such column, or it cannot be told which one is meant.
    """
    place = readable(str(path))
    found: dict[str, str] = {}
    if group is not None:
        found["group"] = written_column(table, group, place, argument="group")
    images = find_image_column(table, path.parent, label=label, group=group)
    found["path"] = _paths(table, place, images)
    if label is not None:
        found["label"] = written_column(table, label, place, argument="label")
    else:
        chosen = usual_column(table.columns, "label") if images is None else images.label
        if chosen is None:
            raise ValueError(
                f"{place}: expected a column {_usual_names('label')}, found {_listed(table)}; "
                "the argument label names any other"
            )
        found["label"] = chosen
    if found.get("group") in (found["path"], found["label"]):
        raise ValueError(
            f"group: expected a column beside the images and labels of {place}, got {group!r}"
        )
    split = usual_column(table.columns, "split")
    return found if split is None else found | {"split": split}


def _paths(table: Table, place: str, images: ImageColumn | None) -> str:
    name = usual_column(table.columns, "path") if images is None else images.name
    if name is None:
        raise ValueError(
            f"{place}: expected a column {_usual_names('path')}, or one with names of images that "
            f"are there, found {_listed(table)}"
        )
    return name


def _usual_names(kind: str) -> str:
    first, *others = COLUMNS[kind][:4]
    return f"{first} (or {', '.join(others)})"


def _listed(table: Table) -> str:
    return few([repr(name) for name in table.columns], shown=8) or "none"


def resolve(folder: Path, text: str, files: StoredFiles) -> str | None:
    """Where a file is, or `None`; a table may have been written on a system with backslashes.

    Args:
        folder: What the path is relative to.
        text: The path, as the table has it.
        files: Finds files by either form of their accents.
    """
    for written in dict.fromkeys((text, text.replace("\\", "/"))):
        path = os.path.normpath(os.path.join(folder, written))
        found = files.find(path) if written else None
        if found is not None:
            return found
    return None
