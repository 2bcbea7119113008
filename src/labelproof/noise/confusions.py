"""Which classes are taken for which other: the paper's asymmetric noise, dataset by dataset."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CONFUSIONS"]

_DIGITS = {2: 7, 3: 8, 5: 6, 6: 5, 7: 1}

CONFUSIONS: Mapping[str, Mapping[int, int]] = {
    "digits": _DIGITS,
    "mnist": _DIGITS,
    # Truck as automobile, bird as airplane, deer as horse, cat and dog exchanged.
    "cifar10": {9: 1, 2: 0, 4: 7, 3: 5, 5: 3},
}
"""For each dataset, the classes that are written as another one."""
