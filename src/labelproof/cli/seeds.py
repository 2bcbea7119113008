"""Seeds as they are typed: whole numbers, separated by commas."""

from __future__ import annotations

__all__ = ["parse_seeds"]


def parse_seeds(text: str) -> list[int]:
    """Read seeds.

    >>> parse_seeds("1,2,3")
    [1, 2, 3]
    >>> parse_seeds("1,1")
    Traceback (most recent call last):
        ...
    ValueError: seeds: expected different numbers of at least 0, got '1,1'
    """
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"seeds: expected whole numbers such as 1,2,3, got {text!r}") from None
    if min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected different numbers of at least 0, got {text!r}")
    return seeds
