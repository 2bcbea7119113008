"""Datasets that the library `datasets` saved to disk, read without it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.arrow import import_arrow
from labelproof.data.classes import check_classes, order_classes
from labelproof.data.dataset import Dataset
from labelproof.data.encoded import Encoded, StoredImage
from labelproof.data.labelled_files import (
    LabelledFiles,
    OnError,
    check_on_error,
    dataset_from_files,
)
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.splits import split_name
from labelproof.data.unusable import UnusableSamplesError

__all__ = ["ArrowImages", "load_huggingface"]

_DICT, _STATE, _INFO = "dataset_dict.json", "state.json", "dataset_info.json"
_LABEL_COLUMNS = ("label", "labels", "target", "class")


def load_huggingface(
    path: str | os.PathLike[str],
    *,
    image: str | None = None,
    label: str | None = None,
    on_error: OnError = "raise",
    short_side: int | None = None,
    few_classes: bool = False,
) -> Dataset:
    """Read a Hugging Face dataset from the folder that `save_to_disk` wrote.

    The Arrow files are mapped into memory and images decoded when they are asked for. It needs
    pyarrow, but neither `datasets` nor the network.

    Args:
        path: The folder, with `dataset_dict.json` or `state.json` in it.
        image: The column of images; may be left out when there is only one.
        label: The column of labels; may be left out when only one holds classes.
        on_error: What becomes of images that cannot be read and of rows without a label:
            `"raise"` refuses the dataset, `"skip"` leaves them out with a warning.
        short_side: Resize to this shorter side while decoding.
        few_classes: Whether fewer than two classes will do, and as many as images: to measure on,
            and not to learn from.

    Returns:
        A dataset with the splits that were saved; a single one is there to train on. Its labels
        count as not clean.

    Raises:
        ImportError: pyarrow is not installed.
        ValueError: The folder was written by something else, or its columns are not images and
            labels.

    Warns:
        DataWarning: Rows were left out, or a split without any label.

    Example:
        >>> load_huggingface(getfixture("tmp_path"))
        Traceback (most recent call last):
            ...
        ValueError: ...: expected a dataset saved with save_to_disk, found neither
        dataset_dict.json nor state.json
    """
    check_on_error(on_error)
    root = Path(path)
    place = readable(str(root))
    saved = [_read_split(folder, split, place) for split, folder in _split_folders(root).items()]
    first = saved[0]
    image = _image_column(first.features, image, place)
    label = _label_column(first.features, label, place)
    for split in saved[1:]:
        for column in (image, label):
            if column not in split.features:
                raise ValueError(f"{place}: the split {split.name} has no column {column!r}")
    named = first.features[label].get("names")
    given = {split.name: _labels(split, label, named=bool(named)) for split in saved}
    names = tuple(named or order_classes(w for words in given.values() for w in words if w))
    keys = map(str, range(len(names))) if named else names
    index = {key: number for number, key in enumerate(keys)}
    splits: dict[str, LabelledFiles] = {}
    for split in saved:
        words = given[split.name]
        rows = [row for row, word in enumerate(words) if word]
        if _report_missing(f"{place}: {split.name}", len(words), len(words) - len(rows), on_error):
            continue
        _check_known(f"{place}: {split.name}", [words[row] for row in rows], index)
        images = ArrowImages(split.files, image, np.array(rows, np.int64), split.name)
        splits[split.name] = LabelledFiles(images, [index[words[row]] for row in rows])
    if "train" not in splits:
        raise ValueError(f"{place}: expected a split train with labels, got {few(list(given))}")
    if not few_classes:
        check_classes(place, names, num_images=None if named else len(splits["train"].labels))
    return dataset_from_files(
        readable(root.resolve().name), splits, names, on_error=on_error, short_side=short_side
    )


class ArrowImages:
    """The images of a column in Arrow files, which stay on disk until they are asked for.

    Objects of this class can be sent to other processes, which map the files anew.

    Args:
        files: The Arrow files, whose rows follow each other.
        column: The column of images.
        rows: Which rows, in which order.
        name: What to call the rows in messages.
    """

    def __init__(self, files: Sequence[str], column: str, rows: NDArray[np.int64], name: str):
        self.files = list(files)
        self.column = column
        self.rows = rows
        self.name = name
        self._images: Any = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int, /) -> Encoded:
        if self._images is None:
            self._images = _read_table(self.files)[self.column]
        row = int(self.rows[index])
        value = self._images[row].as_py()
        name = self.name_of(index)
        if isinstance(value, Mapping):
            if value.get("bytes") is None and value.get("path"):
                return os.path.join(os.path.dirname(self.files[0]), value["path"])
            value = value.get("bytes")
        return StoredImage(name, value or b"")

    def name_of(self, index: int) -> str:
        """What an image is called, without reading it."""
        return f"{self.name} row {int(self.rows[index])}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_images": None}


@dataclass(frozen=True)
class _SavedSplit:
    name: str
    files: list[str]
    features: Mapping[str, Mapping[str, Any]]


def _split_folders(root: Path) -> dict[str, Path]:
    place = readable(str(root))
    if (root / _DICT).is_file():
        names = _read_json(root / _DICT).get("splits")
        if not isinstance(names, list) or not names:
            raise ValueError(f"{place}: {_DICT} names no splits")
        folders = {
            split_name(str(name)) or str(name).casefold(): root / str(name) for name in names
        }
        # Training data come first, whatever the order they were saved in.
        return dict(sorted(folders.items(), key=lambda item: item[0] != "train"))
    if (root / _STATE).is_file():
        return {"train": root}
    if not root.is_dir():
        raise FileNotFoundError(f"path: expected a folder, got {place}: there is none")
    raise ValueError(
        f"{place}: expected a dataset saved with save_to_disk, found neither {_DICT} nor {_STATE}"
    )


def _read_split(folder: Path, name: str, place: str) -> _SavedSplit:
    state, info = _read_json(folder / _STATE), _read_json(folder / _INFO)
    if state.get("_indices_data_files"):
        raise ValueError(
            f"{place}: {name} was filtered or shuffled by an old version of datasets; load it, "
            "call flatten_indices() and save it again"
        )
    try:
        files = [str(folder / entry["filename"]) for entry in state["_data_files"]]
        features = dict(info["features"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{place}: {name} lacks {error} in {_STATE} or {_INFO}") from None
    return _SavedSplit(name, files, features)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{readable(str(path))}: not there; was the dataset saved whole?"
        ) from None
    except ValueError as error:
        raise ValueError(f"{readable(str(path))}: cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{readable(str(path))}: expected a JSON object")
    return content


def _read_table(files: Sequence[str]) -> Any:
    arrow = import_arrow("a Hugging Face dataset")
    ipc = import_arrow("a Hugging Face dataset", "pyarrow.ipc")
    tables = []
    for file in files:
        try:
            tables.append(ipc.open_stream(arrow.memory_map(file)).read_all())
        except FileNotFoundError:
            raise FileNotFoundError(f"{readable(file)}: not there; was it saved whole?") from None
        except (arrow.ArrowException, OSError) as error:
            raise ValueError(f"{readable(file)}: cannot be read as Arrow: {error}") from error
    return arrow.concat_tables(tables)


def _image_column(features: Mapping[str, Mapping[str, Any]], wanted: str | None, place: str) -> str:
    found = [name for name, kind in features.items() if kind.get("_type") == "Image"]
    return _choose("image", wanted, found, features, place)


def _label_column(features: Mapping[str, Mapping[str, Any]], wanted: str | None, place: str) -> str:
    found = [name for name, kind in features.items() if kind.get("_type") == "ClassLabel"]
    plain = [name for name in _LABEL_COLUMNS if features.get(name, {}).get("_type") == "Value"]
    return _choose("label", wanted, found or plain[:1], features, place)


def _choose(
    kind: str,
    wanted: str | None,
    found: Sequence[str],
    features: Mapping[str, Mapping[str, Any]],
    place: str,
) -> str:
    columns = ", ".join(f"{name} ({entry.get('_type')})" for name, entry in features.items())
    if wanted is not None and wanted not in features:
        raise ValueError(f"{kind}: expected one of the columns {columns}, got {wanted!r}")
    if wanted is None and len(found) != 1:
        number = f"{len(found)} columns" if found else "no column"
        raise ValueError(
            f"{place}: {number} could be the {kind}; name it with {kind}=, of {columns}"
        )
    return wanted or found[0]


def _labels(split: _SavedSplit, column: str, *, named: bool) -> list[str]:
    """Labels as text, empty where there is none."""
    values = _read_table(split.files)[column].to_pylist()
    return [
        # -1 is how an unknown class is written where classes are numbers.
        "" if value is None or (named and value == -1) else str(value).strip()
        for value in values
    ]


def _report_missing(place: str, rows: int, missing: int, on_error: OnError) -> bool:
    """Whether a split is left out because no row of it has a label."""
    if missing and missing == rows:
        notice(f"{place}: left out, none of its {count(rows, 'row')} has a label")
        return True
    if missing:
        message = f"{place}: {missing:,} of {count(rows, 'row')} without a label"
        if on_error == "raise":
            raise UnusableSamplesError(message, "leave them out with on_error='skip'")
        notice(f"{message}; left out")
    return False


def _check_known(place: str, words: Sequence[str], index: Mapping[str, int]) -> None:
    unknown = sorted({word for word in words if word not in index})
    if unknown:
        raise ValueError(f"{place}: expected labels from 0 to {len(index) - 1}, got {few(unknown)}")
