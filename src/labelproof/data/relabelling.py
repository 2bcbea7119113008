"""Labels from a file in place of those that came with the data, sample by sample."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.data.classes import check_left
from labelproof.data.dataset import Dataset, Images, Rows, Split
from labelproof.data.images import ImageFiles, select_images
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.sample_names import sample_names
from labelproof.data.tables import read_table
from labelproof.data.unicode_forms import KnownNames
from labelproof.data.unseen_values import spelled_otherwise

__all__ = ["relabel"]

_CORRECTED = 1 / 3
"""Share of samples that may have been corrected between two files of labels."""


def relabel(
    dataset: Dataset,
    data: str | os.PathLike[str],
    file: str | os.PathLike[str],
    *,
    few_classes: bool = False,
) -> Dataset:
    r"""The dataset with the labels of its training samples as a file has them.

    The file is a table with the columns `sample` and `label`, such as a review's. A sample whose
    label is empty is left out: whoever looked at it could not tell. One that the file does not name
    keeps its label. Samples and labels may have their accents stored in another way than the data.

    Args:
        dataset: What was read from `data`.
        data: Where it was read from, which samples are named by.
        file: The table.
        few_classes: Whether a single class will do: to measure on, and not to learn from.

    Raises:
        ValueError: A sample of the file is not in the data, a label is none of their classes, or
            fewer than two classes are left.

    Warns:
        DataWarning: A class is left without any sample, unless few will do, or the file changes
            nothing.

    Example:
        >>> from labelproof.data import load_digits
        >>> file = getfixture("tmp_path") / "reviewed.csv"
        >>> _ = file.write_text("sample,label\n0,1\n1,\n")
        >>> digits = load_digits()
        >>> corrected = relabel(digits, "digits", file)
        >>> int(digits.train.labels[0]), int(corrected.train.labels[0])
        (7, 1)
        >>> len(digits.train), len(corrected.train)
        (1347, 1346)
    """
    names = [_written(name) for name in sample_names(dataset.train, data)]
    classes = [_written(name) for name in dataset.class_names]
    samples, labelled = KnownNames(names), KnownNames(classes)
    place = readable(str(file))
    rows = [
        _Row(row.place, _known(row.sample, samples), _known(row.label, labelled))
        for row in _read(Path(file))
    ]
    if not rows:
        raise ValueError(f"{place}: expected a line for each label, got only the names of columns")
    # First of all: what else is wrong with a file of other data does not matter.
    _check_samples([row.sample for row in rows], names, place, readable(str(data)))
    decided = _decide(rows, place)
    _check_labels(decided, classes, place, readable(str(data)))
    before = [classes[label] for label in dataset.train.labels.tolist()]
    given = [
        (_known(sample, samples), _known(label, labelled)) for sample, label in _given(Path(file))
    ]
    _check_given(given, dict(zip(names, before, strict=True)), place)
    numbers = {name: number for number, name in enumerate(classes)}
    labels = dataset.train.labels.copy()
    kept = np.ones(len(labels), dtype=np.bool_)
    for index, name in enumerate(names):
        label = decided.get(name)
        if label is None:
            continue
        if label:
            labels[index] = numbers[label]
        else:
            kept[index] = False
    changed = int(np.count_nonzero((labels != dataset.train.labels) & kept))
    if not changed and kept.all():
        notice(f"{place}: every label in it is the one that the data have")
    if not kept.any():
        raise ValueError(f"{place}: leaves out every training sample")
    if not few_classes:
        ours, left = np.unique(dataset.train.labels), np.unique(labels[kept])
        check_left(place, [classes[index] for index in ours], [classes[index] for index in left])
    split = _select(replace(dataset.train, labels=labels), np.flatnonzero(kept))
    left_out = tuple(name for name, stays in zip(names, kept.tolist(), strict=True) if not stays)
    return replace(
        dataset,
        splits={**dataset.splits, "train": split},
        left_out=(*dataset.left_out, *left_out),
    )


def _written(name: str) -> str:
    """A name as a table has it: tables are UTF-8, and cells are read without the space around."""
    return readable(name).strip()


def _known(name: str, known: KnownNames) -> str:
    """A name as the data have it, or as it is where they do not."""
    return known.find(name) or name


@dataclass(frozen=True)
class _Row:
    """A line of the file; `place` is how a person finds it."""

    place: str
    sample: str
    label: str


def _read(file: Path) -> list[_Row]:
    table = read_table(file)
    folded = {name.strip().casefold(): name for name in table.columns}
    missing = [name for name in ("sample", "label") if name not in folded]
    if missing:
        raise ValueError(
            f"{readable(str(file))}: expected the columns sample and label, as a review writes "
            f"them, got {few(list(table.columns)) or 'none'}"
        )
    rows = table.read([folded["sample"], folded["label"]])
    return [_Row(row.place, *(_written(cell) for cell in row.cells)) for row in rows]


def _check_samples(given: Sequence[str], names: Sequence[str], file: str, data: str) -> None:
    known = set(names)
    strange = [name for name in dict.fromkeys(given) if name not in known]
    if strange:
        raise ValueError(
            f"{file}: {count(len(strange), 'sample')} of it not in {data}: {few(strange)}; is it "
            "of other data, or have files been moved since?"
        )


def _decide(rows: Sequence[_Row], file: str) -> dict[str, str]:
    """The label of each sample, or an error where it has two."""
    decided: dict[str, str] = {}
    for row in rows:
        if decided.setdefault(row.sample, row.label) != row.label:
            raise ValueError(
                f"{file}: {row.place}: {row.sample} has the label {row.label!r}, and "
                f"{decided[row.sample]!r} before"
            )
    return decided


def _check_labels(decided: dict[str, str], classes: Sequence[str], file: str, data: str) -> None:
    unknown = sorted({label for label in decided.values() if label} - set(classes))
    if unknown:
        raise ValueError(
            f"{file}: expected labels among {few(list(classes))}, the classes of {data}, got "
            f"{few(unknown)}{spelled_otherwise(unknown, classes)}"
        )


def _given(file: Path) -> list[tuple[str, str]]:
    """What samples were labelled when the file was made, as far as it says."""
    table = read_table(file)
    folded = {name.strip().casefold(): name for name in table.columns}
    if "given" not in folded:
        return []
    rows = table.read([folded["sample"], folded["given"]])
    cells = [(_written(row.cells[0]), _written(row.cells[1])) for row in rows]
    return [(sample, given) for sample, given in cells if given]


def _check_given(compared: Sequence[tuple[str, str]], labels: dict[str, str], file: str) -> None:
    """Refuse a file whose samples are others by now: a row is known by its line alone."""
    other = [sample for sample, given in compared if given != labels[sample]]
    if len(other) > _CORRECTED * len(compared):
        raise ValueError(
            f"{file}: {len(other):,} of {count(len(compared), 'sample')} had "
            f"another label when the file was made, such as {few(other)}; if rows have been moved "
            "since, it no longer says which is which. If they were corrected since, remove its "
            "column given"
        )
    if other:
        notice(
            f"{file}: {count(len(other), 'sample')} had another label when the file "
            f"was made, as after an earlier correction: {few(other)}"
        )


def _select(split: Split, kept: NDArray[np.int64]) -> Split:
    if len(kept) == len(split):
        return split
    chosen: list[int] = kept.tolist()
    places: list[str] | None = None
    if split.places is not None:
        places = [split.places[index] for index in chosen]
    elif not isinstance(split.images, ImageFiles):
        # What is called by its index keeps the one it had.
        places = [str(index) for index in chosen]
    groups = None if split.groups is None else split.groups[kept]
    return Split(_images(split.images, kept), split.labels[kept], places, groups)


def _images(images: Images | Rows, kept: NDArray[np.int64]) -> Images | Rows:
    if isinstance(images, np.ndarray):
        return images[kept]
    if isinstance(images, ImageFiles):
        files = select_images(images.files, kept.tolist())
        return ImageFiles(files, mode=images.mode, short_side=images.short_side)
    raise TypeError(f"images: expected an array or image files, got {type(images).__name__}")
