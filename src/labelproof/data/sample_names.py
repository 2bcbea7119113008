"""What each sample of a dataset is called, so that a person finds it and a file can name it."""

from __future__ import annotations

import os
from pathlib import Path

from labelproof.data.dataset import Split
from labelproof.data.encoded import StoredImage
from labelproof.data.images import ImageFiles

__all__ = ["sample_folder", "sample_names", "sample_paths"]


def sample_names(split: Split, data: str | os.PathLike[str]) -> list[str]:
    """A name for each sample of a split, by which a person finds it in the data.

    An image file is called by its path within the data's folder, a row by its line, and an entry of
    an array by its index, counted from 0.

    Args:
        split: The samples.
        data: Where they were read from.

    Example:
        >>> import numpy as np
        >>> sample_names(Split(np.zeros((2, 3), np.float32), np.array([0, 1])), "table.npz")
        ['0', '1']
    """
    if split.places is not None:
        return list(split.places)
    images = split.images
    if not isinstance(images, ImageFiles):
        return [str(index) for index in range(len(split))]
    base = sample_folder(data)
    name_of = getattr(images.files, "name_of", None)
    if name_of is not None:  # where to ask for an image is to read it
        return [name_of(index) for index in range(len(images))]
    return [_file_name(images.files[index], base) for index in range(len(images))]


def sample_folder(data: str | os.PathLike[str]) -> str:
    """The whole path of the folder that files are named within: the data's own, or their table's.

    >>> sample_folder("/data/photos.csv")
    '/data'
    """
    place = Path(data).expanduser()
    return os.path.abspath(place if place.is_dir() else place.parent)


def sample_paths(split: Split) -> list[str] | None:
    """The whole path of each sample's file; `None` where they are not files of their own.

    >>> import numpy as np
    >>> sample_paths(Split(ImageFiles(["/data/a.png", "/data/b.png"]), np.array([0, 1])))
    ['/data/a.png', '/data/b.png']
    """
    images = split.images
    if not isinstance(images, ImageFiles) or hasattr(images.files, "name_of"):
        return None
    files = [images.files[index] for index in range(len(images))]
    paths = [os.path.abspath(file) for file in files if isinstance(file, str)]
    return paths if len(paths) == len(files) else None


def _file_name(file: str | StoredImage, base: str) -> str:
    if isinstance(file, StoredImage):
        return file.name
    path = os.path.abspath(file)
    inside = path.startswith(base + os.sep)
    return Path(os.path.relpath(path, base) if inside else path).as_posix()
