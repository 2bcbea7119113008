"""Whether a table names images or holds the examples itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from labelproof.data.encoded import SUFFIXES
from labelproof.data.tables import Table, TableRow
from labelproof.data.unicode_forms import StoredFiles

__all__ = ["COLUMNS", "ImageColumn", "find_image_column", "usual_column"]

COLUMNS = {
    "path": (
        *("path", "file", "filename", "file_name", "filepath", "file_path"),
        *("image", "image_path", "image_file", "img", "img_path"),
    ),
    "label": ("label", "class", "target", "category", "class_name", "label_name"),
    "split": ("split", "subset", "set", "partition"),
}
"""What columns of a list of images are called; the first that a table has is taken."""

_LOOKED_AT = 200


def usual_column(names: Iterable[str], kind: str) -> str | None:
    """The column that has the first of the usual names, in upper or lower case.

    Args:
        names: All columns.
        kind: One of `COLUMNS`.

    >>> usual_column(["size", " Class", "target"], "label")
    ' Class'
    """
    folded = {name.strip().casefold(): name for name in reversed(list(names))}
    return next((folded[word] for word in COLUMNS[kind] if word in folded), None)


@dataclass(frozen=True)
class ImageColumn:
    """The column of a table that names images.

    Attributes:
        name: What it is called.
        label: The column with the labels of the images, if it can be told which one that is.
        files: Whether any of the files is there.
        features: Whether the table has columns that could be features as well.
    """

    name: str
    label: str | None
    files: bool
    features: bool


def find_image_column(
    table: Table,
    folder: Path,
    *,
    label: str | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
) -> ImageColumn | None:
    r"""The column that makes a table a list of images, or `None` for a table of examples.

    A table lists images if it has a column that is called `path`, `file`, `image` or the like and
    at least half of its first 200 cells end like images (`.png`, `.jpg`, ...) or are files beside
    the table. Whether the files are there does not matter for names that end like images: a list
    whose images are all missing is a list that wants mending. So `image` may well be a feature,
    if its cells are `yes` and `no`. A table with nothing but such a column, labels and splits can
    only be a list, and so can one whose only column beside the labels has names of images. A
    column of any other name counts if half of its cells end like images and are there.

    Args:
        table: The table.
        folder: What its paths are relative to.
        label: The column with the labels, in upper or lower case; without it one of a usual name,
            or the only other column there is.
        drop: Columns that are not looked at.
        group: The column by which samples belong together: neither images nor labels nor features.

    Example:
        >>> from labelproof.data.tables import read_table
        >>> file = getfixture("tmp_path") / "table.csv"
        >>> _ = file.write_text("image,size,label\nyes,3,cat\nno,4,dog\n")
        >>> find_image_column(read_table(file), file.parent)
        >>> _ = file.write_text("image,size,label\n1.png,3,cat\n2.png,4,dog\n")
        >>> find_image_column(read_table(file), file.parent)
        ImageColumn(name='image', label='label', files=False, features=True)
        >>> find_image_column(read_table(file), file.parent, drop=["Image"])
    """
    folded = {name.strip().casefold(): name for name in reversed(table.columns)}
    folded.pop("", None)
    beside = (*COLUMNS["split"][:1], *([] if group is None else [group.strip().casefold()]))
    apart = [folded[word] for word in beside if word in folded]
    rest = [name for name in table.columns if name in folded.values() and name not in apart]
    # One column holds the labels, so of two only one is left.
    only = len(rest) <= 2
    for word in drop:
        folded.pop(word.strip().casefold(), None)
    rest = [name for name in rest if name in folded.values()]
    # A column that is not there is refused by whoever reads the labels.
    wanted = None if label is None else folded.get(label.strip().casefold())
    given = wanted or usual_column(rest, "label")
    named = usual_column(rest, "path")
    for name, seen in _looked_at(table, rest, named, folder):
        if name == named:
            taken = only or not seen.cells or seen.likely * 2 >= seen.cells
        elif only and named is None:
            taken = seen.cells > 0 and seen.likely * 2 >= seen.cells
        else:
            taken = seen.cells > 0 and seen.images * 2 >= seen.cells
        if taken and name != wanted:
            others = [other for other in rest if other != name]
            if given in (None, name):
                given = others[0] if len(others) == 1 else None
            return ImageColumn(name, given, seen.files > 0, not only)
    return None


@dataclass(frozen=True)
class _Seen:
    """Of the first cells of a column: how many are not empty, and what they are."""

    cells: int
    files: int
    images: int
    likely: int


def _looked_at(
    table: Table, names: Sequence[str], named: str | None, folder: Path
) -> Iterator[tuple[str, _Seen]]:
    """The columns with what is in them, the one of a usual name first."""
    if named is not None:
        yield named, _see([row.cells[0] for row in _first(table, [named])], folder)
    others = [name for name in names if name != named]
    try:
        # In one pass: a table may have thousands of columns.
        rows = [row.cells for row in _first(table, others)] if others else []
    except ValueError:  # what is wrong with a row is said by whoever reads all of them
        return
    for index, name in enumerate(others):
        yield name, _see([cells[index] for cells in rows], folder)


def _first(table: Table, names: Sequence[str]) -> Iterator[TableRow]:
    return islice(table.read(names), _LOOKED_AT)


def _see(column: Sequence[str], folder: Path) -> _Seen:
    cells = [cell for cell in column if cell]
    named = [Path(cell).suffix.lower() in SUFFIXES for cell in cells]
    stored = StoredFiles()
    files = [_is_file(folder, cell, stored) for cell in cells]
    return _Seen(
        cells=len(cells),
        files=sum(files),
        images=sum(a and b for a, b in zip(files, named, strict=True)),
        likely=sum(a or b for a, b in zip(files, named, strict=True)),
    )


def _is_file(folder: Path, text: str, stored: StoredFiles) -> bool:
    try:
        return stored.find(os.path.join(folder, text.replace("\\", "/"))) is not None
    except ValueError:  # a cell may hold what no file can be called
        return False
