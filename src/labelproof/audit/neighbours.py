"""Samples that are nearly the same as another one, and samples that are like no other.

Rows are compared by their standardised features, images by small copies of them. The distances to
the ten nearest others say both: far less than is usual to the nearest one is a near duplicate, and
far more than is usual to all ten is an outlier.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.data.dataset import Split
from labelproof.data.duplicates import find_duplicate_rows, find_duplicates
from labelproof.data.images import UnreadableImageError

_MOST = 20_000
"""Samples that are compared, each with all others."""
_DECODED = 3_000
"""Images that are decoded for it, where they are not in memory."""
_FEWEST = 50
_NEIGHBOURS = 10
_NEAR = {"rows": 0.13, "images": 0.2}
"""A near duplicate is closer to another sample than this share of the usual distance."""
_FAR = 4.0
"""An outlier is so many robust standard deviations further from its neighbours than usual."""
_LEAST = 0.4
"""And its distance is larger by this at least, in logarithm, where all are alike."""
_CLIPPED = 4.0
"""Standard deviations at which a feature counts as far out: an indicator that is 1 in two rows of a
thousand would decide alone."""
_SIDE = 8


class Neighbours(NamedTuple):
    """For each sample the one that it nearly repeats, or -1, and whether it is an outlier."""

    duplicate_of: NDArray[np.int64]
    outlier: NDArray[np.bool_]


def features_of(split: Split, index: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """What samples are compared by, `(N, F)`; `None` where there are too many or too few.

    >>> split = Split(np.eye(60, dtype=np.float32), np.zeros(60, np.int64))
    >>> features_of(split, np.arange(50)).shape
    (50, 60)
    """
    if not _FEWEST <= len(index) <= _MOST:
        return None
    if split.tabular:
        rows = split.array[index]
        if not rows.shape[1]:
            return None
        scaled = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-6)
        return np.clip(scaled, -_CLIPPED, _CLIPPED)
    if not isinstance(split.images, np.ndarray) and len(index) > _DECODED:
        return None
    try:
        return np.stack([_small(split.images[place]) for place in index.tolist()])
    except (UnreadableImageError, ValueError):
        return None


def _small(image: NDArray[Any]) -> NDArray[np.float32]:
    pooled = torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(image).float(), _SIDE)
    return (pooled / 255).flatten().numpy()


def find_neighbours(
    features: NDArray[np.float32], kind: Literal["rows", "images"] = "rows"
) -> Neighbours:
    """Near duplicates and outliers by exact nearest neighbours.

    Nothing is a near duplicate where most samples have an equal one: features are then too coarse.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
        >>> rows[7], rows[9] = rows[3] + 1e-3, 30
        >>> found = find_neighbours(rows)
        >>> np.flatnonzero(found.duplicate_of >= 0), np.flatnonzero(found.outlier)
        (array([3, 7]), array([9]))
    """
    # Not above: every command would wait a second for it.
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, len(features) - 1)).fit(features)
    distances, indices = search.kneighbors()
    near = distances[:, 0] < _NEAR[kind] * np.median(distances[:, 0])
    # By their logarithm, since distances are skewed; copies would make them 0.
    far = np.log(np.maximum(distances.mean(axis=1), 1e-12))
    above = far - np.median(far)
    deviation = 1.4826 * np.median(np.abs(above))
    return Neighbours(np.where(near, indices[:, 0], -1), above > max(_FAR * deviation, _LEAST))


def copies_of(split: Split) -> NDArray[np.int64]:
    """A number for each image, the same for exact copies of one another; -1 for all others.

    Equal rows are no copies here: two people may have the same few features.
    """
    numbers = np.full(len(split), -1)
    if split.tabular:
        return numbers
    if isinstance(split.images, np.ndarray):
        return find_duplicate_rows(split.images)
    files = getattr(split.images, "files", ())
    paths = [file if isinstance(file, str) else "" for file in files]
    for number, group in enumerate(find_duplicates(paths)):
        numbers[group] = number
    return numbers
