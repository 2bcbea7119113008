"""Numbers far outside of what training rows had: most likely they are written in another way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "far_outside"]

FAR = 100
"""How many times the training range a number must lie outside of it to be told of."""


def far_outside(
    values: NDArray[np.float64], low: float | None, high: float | None
) -> NDArray[np.intp]:
    """Which numbers lie so far outside of the training range that something must be wrong.

    A thousands mark that is taken for a decimal one, another unit, or cents in place of euros: a
    network says something about such rows too, and nobody would know that it means nothing.

    Args:
        values: New numbers, NaN where missing.
        low: The smallest number of the training rows; `None` where it is not known.
        high: The largest.

    Example:
        >>> far_outside(np.array([982_750.0, 982.75, np.nan]), 40.0, 5_000.0)
        array([0])
    """
    if low is None or high is None:
        return np.empty(0, dtype=np.intp)
    # Of a number that was always the same, its own size is all that is known.
    reach = FAR * ((high - low) or abs(high))
    if not reach:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero((values > high + reach) | (values < low - reach))
