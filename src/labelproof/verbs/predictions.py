"""The predictions of a run for images or rows, as a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from labelproof.data.arrays import FEATURES, IMAGES, array_table, as_images, read_arrays
from labelproof.data.dataset import Dataset, restore_values
from labelproof.data.image_folder import find_images
from labelproof.data.image_table import image_paths
from labelproof.data.images import OnError, UnreadableImageError, decode_image, look_at_each
from labelproof.data.load import ARRAYS, load_dataset
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.published import is_known
from labelproof.data.table import as_text, find_column, is_table, read_table, row_names
from labelproof.training.batches import CHUNK
from labelproof.training.trained_network import TrainedNetwork
from labelproof.verbs.inputs import is_path

Location: TypeAlias = str | os.PathLike[str]
NewData: TypeAlias = Location | Sequence[Location] | pd.DataFrame | NDArray[Any] | Dataset
"""Samples to predict: a path or several, a DataFrame, an array or a dataset."""

Samples: TypeAlias = tuple[Any, pd.DataFrame]
"""Rows, or images and paths of images, and where each is from: the index and the first columns of
its prediction."""

_COLUMNS = ("path", "row", "label", "probability")


def predict_samples(
    run: TrainedNetwork,
    sources: Sequence[Any],
    *,
    identify: str | None = None,
    on_error: OnError = "raise",
    on_unreadable: Callable[[str], None] = notice,
) -> Iterator[pd.DataFrame]:
    """Predictions in chunks; unreadable images are left out.

    All tables are read, and all images listed, before this returns: an error in one comes before
    any prediction.
    """
    if identify is not None and identify.casefold() in _COLUMNS:
        raise ValueError(f"--id: expected a column that is none of {_COLUMNS}, got {identify!r}")
    read = [read_samples(run, source, identify=identify, on_error=on_error) for source in sources]
    named = dict.fromkeys(("path", "index", "row", identify))
    columns = [name for name in named if any(name in places for _, places in read)]
    found = [(inputs, places.reindex(columns=columns, fill_value="")) for inputs, places in read]
    return _predict(run, found, on_unreadable)


def predict_data(
    run: TrainedNetwork, data: NewData, *, on_error: OnError = "raise"
) -> pd.DataFrame:
    """Predictions for samples of any kind, as `Run.predict` returns them."""
    several = isinstance(data, list) and data and all(map(is_path, data))
    sources: Any = data if several else [data]
    table = pd.concat(list(predict_samples(run, sources, on_error=on_error))).loc[:, "label":]
    known = run.description
    return restore_values(table, ["label"], known.class_names, text=known.text_labels)


def read_samples(
    run: TrainedNetwork, source: Any, *, identify: str | None = None, on_error: OnError = "raise"
) -> Samples:
    """The inputs of a run's network for samples of any kind, and where each comes from."""
    path = Path(source if is_path(source) else "data").expanduser()
    place = readable(str(path))
    if isinstance(source, str) and is_known(source):
        source = load_dataset(source)
    if isinstance(source, Dataset):
        split = source.splits.get("test", source.train)
        return split.images, pd.DataFrame(index=list(split.places or range(len(split))))
    named = is_path(source)
    if named and not path.exists():
        raise FileNotFoundError(f"{place}: there is no such file or folder")
    if named and path.suffix.lower() in ARRAYS:
        source = load_array(path)
    elif named and not run.tabular and not is_table(path):
        images = find_images(path)
        return images, pd.Index(map(readable, images), name="path").to_frame()
    rows = run.tabular and not isinstance(source, np.ndarray)
    if rows or is_path(source) or hasattr(source, "columns"):
        return _read_table(run, source, place, identify, on_error)
    array = np.asarray(source)
    if run.tabular:
        inputs = run.columns.encode(array_table(array, place), place=place, on_error=on_error)
    else:
        inputs = _array_images(array, run.description.input_shape, place)
    index = pd.RangeIndex(len(inputs), name="index" if named else None)
    return inputs, pd.DataFrame({"path": place, "index": index}, index=index)


def _read_table(
    run: TrainedNetwork, source: Any, place: str, identify: str | None, on_error: OnError
) -> Samples:
    """The rows of a table, or the images that it names."""
    how: Any = {}
    if run.tabular:
        how = {name: getattr(run.columns, name) for name in ("decimal", "thousands")}
        how["categories"] = run.columns.of_words
    table = read_table(source, text=[identify] if identify else [], on_error=on_error, **how)
    rows, named = list(row_names(table)), is_path(source)
    if named and not rows:
        raise ValueError(f"{place}: expected a row for each example, got none")
    index = pd.Index(rows, name="row") if named else table.index
    places = pd.DataFrame({"path": place, "row": rows}, index=index)
    if identify is not None:
        column = find_column(table.columns, identify, place=place, argument="id")
        places[identify] = as_text(table[column]).tolist()
    if run.tabular:
        return run.columns.encode(table, place=place, on_error=on_error), places
    files = image_paths(table)
    # An empty cell is reported as the path of an image that is not there.
    files = [file or f"{place}: no image in {row}" for file, row in zip(files, rows, strict=True)]
    return files, places.assign(path=list(map(readable, files)))


def _predict(
    run: TrainedNetwork, read: Sequence[Samples], on_unreadable: Callable[[str], None]
) -> Iterator[pd.DataFrame]:
    for inputs, places in read:
        if run.tabular:
            yield _as_table(run, places, run.probabilities(inputs))
            continue
        fitted = look_at_each(range(len(inputs)), partial(_fit, run, inputs))
        for start in range(0, len(inputs), CHUNK):
            part = list(islice(fitted, CHUNK))
            for problem in part:
                if isinstance(problem, UnreadableImageError):
                    on_unreadable(str(problem))
            pixels = [image for image in part if isinstance(image, np.ndarray)]
            kept = [isinstance(image, np.ndarray) for image in part]
            found = run.fitted_probabilities(np.stack(pixels)) if pixels else run.probabilities([])
            yield _as_table(run, places[start : start + CHUNK][kept], found)


def _fit(run: TrainedNetwork, images: Any, index: int) -> NDArray[np.uint8] | UnreadableImageError:
    """An image at the network's size, or the error if it cannot be read."""
    try:
        image = images[index]
        if isinstance(image, str):
            image = decode_image(image, mode="L" if run.description.input_shape[0] == 1 else "RGB")
        return run.fit_image(image)
    except UnreadableImageError as error:
        return error


def _as_table(run: TrainedNetwork, places: Any, probabilities: Tensor) -> pd.DataFrame:
    names = np.array(run.description.class_names, dtype=object)
    values = probabilities.double().numpy()
    predicted = {"label": names[values.argmax(axis=1)], "probability": values.max(axis=1)}
    each = {f"p({name})": values[:, column] for column, name in enumerate(names)}
    return pd.concat([places, pd.DataFrame({**predicted, **each}, index=places.index)], axis=1)


def load_array(path: Path) -> NDArray[Any]:
    """The array in a NumPy file: the images, else the features, else the only one."""
    arrays = read_arrays(path)
    images, rows = ([name for name in names if name in arrays] for names in (IMAGES, FEATURES))
    chosen = images or rows or list(arrays)
    if len(chosen) != 1:
        place, found = readable(str(path)), few(list(arrays))
        raise ValueError(f"{place}: expected one array, or one called images, found {found}")
    return arrays[chosen[0]]


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
