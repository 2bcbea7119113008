"""The samples of an audit: what each is called, and how it looks."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from labelproof.audit.folder import Audit
from labelproof.audit.row_marks import mark_rows, read_cells
from labelproof.data.dataset import Dataset
from labelproof.data.encoded import UnreadableImageError, decode_image
from labelproof.data.images import ImageFiles, as_picture
from labelproof.data.loading import TABLES
from labelproof.data.notices import few
from labelproof.data.reading import Reading
from labelproof.data.sample_names import sample_names

__all__ = ["Samples", "open_samples"]

_EXACT = 64
"""Sides up to which an image is kept exactly; larger ones are photos."""


class Samples:
    """The samples of an audit, read from the data when they are asked for.

    Args:
        audit: Whose samples.
        dataset: The data, read again; `None` where they are not to be had, so that samples have
            names and nothing to look at.
        table: For rows: the file they are in.
    """

    def __init__(self, audit: Audit, dataset: Dataset | None, table: Path | None = None):
        self.audit = audit
        self.dataset = dataset
        self._cells = read_cells(table) if table is not None else {}

    @classmethod
    def of(cls, audit: Audit, dataset: Dataset | None) -> Samples:
        """The samples of an audit whose data are open already, or are not to be had."""
        place = Path(audit.data).expanduser()
        rows = dataset is not None and dataset.tabular and place.suffix.lower() in TABLES
        return cls(audit, dataset, place if rows else None)

    @property
    def kind(self) -> str:
        """`"images"`, `"rows"`, or `"unknown"` where there is nothing to look at."""
        return self.audit.kind if self.dataset is not None else "unknown"

    def picture(self, place: int, *, side: int) -> tuple[bytes, str]:
        """A sample's image no larger than a square of `side` pixels, and its media type.

        Args:
            place: Which of the audit's samples.
            side: Most pixels of its longer side; a small image is exact.

        Raises:
            UnreadableImageError: The file has vanished or changed since.
        """
        assert self.dataset is not None  # noqa: S101
        images = self.dataset.train.images
        index = int(self.audit.index[place])
        if index < 0:
            raise UnreadableImageError(f"{self.audit.samples[place]}: has vanished since the audit")
        if isinstance(images, ImageFiles):
            pixels = decode_image(
                images.files[index], mode=images.mode, short_side=side, enlarge=False
            )
        else:
            pixels = images[index]
        image = as_picture(pixels)
        stream = io.BytesIO()
        if max(image.size) <= _EXACT:
            image.save(stream, "png")
            return stream.getvalue(), "image/png"
        image.thumbnail((side, side))
        image.save(stream, "jpeg", quality=80)
        return stream.getvalue(), "image/jpeg"

    def cells(self, place: int) -> list[tuple[str, str]]:
        """A row's columns and what is written in them; nothing where the row has vanished."""
        name = self.audit.samples[place]
        if self.audit.index[place] < 0:
            return []
        if name in self._cells:
            return self._cells[name]
        assert self.dataset is not None  # noqa: S101
        row = self.dataset.train.array[int(self.audit.index[place])]
        return [(f"{column}", f"{value:g}") for column, value in enumerate(row.tolist())]


def open_samples(audit: Audit) -> Samples:
    """Read an audit's data again, to show them.

    Raises:
        FileNotFoundError: The data are not where they were.
        ValueError: They are others: their classes or samples have changed since.
    """
    if audit.kind == "unknown":
        return Samples(audit, None)
    dataset = Reading.of(audit.options).load(
        audit.data,
        on_error="later",
        # Nothing is learned from what someone else's model has predicted already.
        features=audit.method.get("predictions") != "given",
    )
    _check_classes(audit, dataset)
    return Samples.of(_found_again(audit, dataset), dataset)


def _check_classes(audit: Audit, dataset: Dataset) -> None:
    if audit.class_names == dataset.class_names:
        return
    gone = [name for name in audit.class_names if name not in dataset.class_names]
    new = [name for name in dataset.class_names if name not in audit.class_names]
    if audit.method.get("predictions") == "given" and not new:
        return  # someone else's model may know of more classes, in an order of its own
    changed = [f"without {few(gone)}"] * bool(gone) + [f"with {few(new)}"] * bool(new)
    raise ValueError(
        f"{audit.data}: its classes are not those of the audit, but "
        f"{' and '.join(changed) or 'in another order'}; audit it anew"
    )


def _found_again(audit: Audit, dataset: Dataset) -> Audit:
    """The audit with each sample's place in data that may have lost or gained some since.

    One that has vanished is at -1: it is listed, and cannot be looked at. So is one whose label is
    another by now: a row is known by its line, and may be another row.
    """
    names = sample_names(dataset.train, audit.data)
    places = {name: place for place, name in enumerate(names)}
    index = np.array([places.get(name, -1) for name in audit.samples], dtype=np.int64)
    if audit.method.get("noise") is None:
        numbers = {name: number for number, name in enumerate(audit.class_names)}
        known = np.array([numbers[name] for name in dataset.class_names])
        index[known[dataset.train.labels[index]] != audit.findings.given] = -1
    if audit.marks is not None:
        marks = mark_rows(Path(audit.data).expanduser(), audit.samples)
        index[marks != audit.marks] = -1
    if (index < 0).all():
        raise ValueError(f"{audit.data}: none of the audit's samples is there any more")
    return replace(audit, index=index)
