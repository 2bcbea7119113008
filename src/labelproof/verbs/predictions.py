"""The predictions of a run for images or rows, as a table."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from labelproof.data.arrays import FEATURES, IMAGES, array_table, as_images, read_arrays
from labelproof.data.dataset import Dataset
from labelproof.data.image_folder import report_other_files
from labelproof.data.image_table import listed_images
from labelproof.data.images import (
    SUFFIXES,
    OnError,
    UnreadableImageError,
    decode_image,
)
from labelproof.data.load import ARRAYS, load_dataset
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.published import is_known
from labelproof.data.table import TableSource, as_text, find_column, is_table, read_table, row_names
from labelproof.training.batches import CHUNK
from labelproof.training.trained_network import TrainedNetwork

Location: TypeAlias = str | os.PathLike[str]
NewData: TypeAlias = Location | Sequence[Location] | pd.DataFrame | NDArray[Any] | Dataset
"""Samples to predict: a path or several, a DataFrame, an array or a dataset."""

Samples: TypeAlias = tuple[Any, pd.DataFrame]
"""Rows or images (paths, pixels or errors), and the columns that come before their predictions."""

_COLUMNS = ("path", "row", "label", "probability")


def predict_paths(
    run: TrainedNetwork,
    paths: Sequence[Path],
    *,
    identify: str | None = None,
    on_error: OnError = "raise",
    on_unreadable: Callable[[str], None] = notice,
) -> Iterator[pd.DataFrame]:
    """Predictions for files, in chunks.

    All tables are read, and all images listed, before this returns.
    """
    if identify is not None and identify.casefold() in _COLUMNS:
        raise ValueError(f"--id: expected a column that is none of {_COLUMNS}, got {identify!r}")
    if run.tabular:
        # All files are read first, so that an error in one comes before any prediction.
        read = [_read_rows(run, path, identify, on_error) for path in paths]
        return (_as_table(run, places, run.probabilities(rows)) for rows, places in read)
    found = find_images(paths, run.description.input_shape, identify=identify)
    return predict_images(run, found, on_unreadable)


def predict_data(
    run: TrainedNetwork, data: NewData, *, on_error: OnError = "raise"
) -> pd.DataFrame:
    """Predictions for samples of any kind, as `Run.predict` returns them."""
    table = _predict_data(run, data, on_error)
    # As pandas reads them from a table, so that they can be compared with labels there.
    names = run.description.class_names
    if {*names} <= {"False", "True"}:
        return table.assign(label=table["label"] == "True")
    whole = all(re.fullmatch("0|-?[1-9][0-9]{0,15}", name) for name in names)
    return table.astype({"label": np.int64}) if whole else table


def _predict_data(run: TrainedNetwork, data: NewData, on_error: OnError) -> pd.DataFrame:
    if isinstance(data, str) and is_known(data):
        data = load_dataset(data)
    given: Sequence[Any] = data if isinstance(data, list) else [data]
    if given and all(isinstance(path, str | os.PathLike) for path in given):
        found = predict_paths(run, [Path(path).expanduser() for path in given], on_error=on_error)
        table = pd.concat(list(found), ignore_index=True)
        column = next(name for name in ("row", "index", "path") if name in table)
        table = table.set_index(column).drop(columns="path", errors="ignore")
        return table.set_axis(table.index.astype(int)) if column == "index" else table
    if isinstance(data, Dataset):
        split = data.splits.get("test", data.train)
        index = range(len(split)) if split.places is None else list(split.places)
        return _as_table(run, pd.DataFrame(index=index), run.probabilities(split.images))
    if run.tabular:
        frame: Any = array_table(data, "data") if isinstance(data, np.ndarray) else data
        table = read_table(frame, on_error=on_error)
        rows = run.columns.encode(table, place="data", on_error=on_error)
        return _as_table(run, table[[]], run.probabilities(rows))
    if isinstance(data, pd.DataFrame):
        images, index = _listed(data, "data", None)[0], data.index
    else:
        images = _array_images(np.asarray(data), run.description.input_shape, "data")
        index = range(len(images))
    places = pd.DataFrame(index=index)
    return pd.concat(list(predict_images(run, [(images, places)], notice)))


def _read_rows(run: TrainedNetwork, path: Path, identify: str | None, on_error: OnError) -> Samples:
    """The features of a file's rows, and for each its path, line and identifier, if any."""
    place, columns = readable(str(path)), run.columns
    if path.suffix.lower() in ARRAYS:
        rows = columns.encode(array_table(load_array(path), place), place=place, on_error=on_error)
        return rows, pd.DataFrame({"path": place, "row": [str(row) for row in range(len(rows))]})
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
    places = pd.DataFrame({"path": place, "row": list(row_names(table))})
    if identify is not None:
        column = find_column(table.columns, identify, place=place, argument="id")
        places[identify] = as_text(table[column]).tolist()
    return rows, places


def _as_table(run: TrainedNetwork, places: Any, probabilities: Tensor) -> pd.DataFrame:
    names = np.array(run.description.class_names, dtype=object)
    values = probabilities.double().numpy()
    predicted = {"label": names[values.argmax(axis=1)], "probability": values.max(axis=1)}
    each = {f"p({name})": values[:, column] for column, name in enumerate(names)}
    return pd.concat([places, pd.DataFrame({**predicted, **each}, index=places.index)], axis=1)


def predict_images(
    run: TrainedNetwork, found: Sequence[Samples], on_unreadable: Callable[[str], None]
) -> Iterator[pd.DataFrame]:
    """Predictions for images, in chunks; unreadable images are left out."""
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for images, places in found:
            for start in range(0, max(len(images), 1), CHUNK):
                part = slice(start, start + CHUNK)
                fitted = list(pool.map(partial(_fit, run), images[part]))
                for problem in fitted:
                    if isinstance(problem, UnreadableImageError):
                        on_unreadable(str(problem))
                pixels = [each for each in fitted if isinstance(each, np.ndarray)]
                kept = places[part][[isinstance(each, np.ndarray) for each in fitted]]
                probabilities = (
                    run.fitted_probabilities(np.stack(pixels)) if pixels else run.probabilities([])
                )
                yield _as_table(run, kept, probabilities)


def _fit(run: TrainedNetwork, image: Any) -> NDArray[np.uint8] | UnreadableImageError:
    """An image at the network's size, or the error if it cannot be read."""
    if isinstance(image, str):
        try:
            image = decode_image(image, mode="L" if run.description.input_shape[0] == 1 else "RGB")
        except UnreadableImageError as error:
            return error
    return image if isinstance(image, UnreadableImageError) else run.fit_image(image)


def find_images(
    paths: Sequence[Path], shape: tuple[int, ...], *, identify: str | None = None
) -> list[Samples]:
    """All images at some paths, in the order of the paths; those of a folder are sorted."""
    found = [_images_at(path, shape, identify) for path in paths]
    kinds = ("path", "index", "row", identify)
    columns = [each for each in kinds if each and any(each in places for _, places in found)]
    return [(images, places.reindex(columns=columns, fill_value="")) for images, places in found]


def _images_at(path: Path, shape: tuple[int, ...], identify: str | None) -> Samples:
    place, others = readable(str(path)), []
    if not path.exists():
        raise FileNotFoundError(f"{place}: there is no such file or folder")
    if path.is_file() and path.suffix.lower() in ARRAYS:
        images = _array_images(load_array(path), shape, place)
        index = [str(number) for number in range(len(images))]
        return images, pd.DataFrame({"path": place, "index": index})
    if is_table(path):
        images, places = _listed(path, place, identify)
    else:
        images = [str(path)]
        if path.is_dir():
            files = sorted(file for file in path.rglob("[!.]*") if file.is_file())
            images = [str(file) for file in files if file.suffix.lower() in SUFFIXES]
            others = [str(file) for file in files if file.suffix.lower() not in SUFFIXES]
        places = pd.DataFrame({"path": [readable(name) for name in images]})
    if not any(isinstance(image, str) for image in images):
        what = "folder" if path.is_dir() else "table"
        more = f"; {count(len(others), 'other file')} there: {few(others)}" * bool(others)
        raise ValueError(f"{place}: expected images in this {what}, found none{more}")
    report_other_files(place, others)
    return images, places


def _listed(source: TableSource, place: str, identify: str | None) -> Samples:
    """The images of a table; a missing one is reported when it is read, like a damaged one."""
    listed = listed_images(source, identify)
    images = [
        file or UnreadableImageError(f"{place}: {row}: names no image") for row, file, _ in listed
    ]
    rows = [(readable(file), row, name) for row, file, name in listed]
    return images, pd.DataFrame(rows, columns=["path", "row", identify])


def load_array(path: Path) -> NDArray[Any]:
    """The array in a NumPy file: the images, else the features, else the only one."""
    arrays = read_arrays(path)
    for names in (IMAGES, FEATURES, arrays):
        chosen = [name for name in names if name in arrays]
        if len(chosen) == 1:
            return arrays[chosen[0]]
        if chosen:
            break
    place, found = readable(str(path)), few(list(arrays))
    raise ValueError(f"{place}: expected one array, or one called images, found {found}")


def _array_images(images: NDArray[Any], shape: tuple[int, ...], place: str) -> NDArray[np.uint8]:
    """The images of an array; a single image with channels is refused, not taken for many."""
    channels, height, width = shape
    # Channels in front count only if 3: of shape (1, H, W), one grey image is also an array of one.
    single = images.ndim == 3 and (images.shape[2] in (1, 3) or len(images) == channels == 3)
    if single and (channels, *images.shape[1:]) != (1, height, width):
        raise ValueError(
            f"{place}: got {images.shape}, which would be {count(len(images), 'grey image')}; a "
            "single image is given as array[None], grey ones as array[:, None]"
        )
    return as_images(images, (channels, height, width), place=place)
