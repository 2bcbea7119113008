"""Whether the data are still those that a run started on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.images import ImageFiles, StoredImage

__all__ = ["fingerprint"]

_WHOLE = 64 << 20
"""Bytes up to which an array is read whole; of a larger one, evenly spaced rows."""


def fingerprint(dataset: Dataset, *, given: NDArray[np.int64] | None = None) -> str:
    """A short text that changes when labels, classes, examples or their files change.

    It covers the sizes of files and their names within their common folder, which may be moved, and
    of large arrays some of the rows. Changed pixels in a file of the same size go unnoticed. No
    image is decoded.

    Args:
        dataset: The data.
        given: Training labels that replace the dataset's own, such as human labels, `(N)`.

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
            for name, size in _files(images):
                digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
                digest.update(size.to_bytes(8, "little"))
    if dataset.group is not None:
        digest.update(b"group" + dataset.grouping.encode())
    if given is not None:
        digest.update(b"given" + _label_bytes(given))
    return digest.hexdigest()[:16]


def _label_bytes(labels: NDArray[np.int64]) -> bytes:
    return np.ascontiguousarray(labels, "<i8").tobytes()


def _files(images: ImageFiles) -> Iterator[tuple[str, int]]:
    """The name of each image within their common folder, and the size of its file, if any."""
    name_of = getattr(images.files, "name_of", None)
    if name_of is not None:  # the name is known without reading the image
        yield from ((name_of(index), 0) for index in range(len(images)))
        return
    files = [images.files[index] for index in range(len(images))]
    # By letters, since absolute and relative paths may be mixed; then up to the last whole folder.
    shared = os.path.commonprefix([file for file in files if isinstance(file, str)])  # noqa: RUF071
    outside = shared.rfind(os.sep) + 1
    for file in files:
        if isinstance(file, StoredImage):
            yield file.name, 0
        else:
            size = os.path.getsize(file) if os.path.exists(file) else 0
            yield file[outside:].replace(os.sep, "/"), size
