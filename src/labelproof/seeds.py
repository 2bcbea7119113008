"""Where randomness comes from: a seed or a generator, never a global state."""

from __future__ import annotations

import hashlib
from numbers import Integral
from typing import TypeAlias

import numpy as np

__all__ = ["Seed", "as_generator", "derive_seed"]

Seed: TypeAlias = int | np.random.Generator


def as_generator(seed: Seed) -> np.random.Generator:
    """Turn a seed into a generator; leave a generator alone, to be moved on by what is drawn.

    The bit generator is named because numpy may choose another one as its default. Whoever draws
    takes uniform doubles alone: numpy promises the bits of PCG64 for all time and platforms, while
    its shuffles, integers and normals may change with a version.

    >>> as_generator(1).random(2)
    array([0.51182162, 0.9504637 ])
    >>> as_generator(-1)
    Traceback (most recent call last):
        ...
    ValueError: seed: expected a whole number of at least 0 or a numpy Generator, got -1
    """
    if isinstance(seed, np.random.Generator):
        return seed
    problem = f"seed: expected a whole number of at least 0 or a numpy Generator, got {seed!r}"
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise TypeError(problem)
    if seed < 0:
        raise ValueError(problem)
    return np.random.Generator(np.random.PCG64(int(seed)))


def derive_seed(seed: int, purpose: str, epoch: int = 0) -> int:
    """A seed of 63 bits for one purpose in one epoch of a run.

    >>> derive_seed(1, "order", 3) == derive_seed(1, "order", 3)
    True
    >>> derive_seed(1, "order", 3) == derive_seed(1, "order", 4)
    False
    """
    # A hash, because seeds that differ by one give related streams in some generators.
    digest = hashlib.sha256(f"{seed}/{purpose}/{epoch}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
