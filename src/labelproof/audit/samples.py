"""The samples of an audit: what each is called, and how it looks."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.util import hash_pandas_object

from labelproof.audit.folder import Audit
from labelproof.audit.predictions import table_of
from labelproof.data.dataset import Dataset
from labelproof.data.images import (
    ImageFiles,
    UnreadableImageError,
    as_picture,
    decode_image,
    sample_names,
)
from labelproof.data.load import Reading
from labelproof.data.notices import DataWarning, few
from labelproof.data.table import as_text, read_table, row_names

_EXACT = 64
"""Sides up to which an image is kept exactly; larger ones are photos."""


class Samples:
    """The samples of an audit, read from the data when they are asked for.

    Args:
        audit: Whose samples.
        dataset: The data, read again; `None` if they cannot be read, so that samples have names and
            nothing to look at.
    """

    def __init__(self, audit: Audit, dataset: Dataset | None):
        self.audit = audit
        self.dataset = dataset
        self._cells = read_cells(dataset, audit.data)

    @property
    def kind(self) -> str:
        """`"images"`, `"rows"`, or `"unknown"` where there is nothing to look at."""
        return self.audit.kind if self.dataset is not None else "unknown"

    def picture(self, place: int, *, side: int) -> tuple[bytes, str]:
        """A sample's image no larger than a square of `side` pixels, and its media type."""
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
        if self.audit.index[place] < 0:
            return []
        if len(self._cells):
            return list(self._cells.loc[self.audit.samples[place]].items())
        row = self.table(np.array([place])).iloc[0]
        return [(f"{column}", f"{value:g}") for column, value in row.items()]

    def table(self, places: NDArray[np.int64]) -> pd.DataFrame:
        """Rows as `cells` shows them."""
        if len(self._cells):
            return self._cells.loc[[self.audit.samples[place] for place in places.tolist()]]
        assert self.dataset is not None  # noqa: S101
        return pd.DataFrame(self.dataset.train.array[self.audit.index[places]])


def read_cells(labels: Any, data: str | os.PathLike[str]) -> pd.DataFrame:
    """The cells of a dataset's table as they are written; its index names each row.

    It is empty where the data are no table.
    """
    if (table := table_of(labels, data)) is None:
        return pd.DataFrame()
    with warnings.catch_warnings():
        # Whoever read the data before has been told about them.
        warnings.simplefilter("ignore", DataWarning)
        columns = read_table(table, on_error="skip").columns
        cells = read_table(table, text=columns, on_error="skip")
    texts = pd.DataFrame({name: as_text(column) for name, column in cells.items()})
    return texts.set_axis(list(row_names(cells)), axis=0)


def mark_rows(cells: pd.DataFrame, places: Sequence[str]) -> NDArray[np.uint32] | None:
    """A checksum of each row, by which it is known again after the table was sorted."""
    if cells.empty:
        return None
    marks = hash_pandas_object(cells, index=False)  # pyright: ignore[reportCallIssue]
    return marks.reindex(places, fill_value=0).to_numpy().astype(np.uint32)


def open_samples(audit: Audit) -> Samples:
    """Read an audit's data again, to show them; refuse other data than it was made from."""
    if audit.kind == "unknown":
        return Samples(audit, None)
    dataset = Reading.of(audit.options).load(
        audit.data,
        on_error="later",
        # Nothing is learned from what someone else's model has predicted already.
        features=audit.method.get("predictions") != "given",
    )
    _check_classes(audit, dataset)
    return Samples(_found_again(audit, dataset), dataset)


def _check_classes(audit: Audit, dataset: Dataset) -> None:
    if audit.class_names == dataset.class_names:
        return
    # Someone else's model may know of more classes, in an order of its own.
    given = audit.method.get("predictions") == "given"
    if not given or not {*dataset.class_names} <= {*audit.class_names}:
        changed = sorted({*dataset.class_names} ^ {*audit.class_names})
        raise ValueError(
            f"{audit.data}: expected the classes of the audit; different: "
            f"{few(changed) or 'their order'}; audit it again"
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
        marks = mark_rows(read_cells(dataset, audit.data), audit.samples)
        index[marks != audit.marks] = -1
    if (index < 0).all():
        raise ValueError(f"{audit.data}: none of the audit's samples is there any more")
    return replace(audit, index=index)
