"""Parts of a training set to validate on, by the labels it came with.

Which labels are wrong is not known where labels come from the world, so a part that is held out has
wrong labels like the rest. Only training labels come in and only their indices go out: the test set
is out of reach.
"""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.data.grouped_cuts import deal_groups, draw_groups
from labelproof.data.groups import admit_groups
from labelproof.ranges import finite
from labelproof.seeds import Seed, as_generator

__all__ = ["Holdout", "admit_labels", "folds", "hold_out", "order_by_class"]


class Holdout(NamedTuple):
    """Indices into the training set, in rising order and without a common one."""

    train: NDArray[np.int64]
    """What to learn from."""
    validation: NDArray[np.int64]
    """What to validate on."""


def hold_out(
    labels: ArrayLike,
    share: float,
    *,
    seed: Seed,
    indices: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Holdout:
    """Hold out a share of every class to validate on.

    The validation part has `round(share * N)` samples, and of each class its share to within one.
    One sample of each class always stays to learn from, so a class that has only one is not
    validated on; the validation part is then smaller by what could not be taken.

    Args:
        labels: The given, noisy class indices of the whole training set, `(N)`.
        share: How much to hold out, between 0 and 1.
        seed: Decides which samples, alike on every platform: a number, or a generator that is moved
            on.
        indices: What to split, where it is not the whole training set.
        groups: What each sample belongs to, `(N)`, such as a patient. Samples of one group stay on
            one side, so that shares are only as near as whole groups come to them.

    Example:
        >>> train, validation = hold_out([0, 0, 0, 0, 1, 1, 1, 1, 2], 0.25, seed=1)
        >>> train, validation
        (array([0, 1, 3, 5, 6, 7, 8]), array([2, 4]))
    """
    share = finite("share", share)
    if not 0 < share < 1:
        raise ValueError(f"share: expected a number between 0 and 1, got {share:g}")
    given = admit_labels(labels)
    chosen = _admit_indices(indices, len(given))
    generator = as_generator(seed)
    together = _together(groups, chosen, len(given))
    if together is not None:
        if len(np.unique(together)) < 2:
            raise ValueError(
                "groups: expected at least two to hold out one and learn from another, got one"
            )
        return _split(chosen, draw_groups(given[chosen], together, share, generator))
    order = order_by_class(given[chosen], generator)
    sizes = np.bincount(given[chosen])
    # To the decimals that a share can mean: 0.29 * 100 is 28.999999999999996 in floats.
    ideal = (share * sizes).round(6)
    held = np.floor(ideal).astype(np.int64)
    missing = round(share * len(chosen)) - held.sum()
    # Classes that have one to spare, the largest remainders first, and chance among equal ones.
    most = np.maximum(sizes - 1, 0)
    held[np.lexsort((generator.random(len(sizes)), held - ideal, held >= most))[:missing]] += 1
    held = np.minimum(held, most)
    rank = np.arange(len(chosen)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return _split(chosen, order[rank < np.repeat(held, sizes)])


def folds(
    labels: ArrayLike,
    count: int,
    *,
    seed: Seed,
    indices: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> list[Holdout]:
    """Cut a training set into parts, each validated on once while the others are learned from.

    Every sample is validated on exactly once. The parts' sizes differ by at most one, and so do the
    numbers of each class in them. A class with fewer samples than there are folds is missing from
    some validation parts; one with a single sample is validated on by the one model that has never
    seen the class.

    Args:
        labels: The given, noisy class indices of the whole training set, `(N)`.
        count: Number of folds, at least 2 and at most one a sample.
        seed: Decides which samples go together, alike on every platform: a number, or a generator
            that is moved on.
        indices: What to cut, where it is not the whole training set.
        groups: What each sample belongs to, `(N)`, such as a patient. Samples of one group are in
            one part, so that parts are only as equal as whole groups can be.

    Example:
        >>> for fold in folds([0, 0, 0, 1, 1, 1], 3, seed=1):
        ...     print(fold.train, fold.validation)
        [0 1 3 5] [2 4]
        [1 2 3 4] [0 5]
        [0 2 4 5] [1 3]
    """
    given = admit_labels(labels)
    chosen = _admit_indices(indices, len(given))
    if isinstance(count, bool) or not isinstance(count, Integral):
        raise TypeError(f"count: expected a whole number, got {count!r}")
    if not 2 <= count <= len(chosen):
        raise ValueError(f"count: expected 2 to {len(chosen)} folds, got {count}")
    together = _together(groups, chosen, len(given))
    if together is not None:
        dealt = deal_groups(given[chosen], together, int(count), as_generator(seed))
        return [_split(chosen, np.flatnonzero(dealt == fold)) for fold in range(count)]
    order = order_by_class(given[chosen], as_generator(seed))
    # Dealt like cards, class after class: the next class goes on where the last one ended.
    return [_split(chosen, order[fold::count]) for fold in range(count)]


def order_by_class(labels: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Positions by class, in random order within each.

    >>> order_by_class(np.array([1, 0, 1, 0]), as_generator(1))
    array([3, 1, 2, 0])
    """
    return np.lexsort((generator.random(len(labels)), labels))


def admit_labels(labels: ArrayLike) -> NDArray[np.int64]:
    """Return class indices as an array, or say what is wrong with them.

    >>> admit_labels([0, -1])
    Traceback (most recent call last):
        ...
    ValueError: labels: expected class indices of at least 0, got -1
    """
    given = np.asarray(labels)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise TypeError(
            f"labels: expected one integer per sample, got {given.dtype} of shape {given.shape}"
        )
    if given.size and given.min() < 0:
        raise ValueError(f"labels: expected class indices of at least 0, got {given.min()}")
    return given.astype(np.int64)


def _admit_indices(indices: ArrayLike | None, length: int) -> NDArray[np.int64]:
    if indices is None:
        return np.arange(length)
    given = np.asarray(indices)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise TypeError(
            f"indices: expected a list of integers, got {given.dtype} of shape {given.shape}"
        )
    if given.size and (given.min() < 0 or given.max() >= length):
        worst = given.min() if given.min() < 0 else given.max()
        raise ValueError(f"indices: expected 0 to {length - 1}, got {worst}")
    # In rising order, so that the same samples are split alike however they are listed.
    unique = np.unique(given).astype(np.int64)
    if len(unique) < len(given):
        raise ValueError(
            f"indices: expected each sample once, got {len(given)} of which {len(unique)} differ"
        )
    return unique


def _together(
    groups: ArrayLike | None, chosen: NDArray[np.int64], length: int
) -> NDArray[np.int64] | None:
    """The groups of what is cut; `None` where each of it is alone."""
    admitted = admit_groups(groups, length)
    if admitted is None or len(np.unique(admitted[chosen])) == len(chosen):
        return None
    return admitted[chosen]


def _split(indices: NDArray[np.int64], held: NDArray[np.int64]) -> Holdout:
    mask = np.zeros(len(indices), dtype=np.bool_)
    mask[held] = True
    return Holdout(indices[~mask], indices[mask])
