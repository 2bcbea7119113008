"""Load a dataset by its name, from a path, from a DataFrame or from arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from labelproof.data.arrays import (
    array_table,
    as_images,
    class_indices,
    load_arrays,
    refuse_other_index,
)
from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset, Split, are_text
from labelproof.data.huggingface import load_huggingface
from labelproof.data.image_folder import load_folder
from labelproof.data.image_table import image_column, load_image_table
from labelproof.data.images import OnError, channel_statistics
from labelproof.data.labels_file import relabel
from labelproof.data.published import is_known, load_published, load_webvision
from labelproof.data.table import (
    BESIDE_ROWS,
    DROPPED,
    ENDINGS,
    TableSource,
    column_name,
    is_table,
    load_table,
    read_table,
)

ARRAYS = (".npz", ".npy")
"""Extensions of array files."""

Like: TypeAlias = tuple[Columns, Sequence[str]]
"""Columns and class names learned elsewhere."""

LabelledData: TypeAlias = TableSource | tuple[Any, Any] | Dataset
"""A path or a dataset's name, a DataFrame with a label column, `(X, y)`, or a dataset."""


def load_dataset(
    data: LabelledData,
    *,
    root: str | os.PathLike[str] | None = None,
    on_error: OnError = "raise",
    label: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    annotators: Sequence[str] = (),
    drop: str | Sequence[str] = (),
    group: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    features: bool = True,
    like: Like | None = None,
) -> Dataset:
    """Read a dataset.

    A table lists images if the cells of a column mostly end like image files (`.png`, `.jpg`, ...);
    any other table holds the examples itself, and so does one whose column of images is dropped.

    Args:
        data: A name (`digits`, `mnist`, `fashion-mnist`, `cifar10`, `cifar100`, `webvision`), the
            path of images sorted into folders, of a table or of arrays, a DataFrame, rows or images
            and their labels `(X, y)`, or a dataset. A name comes first: write `./mnist` for a
            folder of that name.
        root: The folder of the named datasets; else `LABELPROOF_DATA`, else the user's cache.
        on_error: For unreadable images, and unusable rows and cells of a table: `"raise"` raises,
            `"skip"` leaves them out with a warning that names them.
        label: The label column of a table; without it, the one called `label`, `class`, `target`,
            `category`, `y`, `outcome` or `species`.
        labels: A file of labels that replace the data's own, such as a review's; see
            `labelproof.data.labels_file`.
        annotators: Columns of a table, each with the labels of one annotator, some of them empty.
            Without `label`, the label of a sample is the class that these make most probable.
        drop: Columns of a table that are not features.
        group: The group column of a table, such as a patient or a video: samples of one group are
            never split apart. It is not a feature.
        decimal: The decimal point of numbers in a table's text.
        thousands: The separator of thousands in a table's text.
        features: Whether to read a table's features; if not, rows have only labels and names.
        like: Columns and class names learned elsewhere, to read further rows of the same kind; some
            of the classes may be missing here.

    >>> load_dataset("digits").image_shape
    (1, 8, 8)
    >>> load_dataset((np.arange(12.0).reshape(6, 2), list("aabbab")))
    Dataset('table', train: 6 rows of 2 features, 2 classes: a, b)
    """
    given = {**locals(), "data_root": root}
    return Reading.of(given).load(data, on_error=on_error, features=features, like=like)


@dataclass(frozen=True)
class Reading:
    """The options of `load_dataset` that runs and audits store, to read the same data again.

    >>> reading = Reading(label="churned", drop=("comment", "id"))
    >>> reading.flags()
    ['--label', 'churned', '--drop', 'comment', '--drop', 'id']
    >>> Reading.of(reading.as_values()) == reading
    True
    """

    label: str | None = None
    labels: str | os.PathLike[str] | None = None
    drop: tuple[str, ...] = ()
    group: str | None = None
    decimal: str = "."
    thousands: str | None = None
    data_root: str | os.PathLike[str] | None = None
    annotators: tuple[str, ...] = ()

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Reading:
        """The options among named values, such as `as_values` and `options` return."""
        fields = cls.__dataclass_fields__
        given = {name: kept[name] for name in fields if kept.get(name) is not None}
        if not isinstance(labels := given.get("labels", ""), str | os.PathLike):
            got = f"{type(labels).__name__}; {BESIDE_ROWS}"
            raise TypeError(f"labels: expected the path of a file, got {got}")
        for name in {"label", "group"} & given.keys():
            given[name] = column_name(name, given[name])
        for name in {"drop", "annotators"} & given.keys():
            names = (given[name],) if isinstance(given[name], str) else given[name]
            given[name] = tuple(map(str, names))
        return cls(**given)

    def load(
        self,
        data: LabelledData,
        *,
        on_error: OnError = "raise",
        features: bool = True,
        like: Like | None = None,
    ) -> Dataset:
        """Read data with these options; see `load_dataset`."""
        dataset = _load(data, self, on_error, features, like)
        place = data if isinstance(data, str | os.PathLike) else "table"
        return dataset if self.labels is None else relabel(dataset, place, self.labels)

    def found_in(self, dataset: Dataset) -> Reading:
        """The same options with the columns found in the data."""
        left_out = () if dataset.columns is None else dataset.columns.left_out
        dropped = tuple(name for name, reason in left_out if reason == DROPPED)
        return replace(self, label=dataset.label, drop=dropped, group=dataset.group)

    def as_values(self) -> dict[str, Any]:
        """Plain values for a run: paths as they were given."""
        values = vars(self) | {"drop": list(self.drop), "annotators": list(self.annotators)}
        values["labels"] = self.labels and os.fspath(self.labels)
        values["decimal"] = None if self.decimal == "." else self.decimal
        unused = {"data_root"} if self.annotators else {"data_root", "annotators"}
        return {name: value for name, value in values.items() if name not in unused}

    def options(self) -> dict[str, Any]:
        """Plain values for an audit, whose review may start anywhere: absolute paths."""
        chosen = {name: value for name, value in self.as_values().items() if value}
        paths = {"labels": self.labels, "data_root": self.data_root}
        absolute = {name: path and os.path.abspath(path) for name, path in paths.items()}
        return {"label": self.label} | chosen | absolute

    def flags(self) -> list[str]:
        """The flags with which another command reads the same data."""
        return [word for name, value in self._given() for word in (f"--{name}", value)]

    def refuse_columns(self, what: object) -> None:
        """Refuse column names for data that is not a table."""
        for name, value in self._given():
            if name in ("label", "group", "drop", "annotators"):
                raise ValueError(f"{name}: expected a table with a column {value!r}, got {what}")

    def _given(self) -> Iterator[tuple[str, str]]:
        """The name and the value of each option that is set, column by column."""
        for name, value in {**self.as_values(), "data-root": self.data_root}.items():
            for each in value if isinstance(value, list) else [value]:
                if each:
                    yield name, str(each)


def _load(
    source: LabelledData, reading: Reading, on_error: OnError, features: bool, like: Like | None
) -> Dataset:
    if isinstance(source, Dataset):
        reading.refuse_columns("a dataset")
        return source
    if isinstance(source, tuple):
        return _load_pair(source, reading, on_error, features, like)
    if not isinstance(source, str | os.PathLike):
        return _load_table(source, reading, on_error, features, like)
    name, path = source if isinstance(source, str) else "", Path(source).expanduser()
    known = is_known(name)
    if not known and path.is_file() and is_table(path):
        return _load_table(path, reading, on_error, features, like)
    if known or path.exists():
        reading.refuse_columns(source)
    if known or not (path.exists() or path.suffix or path.name != name):
        return load_published(name, reading.data_root, on_error=on_error)
    if (path / "info" / "train_filelist_google.txt").exists():
        return load_webvision(path, on_error=on_error)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    if path.suffix.lower() in ARRAYS:
        return load_arrays(path, on_error=on_error, like=like)
    if not path.is_dir():
        expected = ", ".join((*ENDINGS, *ARRAYS))
        raise ValueError(f"{path}: expected a folder or a file that ends in {expected}")
    saved = (path / "dataset_dict.json").exists() or (path / "state.json").exists()
    load = load_huggingface if saved else load_folder
    return load(path, on_error=on_error)


def _load_pair(
    source: tuple[Any, Any], reading: Reading, on_error: OnError, features: bool, like: Like | None
) -> Dataset:
    inputs, labels = source[0], np.asarray(source[1])
    if like is None and np.ndim(inputs) > 2:
        reading.refuse_columns("arrays of images")
        images = as_images(np.asarray(inputs), place="X")
        names, numbers = class_indices({"train": labels}, None, "y")
        split, (mean, std) = Split(images, numbers["train"]), channel_statistics(images)
        return Dataset(
            "arrays", {"train": split}, names, mean, std, clean=False, text_labels=are_text(labels)
        )
    table = inputs if isinstance(inputs, pd.DataFrame) else array_table(np.asarray(inputs), "X")
    if labels.ndim != 1 or len(labels) != len(table):
        raise ValueError(f"y: expected a label for each of {len(table):,} rows, got {labels.shape}")
    refuse_other_index(inputs, source[1], "X", "y")
    column = "label"
    while column in table.columns:
        column = f"_{column}"
    table, reading = table.assign(**{column: labels}), replace(reading, label=column)
    return _load_table(table, reading, on_error, features, like)


def _load_table(
    source: TableSource, reading: Reading, on_error: OnError, features: bool, like: Like | None
) -> Dataset:
    if like is not None:
        return load_table(source, label=reading.label, on_error=on_error, like=like)
    columns = (reading.label, reading.group, *reading.annotators)
    named = [name for name in columns if name is not None]
    numbers: Any = {"decimal": reading.decimal, "thousands": reading.thousands}
    table = read_table(source, text=named, on_error=on_error, **numbers)
    options: Any = {"on_error": on_error, "label": reading.label, "group": reading.group}
    options["annotators"] = reading.annotators
    dropped = {name.strip().casefold() for name in reading.drop}
    kept = table.drop(columns=[name for name in table.columns if name.casefold() in dropped])
    shown = features or "path" in table.attrs
    if shown and image_column(kept, drop=named) is not None:
        return load_image_table(kept, **options)
    return load_table(table, drop=reading.drop, features=features, **numbers, **options)
