"""MNIST and those made in its likeness: four IDX files, each plain or gzipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelproof.data.idx import idx_bytes, read_idx
from labelproof.data.layouts import Contents
from labelproof.data.places import FolderPlace, Place
from labelproof.data.records import Records

__all__ = ["IdxLayout"]

_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


@dataclass(frozen=True)
class IdxLayout:
    """Images and labels, to train on and to test on, in a file each.

    Attributes:
        folders: Where below the root they may be, the first choice first.
        num_classes: Number of classes, which bounds the labels.
        version: What this layout is called.
        archives: None: these files are published one by one.
    """

    folders: tuple[str, ...]
    num_classes: int
    version: str = "IDX files"
    archives: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Images and labels, to train on and to test on."""
        return tuple(name for pair in _FILES.values() for name in pair)

    def spelling(self, place: Place, name: str) -> str | None:
        """The plain file before the gzipped one, which is slower to read."""
        return next((text for text in (name, f"{name}.gz") if text in place), None)

    def open(self, path: Path) -> Place:
        """The folder they are in."""
        return FolderPlace(path)

    def read(self, place: Place) -> Contents:
        """Read all four files and see that they belong together."""
        splits = {split: self._read_split(place, *pair) for split, pair in _FILES.items()}
        shapes = {records.images.shape[1:] for records in splits.values()}
        if len(shapes) > 1:
            raise ValueError(
                f"{place.path}: expected training and test images of one size, got {shapes}"
            )
        return Contents(splits, None)

    def published(self, contents: Contents) -> Iterator[tuple[str, bytes]]:
        """The four files, not compressed."""
        for split, (images, labels) in _FILES.items():
            records = contents.splits[split]
            yield images, idx_bytes(records.images[:, 0])
            yield labels, idx_bytes(records.labels[:, 0])

    def _read_split(self, place: Place, images_name: str, labels_name: str) -> Records:
        images_path = place.path / (self.spelling(place, images_name) or images_name)
        labels_path = place.path / (self.spelling(place, labels_name) or labels_name)
        images, labels = read_idx(images_path), read_idx(labels_path)
        for path, array, expected, meaning in (
            (images_path, images, 3, "images, N x height x width"),
            (labels_path, labels, 1, "labels, N"),
        ):
            if array.ndim != expected:
                raise ValueError(
                    f"{path}: expected {meaning}, got {' x '.join(map(str, array.shape))}; "
                    "are images and labels exchanged?"
                )
        if len(images) != len(labels):
            raise ValueError(
                f"{labels_path}: expected {len(images)} labels, one for each image of "
                f"{images_path.name}, got {len(labels)}"
            )
        if len(labels) and labels.max() >= self.num_classes:
            index = int(np.argmax(labels >= self.num_classes))
            raise ValueError(
                f"{labels_path}: expected labels from 0 to {self.num_classes - 1}, got "
                f"{labels[index]} for image {index}"
            )
        return Records(images[:, None], labels[:, None])
