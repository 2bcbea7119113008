"""Confidence intervals of shares counted on few examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NORMAL_95 = 1.959963984540054
"""95% of a normal distribution is within this many standard deviations of its mean."""


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """The 95% confidence interval of a counted share, by Wilson's formula.

    Unlike the normal approximation it stays within 0 and 1, and has a width even at 0 and 1.

    Args:
        correct: Number of correct examples.
        total: Number of examples, at least 1.

    Example:
        >>> low, high = wilson_interval(450, 450)
        >>> round(low, 4), high
        (0.9915, 1.0)

    Reference:
        Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    centre, spread = (float(each) for each in _wilson(correct / total, total))
    low = 0.0 if correct == 0 else max(centre - spread, 0.0)
    return low, 1.0 if correct == total else min(centre + spread, 1.0)


def matrix_interval(
    shares: NDArray[np.float64], spread: NDArray[np.float64], total: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The 95% confidence interval of each entry of a matrix whose rows sum to 1.

    A rare share may be 0 in every draw, and its spread with it. So no interval is narrower than
    Wilson's for the effective number of examples, which would give a row the same spread.

    Args:
        shares: `(R, C)`; from a regression some may be below 0.
        spread: Their standard deviations, `(R, C)`.
        total: Number of examples of each row, `(R)`.

    Example:
        >>> shares = np.array([[0.9, 0.1, 0.0]])
        >>> low, high = matrix_interval(shares, np.array([[0.04, 0.04, 0.0]]), np.array([100.0]))
        >>> low.round(2), high.round(2)
        (array([[0.79, 0.02, 0.  ]]), array([[0.98, 0.21, 0.06]]))
    """
    rows = np.maximum(total, 1.0)[:, None]
    within = np.clip(shares, 0, 1)
    binomial = (within * (1 - within)).sum(axis=1, keepdims=True) / rows
    spreads = (spread**2).sum(axis=1, keepdims=True)
    effective = rows * np.minimum(1.0, binomial / np.maximum(spreads, 1e-12))
    centre, half = _wilson(within, np.maximum(effective, 1e-12))
    low = np.minimum(centre - half, shares - NORMAL_95 * spread)
    high = np.maximum(centre + half, shares + NORMAL_95 * spread)
    low[shares * rows < 1] = 0.0  # less than one example
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _wilson(share: Any, total: Any) -> tuple[Any, Any]:
    """The centre of Wilson's interval and half its width, for numbers or arrays."""
    squared = NORMAL_95**2
    centre = (share + squared / (2 * total)) / (1 + squared / total)
    spread = NORMAL_95 * np.sqrt(share * (1 - share) / total + squared / (4 * total**2))
    return centre, spread / (1 + squared / total)
