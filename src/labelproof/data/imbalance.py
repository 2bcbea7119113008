"""Fewer samples of some classes: long-tailed and step imbalance, as indices to keep.

Reference:
    Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019 (long-tailed);
    Buda et al., "A systematic study of the class imbalance problem in convolutional neural
    networks", Neural Networks 2018 (step).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.data.holdout import admit_labels, order_by_class
from labelproof.ranges import suggest, within
from labelproof.seeds import Seed, as_generator

__all__ = [
    "Imbalance",
    "keep_counts",
    "keep_long_tailed",
    "keep_step",
    "long_tailed_counts",
    "parse_imbalance",
    "step_counts",
]

_KINDS = ("none", "long-tailed", "step")


def long_tailed_counts(largest: int, num_classes: int, factor: float) -> list[int]:
    r"""How many samples each class keeps, $\lfloor n f^{i / (k - 1)} \rfloor$ of class i.

    The first class keeps all, the last a share of `factor`, those between fall geometrically. What
    is left over one sample is cut off, as in the published code; the last sample of a class is not.

    Args:
        largest: Number of samples of the largest class, $n$.
        num_classes: $k$.
        factor: $f$, the smallest class over the largest, in (0, 1].

    Example:
        >>> long_tailed_counts(5000, 10, 0.01)
        [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """
    factor = _check(largest, num_classes, factor)
    return [_whole(largest * factor ** (i / (num_classes - 1))) for i in range(num_classes)]


def step_counts(largest: int, num_classes: int, factor: float) -> list[int]:
    r"""How many samples each class keeps: the first half all, the last half $\lfloor n f \rfloor$.

    With an odd number of classes the one in the middle keeps all.

    Args:
        largest: Number of samples of the largest class, $n$.
        num_classes: Number of classes.
        factor: $f$, the small classes over the large ones, in (0, 1].

    Example:
        >>> step_counts(500, 5, 0.1)
        [500, 500, 500, 50, 50]
    """
    factor = _check(largest, num_classes, factor)
    small = num_classes // 2
    return [largest] * (num_classes - small) + [_whole(largest * factor)] * small


def keep_long_tailed(labels: ArrayLike, factor: float, *, seed: Seed) -> NDArray[np.int64]:
    """Choose samples so that class sizes fall geometrically from the first class to the last.

    Counts follow from the largest class; a class that has fewer to begin with keeps all it has.

    Args:
        labels: Class indices, `(N)`.
        factor: The smallest class over the largest, in (0, 1].
        seed: Decides which samples, alike on every platform: a number, or a generator that is moved
            on.

    Returns:
        The indices to keep, in rising order.

    Example:
        >>> kept = keep_long_tailed(np.repeat([0, 1, 2], 100), 0.04, seed=1)
        >>> np.bincount(np.repeat([0, 1, 2], 100)[kept])
        array([100,  20,   4])
    """
    given = admit_labels(labels)
    sizes = np.bincount(given)
    counts = long_tailed_counts(int(sizes.max(initial=0)), len(sizes), factor)
    return keep_counts(given, counts, seed=seed)


def keep_step(labels: ArrayLike, factor: float, *, seed: Seed) -> NDArray[np.int64]:
    """Choose samples so that the last half of the classes is small.

    Counts follow from the largest class; a class that has fewer to begin with keeps all it has.

    Args:
        labels: Class indices, `(N)`.
        factor: The small classes over the large ones, in (0, 1].
        seed: Decides which samples, alike on every platform: a number, or a generator that is moved
            on.

    Returns:
        The indices to keep, in rising order.

    Example:
        >>> keep_step([0, 0, 0, 0, 1, 1, 1, 1], 0.5, seed=1)
        array([0, 1, 2, 3, 4, 7])
    """
    given = admit_labels(labels)
    sizes = np.bincount(given)
    counts = step_counts(int(sizes.max(initial=0)), len(sizes), factor)
    return keep_counts(given, counts, seed=seed)


def keep_counts(labels: ArrayLike, counts: Sequence[int], *, seed: Seed) -> NDArray[np.int64]:
    """Choose samples at random, so many of each class.

    Of a class that has fewer, all are kept. With the same seed, a larger count of a class keeps
    the samples of a smaller one and more.

    Args:
        labels: Class indices, `(N)`.
        counts: How many to keep of each class.
        seed: Decides which samples, alike on every platform: a number, or a generator that is moved
            on.

    Returns:
        The indices to keep, in rising order.

    Example:
        >>> keep_counts([0, 1, 0, 1, 0, 1], [1, 2], seed=1)
        array([2, 3, 5])
    """
    given = admit_labels(labels)
    sizes = np.bincount(given, minlength=len(counts))
    if len(sizes) > len(counts):
        raise ValueError(
            f"counts: expected one for each of {len(sizes)} classes, got {len(counts)}"
        )
    if min(counts, default=0) < 0:
        raise ValueError(f"counts: expected numbers of at least 0, got {min(counts)}")
    order = order_by_class(given, as_generator(seed))
    rank = np.arange(len(given)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[rank < np.repeat(counts, sizes)])


@dataclass(frozen=True)
class Imbalance:
    """A kind of imbalance and its factor; prints as the text it was read from."""

    kind: str
    factor: float = 1.0

    def keep(self, labels: ArrayLike, *, seed: Seed) -> NDArray[np.int64]:
        """The indices to keep, in rising order."""
        if self.kind == "none":
            return np.arange(len(admit_labels(labels)))
        keep = keep_long_tailed if self.kind == "long-tailed" else keep_step
        return keep(labels, self.factor, seed=seed)

    def __str__(self) -> str:
        factor = repr(self.factor).removesuffix(".0")  # all digits: a run is made from this text
        return self.kind if self.kind == "none" else f"{self.kind}:{factor}"


def parse_imbalance(text: str) -> Imbalance:
    """Read `none`, `long-tailed:FACTOR` or `step:FACTOR`.

    >>> parse_imbalance("long-tailed:0.01")
    Imbalance(kind='long-tailed', factor=0.01)
    >>> parse_imbalance("longtailed:0.01")
    Traceback (most recent call last):
        ...
    ValueError: imbalance: expected none, long-tailed:FACTOR or step:FACTOR, got
    'longtailed:0.01'; did you mean 'long-tailed'?
    """
    kind, *rest = text.strip().lower().split(":")
    hint = "" if kind in _KINDS else suggest(kind, _KINDS)
    problem = ValueError(
        f"imbalance: expected none, long-tailed:FACTOR or step:FACTOR, got {text!r}{hint}"
    )
    if kind not in _KINDS or len(rest) != (kind != "none"):
        raise problem
    if kind == "none":
        return Imbalance(kind)
    try:
        factor = float(rest[0])
    except ValueError:
        raise problem from None
    return Imbalance(kind, within("imbalance factor", factor, 0, 1, open_low=True))


def _whole(count: float) -> int:
    # A class with no sample at all is another task, not an imbalanced one.
    return max(int(count), 1)


def _check(largest: int, num_classes: int, factor: float) -> float:
    if largest < 1:
        raise ValueError(f"largest: expected a class of at least 1 sample, got {largest}")
    if num_classes < 2:
        raise ValueError(f"num_classes: expected at least 2, got {num_classes}")
    return within("factor", factor, 0, 1, open_low=True)
