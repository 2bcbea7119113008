"""Whether data are still what a run was begun on."""

from __future__ import annotations

import hashlib
import os

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.encoded import StoredImage
from labelproof.data.images import ImageFiles

__all__ = ["fingerprint"]

_WHOLE = 64 << 20
"""Bytes up to which an array is looked at whole; of a larger one, rows spread evenly."""


def fingerprint(dataset: Dataset, *, given: NDArray[np.int64] | None = None) -> str:
    """A short text that is another one when labels, classes, examples or their files change.

    Files are told by their sizes and by their names within the folder they have in common, so that
    it may be moved, and large arrays by a part of their rows: who changes the pixels of a file and
    nothing else, not even its size, is not found out. No image is decoded.

    Args:
        dataset: The data.
        given: Labels that are learned from in place of the dataset's own, such as people's, `(N)`.

    Example:
        >>> from dataclasses import replace
        >>> from labelproof.data import load_digits
        >>> digits = load_digits()
        >>> other = replace(digits, class_names=("zero", *digits.class_names[1:]))
        >>> fingerprint(digits) == fingerprint(load_digits()) != fingerprint(other)
        True
    """
    digest = hashlib.sha256("\0".join(dataset.class_names).encode("utf-8", "surrogateescape"))
    for name, split in dataset.splits.items():
        digest.update(name.encode("utf-8", "surrogateescape"))
        digest.update(_label_bytes(split.labels))
        images = split.images
        if isinstance(images, np.ndarray):
            step = max(images.nbytes // _WHOLE, 1)
            digest.update(np.ascontiguousarray(images[::step]).tobytes())
        elif isinstance(images, ImageFiles):
            for file in _file_names(images):
                digest.update(file.encode("utf-8", "surrogateescape") + b"\0")
            for size in _file_sizes(images):
                digest.update(size.to_bytes(8, "little"))
    if dataset.group is not None:
        digest.update(b"group" + dataset.grouping.encode())
    if given is not None:
        digest.update(b"given" + _label_bytes(given))
    return digest.hexdigest()[:16]


def _label_bytes(labels: NDArray[np.int64]) -> bytes:
    return np.ascontiguousarray(labels, "<i8").tobytes()


def _file_names(images: ImageFiles) -> list[str]:
    """What tells each file from the others, wherever all of them are."""
    name_of = getattr(images.files, "name_of", None)
    if name_of is not None:  # where to ask for an image is to read it
        return [name_of(index) for index in range(len(images))]
    files = [images.files[index] for index in range(len(images))]
    paths = [file for file in files if isinstance(file, str)]
    # Letter by letter, since paths that are whole and others may be mixed; but letters that names
    # begin with are theirs, and only whole folders are left out.
    shared = os.path.commonprefix(paths)  # noqa: RUF071
    outside = shared.rfind(os.sep) + 1
    return [
        file.name if isinstance(file, StoredImage) else file[outside:].replace(os.sep, "/")
        for file in files
    ]


def _file_sizes(images: ImageFiles) -> list[int]:
    """The sizes of files on the disk, 0 where one has vanished; of other images there are none."""
    if getattr(images.files, "name_of", None) is not None:
        return []
    files = [images.files[index] for index in range(len(images))]
    return [_size(file) for file in files if isinstance(file, str)]


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
