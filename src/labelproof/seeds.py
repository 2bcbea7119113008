"""Random seeds and generators; nothing draws from a global state."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np

from labelproof.ranges import whole

Seed: TypeAlias = int | np.random.Generator


def as_generator(seed: Seed) -> np.random.Generator:
    """A generator for a seed; a generator is returned as it is, and draws advance it.

    PCG64 is named because numpy may change its default. Callers draw only uniform doubles: numpy
    guarantees them for PCG64 on all platforms and in all versions, but its shuffles, integers and
    normals may change between versions.

    >>> as_generator(1).random(2)
    array([0.51182162, 0.9504637 ])
    >>> as_generator(-1)
    Traceback (most recent call last):
        ...
    ValueError: seed: expected a whole number of at least 0, got -1
    """
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.Generator(np.random.PCG64(whole("seed", seed, 0)))


def derive_seed(seed: int, purpose: str, epoch: int = 0) -> int:
    """A 63-bit seed for one purpose in one epoch of a run.

    >>> derive_seed(1, "order", 3) == derive_seed(1, "order", 3)
    True
    >>> derive_seed(1, "order", 3) == derive_seed(1, "order", 4)
    False
    """
    # Hashed, because consecutive seeds give correlated streams in some generators.
    digest = hashlib.sha256(f"{seed}/{purpose}/{epoch}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
