"""What a run predicts for images or rows, as a table."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from labelproof.data.arrays import array_table
from labelproof.data.dataset import Dataset
from labelproof.data.images import OnError
from labelproof.data.notices import notice, readable
from labelproof.data.table import as_text, find_column, is_table, read_table, row_names
from labelproof.training.evaluation import CHUNK
from labelproof.training.trained_network import TrainedNetwork
from labelproof.verbs.pictures import ARRAYS, Picture, find_pictures, from_array, load_array

__all__ = ["NewData", "predict_data", "predict_paths"]

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

    Args:
        run: What predicts.
        paths: For a run on a table, tables or arrays; for a run on images, image files, folders of
            them, tables that name them, or arrays.
        identify: A column of the tables to give beside each prediction.
        on_error: What becomes of cells of a table that are not numbers.
        on_unreadable: Told why an image cannot be read; it is left out.

    Returns:
        Tables with the columns `path`, `index` in an array, `row` in a table, the identifier,
        `label`, `probability` and the probability of each class, such as `p(cat)`.
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
        within = next((name for name in ("row", "index") if name in table), None)
        return table.set_index("path") if within is None else _indexed(table, within)
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


def _indexed(table: pd.DataFrame, within: str) -> pd.DataFrame:
    if within == "index":
        table[within] = table[within].astype(int)
    return table.drop(columns="path").set_index(within)


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
