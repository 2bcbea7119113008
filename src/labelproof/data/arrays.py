"""Images or rows of numbers, and their labels, as NumPy arrays in files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labelproof.data.array_files import DAMAGED, why_unreadable
from labelproof.data.array_labels import as_words, class_indices
from labelproof.data.classes import check_classes
from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset, Split
from labelproof.data.examination import channel_statistics
from labelproof.data.known_classes import in_classes
from labelproof.data.labelled_files import OnError, check_on_error
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.row_arrays import encode_arrays
from labelproof.data.row_labels import check_labels
from labelproof.data.rows import dataset_from_rows
from labelproof.data.splits import SPLITS

__all__ = ["FEATURES", "Layout", "load_arrays"]

Layout: TypeAlias = Literal["NCHW", "NHWC"]
"""The order of the axes: images, channels, height, width."""

_IMAGES = ("x", "images", "data", "img", "imgs")
FEATURES = ("embeddings", "features")
"""What rows are called; looked for where there are no images, which may have them beside."""
_LABELS = ("y", "labels", "label", "targets", "target")
# What damage to an archive, its compression or an array's header can raise.
_CLASS_NAMES = ("class_names", "classes", "names")


def load_arrays(
    path: str | os.PathLike[str],
    *,
    layout: Layout | None = None,
    on_error: OnError = "raise",
    few_classes: bool = False,
    like: tuple[Columns, Sequence[str]] | None = None,
) -> Dataset:
    """Read images or rows from `.npz`, or from `.npy` with the labels in a file beside it.

    An `.npz` holds `images` and `labels` (or `x` and `y`, `data` and `targets`, `embeddings` or
    `features` and `labels`), or those of each split: `x_train`, `y_train`, `x_test`, `y_test`, or
    `train_images`, `train_labels`, and so on.
    Upper and lower case are the same. An array `class_names` names what integer labels count.
    Beside `photos.npy` the labels are `photos_labels.npy`; beside `images.npy`, `labels.npy` too.

    Images are `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)`, of bytes or of numbers from 0 to 1.
    Numbers of any other range are scaled, with a warning that says how; but three axes with
    negative numbers are refused, which may as well be sequences of embeddings. Grey images of such
    numbers are given with their channel, `(N, 1, H, W)`. Rows `(N, F)` of numbers are taken as they
    are, and become a table whose features are called `x0`, `x1`, ...; NaN is a missing value,
    filled with the median of the training rows. Labels are integers, text, or one-hot rows. Nothing
    in a file is ever run: arrays of Python objects are refused.

    Args:
        path: The file.
        layout: The order of the axes, where the shape leaves it open.
        on_error: What becomes of infinite values in rows: `"raise"` refuses the file and names the
            first few, `"skip"` takes them for missing, with a warning.
        few_classes: Whether fewer than two classes will do, and as many as images: to measure on,
            and not to learn from.
        like: Columns and class names that were learned elsewhere, to read further rows of the same
            kind by; some of the classes may be missing here.

    Returns:
        A dataset in memory. Its labels count as not clean.

    Raises:
        ValueError: The file cannot be read, lacks an array, or holds what cannot be images or rows
            and their labels.

    Warns:
        DataWarning: The images were scaled, or infinite values were taken for missing.

    Example:
        >>> file = getfixture("tmp_path") / "shapes.npz"
        >>> pixels = np.linspace(0, 1, 6 * 8 * 8 * 3).reshape(6, 8, 8, 3)
        >>> np.savez(file, x_train=pixels, y_train=np.array(list("abbaab")))
        >>> dataset = load_arrays(file)
        >>> dataset.class_names, dataset.train.labels, dataset.image_shape
        (('a', 'b'), array([0, 1, 1, 0, 0, 1]), (3, 8, 8))
    """
    file = Path(path)
    place = readable(str(file))
    if layout not in (None, "NCHW", "NHWC"):
        raise ValueError(f"layout: expected 'NCHW' or 'NHWC', got {layout!r}")
    check_on_error(on_error)
    arrays = _read(file, place)
    pairs = _find_splits(arrays, place)
    given = {split: arrays[pair[0]] for split, pair in pairs.items()}
    what = "row" if given["train"].ndim == 2 else "image"
    written = _class_names(arrays)
    names, labels = class_indices(
        {split: arrays[pair[1]] for split, pair in pairs.items()}, written, place, what
    )
    for split, (key, label_key) in pairs.items():
        if len(given[split]) != len(labels[split]):
            raise ValueError(
                f"{place}: expected a label for each of {count(len(given[split]), what)} in "
                f"{key!r}, got {len(labels[split]):,} in {label_key!r}"
            )
    num_labelled = None if names == written else len(given["train"])
    if like is not None:
        for array in given.values():
            if array.ndim != 2:
                raise ValueError(
                    f"{place}: expected rows of numbers, (N, F), as those learned from, got "
                    f"{array.shape}"
                )
    if all(array.ndim == 2 for array in given.values()):
        columns, rows = encode_arrays(
            given,
            place,
            on_error="skip" if on_error == "later" else on_error,
            like=None if like is None else like[0],
        )
        if like is not None:
            contents = {split: Split(rows[split], labels[split]) for split in pairs}
            dataset = dataset_from_rows(readable(file.stem), contents, names, columns)
            return in_classes(dataset, like[1])
        if num_labelled is None and not few_classes:
            check_classes(place, names, num_images=None)
        elif not few_classes:
            words = [names[label] for label in labels["train"]]
            check_labels(words, names, pairs["train"][1], place, chosen=True)
        contents = {split: Split(rows[split], labels[split]) for split in pairs}
        return dataset_from_rows(readable(file.stem), contents, names, columns)
    images = _bytes(given, place)
    splits = {
        split: Split(_channels_first(images[split], layout, f"{place}: {key}"), labels[split])
        for split, (key, _) in pairs.items()
    }
    if not few_classes:
        check_classes(place, names, num_images=num_labelled)
    mean, std = channel_statistics(splits["train"].array)
    return Dataset(readable(file.stem), splits, names, mean, std, clean=False)


def _read(path: Path, place: str) -> dict[str, NDArray[Any]]:
    if path.suffix.lower() not in (".npy", ".npz"):
        raise ValueError(f"path: expected a file that ends in .npz or .npy, got {place}")
    if path.suffix.lower() == ".npz":
        return _load(path, place)
    beside = _labels_beside(path)
    return {"images": _load(path, place)[""], "labels": _load(beside, readable(str(beside)))[""]}


def _labels_beside(path: Path) -> Path:
    stem = path.stem
    names = [f"{stem}_labels.npy"]
    if stem.lower().endswith("images"):
        names.append(f"{stem[: -len('images')]}labels.npy")
    for name in names:
        if (path.parent / name).is_file():
            return path.parent / name
    raise FileNotFoundError(
        f"path: expected the labels of {readable(str(path))} beside it, in {' or '.join(names)}"
    )


def _load(path: Path, place: str) -> dict[str, NDArray[Any]]:
    try:
        # A pickle in the file could run code.
        with path.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"": loaded}
            members = {key.lower(): loaded[key] for key in loaded.files}
    except FileNotFoundError:
        raise FileNotFoundError(f"path: expected a file, got {place}: there is none") from None
    except MemoryError as error:
        raise ValueError(f"{place}: does not fit into memory: {error}") from None
    except DAMAGED as error:
        advice = "save plain arrays: images of one size, labels as integers or text"
        reason = why_unreadable(error, advice=advice)
        raise ValueError(f"{place}: cannot be read as NumPy arrays: {reason}") from error
    return {key: array for key, array in members.items() if isinstance(array, np.ndarray)}


def _find_splits(arrays: Mapping[str, NDArray[Any]], place: str) -> dict[str, tuple[str, str]]:
    """For each split the keys of its images and labels."""
    pairs: dict[str, tuple[str, str]] = {}
    inputs = _input_words(arrays)
    for split, words in SPLITS.items():
        images = _one(arrays, [form for word in words for form in _forms(inputs, word)], place)
        labels = _one(arrays, [form for word in words for form in _forms(_LABELS, word)], place)
        if images and labels:
            pairs[split] = (images, labels)
        elif images or labels:
            missing = "labels" if images else "images"
            raise ValueError(f"{place}: expected {missing} for {images or labels!r}, found none")
    if pairs and "train" not in pairs:
        raise ValueError(f"{place}: expected training images, found {_found(arrays)}")
    if not pairs:
        images, labels = _one(arrays, inputs, place), _one(arrays, _LABELS, place)
        if not images or not labels:
            raise ValueError(
                f"{place}: expected arrays images and labels (or x and y, embeddings and labels, "
                f"or x_train, y_train, x_test, y_test), found {_found(arrays)}"
            )
        pairs["train"] = (images, labels)
    return pairs


def _input_words(arrays: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """What the arrays that are learned from are called in this file."""
    parts = [word for words in SPLITS.values() for word in words]
    forms = {*_IMAGES, *(form for part in parts for form in _forms(_IMAGES, part))}
    return _IMAGES if forms & arrays.keys() else FEATURES


def _forms(words: tuple[str, ...], split: str) -> list[str]:
    return [form for word in words for form in (f"{word}_{split}", f"{split}_{word}")]


def _one(arrays: Mapping[str, Any], names: Any, place: str) -> str | None:
    found = [name for name in names if name in arrays]
    if len(found) > 1:
        raise ValueError(f"{place}: {' and '.join(found)} could both be meant; keep one of them")
    return found[0] if found else None


def _found(arrays: Mapping[str, NDArray[Any]]) -> str:
    shapes = [f"{name} {array.shape}" for name, array in arrays.items()]
    return few(shapes, shown=8) or "nothing"


def _class_names(arrays: Mapping[str, NDArray[Any]]) -> tuple[str, ...] | None:
    for key in _CLASS_NAMES:
        if key in arrays and arrays[key].ndim == 1:
            return tuple(as_words(arrays[key]))
    return None


def _bytes(given: Mapping[str, NDArray[Any]], place: str) -> dict[str, NDArray[np.uint8]]:
    """Pixels as bytes, every split by the same rule."""
    for array in given.values():
        if array.dtype.kind not in "uifb" or not array.size:
            raise ValueError(
                f"{place}: expected images of numbers, got {array.dtype} {array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            bad = int((~np.isfinite(array)).sum())
            raise ValueError(f"{place}: {count(bad, 'pixel')} NaN or infinite")
    low = min(float(array.min()) for array in given.values())
    high = max(float(array.max()) for array in given.values())
    if low < 0 and any(array.ndim == 3 for array in given.values()):
        # Embeddings of the parts of a text or a sound look like this too, and would be trained on
        # as if neighbours in them were neighbours in a picture.
        raise ValueError(
            f"{place}: expected images of bytes or of numbers from 0 to 1, got numbers from "
            f"{low:g} to {high:g} of shape {given['train'].shape}, which would be taken for grey "
            "images; give rows as (N, F), for instance the mean over the second axis, and grey "
            "images of such numbers as (N, 1, H, W)"
        )
    fractions = any(array.dtype.kind == "f" for array in given.values())
    booleans = all(array.dtype.kind == "b" for array in given.values())
    start, width = low, (high - low) or 1.0
    if booleans or (fractions and low >= 0 and high <= 1):
        start, width = 0.0, 1.0
    elif low >= 0 and high <= 255:
        if all(array.dtype == np.uint8 for array in given.values()):
            return {split: array.astype(np.uint8, copy=False) for split, array in given.items()}
        start, width = 0.0, 255.0
        if fractions:
            notice(f"{place}: pixels from {low:g} to {high:g} taken for 0 to 255 and rounded")
    else:
        notice(
            f"{place}: pixels from {low:g} to {high:g} scaled to 0 to 255; expected bytes, or "
            "numbers from 0 to 1"
        )
    return {split: _scaled(array, start, width) for split, array in given.items()}


def _scaled(array: NDArray[Any], start: float, width: float) -> NDArray[np.uint8]:
    pixels = np.empty(array.shape, np.uint8)
    # Image by image: a float64 copy of everything would need eight times the memory.
    for index, image in enumerate(array):
        pixels[index] = np.rint((image.astype(np.float64) - start) * (255 / width))
    return pixels


def _channels_first(
    images: NDArray[np.uint8], layout: Layout | None, place: str
) -> NDArray[np.uint8]:
    if images.ndim == 3:
        return images[:, np.newaxis]
    if images.ndim != 4:
        flat = "; either all splits are rows or none" if images.ndim == 2 else ""
        raise ValueError(
            f"{place}: expected (N, H, W), (N, H, W, C) or (N, C, H, W), got {images.shape}{flat}"
        )
    first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
    if layout is None and first == last:
        found = "both axes" if first else "neither axis"
        raise ValueError(
            f"{place}: expected 1 or 3 channels second or last, got {images.shape}, where {found} "
            "could be; say layout='NCHW' or layout='NHWC'"
        )
    channels_last = layout == "NHWC" or (layout is None and last)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)) if channels_last else images
