"""Tables that list image files: paths, labels and perhaps splits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from labelproof.data.dataset import Dataset
from labelproof.data.images import LabelledFiles, OnError, dataset_from_files, is_image
from labelproof.data.notices import count, few, leave_out, notice, readable
from labelproof.data.splits import report_shared_groups
from labelproof.data.table import (
    TableSource,
    as_text,
    read_labelled,
    row_names,
    split_parts,
    table_place,
    table_stem,
)

_EXAMINED = 200


def image_column(table: pd.DataFrame, *, drop: Sequence[str] = ()) -> str | None:
    """The first column, other than `drop`, whose cells mostly end like image files, or `None`."""
    dropped = {name.strip().casefold() for name in drop}
    for name in table.columns:
        cells = table[name].head(10 * _EXAMINED).dropna().head(_EXAMINED).tolist()
        if name.casefold() in dropped or not cells or not isinstance(cells[0], str):
            continue
        if sum(is_image(str(cell).strip()) for cell in cells) * 2 >= len(cells):
            return str(name)
    return None


def load_image_table(
    source: TableSource,
    *,
    on_error: OnError = "raise",
    short_side: int | None = None,
    label: str | None = None,
    group: str | None = None,
    annotators: Sequence[str] = (),
) -> Dataset:
    r"""Read a table with a row for each image: its path, its label and perhaps its split.

    The path column is the one whose cells end like image files; paths are relative to the table's
    folder, those of a DataFrame to the current one. Other columns are ignored. Without a column
    `split`, all images are for training.

    Args:
        source: A file, or a table from [`read_table`][labelproof.data.read_table].
        on_error: For unusable rows (no such file, no label, two labels for one path, an unreadable
            image): `"raise"` raises and names the first few, `"skip"` leaves them out with a
            warning.
        short_side: As for [`load_folder`][labelproof.data.load_folder].
        label: As for [`load_dataset`][labelproof.data.load_dataset].
        group: Likewise.
        annotators: Likewise.

    Returns:
        A dataset whose images are decoded on access, in the table's order. Its labels count as not
        clean.

    >>> from PIL import Image
    >>> folder = getfixture("tmp_path")
    >>> for number in range(3):
    ...     Image.effect_noise((8, 8), 50).save(folder / f"{number}.png")
    >>> table = "File,Class,split\n0.png,cat,train\n1.png,dog,train\n2.png,cat,test\n"
    >>> _ = (folder / "labels.csv").write_text(table)
    >>> dataset = load_image_table(folder / "labels.csv")
    >>> dataset.class_names, dataset.train.labels, dataset.test.labels
    (('cat', 'dog'), array([0, 1]), array([0]))
    """
    given = read_labelled(
        source, label=label, group=group, annotators=annotators, on_error=on_error
    )
    table, place = given.rows, given.place
    images = _require_images(table, place, drop=[name for name in (label, group) if name])
    groups = "" if given.groups is None else given.groups
    rows = pd.DataFrame(
        {
            "written": as_text(table[images]),
            "label": given.words,
            "split": given.splits,
            "group": groups,
            "row": list(row_names(table)),
        }
    )
    rows["path"] = _paths(rows["written"], table)
    rows = _usable(rows, place, on_error)
    if on_error != "later" and given.group is not None:
        report_shared_groups(place, given.group, rows["group"], rows["split"])
    contents = {}
    for split, part in split_parts(rows["split"].to_numpy(object), place).items():
        chosen = rows.iloc[part]
        contents[split] = LabelledFiles(
            chosen["path"].tolist(),
            chosen["label"].tolist(),
            None if given.groups is None else chosen["group"].tolist(),
            None if given.votes is None else given.votes.loc[chosen.index],
        )
    name = readable(table_stem(table.attrs.get("path", "table")))
    dataset = given.describe(dataset_from_files(name, contents, None, on_error, short_side))
    return dataset if "path" in table.attrs else replace(dataset, frame=given.whole)


def _require_images(table: pd.DataFrame, place: str, *, drop: Sequence[str] = ()) -> str:
    images = image_column(table, drop=drop)
    if images is None:
        raise ValueError(f"{place}: expected a column of images (.png, .jpg, ...)")
    return images


def image_paths(table: pd.DataFrame) -> list[str]:
    """The path of the image that each row of a table names; empty where it names none."""
    return _paths(as_text(table[_require_images(table, table_place(table))]), table)


def _paths(written: pd.Series, table: pd.DataFrame) -> list[str]:
    """The paths, relative to the folder of the table's file or, without one, the current one."""
    base = os.path.dirname(table.attrs.get("path", ""))
    # The table may come from Windows.
    slash = written if os.sep == "\\" else written.str.replace("\\", "/", regex=False)
    return [os.path.normpath(os.path.join(base, name)) if name else "" for name in slash]


def _usable(rows: Any, place: str, on_error: OnError) -> pd.DataFrame:
    """The rows with a file, each path once in a split and with one label."""
    there = bool if on_error == "later" else os.path.isfile
    exists = np.array([there(path) for path in rows["path"]])
    labels = rows.groupby("path")["label"].transform("nunique")
    problems = {
        "without a file": pd.Series(~exists, rows.index),
        "with more than one label for a file": exists & (labels > 1),
    }
    for words, wrong in problems.items():
        if wrong.any():
            listed = few((rows["row"] + " (" + rows["written"] + ")")[wrong].tolist())
            share = f"{wrong.sum():,} of {count(len(rows), 'row')}"
            leave_out(f"{place}: {share} {words}: {listed}", on_error)
    wrong = np.logical_or.reduce([problem.to_numpy() for problem in problems.values()])
    rows = rows[~wrong]
    again = rows.duplicated(["path", "split"])
    if again.any():
        notice(f"{place}: {count(int(again.sum()), 'row')} left out, the same path and label again")
    return rows[~again]
