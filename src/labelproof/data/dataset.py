"""What a dataset is once it is read: images, labels, names, and how to normalise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset", "Split"]


@dataclass(frozen=True)
class Split:
    """Images with their labels.

    Attributes:
        images: `(N, C, H, W)`, uint8.
        labels: `(N)`, int64.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """A training and a test split, and what is known about both.

    Attributes:
        name: What the dataset is called.
        train: What is learned from; its labels are clean until noise is put on them.
        test: What accuracy is measured on; its labels stay clean.
        class_names: A name for each class.
        mean: Per-channel mean of the training images, scaled to 0..1.
        std: Per-channel standard deviation, likewise.
    """

    name: str
    train: Split
    test: Split
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width
