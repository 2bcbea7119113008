"""How sure a share can be that was counted on few examples."""

from __future__ import annotations

import math

__all__ = ["NORMAL_95", "wilson_interval"]

NORMAL_95 = 1.959963984540054
"""Standard deviations to either side of a mean between which 95% of a normal variable lie."""


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """The 95% interval of a share that was counted, by Wilson's formula.

    Unlike the textbook's it stays within 0 and 1, and says something when all are right.

    Args:
        correct: How many there were.
        total: Of how many; at least 1.

    Example:
        >>> low, high = wilson_interval(450, 450)
        >>> round(low, 4), high
        (0.9915, 1.0)

    Reference:
        Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    share, squared = correct / total, NORMAL_95**2
    centre = (share + squared / (2 * total)) / (1 + squared / total)
    spread = NORMAL_95 * math.sqrt(share * (1 - share) / total + squared / (4 * total**2))
    spread /= 1 + squared / total
    low = 0.0 if correct == 0 else max(centre - spread, 0.0)
    return low, 1.0 if correct == total else min(centre + spread, 1.0)
