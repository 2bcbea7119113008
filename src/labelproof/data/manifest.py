"""A table of paths and labels: CSV, JSON lines or Parquet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labelproof.data.classes import check_classes, order_classes
from labelproof.data.dataset import Dataset
from labelproof.data.duplicates import report_duplicates
from labelproof.data.groups import (
    group_values,
    if_cuttable,
    join_groups,
    likely_group,
    mark_grouping,
    report_likely_group,
    report_shared_groups,
)
from labelproof.data.labelled_files import (
    LabelledFiles,
    OnError,
    check_on_error,
    dataset_from_files,
)
from labelproof.data.listing import find_columns, resolve
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.row_labels import MISSING
from labelproof.data.splits import split_name
from labelproof.data.table_files import table_stem
from labelproof.data.tables import read_table
from labelproof.data.unicode_forms import StoredFiles
from labelproof.data.unusable import UnusableSamplesError

__all__ = ["load_manifest"]


@dataclass(frozen=True)
class _Row:
    """A line of the table; `place` is how a person finds it."""

    place: str
    path: str
    label: str
    split: str
    group: str = ""


def load_manifest(
    path: str | os.PathLike[str],
    *,
    on_error: OnError = "raise",
    short_side: int | None = None,
    few_classes: bool = False,
    label: str | None = None,
    group: str | None = None,
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
        group: The column by which images belong together, such as a patient: those that have the
            same in it are never validated on apart.

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
    rows = _read_rows(table, place, label, group)
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
    copies: dict[str, list[list[int]]] = {}
    if on_error != "later":
        copies = report_duplicates(place, contents)
        if group is not None:
            values = [row.group for row in rows]
            report_shared_groups(place, group, values, [row.split for row in rows])
        else:
            _report_likely_groups(table, place, label)
    for split, content in contents.items():
        values = [row.group for row in rows if row.split == split]
        joined = join_groups(len(values), group_values(values), copies.get(split, ()))
        if group is None:
            joined = if_cuttable(joined, content.labels)
        contents[split] = replace(content, groups=joined)
    dataset = dataset_from_files(
        readable(table_stem(table)), contents, names, on_error=on_error, short_side=short_side
    )
    if group is None:
        return dataset
    grouping = mark_grouping([row.group for row in rows if row.split == "train"])
    return replace(dataset, group=group, grouping=grouping)


def _read_rows(path: Path, place: str, label: str | None, group: str | None) -> list[_Row]:
    table = read_table(path)
    names = find_columns(table, path, label, group)
    rows: list[_Row] = []
    for row in table.read(list(names.values())):
        cells = dict(zip(names, row.cells, strict=True))
        word = cells.get("split", "train")
        if not word:
            raise ValueError(
                f"{place}: expected a split in {row.place}, such as train, got nothing"
            )
        split = split_name(word) or word.casefold()
        belongs = cells.get("group", "")
        rows.append(_Row(row.place, cells["path"], cells["label"], split, belongs))
    if not rows:
        raise ValueError(f"{place}: expected a row for each image, got none")
    return rows


def _report_likely_groups(path: Path, place: str, label: str | None) -> None:
    table = read_table(path)
    taken = find_columns(table, path, label).values()
    for name in filter(likely_group, table.columns):
        if name in taken:
            continue
        report_likely_group(place, name.strip(), [row.cells[0] for row in table.read([name])])


def _usable(rows: Sequence[_Row], place: str, folder: Path, on_error: OnError) -> list[_Row]:
    """Rows with a label and a file, their paths made whole."""
    unlabelled, missing, usable = [], [], []
    files = StoredFiles()
    for row in rows:
        path = resolve(folder, row.path, files)
        if row.label.casefold() in MISSING:
            unlabelled.append(row)
        elif path is None:
            missing.append(row)
        else:
            usable.append(replace(row, path=path))
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


def _without_repeats(rows: Sequence[_Row], place: str, on_error: OnError) -> list[_Row]:
    """One row for each path in a split, and none for a path with two labels."""
    # By whole paths: one row may have its from the table's folder, and another from the root.
    whole = [os.path.abspath(row.path) for row in rows]
    labels: dict[str, set[str]] = {}
    for row, path in zip(rows, whole, strict=True):
        labels.setdefault(path, set()).add(row.label)
    written = dict(zip(reversed(whole), reversed([row.path for row in rows]), strict=True))
    conflicts = [path for path, given in labels.items() if len(given) > 1]
    if conflicts:
        shown = [f"{written[path]} ({' and '.join(sorted(labels[path]))})" for path in conflicts]
        _complain(
            f"{place}: {count(len(conflicts), 'path')} with more than one label: {few(shown)}",
            on_error,
        )
    kept: dict[tuple[str, str], _Row] = {}
    repeated: list[str] = []
    for row, path in zip(rows, whole, strict=True):
        if len(labels[path]) > 1:
            continue
        if (path, row.split) in kept:
            repeated.append(f"{row.place} ({row.path})")
        else:
            kept[path, row.split] = row
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
