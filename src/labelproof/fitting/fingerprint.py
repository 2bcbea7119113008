"""Whether data are still what a run was begun on."""

from __future__ import annotations

import hashlib

import numpy as np

from labelproof.data.dataset import Dataset
from labelproof.data.images import ImageFiles, StoredImage

__all__ = ["fingerprint"]

_WHOLE = 64 << 20
"""Bytes up to which an array is looked at whole; of a larger one, rows spread evenly."""


def fingerprint(dataset: Dataset) -> str:
    """A short text that is another one when labels, classes, examples or their files change.

    Files are told by their names, and large arrays by a part of their rows: who changes the pixels
    of a file and nothing else is not found out.

    Example:
        >>> from dataclasses import replace
        >>> from labelproof.data import load_digits
        >>> digits = load_digits()
        >>> other = replace(digits, class_names=("zero", *digits.class_names[1:]))
        >>> fingerprint(digits) == fingerprint(load_digits()) != fingerprint(other)
        True
    """
    digest = hashlib.sha256("\0".join(dataset.class_names).encode())
    for name, split in dataset.splits.items():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(split.labels, "<i8").tobytes())
        images = split.images
        if isinstance(images, np.ndarray):
            step = max(images.nbytes // _WHOLE, 1)
            digest.update(np.ascontiguousarray(images[::step]).tobytes())
        elif isinstance(images, ImageFiles):
            for index in range(len(images)):
                file = images.files[index]
                name = file.name if isinstance(file, StoredImage) else str(file)
                digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()[:16]
