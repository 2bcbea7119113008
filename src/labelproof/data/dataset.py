"""A dataset in memory: splits of images or rows, labels, class names, normalisation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.data.columns import Columns
from labelproof.data.notices import count, few, notice


class ImageSource(Protocol):
    """Images that are decoded on access, because they do not all fit in memory."""

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
    """Images, or rows of a table, with their given labels.

    Attributes:
        images: `(N, C, H, W)` uint8, or a lazy source of as many; or the rows of a table,
            `(N, F)` float32.
        labels: `(N)`, int64.
        places: The name of each sample, unless it is the index or an image's file: `line 7` of a
            table, or the index before samples were left out.
        groups: The group number of each sample, `(N)`. Samples of one group are never split apart:
            copies, or the images of one patient. `None` if there are no groups.
        votes: The class that each annotator gave each sample, `(N, A)`, -1 for none; `None` if
            there is one label only.
        truth: The true labels, `(N)`, where `labels` replace those of a clean dataset.

    >>> Split(np.zeros((3, 2), np.float32), np.array([0, 1, 1]))
    Split(3 rows of 2 features)
    """

    images: Images | Rows
    labels: NDArray[np.int64]
    places: Sequence[str] | None = None
    groups: NDArray[np.int64] | None = None
    votes: NDArray[np.int64] | None = None
    truth: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.tabular and self.array.dtype != np.float32:
            raise TypeError(f"images: expected rows of float32, got {self.array.dtype}")
        if self.tabular and not np.isfinite(self.array).all():
            raise ValueError("images: expected rows of finite numbers, got infinite ones or NaN")
        if len(self.images) != len(self.labels):
            sizes = f"{len(self.images)} examples, got {len(self.labels)}"
            raise ValueError(f"labels: expected one for each of {sizes}")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[NDArray[Any], int]:
        """One image `(C, H, W)`, or one row `(F)`, and its label, as `DataLoader` expects."""
        return self.images[index], int(self.labels[index])

    def __repr__(self) -> str:
        if not isinstance(self.images, np.ndarray):
            return f"Split({count(len(self), 'image')}, decoded on access)"
        if self.tabular:
            features = count(self.images.shape[1], "feature")
            return f"Split({count(len(self), 'row')} of {features})"
        sides = "x".join(map(str, self.images.shape[1:]))
        return f"Split({count(len(self), 'image')} of {sides})"

    @property
    def tabular(self) -> bool:
        """Whether these are rows of a table."""
        return isinstance(self.images, np.ndarray) and self.images.ndim == 2

    @property
    def array(self) -> NDArray[Any]:
        """The images or rows as one array; a lazy source is refused."""
        if not isinstance(self.images, np.ndarray):
            raise ValueError("images: expected an array in memory, got files decoded one by one")
        return self.images


@dataclass(frozen=True, repr=False)
class Dataset:
    """Named splits with their classes and normalisation.

    Attributes:
        name: The dataset's name.
        splits: `"train"`, perhaps `"test"`, and others such as `"validation"`.
        class_names: A name for each class.
        mean: Per-channel mean of the training images, scaled to 0..1; of a table, the mean of
            each feature over the training rows.
        std: Standard deviation, likewise; 1 for a constant feature of a table.
        clean: Whether the training labels that the data came with are known to be right. A user's
            own labels are not.
        columns: How the columns of a table became features; `None` for images.
        left_out: Names of training samples that a labels file leaves out.
        label: The label column of a table.
        group: The group column of a table, if one was named.
        grouping: A checksum of its values.
        frame: The table, if it was given as a DataFrame.
        annotators: The columns of a table that hold the labels of several annotators.
        text_labels: Whether labels were given as text in memory: they are not read as numbers.

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
    label: str | None = None
    group: str | None = None
    grouping: str = ""
    frame: pd.DataFrame | None = None
    annotators: tuple[str, ...] = ()
    text_labels: bool = False

    def __repr__(self) -> str:
        sizes = [
            f"{name}: {repr(split)[6:-1] if name == 'train' else f'{len(split):,}'}"
            for name, split in self.splits.items()
        ]
        classes = count(self.num_classes, "class", "classes")
        return f"Dataset({self.name!r}, {', '.join(sizes)}, {classes}: {few(self.class_names)})"

    @property
    def train(self) -> Split:
        """The training split."""
        return self.splits["train"]

    @property
    def test(self) -> Split:
        """The test split."""
        return self.splits["test"]

    @property
    def truth(self) -> NDArray[np.int64] | None:
        """The true training labels, if they are known."""
        if not self.clean or self.train.truth is not None:
            return self.train.truth
        return self.train.labels

    @property
    def features(self) -> NDArray[Any]:
        """The training images or rows as one array, without the ids of the terms of texts."""
        array = self.train.array
        return array if self.columns is None else np.delete(array, self.columns.ids, axis=1)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def in_classes(self, names: Sequence[str]) -> Dataset:
        """The dataset with labels as indices into a run's classes; some may be missing here.

        Raises:
            ValueError: A sample has a class that is not in `names`.

        >>> train = Split(np.zeros((2, 1, 4, 4), np.uint8), np.array([0, 1]))
        >>> new = Dataset("new", {"train": train}, ("cat", "dog"), (0.5,), (0.25,))
        >>> new.in_classes(["bird", "dog", "cat"]).train.labels
        array([2, 1])
        """
        if tuple(names) == self.class_names:
            return self
        index = as_indices(self.class_names, names)
        # An unknown class without samples does no harm.
        used = np.unique(np.concatenate([split.labels for split in self.splits.values()]))
        if unknown := [self.class_names[label] for label in used if index[label] < 0]:
            expected = f"data: expected classes of the run ({few(list(names))})"
            raise ValueError(f"{expected}, {self.name} has {few(unknown)}")
        splits = {
            name: replace(
                split,
                labels=index[split.labels],
                truth=None if split.truth is None else index[split.truth],
            )
            for name, split in self.splits.items()
        }
        return replace(self, splits=splits, class_names=tuple(names))

    @property
    def tabular(self) -> bool:
        """Whether it holds rows of a table."""
        return self.train.tabular

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one example: `(C, H, W)` of the first training image, or `(F,)` of rows."""
        images = self.train.images
        return images.shape[1:] if isinstance(images, np.ndarray) else images[0].shape

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the first training image."""
        channels, height, width = self.input_shape
        return channels, height, width


def order_classes(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in the same order on every system: numbers by value, anything else as text.

    Text is sorted by code points, as torchvision sorts class folders.
    """
    different = set(names)
    if not all(name.isascii() and name.isdigit() for name in different):
        return tuple(sorted(different))
    return tuple(sorted(different, key=lambda name: (int(name), name)))


def as_indices(words: Any, names: Sequence[str]) -> NDArray[np.int64]:
    """The index of each word among the names of the classes, -1 for any other.

    >>> as_indices(["dog", "", "cat"], ["cat", "dog"])
    array([ 1, -1,  0])
    """
    index = pd.Index(names, dtype=object).get_indexer(pd.Index(words, dtype=object))
    return index.astype(np.int64)


def refuse_classes(place: str, names: Sequence[str], samples: int) -> None:
    """Refuse classes that no classifier can learn: one alone, or one for each sample."""
    if len(names) < 2:
        found = f"only {names[0]!r}" if names else "none"
        raise ValueError(f"{place}: expected at least two classes, got {found}")
    if len(names) >= max(samples, 3):
        found = f"{count(len(names), 'label')} ({few(names)}) of {count(samples, 'sample')}"
        raise ValueError(f"{place}: expected labels that samples share, got {found}")


def refuse_other_classes(dataset: Dataset, names: Sequence[str], whose: str) -> None:
    """Refuse a dataset whose classes are not the same, in the same order."""
    if dataset.class_names != tuple(names):
        changed = few(sorted({*dataset.class_names} ^ {*names})) or "their order"
        expected = f"expected the classes of {whose}"
        raise ValueError(f"{dataset.name}: {expected}; different: {changed}")


def report_classes(
    place: str, labels: NDArray[np.int64], names: Sequence[str], *, fewest: int = 1
) -> None:
    """Warn of classes with fewer training samples, and of names that are nearly the same."""
    counts = np.bincount(labels, minlength=len(names))
    if rare := [name for name, samples in zip(names, counts, strict=True) if samples < fewest]:
        words = "without a" if fewest == 1 else "with at most a single"
        classes = count(len(rare), "class", "classes")
        # A misspelled label is a class of its own, and an audit would suggest any other one for it.
        common = [name for name in names if name not in rare]
        near = {name: "".join(get_close_matches(name, common, 1, 0.8)) for name in rare}
        named = few([f"{name} ({near[name]}?)" if near[name] else name for name in rare])
        notice(f"{place}: {classes} {words} training sample: {named}")
    report_similar(place, names)


def report_similar(place: str, names: Iterable[str]) -> None:
    """Warn of class names that differ only in case or spaces."""
    spellings: dict[str, list[str]] = defaultdict(list)
    for name in names:
        spellings[" ".join(name.casefold().split())].append(name)
    for same in spellings.values():
        if len(same) > 1:
            written = " and ".join(repr(name) for name in same)
            differ = f"the classes {written} differ only in case or spaces"
            notice(f"{place}: {differ}; if they are one class, write them alike")


def are_text(labels: Any) -> bool:
    """Whether labels are text.

    >>> are_text(np.array(["0", "1"])), are_text([0, 1])
    (True, False)
    """
    return pd.api.types.infer_dtype(np.asarray(labels).ravel(), skipna=True) == "string"


def restore_values(
    table: pd.DataFrame, columns: Sequence[str], class_names: Sequence[str], *, text: bool
) -> pd.DataFrame:
    """Columns of class names as pandas reads them from a file: numbers, true and false.

    So that they can be compared with labels, and take their place. Those given as `text` stay text.

    >>> table = pd.DataFrame({"label": ["3", "1"]})
    >>> restore_values(table, ["label"], ["1", "3"], text=False)["label"].sum()
    np.int64(4)
    >>> names = ["1.1", "1.10"]
    >>> restore_values(pd.DataFrame({"label": names}), ["label"], names, text=False).label.nunique()
    2
    """
    if text:
        return table
    if {*class_names} <= {"False", "True"}:
        return table.assign(**{column: table[column] == "True" for column in columns})
    for kind, written in ((np.int64, "0|-?[1-9][0-9]{0,15}"), (np.float64, r"-?[0-9]+\.[0-9]+")):
        # 1.10 is no number if it is another class than 1.1.
        if all(re.fullmatch(written, name) and str(kind(name)) == name for name in class_names):
            return table.astype(dict.fromkeys(columns, kind))
    return table
