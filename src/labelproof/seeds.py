"""What random draws are made from: seeds, generators and labels; no global state."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def admit_labels(
    labels: ArrayLike, num_classes: int | None = None, *, name: str = "labels"
) -> NDArray[np.int64]:
    """Return indices as a new array, or raise.

    Args:
        labels: One index per sample, `(N)`.
        num_classes: Number of classes, if known.
        name: The argument's name, for the message.

    >>> admit_labels([2, 0], 3)
    array([2, 0])
    >>> admit_labels([2, 0], 2)
    Traceback (most recent call last):
        ...
    ValueError: labels: expected 0 to 1, got 2
    """
    given = np.asarray(labels)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise TypeError(
            f"{name}: expected one integer per sample, got {given.dtype} of shape {given.shape}"
        )
    if given.size and given.min() < 0:
        raise ValueError(f"{name}: expected indices of at least 0, got {given.min()}")
    if given.size and num_classes is not None and given.max() >= num_classes:
        raise ValueError(f"{name}: expected 0 to {num_classes - 1}, got {given.max()}")
    return given.astype(np.int64)
