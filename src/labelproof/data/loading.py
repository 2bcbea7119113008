"""A dataset from its name or its path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.data.catalogue import BY_HAND, DATASETS, KnownDataset, known_dataset
from labelproof.data.dataset import Dataset, Split
from labelproof.data.digits import load_digits
from labelproof.data.labelled_files import OnError
from labelproof.data.layouts import Contents, Found, find_layout
from labelproof.data.notices import notice, readable
from labelproof.data.root import ROOT_VARIABLE, data_root
from labelproof.data.table_files import ENDINGS, TABLES, how_to_convert, table_kind
from labelproof.data.table_kind import COLUMNS, find_image_column
from labelproof.data.tables import read_table
from labelproof.data.unusable import UnusableSamplesError

__all__ = ["TABLES", "find_dataset", "how_to_get", "load_coarse_labels", "load_dataset"]

_ARRAYS = (".npz", ".npy")


@dataclass(frozen=True)
class _Choice:
    """What of a table is to be used, and whether few classes will do."""

    label: str | None
    drop: tuple[str, ...]
    features: bool
    few_classes: bool = False
    group: str | None = None

    def refuse(self, what: object) -> None:
        """Refuse a choice of columns where there are none to choose from."""
        if self.label is not None:
            raise ValueError(
                f"label: expected a table whose columns can be chosen from, got {what} (with the "
                f"label {self.label!r})"
            )
        if self.group is not None:
            raise ValueError(
                f"group: expected a table with a column {self.group!r}, got {what}; images in "
                "folders can be listed in a table, with their paths and labels"
            )
        if self.drop:
            raise ValueError(
                f"drop: expected a table of features, of which columns can be left out, got {what} "
                f"(without {self.drop[0]!r})"
            )


def load_dataset(
    name_or_path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    on_error: OnError = "raise",
    label: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    drop: str | Sequence[str] = (),
    group: str | None = None,
    features: bool = True,
    few_classes: bool = False,
) -> Dataset:
    """Read a dataset.

    A table lists images if it has a column called `path`, `file`, `image` or the like, and at
    least half of its first 200 cells end like images (`.png`, ...) or are files beside the table;
    whether the images are there does not matter. Nor can a table be anything else that has only
    such a column and labels. A column of another name makes it a list if half of its cells end
    like images and are there. Any other table holds the examples itself, and so does one whose
    column of images is dropped.

    Args:
        name_or_path: A name of the catalogue (`digits`, `mnist`, `fashion-mnist`, `cifar10`,
            `cifar100`, `webvision`), or the path of images sorted into folders, of a table or of
            arrays. A name comes first: write `./mnist` for a folder of that name.
        root: The folder of the datasets that have a name; else `LABELPROOF_DATA`, else the user's
            cache.
        on_error: What becomes of image files that cannot be read: `"raise"` refuses the dataset,
            `"skip"` leaves them out with a warning that names them. Likewise for the rows and cells
            of a table that cannot be used.
        label: The column of a table that holds the labels; without it, it is found.
        labels: A file of labels that stand in place of the data's own, such as a review's; see
            `labelproof.data.relabelling`.
        drop: Columns of a table of features that nothing is to be learned from. Without its column
            of images, a list of images is a table of features.
        group: The column of a table by which samples belong together, such as a patient or a video:
            those that have the same in it are never cut apart, neither for validation nor for an
            audit. Nothing is learned from it.
        features: Whether anything is to be learned from a table. Without them its rows have labels
            and places and nothing else, so that labels alone will do, or text, or the names of
            images that are not here.
        few_classes: Whether images of a single class will do, and of as many classes as there are
            images: to measure on, and not to learn from.

    Raises:
        ValueError: The name is unknown, the files are damaged, or a label was chosen where there
            are no columns to choose from.
        FileNotFoundError: There is no such dataset here; the message says how to get it.

    Example:
        >>> load_dataset("digits").image_shape
        (1, 8, 8)
    """
    for name, value in {"label": label, "group": group}.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name}: expected the name of a column, got {value!r}")
    dropped = (drop,) if isinstance(drop, str) else tuple(drop)
    choice = _Choice(label, dropped, features, few_classes, group)
    dataset = _load(name_or_path, root, on_error, choice)
    if labels is None:
        return dataset
    from labelproof.data.relabelling import relabel

    return relabel(dataset, name_or_path, labels, few_classes=few_classes)


def _load(
    name_or_path: str | os.PathLike[str],
    root: str | os.PathLike[str] | None,
    on_error: OnError,
    choice: _Choice,
) -> Dataset:
    name = name_or_path if isinstance(name_or_path, str) else ""
    if name.strip().lower() not in (*DATASETS, *BY_HAND):
        path = Path(name_or_path).expanduser()
        if path.exists():
            return _load_path(path, on_error, choice)
        if path.suffix or path.name != name:
            raise FileNotFoundError(f"{path}: there is no such file or folder")
    choice.refuse(name)
    if name.strip().lower() == "webvision":
        return _load_webvision(data_root(root) / "webvision", on_error)
    return _load_known(known_dataset(name), data_root(root))


def load_coarse_labels(
    *, root: str | os.PathLike[str] | None = None
) -> dict[str, NDArray[np.int64]]:
    """The 20 super-classes of CIFAR-100, for each split in the order of its images.

    Args:
        root: As for [`load_dataset`][labelproof.data.load_dataset].
    """
    dataset = known_dataset("cifar100")
    contents = _read(dataset, data_root(root))
    return {
        split: records.labels[:, 0].astype(np.int64) for split, records in contents.splits.items()
    }


def find_dataset(dataset: KnownDataset, root: Path) -> Found | None:
    """Where a known dataset is, or `None`; an incomplete one is an error that says what lacks."""
    try:
        return find_layout(dataset.layouts, root)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{dataset.name}: {error}; {how_to_get(dataset, root)}") from None


def how_to_get(dataset: KnownDataset, root: Path) -> str:
    """What to do for a dataset that is not there."""
    names = ", ".join(file.name for file in dataset.files)
    command = f"labelproof data download {dataset.name}"
    if root != data_root(None):
        command += f" --data-root {root}"
    return f"get it with '{command}', or place {names} in {root / dataset.name} yourself"


def _load_known(dataset: KnownDataset, root: Path) -> Dataset:
    if dataset.embedded:
        return load_digits()
    contents = _read(dataset, root)
    return Dataset(
        name=dataset.name,
        splits={
            # The last column is the fine label, where there are two.
            split: Split(records.images, records.labels[:, -1].astype(np.int64))
            for split, records in contents.splits.items()
        },
        class_names=contents.class_names or dataset.class_names,
        mean=dataset.mean,
        std=dataset.std,
    )


def _load_webvision(folder: Path, on_error: OnError) -> Dataset:
    from labelproof.data.webvision import load_webvision

    if not folder.is_dir():
        raise FileNotFoundError(f"webvision: not found in {folder.parent}; {BY_HAND['webvision']}")
    return load_webvision(folder, on_error=on_error)


def _read(dataset: KnownDataset, root: Path) -> Contents:
    found = find_dataset(dataset, root)
    if found is None:
        raise FileNotFoundError(
            f"{dataset.name}: not found in {root} (--data-root or {ROOT_VARIABLE} names another "
            f"folder); {how_to_get(dataset, root)}"
        )
    try:
        return found.read()
    except ValueError as error:
        raise ValueError(f"{error} (labelproof data download {dataset.name})") from error


def _load_table(path: Path, on_error: OnError, choice: _Choice) -> Dataset:
    from labelproof.data.manifest import load_manifest
    from labelproof.data.rows import rows_from_table

    table, label = read_table(path), choice.label
    images = find_image_column(
        table, path.parent, label=label, drop=choice.drop, group=choice.group
    )
    if images is None or not (choice.features or images.files):
        return rows_from_table(
            path,
            table,
            label=label,
            on_error=on_error,
            drop=choice.drop,
            group=choice.group,
            features=choice.features,
        )
    _Choice(None, choice.drop, choice.features).refuse(f"a list of images in {path}")
    if images.features and images.name.strip().casefold() not in COLUMNS["path"]:
        notice(
            f"{readable(str(path))}: the column {images.name!r} names images, which are learned "
            "from in place of the other columns; drop it to learn from those"
        )
    try:
        return load_manifest(
            path,
            on_error=on_error,
            few_classes=choice.few_classes,
            label=label,
            group=choice.group,
        )
    except ValueError as error:
        if images.files or not images.features:
            raise
        further = f"if the examples are the rows and not images, drop the column {images.name!r}"
        if isinstance(error, UnusableSamplesError):
            raise UnusableSamplesError(error.reason, f"{error.advice}; {further}") from None
        raise ValueError(f"{error}; {further}") from None


def _load_path(path: Path, on_error: OnError, choice: _Choice) -> Dataset:
    # Each reader brings what it needs, so only the one that is asked for is imported.
    if not path.is_dir() and not table_kind(path) and path.suffix.lower() not in _ARRAYS:
        expected = ", ".join((*ENDINGS, *_ARRAYS))
        raise ValueError(
            f"{path}: expected a folder or a file that ends in {expected}{how_to_convert(path)}"
        )
    if table_kind(path):
        return _load_table(path, on_error, choice)
    choice.refuse(path)
    if path.suffix.lower() in _ARRAYS:
        from labelproof.data.arrays import load_arrays

        return load_arrays(path, on_error=on_error, few_classes=choice.few_classes)
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        from labelproof.data.huggingface import load_huggingface

        return load_huggingface(path, on_error=on_error, few_classes=choice.few_classes)
    if (path / "info" / "train_filelist_google.txt").exists():
        from labelproof.data.webvision import load_webvision

        return load_webvision(path, on_error=on_error)
    from labelproof.data.folder import load_folder

    return load_folder(path, on_error=on_error, few_classes=choice.few_classes)
