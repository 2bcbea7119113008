"""A table of paths and labels: CSV, JSON lines or Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelproof.data.classes import check_classes, order_classes
from labelproof.data.dataset import Dataset
from labelproof.data.duplicates import report_duplicates
from labelproof.data.labelled_files import (
    LabelledFiles,
    OnError,
    check_on_error,
    dataset_from_files,
)
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.row_labels import find_column
from labelproof.data.splits import split_name
from labelproof.data.table_files import table_stem
from labelproof.data.table_kind import COLUMNS, find_image_column
from labelproof.data.tables import Table, read_table
from labelproof.data.unicode_forms import StoredFiles
from labelproof.data.unusable import UnusableSamplesError

__all__ = ["ListedFile", "load_manifest", "read_beside", "read_listing"]


@dataclass(frozen=True)
class _Row:
    """A line of the table; `place` is how a person finds it."""

    place: str
    path: str
    label: str
    split: str


def load_manifest(
    path: str | os.PathLike[str],
    *,
    on_error: OnError = "raise",
    short_side: int | None = None,
    few_classes: bool = False,
    label: str | None = None,
) -> Dataset:
    r"""Read a table with a row for each image: its path, its label and, if you like, its split.

    Columns are found by name, in upper or lower case: `path` (or `file`, `filename`, `image`, ...),
    `label` (or `class`, `target`, `category`, ...) and `split`. Where none is called so, the paths
    are the column that holds names of images which are there, and the labels the only other one.
    Further columns are ignored. Paths are relative to the table; accents in them need not be stored
    as the file system has them. Without a split column everything is there to train on.

    Args:
        path: A `.csv` in UTF-8 with commas, semicolons or tabs, a `.tsv`, a `.jsonl` with an
            object a line, or a `.parquet`, which needs pyarrow; packed ones end in `.csv.gz`.
        on_error: What becomes of rows that cannot be used (no such file, no label, two labels for
            one path, an image that cannot be read): `"raise"` refuses the table and names the
            first few, `"skip"` leaves them out with a warning.
        short_side: Resize to this shorter side while decoding.
        few_classes: Whether fewer than two classes will do, and as many as images: to measure on,
            and not to learn from.
        label: The column with the labels, in upper or lower case, whatever it is called.

    Returns:
        A dataset whose images are decoded when they are asked for, in the table's order. Its
        labels count as not clean.

    Raises:
        ValueError: The table cannot be read, lacks a column, is empty, has fewer than two classes
            or as many as images, or has rows that cannot be used.

    Warns:
        DataWarning: Rows were left out or occur twice.

    Example:
        >>> from PIL import Image
        >>> folder = getfixture("tmp_path")
        >>> for number in range(3):
        ...     Image.effect_noise((8, 8), 50).save(folder / f"{number}.png")
        >>> table = "File,Class,split\n0.png,cat,train\n1.png,dog,train\n2.png,cat,test\n"
        >>> _ = (folder / "labels.csv").write_text(table)
        >>> dataset = load_manifest(folder / "labels.csv")
        >>> dataset.class_names, dataset.train.labels, dataset.test.labels
        (('cat', 'dog'), array([0, 1]), array([0]))
    """
    check_on_error(on_error)
    table = Path(path)
    place = readable(str(table))
    rows = _read_rows(table, place, label)
    rows = _usable(rows, place, table.parent, on_error)
    rows = _without_repeats(rows, place, on_error)
    names = order_classes(row.label for row in rows)
    splits = list(dict.fromkeys(row.split for row in rows))
    if "train" not in splits:
        raise ValueError(f"{place}: expected rows of the split train, got only {few(splits)}")
    if not few_classes:
        check_classes(place, names, num_images=sum(row.split == "train" for row in rows))
    index = {name: number for number, name in enumerate(names)}
    contents = {
        split: LabelledFiles(
            [row.path for row in rows if row.split == split],
            [index[row.label] for row in rows if row.split == split],
        )
        for split in sorted(splits, key=lambda split: (split != "train", splits.index(split)))
    }
    if on_error != "later":
        report_duplicates(place, contents)
    return dataset_from_files(
        readable(table_stem(table)), contents, names, on_error=on_error, short_side=short_side
    )


def _read_rows(path: Path, place: str, label: str | None) -> list[_Row]:
    table = read_table(path)
    names = _find_columns(table, path, label)
    rows: list[_Row] = []
    for row in table.read(list(names.values())):
        cells = dict(zip(names, row.cells, strict=True))
        word = cells.get("split", "train")
        if not word:
            raise ValueError(
                f"{place}: expected a split in {row.place}, such as train, got nothing"
            )
        split = split_name(word) or word.casefold()
        rows.append(_Row(row.place, cells["path"], cells["label"], split))
    if not rows:
        raise ValueError(f"{place}: expected a row for each image, got none")
    return rows


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
    names = [_find_paths(table, path)]
    if column is not None:
        written = {name.strip(): name for name in table.columns}
        names.append(written[find_column(list(written), column, place, argument="id")])
    files = StoredFiles()
    for row in table.read(names):
        file = _resolve(path.parent, row.cells[0], files)
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


def _find_columns(table: Table, path: Path, label: str | None) -> dict[str, str]:
    """For each kind of column the name that it has in this table."""
    place = readable(str(path))
    found = {"path": _find_paths(table, path, label)}
    if label is not None:
        written = {name.strip(): name for name in table.columns}
        found["label"] = written[find_column(list(written), label, place, argument="label")]
    else:
        images = find_image_column(table, path.parent)
        chosen = _named(table, "label") if images is None else images.label
        if chosen is None:
            raise ValueError(
                f"{place}: expected a column {_usual_names('label')}, found {_listed(table)}; "
                "the argument label names any other"
            )
        found["label"] = chosen
    split = _named(table, "split")
    return found if split is None else found | {"split": split}


def _find_paths(table: Table, path: Path, label: str | None = None) -> str:
    images = find_image_column(table, path.parent, label=label)
    name = _named(table, "path") if images is None else images.name
    if name is None:
        raise ValueError(
            f"{readable(str(path))}: expected a column {_usual_names('path')}, or one with names "
            f"of images that are there, found {_listed(table)}"
        )
    return name


def _named(table: Table, kind: str) -> str | None:
    folded = {name.strip().casefold(): name for name in reversed(table.columns)}
    return next((folded[word] for word in COLUMNS[kind] if word in folded), None)


def _usual_names(kind: str) -> str:
    first, *others = COLUMNS[kind][:4]
    return f"{first} (or {', '.join(others)})"


def _listed(table: Table) -> str:
    return few([repr(name) for name in table.columns], shown=8) or "none"


def _usable(rows: Sequence[_Row], place: str, folder: Path, on_error: OnError) -> list[_Row]:
    """Rows with a label and a file, their paths made whole."""
    unlabelled, missing, usable = [], [], []
    files = StoredFiles()
    for row in rows:
        path = _resolve(folder, row.path, files)
        if not row.label:
            unlabelled.append(row)
        elif path is None:
            missing.append(row)
        else:
            usable.append(_Row(row.place, path, row.label, row.split))
    if unlabelled:
        _complain(
            f"{place}: {len(unlabelled):,} of {count(len(rows), 'row')} without a label: "
            f"{few([f'{row.place} ({row.path})' for row in unlabelled])}",
            on_error,
        )
    if missing:
        hint = f"; paths are relative to {readable(str(folder.resolve()))}" if not usable else ""
        _complain(
            f"{place}: {len(missing):,} of {count(len(rows), 'row')} without a file: "
            f"{few([f'{row.place} ({row.path})' for row in missing])}{hint}",
            on_error,
        )
    if not usable:
        raise ValueError(f"{place}: no row can be used")
    return usable


def _resolve(folder: Path, text: str, files: StoredFiles) -> str | None:
    """Where the file is, or `None`; a table may have been written on a system with backslashes."""
    for written in dict.fromkeys((text, text.replace("\\", "/"))):
        path = os.path.normpath(os.path.join(folder, written))
        found = files.find(path) if written else None
        if found is not None:
            return found
    return None


def _without_repeats(rows: Sequence[_Row], place: str, on_error: OnError) -> list[_Row]:
    """One row for each path in a split, and none for a path with two labels."""
    labels: dict[str, set[str]] = {}
    for row in rows:
        labels.setdefault(row.path, set()).add(row.label)
    conflicts = [path for path, given in labels.items() if len(given) > 1]
    if conflicts:
        shown = [f"{path} ({' and '.join(sorted(labels[path]))})" for path in conflicts]
        _complain(
            f"{place}: {count(len(conflicts), 'path')} with more than one label: {few(shown)}",
            on_error,
        )
    kept: dict[tuple[str, str], _Row] = {}
    repeated: list[str] = []
    for row in rows:
        if len(labels[row.path]) > 1:
            continue
        if (row.path, row.split) in kept:
            repeated.append(f"{row.place} ({row.path})")
        else:
            kept[row.path, row.split] = row
    if repeated:
        notice(
            f"{place}: {count(len(repeated), 'row')} left out, the same path and label again: "
            f"{few(repeated)}"
        )
    if not kept:
        raise ValueError(f"{place}: no row can be used")
    return list(kept.values())


def _complain(message: str, on_error: OnError) -> None:
    if on_error == "raise":
        raise UnusableSamplesError(message, "mend them, or leave them out with on_error='skip'")
    notice(f"{message}; left out")
