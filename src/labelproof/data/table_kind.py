"""Whether a table names images or holds the examples itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from labelproof.data.encoded import SUFFIXES
from labelproof.data.manifest import COLUMNS
from labelproof.data.tables import Table
from labelproof.data.unicode_forms import StoredFiles

__all__ = ["ImageColumn", "find_image_column"]

_LOOKED_AT = 200


@dataclass(frozen=True)
class ImageColumn:
    """The column of a table that names images.

    Attributes:
        name: What it is called.
        label: The column where the labels of images are looked for, if there is one.
        files: Whether any of the files is there.
        features: Whether the table has columns that could be features as well.
    """

    name: str
    label: str | None
    files: bool
    features: bool


def find_image_column(table: Table, folder: Path) -> ImageColumn | None:
    r"""The column that makes a table a list of images, or `None` for a table of examples.

    A table lists images if it has a column that is called `path`, `file`, `image` or the like and
    at least half of its first 200 cells end like images (`.png`, `.jpg`, ...) or are files beside
    the table. Whether the files are there does not matter for names that end like images: a list
    whose images are all missing is a list that wants mending. So `image` may well be a feature,
    if its cells are `yes` and `no`. A table with nothing but such a column, labels and splits can
    only be a list, and so can one whose only column beside the labels has names of images.

    Args:
        table: The table.
        folder: What its paths are relative to.

    Example:
        >>> from labelproof.data.tables import read_table
        >>> file = getfixture("tmp_path") / "table.csv"
        >>> _ = file.write_text("image,size,label\nyes,3,cat\nno,4,dog\n")
        >>> find_image_column(read_table(file), file.parent)
        >>> _ = file.write_text("image,size,label\n1.png,3,cat\n2.png,4,dog\n")
        >>> find_image_column(read_table(file), file.parent)
        ImageColumn(name='image', label='label', files=False, features=True)
    """
    folded = {name.strip().casefold(): name for name in reversed(table.columns)}
    splits = [folded[word] for word in COLUMNS["split"][:1] if word in folded]
    rest = [name for name in table.columns if name.strip() and name not in splits]
    label = next((folded[word] for word in COLUMNS["label"] if word in folded), None)
    named = next((folded[word] for word in COLUMNS["path"] if word in folded), None)
    # One column holds the labels, so of two only one is left.
    only = len(rest) <= 2
    for name in [named] if named else rest if only else []:
        cells = [row.cells[0] for row in islice(table.read([name]), _LOOKED_AT)]
        cells = [cell for cell in cells if cell]
        stored = StoredFiles()
        files = [_is_file(folder, cell, stored) for cell in cells]
        images = [Path(cell).suffix.lower() in SUFFIXES for cell in cells]
        likely = sum(a or b for a, b in zip(files, images, strict=True))
        if (named and (only or not cells)) or (cells and likely * 2 >= len(cells)):
            return ImageColumn(name, label, any(files), not only)
    return None


def _is_file(folder: Path, text: str, stored: StoredFiles) -> bool:
    try:
        return stored.find(os.path.join(folder, text.replace("\\", "/"))) is not None
    except ValueError:  # a cell may hold what no file can be called
        return False
