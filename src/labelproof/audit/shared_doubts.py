"""Whether labels are wrong where the network is in doubt, too.

Where a network wavers between two classes and the label is the second, either the network is wrong
or the label is; predictions and labels alone cannot tell. If mistakes fell on samples at random,
the doubt would be the network's own, and the noise model says how far to trust it. But people
confuse what looks alike, and so does a network.

There are samples that give it away: those of which the network is surest, where a label that
differs is wrong. If such labels are no more often the network's second choice than any other class,
mistakes are made at random. If they are, people share its doubts, and by as much its first choice
is taken to be right where a label differs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.surest import surest

__all__ = ["share_of_doubts"]

_SUREST = 0.25
"""Share of the samples of each predicted class that the network is taken to be right about."""

_MOST = 1 / 3
"""However alike the mistakes are, so much of its doubts are the network's own: noise that turns one
class into a similar one looks like shared doubts and is none."""


def share_of_doubts(
    logits: NDArray[np.float32], given: NDArray[np.int64], score: NDArray[np.float32]
) -> float:
    """Which share of its doubts a network has in common with whoever wrote the labels.

    Args:
        logits: `(N, C)`, by networks that have not seen the labels.
        given: The labels as they came, `(N)`.
        score: The probability that each is wrong, if doubts are the network's own.

    Returns:
        Between 0 and a third.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> logits = generator.normal(0, 3, (9000, 10)).astype(np.float32)
        >>> first, second = np.argsort(-logits, axis=1)[:, :2].T
        >>> wrong = np.ones(9000, np.float32)
        >>> share_of_doubts(logits, (first + generator.integers(1, 10, 9000)) % 10, wrong) < 0.03
        True
        >>> share_of_doubts(logits, second, wrong).__round__(2)
        0.33
    """
    classes = logits.shape[1]
    if classes < 3:  # where every mistake is the second choice
        return 0.0
    order = np.argpartition(-logits, 1, axis=1)[:, :2]
    best = np.take_along_axis(logits, order, axis=1)
    swapped = best[:, 0] < best[:, 1]
    first = np.where(swapped, order[:, 1], order[:, 0])
    second = np.where(swapped, order[:, 0], order[:, 1])
    margin = np.abs(best[:, 0].astype(np.float64) - best[:, 1])
    differing = surest(first, margin, _SUREST) & (given != first)
    weight = score[differing].astype(np.float64)
    if not weight.sum() > 0:
        return 0.0
    hits = float(weight[given[differing] == second[differing]].sum() / weight.sum())
    chance = 1 / (classes - 1)
    return min(max((hits - chance) / (1 - chance), 0.0), _MOST)
