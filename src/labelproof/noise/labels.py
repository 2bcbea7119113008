"""Labels in, labels out, and what was done to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.noise.matrices import check_matrix

__all__ = ["NoisyLabels", "corrupt"]


@dataclass(frozen=True)
class NoisyLabels:
    """Clean and noisy labels side by side, with the matrix that was meant.

    Attributes:
        clean: The labels before, `(N)`.
        noisy: The labels after, `(N)`.
        matrix: The intended transition matrix, `(C, C)`.
    """

    clean: NDArray[np.int64]
    noisy: NDArray[np.int64]
    matrix: NDArray[np.float64]

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """Which labels are wrong now, `(N)`."""
        return self.clean != self.noisy

    @property
    def rate(self) -> float:
        """The share of labels that are wrong, as it came out and not as it was asked for."""
        return float(self.flipped.mean())

    @property
    def empirical_matrix(self) -> NDArray[np.float64]:
        """The transition matrix as it came out; a class without labels has a row of zeros."""
        counts = np.zeros_like(self.matrix)
        np.add.at(counts, (self.clean, self.noisy), 1)
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def corrupt(
    labels: ArrayLike, matrix: NDArray[np.float64], *, seed: int | np.random.Generator
) -> NoisyLabels:
    """Draw each label anew from its class's row of a transition matrix.

    Only uniform doubles are drawn, one a label, so a seed gives the same labels everywhere.

    Args:
        labels: Clean class indices, `(N)`.
        matrix: Row-stochastic, `(C, C)`.
        seed: A number, or a generator that is moved on.

    Example:
        >>> from labelproof.noise import symmetric_matrix
        >>> corrupt([0, 1, 2, 0], symmetric_matrix(3, 0.5), seed=1).noisy
        array([1, 2, 0, 2])
    """
    matrix = check_matrix(matrix)
    clean = np.asarray(labels)
    if clean.ndim != 1 or not np.issubdtype(clean.dtype, np.integer):
        raise TypeError(
            f"labels: expected one integer per sample, got {clean.dtype} of shape {clean.shape}"
        )
    if clean.size and (clean.min() < 0 or clean.max() >= len(matrix)):
        worst = clean.min() if clean.min() < 0 else clean.max()
        raise ValueError(f"labels: expected 0 to {len(matrix) - 1}, got {worst}")
    clean = clean.astype(np.int64)
    uniform = np.random.default_rng(seed).random(len(clean))
    noisy = np.empty_like(clean)
    for label, chances in enumerate(matrix):
        members = clean == label
        # The last sum may round to just under 1; without it no draw can fall past the end.
        noisy[members] = np.searchsorted(np.cumsum(chances)[:-1], uniform[members], side="right")
    return NoisyLabels(clean, noisy, matrix)
