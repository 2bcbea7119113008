"""Images or rows of numbers, and their labels, from NumPy files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset, Split, as_indices, order_classes, report_similar
from labelproof.data.images import OnError, channel_statistics
from labelproof.data.notices import few, readable
from labelproof.data.splits import SPLITS
from labelproof.data.table import as_text, dataset_from_rows
from labelproof.npz import read_npz
from labelproof.ranges import choose

IMAGES = ("x", "images", "data", "img", "imgs")
"""Names of arrays that hold images."""
FEATURES = ("embeddings", "features")
"""Names of arrays that hold rows of features; used only where there are no images."""
_LABELS = ("y", "labels", "label", "targets", "target")


def load_arrays(
    path: str | os.PathLike[str],
    *,
    on_error: OnError = "raise",
    like: tuple[Columns, Sequence[str]] | None = None,
) -> Dataset:
    """Read images or rows from `.npz`, or from `.npy` with the labels in a file beside it.

    An `.npz` holds `images` and `labels` (or `x` and `y`, `data` and `targets`, `embeddings` or
    `features` and `labels`), or those of each split: `x_train`, `y_train`, `x_test`, `y_test`, or
    `train_images`, `train_labels`, and so on, in any case. An array `class_names` names integer
    labels. Beside `photos.npy` the labels are `photos_labels.npy`.

    Images are `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)`, bytes, or numbers from 0 to 1.
    Rows `(N, F)` become a table with the features `x0`, `x1`, ...; NaN is a missing value. Labels
    are integers, text, or one-hot rows. Arrays of Python objects could run code and are refused.

    Args:
        path: The file.
        on_error: For infinite values in rows: `"raise"` raises and names the first few, `"skip"`
            treats them as missing, with a warning.
        like: Columns and class names learned elsewhere, to read further rows of the same kind; some
            of the classes may be missing here.

    Returns:
        A dataset in memory. Its labels count as not clean.

    >>> file = getfixture("tmp_path") / "shapes.npz"
    >>> pixels = np.linspace(0, 1, 6 * 8 * 8 * 3).reshape(6, 8, 8, 3)
    >>> np.savez(file, x_train=pixels, y_train=np.array(list("abbaab")))
    >>> dataset = load_arrays(file)
    >>> dataset.class_names, dataset.train.labels, dataset.image_shape
    (('a', 'b'), array([0, 1, 1, 0, 0, 1]), (3, 8, 8))
    """
    file, place = Path(path), readable(str(path))
    choose("on_error", on_error, get_args(OnError))
    arrays = read_arrays(file)
    if "" in arrays:
        beside = file.with_name(f"{file.stem}_labels.npy")
        arrays = {"images": arrays[""], "labels": read_arrays(beside)[""]}
    pairs = _find_splits(arrays, place)
    inputs = {split: arrays[pair[0]] for split, pair in pairs.items()}
    written = as_words(arrays["class_names"]) if "class_names" in arrays else None
    names, labels = class_indices(
        {split: arrays[pair[1]] for split, pair in pairs.items()}, written, place
    )
    report_similar(place, names)
    if like is not None or all(array.ndim == 2 for array in inputs.values()):
        tables = {split: array_table(array, place) for split, array in inputs.items()}
        # Keep all columns: whoever made the array chose them.
        columns = like[0] if like else Columns.learn(tables["train"], leave_out=False)
        contents = {}
        for split, table in tables.items():
            if table.shape[1] != len(columns.names):
                got = f"{table.shape[1]} in {split}"
                raise ValueError(
                    f"{place}: expected rows of {len(columns.names)} numbers, got {got}"
                )
            rows = columns.encode(table, place=place, on_error=on_error)
            contents[split] = Split(rows, labels[split])
        dataset = dataset_from_rows(readable(file.stem), contents, names, columns)
        return dataset if like is None else dataset.in_classes(like[1])
    splits = {
        split: Split(as_images(array, place=f"{place}: {pairs[split][0]}"), labels[split])
        for split, array in inputs.items()
    }
    mean, std = channel_statistics(splits["train"].array)
    return Dataset(readable(file.stem), splits, names, mean, std, clean=False)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` by their names in lower case, or that of an `.npy` as `""`."""
    return {key.lower(): array for key, array in read_npz(Path(path)).items()}


def array_table(rows: NDArray[Any], place: str) -> pd.DataFrame:
    """Rows of numbers as a table with the columns `x0`, `x1`, ..."""
    if rows.ndim != 2 or rows.dtype.kind not in "iufb" or not rows.size:
        raise ValueError(
            f"{place}: expected numbers of shape (N, F), got {rows.dtype} {rows.shape}"
        )
    return pd.DataFrame(rows, columns=[f"x{number}" for number in range(rows.shape[1])])


def as_words(array: NDArray[Any]) -> tuple[str, ...]:
    """The elements of an array as text."""
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "backslashreplace")
    return tuple(str(value).strip() for value in array.ravel().tolist())


def class_indices(
    given: Mapping[str, NDArray[Any]], names: Sequence[str] | None, place: str
) -> tuple[tuple[str, ...], dict[str, NDArray[np.int64]]]:
    """Class names and indices; without `names`, integers are class names, too."""
    columns = {split: admit_labels(array, f"{place}: labels") for split, array in given.items()}
    if names is not None and all(column.dtype.kind == "i" for column in columns.values()):
        different = np.unique(np.concatenate(list(columns.values())))
        if unnamed := [f"{label}" for label in different if not 0 <= label < len(names)]:
            raise ValueError(f"{place}: expected a class name for each label, got {few(unnamed)}")
        return tuple(names), columns
    words = {split: as_words(column) for split, column in columns.items()}
    ordered = order_classes(word for split in words.values() for word in split)
    return ordered, {split: as_indices(values, ordered) for split, values in words.items()}


def admit_labels(labels: ArrayLike, place: str = "labels") -> NDArray[Any]:
    """Class indices as int64, also of one-hot rows, or class names as text; none may be missing.

    >>> admit_labels([[0, 1], [1, 0]]), admit_labels(["cat ", "dog"])
    (array([1, 0]), array(['cat', 'dog'], dtype='<U3'))
    """
    expected = f"{place}: expected one class index or name per sample, got"
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    one_hot = array.ndim == 2 and array.dtype.kind in "iufb" and np.isin(array, (0, 1)).all()
    if one_hot and (array.sum(axis=1) == 1).all():
        array = array.argmax(axis=1)
    if array.ndim == 1 and array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iufbUSO":
        raise ValueError(f"{expected} {array.dtype} of shape {array.shape}")
    column = pd.Series(as_words(array) if array.dtype.kind in "US" else array).infer_objects()
    numbers = column.dtype.kind in "iufb"
    column = column.astype(float) if numbers else as_text(column)
    wrong = column.isna() | (column == "")
    if numbers:  # above 2**53, floats skip whole numbers
        wrong |= (column % 1 != 0) | (column.abs() > 2**53)
    if wrong.any():
        first = int(wrong.to_numpy().argmax())
        raise ValueError(f"{expected} {column.tolist()[first]!r} for sample {first}")
    return column.to_numpy(dtype=np.int64 if numbers else str)


def refuse_other_index(table: Any, labels: Any, what: str, called: str = "labels") -> None:
    """Refuse pandas labels in another order than the DataFrame that they are given with."""
    source = labels.frame if isinstance(labels, Dataset) else labels
    if not isinstance(table, pd.DataFrame) or not isinstance(source, pd.DataFrame | pd.Series):
        return
    other = not table.index.equals(source.index)
    if other and source is not labels:  # a dataset's rows may be left out, and matched by names
        other = len(table) == len(source) and bool(table.index.isin(source.index).all())
    if other:
        raise ValueError(
            f"{called}: expected the index of {what}, got another; align them with "
            f"{called}.loc[{what}.index], or give {called}.to_numpy() if in the same order"
        )


def _find_splits(arrays: Mapping[str, NDArray[Any]], place: str) -> dict[str, tuple[str, str]]:
    """The names of the two arrays of each split; without a split in the names, of `train`."""

    def named(kinds: Sequence[str], words: Sequence[str]) -> list[str]:
        kind, word = "|".join(kinds), "|".join(words)
        spelled = f"({kind})_({word})|({word})_({kind})" if words else kind
        return [name for name in arrays if re.fullmatch(spelled, name)]

    pairs: dict[str, tuple[str, str]] = {}
    for split, words in {**SPLITS, "": ()}.items():
        if not split and pairs:
            break
        images, labels = named(IMAGES, words) or named(FEATURES, words), named(_LABELS, words)
        if len(images) != len(labels) or len(images) > 1:
            names = " and ".join([*images, *labels])
            raise ValueError(f"{place}: expected an array of images and one of labels, got {names}")
        if images:
            pairs[split or "train"] = (images[0], labels[0])
    if "train" not in pairs:
        shapes = few([f"{name} {array.shape}" for name, array in arrays.items()], shown=8)
        expected = "images and labels, or x_train, y_train, x_test and y_test"
        raise ValueError(f"{place}: expected arrays {expected}, found {shapes or 'nothing'}")
    return pairs


def as_images(
    images: NDArray[Any],
    shape: tuple[int, int, int] | None = None,
    *,
    place: str = "X",
    channels: Sequence[int] = (1, 3),
) -> NDArray[np.uint8]:
    """Images `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)` as bytes `(N, C, H, W)`.

    Args:
        images: Bytes, whole numbers up to 255, or numbers from 0 to 1.
        shape: `(C, H, W)`, if known; it decides which axis has the channels.
        place: The name of the images in errors.
        channels: Possible numbers of channels, if `shape` is not known.

    Raises:
        ValueError: The shape is ambiguous, or the values are not pixels.

    >>> as_images(np.ones((2, 8, 6, 3))).shape
    (2, 3, 8, 6)
    """
    first = images.ndim == 4 and images.shape[1] in channels
    last = images.ndim == 4 and images.shape[3] in channels
    if shape is not None and shape in (images.shape[1:], (images.shape[-1], *images.shape[1:-1])):
        first = images.shape[1:] == shape
        last = not first
    if images.ndim != 3 and first == last:
        raise ValueError(
            f"{place}: expected (N, H, W), (N, H, W, C) or (N, C, H, W) with "
            f"{' or '.join(map(str, channels))} channels on one of these axes alone, got "
            f"{images.shape}; a single image is given as array[None]"
        )
    pixels = (
        images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2) if last else images
    )
    kind = pixels.dtype.kind
    if kind not in "uifb" or not pixels.size:
        raise ValueError(f"{place}: expected images of numbers, got {pixels.dtype} {pixels.shape}")
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels)
    low, high = float(pixels.min()), float(pixels.max())
    if not (low >= 0 and high <= (1 if kind in "fb" else 255)):  # NaN is refused too
        raise ValueError(
            f"{place}: expected images of bytes, or of numbers from 0 to 1, got numbers from "
            f"{low:g} to {high:g}; scale all images to 0..1 by one range, or give measurements as "
            "rows (N, F)"
        )
    # Image by image: a float64 copy of everything would need eight times the memory.
    converted = np.empty(pixels.shape, np.uint8)
    for index, image in enumerate(pixels):
        converted[index] = np.rint(image.astype(np.float64) * (255.0 if kind in "fb" else 1.0))
    return converted
