"""What a run predicts for images or rows, as a table."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from labelproof.data.arrays import FEATURES, array_table, as_images, read_arrays
from labelproof.data.dataset import Dataset
from labelproof.data.image_folder import report_other_files
from labelproof.data.image_table import listed_images
from labelproof.data.images import (
    SUFFIXES,
    Mode,
    OnError,
    UnreadableImageError,
    decode_image,
    examine_images,
)
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.table import as_text, find_column, is_table, read_table, row_names
from labelproof.training.evaluation import CHUNK
from labelproof.training.trained_network import TrainedNetwork

NewData: TypeAlias = str | os.PathLike[str] | pd.DataFrame | NDArray[Any] | Dataset
"""Samples to predict: a path, a DataFrame, an array or a dataset."""

_OWN = ("path", "row", "label", "probability")


def predict_paths(
    run: TrainedNetwork,
    paths: Sequence[Path],
    *,
    identify: str | None = None,
    on_error: OnError = "raise",
    on_unreadable: Callable[[str], None] = notice,
) -> Iterator[pd.DataFrame]:
    """Predictions for files, some rows at a time.

    All tables are read, and all images found, before this returns.
    """
    if identify is not None and identify.strip().casefold() in _OWN:
        raise ValueError(
            f"--id: expected a column that is called otherwise than those of predictions "
            f"({', '.join(_OWN)}), got {identify.strip()!r}; rename it in the table"
        )
    if run.tabular:
        # All files are read before the first answer, so that nothing is said about half of them.
        read = [_read_rows(run, path, identify, on_error) for path in paths]
        return (_as_frame(run, places, run.probabilities(rows)) for rows, places in read)
    channels, height, width = run.description.input_shape
    pictures = find_pictures(paths, (channels, height, width), identify=identify)
    places = ["path"]
    places += ["index"] * any(path.suffix.lower() in ARRAYS for path in paths)
    places += ["row"] * any(is_table(path) for path in paths)
    names = {"name": identify.strip()} if identify is not None else {}
    return _predict_pictures(
        run, pictures, {place: place for place in places} | names, on_unreadable
    )


def predict_data(
    run: TrainedNetwork, data: NewData, *, on_error: OnError = "raise"
) -> pd.DataFrame:
    """Predictions for samples of any kind, as `Run.predict` gives them."""
    if isinstance(data, str | os.PathLike):
        path = Path(data).expanduser()
        table = pd.concat(list(predict_paths(run, [path], on_error=on_error)), ignore_index=True)
        if "row" in table:
            return table.drop(columns="path").set_index("row")
        if "index" in table:
            return table.drop(columns="path").astype({"index": int}).set_index("index")
        return table.set_index("path")
    if isinstance(data, Dataset):
        split = data.splits.get("test", data.train)
        probabilities = run.probabilities(split.images)
        places = None if split.places is None else list(split.places)
        return _as_frame(run, {}, probabilities, index=places)
    if run.tabular:
        frame = array_table(data, "data") if isinstance(data, np.ndarray) else data
        table = read_table(frame, on_error=on_error)
        rows = run.columns.encode(table, place="data", on_error=on_error)
        return _as_frame(run, {}, run.probabilities(rows), index=table.index)
    if not isinstance(data, np.ndarray):
        raise TypeError(
            f"data: expected a path, an array or a dataset of images, as {run.folder} was trained "
            f"on, got {type(data).__name__}"
        )
    channels, height, width = run.description.input_shape
    pictures = from_array(data, (channels, height, width))
    frames = list(_predict_pictures(run, pictures, {}, notice))
    return pd.concat(frames, ignore_index=True) if frames else _as_frame(run, {}, None)


def _predict_pictures(
    run: TrainedNetwork,
    pictures: Iterable[Picture],
    places: Mapping[str, str],
    on_unreadable: Callable[[str], None],
) -> Iterator[pd.DataFrame]:
    """Predictions, with attributes of the pictures in columns of some names."""
    waiting = iter(pictures)
    while some := list(itertools.islice(waiting, CHUNK)):
        fitted = []
        for picture in some:
            if isinstance(picture.pixels, np.ndarray):
                fitted.append((picture, run.fit_image(picture.pixels)))
            else:
                on_unreadable(str(picture.pixels))
        columns = {
            name: [getattr(picture, attribute) for picture, _ in fitted]
            for attribute, name in places.items()
        }
        found = run.fitted_probabilities(np.stack([each for _, each in fitted])) if fitted else None
        yield _as_frame(run, columns, found)


def _read_rows(
    run: TrainedNetwork, path: Path, identify: str | None, on_error: OnError
) -> tuple[NDArray[np.float32], dict[str, Sequence[str]]]:
    """The features of a file's rows, and for each its path, place and perhaps identifier."""
    place, columns = readable(str(path)), run.columns
    if path.suffix.lower() in ARRAYS:
        if identify is not None:
            raise ValueError(f"--id: expected with tables, got it for {path}")
        rows = columns.encode(array_table(load_array(path), place), place=place, on_error=on_error)
        return rows, {"path": [place] * len(rows), "row": [str(row) for row in range(len(rows))]}
    table = read_table(
        path,
        text=[] if identify is None else [identify],
        decimal=columns.decimal,
        thousands=columns.thousands,
        on_error=on_error,
    )
    if not len(table):
        raise ValueError(f"{place}: expected a row for each example, got none")
    rows = columns.encode(table, place=place, on_error=on_error)
    places: dict[str, Sequence[str]] = {"path": [place] * len(rows), "row": list(row_names(table))}
    if identify is not None:
        column = find_column(table.columns, identify, place=place, argument="id")
        places[identify.strip()] = as_text(table[column]).tolist()
    return rows, places


def _as_frame(
    run: TrainedNetwork,
    places: Mapping[str, Sequence[str]],
    probabilities: Tensor | None,
    index: Any = None,
) -> pd.DataFrame:
    names = np.array(run.description.class_names, dtype=object)
    values = np.zeros((0, len(names))) if probabilities is None else probabilities.double().numpy()
    predicted = {"label": names[values.argmax(axis=1)], "probability": values.max(axis=1)}
    each = {f"p({name})": values[:, column] for column, name in enumerate(names)}
    return pd.DataFrame({**places, **predicted, **each}, index=index)


ARRAYS = (".npy", ".npz")
"""Endings of the files that hold arrays."""

_IMAGES = ("images", "x", "data")
_ROUND = 64
_TAKEN = "(N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels"


@dataclass(frozen=True)
class Picture:
    """An image, or why there is none.

    Attributes:
        path: The file it is from; of a row that names none, its table.
        index: Its place in an array; empty for an image of its own.
        pixels: `(C, H, W)`, or the reason that it cannot be read; `None` before it is read.
        row: Its place in a table that names it.
        name: What else the table was asked for.
    """

    path: str
    index: str = ""
    pixels: NDArray[np.uint8] | UnreadableImageError | None = None
    row: str = ""
    name: str = ""


def find_pictures(
    paths: Sequence[Path], shape: tuple[int, int, int], *, identify: str | None = None
) -> Iterator[Picture]:
    """All images at some paths, in the order of the paths and sorted below each.

    Before the first image comes what `fit` and `audit` warn of, too: files that are not images of a
    kind that is read, and pages that are not looked at.
    """
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file or folder")
        if identify is not None and not is_table(path):
            raise ValueError(f"--id: expected with tables, got it for {path}")
    found = [(path, _files(path, identify)) for path in paths]
    listed = [files for path, files in found if not _holds_arrays(path)]
    _look([file.path for files in listed for file in files if file.pixels is None])
    mode: Mode = "L" if shape[0] == 1 else "RGB"
    return itertools.chain.from_iterable(
        from_array(load_array(path), shape, place=readable(str(path)))
        if _holds_arrays(path)
        else _decoded(files, mode)
        for path, files in found
    )


def _holds_arrays(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in ARRAYS


def _files(path: Path, identify: str | None) -> list[Picture]:
    if not path.is_dir() and not is_table(path):
        return [Picture(str(path))]
    others: list[str] = []
    if path.is_dir():
        below = sorted(
            os.path.join(place, name)
            for place, _, names in os.walk(path)
            for name in names
            if not name.startswith(".")
        )
        files = [Picture(name) for name in below if _is_image(name)]
        others = [name for name in below if not _is_image(name)]
    else:
        # One that is missing is reported when it is its turn, as one that is damaged.
        nameless = UnreadableImageError("names no image")
        files = [
            Picture(file or str(path), "", None if file else nameless, row, name)
            for row, file, name in listed_images(path, identify)
        ]
    place = readable(str(path))
    if all(file.pixels is not None for file in files):
        what = "folder" if path.is_dir() else "table"
        more = f"; {count(len(others), 'other file')} there: {few(others)}" * bool(others)
        raise ValueError(f"{place}: expected images in this {what}, found none{more}")
    if others:
        report_other_files(place, others)
    return files


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def _look(files: Sequence[str]) -> None:
    # What comes through a pipe can be read only once.
    kept = [file for file in files if os.path.isfile(file)]
    with warnings.catch_warnings():
        # Pillow's own are said where the images are decoded; once is enough.
        warnings.filterwarnings("ignore", module="PIL")
        examine_images(kept, full=False)


def _decoded(files: Iterable[Picture], mode: Mode) -> Iterator[Picture]:
    waiting = iter(files)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        while some := list(itertools.islice(waiting, _ROUND)):
            yield from pool.map(partial(_decode, mode=mode), some)


def _decode(file: Picture, *, mode: Mode) -> Picture:
    path, pixels = readable(file.path), file.pixels
    if pixels is not None:
        pixels = UnreadableImageError(f"{path}: {file.row}: {pixels}")
    else:
        try:
            pixels = decode_image(file.path, mode=mode)
        except UnreadableImageError as error:
            pixels = error
    return replace(file, path=path, pixels=pixels)


def from_array(
    images: NDArray[Any], shape: tuple[int, int, int], *, place: str = "data"
) -> Iterator[Picture]:
    """The images of an array, with the channels of `shape`."""
    if images.ndim == 3:
        _refuse_single(images, shape, place)
    for index, image in enumerate(as_images(images, shape, place=place)):
        yield Picture(place, str(index), _with_channels(image, shape[0]))


def load_array(path: Path) -> NDArray[Any]:
    """The array in a file of NumPy's: the only one, or that of images, or else of features."""
    arrays = read_arrays(path)
    for names in (_IMAGES, FEATURES, arrays):
        chosen = [name for name in names if name in arrays]
        if len(chosen) == 1:
            return arrays[chosen[0]]
        if chosen:
            break
    raise ValueError(
        f"{readable(str(path))}: expected one array, or one that is called images, found "
        f"{few(list(arrays))}"
    )


def _refuse_single(images: NDArray[Any], shape: tuple[int, int, int], place: str) -> None:
    """Three axes mean grey images, and may be those of one image that has its channels with it."""
    channels, height, width = shape
    meant = channels == 1 and images.shape[1:] == (height, width)
    # Only 3 in front: one grey image is the same with its channel there and in a row of one.
    if (images.shape[2] in (1, 3) and not meant) or len(images) == channels == 3:
        raise ValueError(
            f"{place}: expected {_TAKEN}, got {images.shape}, which would be "
            f"{count(len(images), 'grey image')} of {images.shape[1]} x {images.shape[2]} pixels; "
            "a single image is given as array[None], grey ones as array[:, None]"
        )


def _with_channels(image: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    if len(image) == channels:
        return image
    if len(image) == 1:
        return np.repeat(image, channels, axis=0)
    grey = Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0))).convert("L")
    return np.asarray(grey)[np.newaxis]
