"""Long-tailed and step imbalance, as indices of the samples to keep.

Reference:
    Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019 (long-tailed);
    Buda et al., "A systematic study of the class imbalance problem in convolutional neural
    networks", Neural Networks 2018 (step).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.data.splits import admit_labels, order_by_class
from labelproof.ranges import suggest, within
from labelproof.seeds import Seed, as_generator

_KINDS = ("none", "long-tailed", "step")


def long_tailed_counts(largest: int, num_classes: int, factor: float) -> list[int]:
    r"""How many samples each class keeps, $\lfloor n f^{i / (k - 1)} \rfloor$ of class i.

    Args:
        largest: Number of samples of the largest class, $n$.
        num_classes: $k$.
        factor: $f$, the smallest class over the largest, in (0, 1].

    Example:
        >>> long_tailed_counts(5000, 10, 0.01)
        [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """
    factor = _check(largest, num_classes, factor)
    # At least one sample: a class without any is another task, not an imbalanced one.
    shares = (factor ** (index / (num_classes - 1)) for index in range(num_classes))
    return [max(int(largest * share), 1) for share in shares]


def step_counts(largest: int, num_classes: int, factor: float) -> list[int]:
    r"""How many samples each class keeps: the last half $\lfloor n f \rfloor$, the others all.

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
    return [largest] * (num_classes - small) + [max(int(largest * factor), 1)] * small


def keep_long_tailed(labels: ArrayLike, factor: float, *, seed: Seed) -> NDArray[np.int64]:
    """Choose samples so that class sizes fall geometrically from the first class to the last.

    Args:
        labels: Class indices, `(N)`.
        factor: The smallest class over the largest, in (0, 1].
        seed: A number, or a generator, which is advanced; the same on every platform.

    Returns:
        The indices to keep, in rising order; all of a class that is small already.

    Example:
        >>> kept = keep_long_tailed(np.repeat([0, 1, 2], 100), 0.04, seed=1)
        >>> np.bincount(np.repeat([0, 1, 2], 100)[kept])
        array([100,  20,   4])
    """
    return _keep(long_tailed_counts, labels, factor, seed)


def keep_step(labels: ArrayLike, factor: float, *, seed: Seed) -> NDArray[np.int64]:
    """Choose samples so that the last half of the classes is small.

    Args:
        labels: Class indices, `(N)`.
        factor: The small classes over the large ones, in (0, 1].
        seed: A number, or a generator, which is advanced; the same on every platform.

    Returns:
        The indices to keep, in rising order; all of a class that is small already.

    Example:
        >>> keep_step([0, 0, 0, 0, 1, 1, 1, 1], 0.5, seed=1)
        array([0, 1, 2, 3, 4, 7])
    """
    return _keep(step_counts, labels, factor, seed)


def _keep(
    count: Callable[[int, int, float], list[int]], labels: ArrayLike, factor: float, seed: Seed
) -> NDArray[np.int64]:
    given = admit_labels(labels)
    sizes = np.bincount(given)
    return keep_counts(given, count(int(sizes.max(initial=0)), len(sizes), factor), seed=seed)


def keep_counts(labels: ArrayLike, counts: Sequence[int], *, seed: Seed) -> NDArray[np.int64]:
    """Choose a number of samples of each class at random.

    With the same seed, a larger count of a class keeps the samples of a smaller one and more.

    Args:
        labels: Class indices, `(N)`.
        counts: How many to keep of each class; of a smaller class, all are kept.
        seed: A number, or a generator, which is advanced; the same on every platform.

    Returns:
        The indices to keep, in rising order.

    Example:
        >>> keep_counts([0, 1, 0, 1, 0, 1], [1, 2], seed=1)
        array([2, 3, 5])
    """
    given = admit_labels(labels)
    sizes = np.bincount(given, minlength=len(counts))
    if len(sizes) > len(counts) or min(counts, default=0) < 0:
        raise ValueError(
            f"counts: expected a number of at least 0 for each of {len(sizes)} classes, got "
            f"{list(counts)}"
        )
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
    ValueError: imbalance: expected none, long-tailed:FACTOR or step:FACTOR with a factor in (0, 1],
    got 'longtailed:0.01'; did you mean 'long-tailed'?
    """
    kind, _, factor = text.strip().lower().partition(":")
    if kind in _KINDS and bool(factor) == (kind != "none"):
        with suppress(ValueError):
            number = float(factor or 1)
            return Imbalance(kind, within("imbalance factor", number, 0, 1, open_low=True))
    hint = "" if kind in _KINDS else suggest(kind, _KINDS)
    raise ValueError(
        f"imbalance: expected none, long-tailed:FACTOR or step:FACTOR with a factor in (0, 1], got "
        f"{text!r}{hint}"
    )


def _check(largest: int, num_classes: int, factor: float) -> float:
    if largest < 1:
        raise ValueError(f"largest: expected a class of at least 1 sample, got {largest}")
    if num_classes < 2:
        raise ValueError(f"num_classes: expected at least 2, got {num_classes}")
    return within("factor", factor, 0, 1, open_low=True)
