"""Images to predict: files, folders of them, tables that name them, and arrays."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelproof.data.arrays import FEATURES, read_arrays
from labelproof.data.image_folder import report_other_files
from labelproof.data.image_table import listed_images
from labelproof.data.images import (
    SUFFIXES,
    Mode,
    UnreadableImageError,
    decode_image,
    examine_images,
)
from labelproof.data.notices import count, few, readable
from labelproof.data.table import is_table

__all__ = ["ARRAYS", "Picture", "as_images", "find_pictures", "from_array", "load_array"]

ARRAYS = (".npy", ".npz")
"""Endings of the files that hold arrays."""

_IMAGES = ("images", "x", "data")
_ROUND = 64
_TAKEN = "(N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels"


@dataclass(frozen=True)
class Picture:
    """An image, or why there is none.

    Attributes:
        path: The file it is from.
        index: Its place in an array; empty for an image of its own.
        pixels: `(C, H, W)`, or the reason that it cannot be read.
        row: Its place in a table that names it.
        name: What else the table was asked for.
    """

    path: str
    index: str
    pixels: NDArray[np.uint8] | UnreadableImageError
    row: str = ""
    name: str = ""


@dataclass(frozen=True)
class _File:
    """An image's file; of a row that names none, the path is that of its table."""

    path: str
    row: str = ""
    name: str = ""
    named: bool = True


def find_pictures(
    paths: Sequence[Path], shape: tuple[int, int, int], *, identify: str | None = None
) -> Iterator[Picture]:
    """All images at some paths, in the order of the paths and sorted below each.

    Before the first image comes what `fit` and `audit` warn of, too: files that are not images of a
    kind that is read, and pages that are not looked at.

    Args:
        paths: Image files, folders, tables that name image files, or files of arrays; looked for at
            once, read as they are asked for.
        shape: Channels, height and width of the images that are wanted. Channels decide between
            grey and colour; sizes only say how the axes of an array are meant.
        identify: A column of the tables that is given with each picture.

    Raises:
        FileNotFoundError: There is no such path.
        ValueError: A folder or a table has no images, or a file no array of images; or a column of
            tables was asked for where there are none.
    """
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file or folder")
        if identify is not None and not is_table(path):
            raise ValueError(f"--id: expected with tables, got it for {path}")
    found = [(path, _files(path, identify)) for path in paths]
    for path, files in found:
        if not any(file.named for file in files):
            raise ValueError(_nothing(path))
    listed = [files for path, files in found if not _holds_arrays(path)]
    _look([file.path for files in listed for file in files if file.named])
    mode: Mode = "L" if shape[0] == 1 else "RGB"
    return itertools.chain.from_iterable(
        from_array(load_array(path), shape, place=readable(str(path)))
        if _holds_arrays(path)
        else _decoded(files, mode)
        for path, files in found
    )


def _holds_arrays(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in ARRAYS


def _files(path: Path, identify: str | None) -> list[_File]:
    if path.is_dir():
        return [_File(name) for name in _below(path)]
    if is_table(path):
        # One that is missing is reported when it is its turn, as one that is damaged.
        return [
            _File(file, row, name) if file else _File(str(path), row, name, named=False)
            for row, file, name in listed_images(path, identify)
        ]
    return [_File(str(path))]


def _below(folder: Path) -> list[str]:
    names = _all_below(folder)
    place = readable(str(folder))
    images = [name for name in names if _is_image(name)]
    if images:  # else the error names them
        report_other_files(place, [name for name in names if not _is_image(name)])
    return images


def _all_below(folder: Path) -> list[str]:
    return sorted(
        os.path.join(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if not name.startswith(".")
    )


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def _nothing(path: Path) -> str:
    what = "folder" if path.is_dir() else "table"
    message = f"{readable(str(path))}: expected images in this {what}, found none"
    others = _all_below(path) if path.is_dir() else []
    return message + (f"; {count(len(others), 'other file')} there: {few(others)}" * bool(others))


def _look(files: Sequence[str]) -> None:
    # What comes through a pipe can be read only once.
    kept = [file for file in files if os.path.isfile(file)]
    with warnings.catch_warnings():
        # Pillow's own are said where the images are decoded; once is enough.
        warnings.filterwarnings("ignore", module="PIL")
        examine_images(kept, full=False)


def _decoded(files: Iterable[_File], mode: Mode) -> Iterator[Picture]:
    waiting = iter(files)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        while some := list(itertools.islice(waiting, _ROUND)):
            yield from pool.map(partial(_decode, mode=mode), some)


def _decode(file: _File, *, mode: Mode) -> Picture:
    path = readable(file.path)
    if not file.named:
        error = UnreadableImageError(f"{path}: {file.row}: names no image")
        return Picture(path, "", error, file.row, file.name)
    try:
        return Picture(path, "", decode_image(file.path, mode=mode), file.row, file.name)
    except UnreadableImageError as error:
        return Picture(path, "", error, file.row, file.name)


def from_array(
    images: NDArray[Any], shape: tuple[int, int, int], *, place: str = "data"
) -> Iterator[Picture]:
    """The images of an array, with the channels of `shape`.

    Args:
        images: As for `as_images`.
        shape: Channels, height and width of the images that are wanted.
        place: What the array is called in messages.
    """
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


def as_images(
    images: NDArray[Any], shape: tuple[int, int, int] | None = None, *, place: str = "data"
) -> NDArray[np.uint8]:
    """Images as `(N, C, H, W)` bytes.

    Args:
        images: `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)`, of bytes or of numbers from 0 to 1.
        shape: Channels, height and width that are expected, which say how the axes are meant where
            that is open.
        place: What the array is called in messages.

    Example:
        >>> as_images(np.ones((2, 8, 6, 3))).shape
        (2, 3, 8, 6)
    """
    return _as_bytes(_channels_first(images, shape, place), place)


def _channels_first(
    images: NDArray[Any], shape: tuple[int, int, int] | None, place: str
) -> NDArray[Any]:
    if images.ndim == 3:
        if shape is not None:
            _refuse_single(images, shape, place)
        return images[:, np.newaxis]
    if images.ndim == 4:
        if shape is not None and images.shape[1:] == shape:
            return images
        if shape is not None and images.shape[1:] == (*shape[1:], shape[0]):
            return images.transpose(0, 3, 1, 2)
        first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
        if first != last:
            return images if first else images.transpose(0, 3, 1, 2)
    raise ValueError(
        f"{place}: expected {_TAKEN}, got {images.shape}"
        + ("; a single image is given as array[None]" if images.ndim == 2 else "")
    )


def _refuse_single(images: NDArray[Any], shape: tuple[int, int, int], place: str) -> None:
    """Three axes mean grey images, and may be those of one image that has its channels with it."""
    channels, height, width = shape
    meant = channels == 1 and images.shape[1:] == (height, width)
    if images.shape[2] in (1, 3) and not meant:
        raise ValueError(
            f"{place}: expected {_TAKEN}, got {images.shape}, which would be "
            f"{count(len(images), 'grey image')} of {images.shape[1]} x {images.shape[2]} pixels; "
            "a single image is given as array[None]"
        )
    # Only 3: one grey image is the same with its channel in front and in a row of one.
    if images.shape[0] == 3 and channels == 3:
        raise ValueError(
            f"{place}: expected {_TAKEN}, got {images.shape}, which may be one image in colour or "
            "3 grey ones; a single image is given as array[None], grey ones as array[:, None]"
        )


def _as_bytes(images: NDArray[Any], place: str) -> NDArray[np.uint8]:
    if images.dtype == np.uint8 or not images.size:
        return images.astype(np.uint8, copy=False)
    # A NaN is within no bounds.
    if images.dtype.kind == "f" and images.min() >= 0 and images.max() <= 1:
        return np.rint(images * 255).astype(np.uint8)
    if images.dtype.kind in "iu" and images.min() >= 0 and images.max() <= 255:
        return images.astype(np.uint8)
    raise ValueError(
        f"{place}: expected bytes, or numbers from 0 to 1, got {images.dtype} from "
        f"{images.min()} to {images.max()}"
    )


def _with_channels(image: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    if len(image) == channels:
        return image
    if len(image) == 1:
        return np.repeat(image, channels, axis=0)
    grey = Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0))).convert("L")
    return np.asarray(grey)[np.newaxis]
