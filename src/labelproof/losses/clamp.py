"""The reference code's floor under probabilities, as an option.

The authors' code lifts softmax outputs to at least 1e-7 before it uses them. That is not cosmetic:
for p = 0.01, 1e-7 ** p is 0.85, and below the floor the gradient is zero. Nothing here needs it
for numerical safety, so it is off by default and on where the paper is reproduced.
"""

from __future__ import annotations

import math

from torch import Tensor

from labelproof.ranges import within

__all__ = ["check_clamp", "clamp_log_probability"]


def check_clamp(clamp: float | None) -> float | None:
    """Check the floor: a probability in (0, 0.5], or `None` for no floor."""
    if clamp is None:
        return None
    return within("clamp", clamp, 0, 0.5, open_low=True)


def clamp_log_probability(log_probability: Tensor, clamp: float | None) -> Tensor:
    """Lift log-probabilities to at least `log(clamp)`, with no gradient below it."""
    return log_probability if clamp is None else log_probability.clamp_min(math.log(clamp))
