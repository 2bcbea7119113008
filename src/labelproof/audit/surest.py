"""The samples that a network is surest of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["surest"]


def surest(
    predicted: NDArray[np.int64], margin: NDArray[np.floating], share: float | NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Of each predicted class, the share of samples with the largest margins, and at least one.

    Args:
        predicted: The class that is predicted, `(N)`.
        margin: By how much it is ahead of the next, `(N)`.
        share: How many of each class are chosen, between 0 and 1; for all alike, or `(C)`.

    Example:
        >>> surest(np.array([0, 0, 0, 0, 1]), np.array([1.0, 4.0, 2.0, 3.0, 0.5]), 0.5)
        array([False,  True, False,  True,  True])
    """
    chosen = np.zeros(len(predicted), dtype=np.bool_)
    order = np.lexsort((-margin, predicted))
    sizes = np.bincount(predicted, minlength=np.size(share))
    rank = np.arange(len(predicted)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen[order[rank < np.repeat(np.ceil(share * sizes), sizes)]] = True
    return chosen
