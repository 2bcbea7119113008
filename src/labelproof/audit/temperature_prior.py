r"""What is thought of a temperature before a label has been looked at.

With a hundred samples a network that happens to be right about all of its surest explains the
labels best without any doubts: the likelihood rises until the temperature is as low as it may be,
and every score is 0 or 1. So its logarithm is taken for normal about 0 beforehand, which is to say
that a network means about what it says. The strength is that of a few samples, and fades: from
5,000 on the labels speak for themselves.
"""

from __future__ import annotations

import math

__all__ = ["log_prior"]

_FEW = 5_000
"""Samples from which on nothing is thought beforehand."""


def log_prior(temperature: float, samples: int) -> float:
    r"""\(-\tfrac12 (\log T)^2\), less of it the more samples there are, and from 5,000 on nothing.

    Args:
        temperature: What logits are divided by.
        samples: How many labels it is estimated from.

    Returns:
        In the unit of the log-likelihood of one sample.

    Example:
        >>> round(log_prior(0.05, 100), 1), log_prior(1.0, 100), log_prior(0.05, 5_000)
        (-4.4, 0.0, 0.0)
    """
    return -0.5 * max(1 - samples / _FEW, 0.0) * math.log(temperature) ** 2 or 0.0
