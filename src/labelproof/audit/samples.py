"""The samples of an audit: their images or cells, near duplicates and outliers.

Rows are compared by their standardised features, texts by their terms. A near duplicate is far
closer to another sample than is usual, an outlier far from its ten nearest neighbours. Images are
compared as thumbnails to find near duplicates, and by statistics such as brightness, contrast and
sharpness to find outliers: broken images often come in numbers, so each is compared with 400
others, among which few are.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pandas.util import hash_pandas_object

from labelproof.audit.folder import Audit
from labelproof.audit.predictions import table_of
from labelproof.audit.typical import MAD_TO_DEVIATION, Typical
from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset, Split, as_indices, refuse_other_classes
from labelproof.data.duplicates import find_duplicate_rows, find_duplicates
from labelproof.data.images import (
    ImageFiles,
    UnreadableImageError,
    as_picture,
    data_url,
    decode_image,
    encode_picture,
    look_at_each,
    sample_names,
)
from labelproof.data.load import Reading
from labelproof.data.notices import DataWarning
from labelproof.data.table import as_text, read_table, row_names
from labelproof.data.texts import term_rarity, weigh_terms, words_of

_ROWS = 20_000
"""Most rows whose typical values are computed; more would hardly change a median."""


class Samples:
    """The samples of an audit, read from the data on demand.

    Args:
        audit: The audit.
        dataset: The data, read again; `None` if they cannot be read: samples then have names only.
    """

    def __init__(self, audit: Audit, dataset: Dataset | None):
        self.audit = audit
        self.dataset = dataset
        self._cells = read_cells(dataset, audit.data) if audit.cells is None else audit.cells

    @property
    def kind(self) -> str:
        """`"images"`, `"rows"`, or `"unknown"` if there is nothing to show."""
        shown = self.dataset is not None or self.audit.cells is not None
        return self.audit.kind if shown else "unknown"

    def picture(self, place: int, *, side: int) -> tuple[bytes, str]:
        """A sample's image no larger than a square of `side` pixels, and its media type."""
        assert self.dataset is not None  # noqa: S101
        images = self.dataset.train.images
        index = int(self.audit.index[place])
        if index < 0:
            raise UnreadableImageError(f"{self.audit.samples[place]}: is no longer in the data")
        if isinstance(images, ImageFiles):
            pixels = decode_image(
                images.files[index], mode=images.mode, short_side=side, enlarge=False
            )
        else:
            pixels = images[index]
        image = as_picture(pixels)
        image.thumbnail((side, side))
        return encode_picture(image)

    def picture_url(self, place: int, *, side: int) -> str:
        """The same as a data URL, to embed in a page."""
        return data_url(*self.picture(place, side=side))

    def cells(self, place: int) -> list[tuple[str, str]]:
        """The columns of a row and their text; empty if the row is no longer there."""
        if self.audit.index[place] < 0:
            return []
        if len(self._cells):
            return list(self._cells.loc[self.audit.samples[place]].items())
        row = self.table(np.array([place])).iloc[0]
        return [(f"{column}", f"{value:g}") for column, value in row.items()]

    @cached_property
    def typical(self) -> Typical:
        """What is typical of the rows of each class."""
        present = np.flatnonzero(self.audit.index >= 0)
        chosen = np.random.default_rng(0).permutation(present)[:_ROWS]
        return Typical(self.table(chosen), self.audit.findings.given[chosen])

    def table(self, places: NDArray[np.int64]) -> pd.DataFrame:
        """Rows as `cells` shows them."""
        if len(self._cells):
            return self._cells.loc[[self.audit.samples[place] for place in places.tolist()]]
        assert self.dataset is not None  # noqa: S101
        return pd.DataFrame(self.dataset.train.array[self.audit.index[places]])


def read_cells(labels: Any, data: str | os.PathLike[str]) -> pd.DataFrame:
    """The cells of a dataset's rows as text, indexed by row name; empty if it has none."""
    if (table := table_of(labels, data)) is None or not labels.tabular:
        return pd.DataFrame()
    with warnings.catch_warnings():
        # The warnings were shown when the data were read first.
        warnings.simplefilter("ignore", DataWarning)
        columns = read_table(table, on_error="skip").columns
        cells = read_table(table, text=columns, on_error="skip")
    texts = pd.DataFrame({name: _as_shown(column) for name, column in cells.items()})
    return texts.set_axis(list(row_names(cells)), axis=0)


def _as_shown(column: pd.Series) -> pd.Series:
    try:
        return as_text(column)
    except ValueError:  # lists or objects, which are not features
        return column.astype(str)


def mark_rows(cells: pd.DataFrame, places: Sequence[str]) -> NDArray[np.uint32] | None:
    """A checksum of each row, to notice that its line holds another row, as after sorting."""
    if cells.empty:
        return None
    marks = hash_pandas_object(cells, index=False)  # pyright: ignore[reportCallIssue]
    return marks.reindex(places, fill_value=0).to_numpy().astype(np.uint32)


def open_samples(audit: Audit) -> Samples:
    """Read an audit's data again, to show them; refuse data with other classes or samples."""
    if audit.kind == "unknown" or audit.cells is not None:
        return Samples(audit, None)
    # With given predictions nothing is trained, so no features are needed.
    given = audit.method.get("predictions") == "given"
    dataset = Reading.of(audit.options).load(audit.data, on_error="later", features=not given)
    # The model behind given predictions may have more classes, in another order.
    if not given or not {*dataset.class_names} <= {*audit.class_names}:
        refuse_other_classes(dataset, audit.class_names, "the audit")
    return Samples(_locate(audit, dataset), dataset)


def _locate(audit: Audit, dataset: Dataset) -> Audit:
    """The audit with each sample's index in data that may have changed since.

    A sample that is no longer in the data gets -1: it is listed, but cannot be shown. So does one
    whose label has changed: rows are identified by line, and the line may hold another row.
    """
    names = sample_names(dataset.train, audit.data)
    places = {name: place for place, name in enumerate(names)}
    index = np.array([places.get(name, -1) for name in audit.samples], dtype=np.int64)
    if audit.method.get("noise") is None:
        known = as_indices(dataset.class_names, audit.class_names)
        index[known[dataset.train.labels[index]] != audit.findings.given] = -1
    if audit.marks is not None:
        marks = mark_rows(read_cells(dataset, audit.data), audit.samples)
        index[marks != audit.marks] = -1
    if (index < 0).all():
        raise ValueError(f"{audit.data}: the data contain none of the audit's samples")
    return replace(audit, index=index)


_MOST = 50_000
"""Most samples that are compared, each with all others."""
_FEWEST = 50
_NEIGHBOURS = 10
_FAR = 4.0
"""Robust standard deviations by which an outlier is farther from its neighbours than usual."""
_LEAST = 0.4
"""Least such difference, in the logarithm of the distance, in case all samples are alike."""
_CLIPPED = 4.0
"""Standard deviations to which features are clipped: an indicator that is 1 in two rows of a
thousand would decide alone."""
_SIDE = 32
"""Side of the images that statistics are computed on; thumbnails have a quarter of it."""
_OTHERS = 400
"""Number of images that each is compared with to find outliers, which may be many of a kind."""
_CHUNK = 500
_DIRECTIONS = 128


class Features(NamedTuple):
    """The features that samples are compared by.

    Near duplicates are found by `copies`: one is closer to another sample than the share `near` of
    the median distance. Outliers are found by `kinds` or, if `None`, also by `copies`.
    """

    copies: NDArray[np.float32]
    near: float
    kinds: NDArray[np.float32] | None = None


class Neighbours(NamedTuple):
    """The sample that each one nearly repeats, or -1, and whether it is an outlier."""

    duplicate_of: NDArray[np.int64]
    outlier: NDArray[np.bool_]


def features_of(
    split: Split, index: NDArray[np.int64], columns: Columns | None = None
) -> Features | None:
    """The features to compare samples by; `None` if there are too many samples or too few.

    >>> split = Split(np.eye(60, dtype=np.float32), np.zeros(60, np.int64))
    >>> features_of(split, np.arange(50)).copies.shape
    (50, 60)
    """
    if not _FEWEST <= len(index) <= _MOST:
        return None
    if split.tabular and columns is not None and len(columns.ids):
        rows = split.array[index]
        beside = np.delete(rows, [*columns.ids, *columns.words], axis=1)
        scaled = _standardized(beside) / max(beside.shape[1], 1) ** 0.5
        terms = rows[:, columns.ids].astype(np.int32)
        weighed = weigh_terms(terms, term_rarity(terms))
        # Random directions keep distances.
        axes = np.random.default_rng(0).normal(size=(int(terms.max()) + 1, _DIRECTIONS))
        texts = (weighed @ axes / _DIRECTIONS**0.5).astype(np.float32)
        return Features(np.hstack([scaled, texts]), near=0.25)
    if split.tabular:
        scaled = _standardized(split.array[index])
        return Features(scaled, near=0.13) if scaled.shape[1] else None
    images = split.images
    if isinstance(images, ImageFiles):  # small ones are decoded faster
        images = ImageFiles(images.files, mode=images.mode, short_side=_SIDE)
    decoded = look_at_each(index.tolist(), images.__getitem__)
    try:
        summaries = [_summary(part) for part in iter(lambda: [*islice(decoded, _CHUNK)], [])]
    except (UnreadableImageError, ValueError):
        return None
    small, statistics = (np.concatenate(part) for part in zip(*summaries, strict=True))
    # Statistics are correlated: whitening gives every direction the same weight.
    axes, lengths, _ = np.linalg.svd(_standardized(statistics), full_matrices=False)
    if not lengths[0] > 0:
        return None  # all images are the same
    kinds = axes[:, lengths > 0.05 * lengths[0]] * len(index) ** 0.5
    return Features(small, near=0.25, kinds=kinds)


def _standardized(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    scaled = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-6)
    return np.clip(scaled, -_CLIPPED, _CLIPPED)


def _summary(images: Sequence[NDArray[Any]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Thumbnails of equal brightness and contrast, `(N, F)`, and statistics, `(N, G)`."""
    pool = torch.nn.functional.adaptive_avg_pool2d
    pixels = torch.stack([pool(torch.from_numpy(image).float() / 255, _SIDE) for image in images])
    small = pool(pixels, _SIDE // 4).flatten(1)
    small -= small.mean(dim=1, keepdim=True)
    small /= small.norm(dim=1, keepdim=True).clamp_min(0.02 * small.shape[1] ** 0.5)
    grey, colours = pixels.mean(dim=1), pixels.mean(dim=(2, 3))
    saturation = (pixels.amax(dim=1) - pixels.amin(dim=1)).mean(dim=(1, 2))
    dark, bright = (grey < 0.02).float(), (grey > 0.98).float()
    statistics = [grey.std(dim=(1, 2)), saturation, dark.mean(dim=(1, 2)), bright.mean(dim=(1, 2))]
    for _ in range(3):  # how much neighbouring pixels differ, at three sizes
        statistics += [
            grey.diff(dim=side).abs().mean(dim=(1, 2)).add(0.003).log() for side in (1, 2)
        ]
        grey = torch.nn.functional.avg_pool2d(grey, 2)
    return small.numpy(), torch.column_stack([colours, *statistics]).numpy()


def find_neighbours(features: Features) -> Neighbours:
    """Near duplicates and outliers by exact nearest neighbours.

    There are no near duplicates if most samples have an equal one: features are then too coarse.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
        >>> rows[7], rows[9] = rows[3] + 1e-3, 30
        >>> found = find_neighbours(Features(rows, near=0.13))
        >>> np.flatnonzero(found.duplicate_of >= 0), np.flatnonzero(found.outlier)
        (array([3, 7]), array([9]))
    """
    # Imported here, since it takes a second, for which every command would wait.
    from sklearn.neighbors import NearestNeighbors

    copies, share, kinds = features
    search = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, len(copies) - 1)).fit(copies)
    distances, indices = search.kneighbors()
    near = distances[:, 0] < share * np.median(distances[:, 0])
    if kinds is not None:
        others = kinds[np.linspace(0, len(kinds) - 1, min(_OTHERS, len(kinds))).astype(np.int64)]
        search = NearestNeighbors(n_neighbors=max(len(others) // 20, 1)).fit(others)
        distances, _ = search.kneighbors(kinds)
    # In the logarithm, since distances are skewed; those of copies may be 0.
    far = np.log(np.maximum(distances.mean(axis=1), 1e-12))
    above = far - np.median(far)
    deviation = MAD_TO_DEVIATION * np.median(np.abs(above))
    return Neighbours(
        np.where(near, indices[:, 0], -1), above > max(_FAR * float(deviation), _LEAST)
    )


def confirm_texts(found: Neighbours, texts: Sequence[str]) -> Neighbours:
    """The near duplicates that share half of their words.

    Words of a single text are no features, so texts of such words all look alike.

    >>> found = Neighbours(np.array([1, 0, 3, 2]), np.zeros(4, np.bool_))
    >>> confirm_texts(found, ["a big dog", "big dog!", "Wien", "Paris"]).duplicate_of
    array([ 1,  0, -1, -1])
    """
    confirmed = found.duplicate_of.copy()
    for place, text in enumerate(texts):
        other = texts[int(confirmed[place])] if confirmed[place] >= 0 else text
        if other != text:
            words, others = {*words_of(text)}, {*words_of(other)}
            if 2 * len(words & others) < max(len(words | others), 1):
                confirmed[place] = -1
    return found._replace(duplicate_of=confirmed)


def copies_of(split: Split) -> NDArray[np.int64]:
    """A number for each image, the same for exact copies of one another; -1 for all others.

    Equal rows do not count as copies: two people may have the same few features.
    """
    if split.tabular:
        return np.full(len(split), -1)
    if isinstance(split.images, np.ndarray):
        return find_duplicate_rows(split.images)
    files = getattr(split.images, "files", [""] * len(split))
    return find_duplicates([file if isinstance(file, str) else "" for file in files])
