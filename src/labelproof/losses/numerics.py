"""Numerically stable functions of log-probabilities, in value and gradient."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labelproof.ranges import within

LOG_TINY = -1e4
"""A logarithm whose exponential is 0 in float64, too."""

_LOG_HALF = math.log(0.5)


def complement(log_probability: Tensor) -> Tensor:
    r"""$1 - u$ from $\log u$, exact at both ends in value and gradient.

    `1 - exp` loses the value's digits near $u = 1$. `expm1` has them, but torch computes its
    derivative as the result plus 1, which loses the gradient's digits near $u = 0$. Each is used
    on its side of one half.
    """
    near_one = -torch.expm1(log_probability)
    return torch.where(log_probability > _LOG_HALF, near_one, 1 - log_probability.exp())


def log_mixed(log_probability: Tensor, share: float) -> Tensor:
    r"""Logarithm of $(a + u) / (a + 1)$ from $\log u$, with all digits near $u = 1$.

    Args:
        log_probability: $\log u$.
        share: $a \ge 0$; if it is 0, $u$ must not be.
    """
    near_one = torch.log1p(-complement(log_probability) / (share + 1))
    if share >= 1:
        return near_one
    # 1 - u would lose the digits of a small u.
    small = (log_probability.exp() + share).log() - math.log1p(share)
    return torch.where(log_probability > _LOG_HALF, near_one, small)


def own(values: Tensor, labels: Tensor | None) -> Tensor:
    """The values, `(N, C, ...)`, of the labels `(N, 1, ...)`, or all of them without labels."""
    return values if labels is None else values.gather(1, labels)


def others(values: Tensor, labels: Tensor | None) -> Tensor:
    """The sum over all other classes, for each of the labels `(N, 1, ...)` or for every class.

    The total minus the own value would lose small values beside a large one. So a label's own value
    is left out of the sum; for every class, the largest value is left out and added back to the
    sums of the others.
    """
    if labels is not None:
        return values.scatter(1, labels, 0).sum(dim=1, keepdim=True)
    largest = values.argmax(dim=1, keepdim=True)
    small = values.scatter(1, largest, 0)
    top = values.gather(1, largest).expand_as(values).scatter(1, largest, 0)
    return small.sum(dim=1, keepdim=True) - small + top


def check_clamp(clamp: float | None) -> float | None:
    """Check the floor: a probability in (0, 0.5], or `None` for no floor."""
    if clamp is None:
        return None
    return within("clamp", clamp, 0, 0.5, open_low=True)


def clamp_log_probability(log_probability: Tensor, clamp: float | None) -> Tensor:
    """Clamp log-probabilities to at least `log(clamp)`, with no gradient below it."""
    return log_probability if clamp is None else log_probability.clamp_min(math.log(clamp))


def of_label(values: Tensor, target: Tensor) -> Tensor:
    """Pick each example's entry for its own label out of `(N, C, ...)`."""
    return values.gather(1, target.unsqueeze(1)).squeeze(1)
