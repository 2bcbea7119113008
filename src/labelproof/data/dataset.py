"""What a dataset is once it is read: splits of images or rows, labels, names, how to normalise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labelproof.data.columns import Columns
from labelproof.data.notices import count, few

__all__ = ["Dataset", "ImageSource", "Images", "Rows", "Split"]


class ImageSource(Protocol):
    """Images that are decoded when they are asked for, because they do not all fit in memory."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> NDArray[np.uint8]:
        """One image, `(C, H, W)`; sizes may differ from image to image."""
        ...


Images: TypeAlias = NDArray[np.uint8] | ImageSource
"""All images as one array `(N, C, H, W)`, or a source that decodes them one by one."""

Rows: TypeAlias = NDArray[np.float32]
"""The features of a table as one array `(N, F)`, all of them finite."""


@dataclass(frozen=True, repr=False)
class Split:
    """Images, or rows of a table, with the labels they came with.

    Attributes:
        images: `(N, C, H, W)` uint8, or a lazy source of as many; or the rows of a table,
            `(N, F)` float32.
        labels: `(N)`, int64.
        places: How a person finds each sample where the index does not tell: `line 7` of a table,
            or the index of before some were left out. `None` where the place is the index, or an
            image's file.
        groups: A number for each sample, `(N)`, the same for those that are never cut apart: copies
            of each other, or what is of one patient. `None` where each is alone.

    Example:
        >>> Split(np.zeros((3, 2), np.float32), np.array([0, 1, 1]))
        Split(3 rows of 2 features)
    """

    images: Images | Rows
    labels: NDArray[np.int64]
    places: Sequence[str] | None = None
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.tabular:
            _check_rows(self.images)
        if len(self.images) != len(self.labels):
            what = "rows" if self.tabular else "images"
            raise ValueError(
                f"labels: expected one for each of {len(self.images)} {what}, "
                f"got {len(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[NDArray[Any], int]:
        """One image `(C, H, W)`, or one row `(F)`, and its label, as a `DataLoader` takes it."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"index: expected less than {len(self)}, got {index}")
        return self.images[index], int(self.labels[index])

    def __repr__(self) -> str:
        if not isinstance(self.images, np.ndarray):
            return f"Split({count(len(self), 'image')}, decoded when asked for)"
        if self.tabular:
            features = count(self.images.shape[1], "feature")
            return f"Split({count(len(self), 'row')} of {features})"
        return f"Split({count(len(self), 'image')} of {_sides(self.images.shape[1:])})"

    @property
    def tabular(self) -> bool:
        """Whether these are rows of a table, and not images."""
        return isinstance(self.images, np.ndarray) and self.images.ndim == 2

    @property
    def array(self) -> NDArray[Any]:
        """The images or rows as one array; a lazy source is refused."""
        if not isinstance(self.images, np.ndarray):
            raise TypeError(
                "images: expected an array in memory, got a source that decodes lazily; take one "
                "image at a time with images[i], or give the split to a DataLoader"
            )
        return self.images


@dataclass(frozen=True, repr=False)
class Dataset:
    """Named splits, and what is known about all of them.

    Attributes:
        name: What the dataset is called.
        splits: `"train"` is what is learned from; `"test"`, where there is one, is what accuracy is
            measured on. Others have names of their own, such as `"validation"`.
        class_names: A name for each class.
        mean: Per-channel mean of the training images, scaled to 0..1; of a table, the mean of
            each feature over the training rows, as they are.
        std: Standard deviation, likewise; 1 for a feature of a table that is always the same.
        clean: Whether the training labels are known to be right, so that noise put on them is the
            only noise there is. A user's own labels are not.
        columns: How the columns of a table became features; `None` for images.
        left_out: Names of training samples that a file of labels leaves out.
        group: The column of a table by which samples belong together, where one was named.
        grouping: A mark of what is in it, which is another one when that changes.

    Example:
        >>> from labelproof.data import load_digits
        >>> load_digits()
        Dataset('digits', train: 1,347 images of 1x8x8, test: 450, 10 classes: 0, 1, 2 and 7 more)
    """

    name: str
    splits: Mapping[str, Split]
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    clean: bool = True
    columns: Columns | None = None
    left_out: tuple[str, ...] = ()
    group: str | None = None
    grouping: str = ""

    def __repr__(self) -> str:
        sizes = [
            f"{name}: {repr(split)[6:-1] if name == 'train' else f'{len(split):,}'}"
            for name, split in self.splits.items()
        ]
        classes = count(self.num_classes, "class", "classes")
        return f"Dataset({self.name!r}, {', '.join(sizes)}, {classes}: {few(self.class_names)})"

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
    def tabular(self) -> bool:
        """Whether it holds rows of a table, and not images."""
        return self.train.tabular

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one example: `(C, H, W)` of the first training image, or `(F,)` of rows."""
        images = self.train.images
        # Not images[0] of an array: a table's shape is known without a row.
        return images.shape[1:] if isinstance(images, np.ndarray) else images[0].shape

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the first training image."""
        if self.tabular:
            raise TypeError(
                f"{self.name}: expected images, got rows of a table; their shape is input_shape"
            )
        channels, height, width = self.input_shape
        return channels, height, width


def _check_rows(rows: Any) -> None:
    if rows.dtype != np.float32:
        raise TypeError(f"images: expected rows of float32, got {rows.dtype} {rows.shape}")
    if not np.isfinite(rows).all():
        row, feature = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(
            f"images: expected finite rows, got {rows[row, feature]} in row {row}, "
            f"feature {feature}"
        )


def _sides(shape: tuple[int, ...]) -> str:
    return "x".join(str(side) for side in shape)
