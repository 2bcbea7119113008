"""What a dataset is once it is read: splits of images and labels, names, and how to normalise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset", "ImageSource", "Images", "Split"]


class ImageSource(Protocol):
    """Images that are decoded when they are asked for, because they do not all fit in memory."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> NDArray[np.uint8]:
        """One image, `(C, H, W)`; sizes may differ from image to image."""
        ...


Images: TypeAlias = NDArray[np.uint8] | ImageSource
"""All images as one array `(N, C, H, W)`, or a source that decodes them one by one."""


@dataclass(frozen=True)
class Split:
    """Images with the labels they came with.

    Attributes:
        images: `(N, C, H, W)` uint8, or a lazy source of as many.
        labels: `(N)`, int64.
    """

    images: Images
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise ValueError(
                f"labels: expected one for each of {len(self.images)} images, "
                f"got {len(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], int]:
        """One image `(C, H, W)` and its label, so that a `torch.utils.data.DataLoader` takes it."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"index: expected less than {len(self)}, got {index}")
        return self.images[index], int(self.labels[index])

    @property
    def array(self) -> NDArray[np.uint8]:
        """The images as one array; a lazy source is refused."""
        if not isinstance(self.images, np.ndarray):
            raise TypeError(
                "images: expected an array in memory, got a source that decodes lazily; take one "
                "image at a time with images[i], or give the split to a DataLoader"
            )
        return self.images


@dataclass(frozen=True)
class Dataset:
    """Named splits, and what is known about all of them.

    Attributes:
        name: What the dataset is called.
        splits: `"train"` is what is learned from; `"test"`, where there is one, is what accuracy is
            measured on. Others have names of their own, such as `"validation"`.
        class_names: A name for each class.
        mean: Per-channel mean of the training images, scaled to 0..1.
        std: Per-channel standard deviation, likewise.
        clean: Whether the training labels are known to be right, so that noise put on them is the
            only noise there is. A user's own labels are not.
    """

    name: str
    splits: Mapping[str, Split]
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    clean: bool = True

    @property
    def train(self) -> Split:
        """What is learned from."""
        return self.splits["train"]

    @property
    def test(self) -> Split:
        """What accuracy is measured on."""
        if "test" not in self.splits:
            raise KeyError(f"{self.name} has no test split, only {', '.join(self.splits)}")
        return self.splits["test"]

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the first training image."""
        channels, height, width = self.train.images[0].shape
        return channels, height, width
