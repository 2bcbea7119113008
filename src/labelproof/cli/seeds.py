"""Seeds as they are typed: whole numbers and ranges of them, separated by commas."""

from __future__ import annotations

import re

__all__ = ["parse_seeds"]

_MOST = 1000
"""More runs of one configuration are a slip of the finger."""


def parse_seeds(text: str) -> list[int]:
    """Read seeds.

    >>> parse_seeds("1,2,3")
    [1, 2, 3]
    >>> parse_seeds("1-3,7")
    [1, 2, 3, 7]
    >>> parse_seeds("1,1")
    Traceback (most recent call last):
        ...
    ValueError: seeds: expected different numbers of at least 0, got '1,1'
    """
    seeds: list[int] = []
    for part in text.split(","):
        bounds = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", part)
        try:
            low, high = map(int, bounds.groups()) if bounds else (int(part), int(part))
        except ValueError:
            raise ValueError(
                f"seeds: expected whole numbers such as 1,2,3 or a range such as 1-3, got {text!r}"
            ) from None
        if low > high:
            raise ValueError(
                f"seeds: expected a range from the lower number to the higher, got {text!r}"
            )
        if high - low >= _MOST:
            raise ValueError(f"seeds: expected at most {_MOST} of them, got {text!r}")
        seeds += range(low, high + 1)
    if min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected different numbers of at least 0, got {text!r}")
    return seeds
