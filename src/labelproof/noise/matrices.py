"""Noise as a matrix: row i holds the chances that a label of class i is written as each class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from labelproof.ranges import within

__all__ = [
    "asymmetric_matrix",
    "check_matrix",
    "pair_matrix",
    "symmetric_matrix",
]


def symmetric_matrix(num_classes: int, rate: float) -> NDArray[np.float64]:
    """A flipped label goes to each of the OTHER classes with equal chance.

    The rate is the share of wrong labels: a flip never returns to the true class.

    >>> symmetric_matrix(3, 0.4)
    array([[0.6, 0.2, 0.2],
           [0.2, 0.6, 0.2],
           [0.2, 0.2, 0.6]])
    """
    rate = _check(num_classes, rate)
    matrix = np.full((num_classes, num_classes), rate / (num_classes - 1))
    np.fill_diagonal(matrix, 1 - rate)
    return matrix


def pair_matrix(num_classes: int, rate: float) -> NDArray[np.float64]:
    """A flipped label goes to the next class, the last one to the first.

    >>> pair_matrix(3, 0.4)
    array([[0.6, 0.4, 0. ],
           [0. , 0.6, 0.4],
           [0.4, 0. , 0.6]])
    """
    return asymmetric_matrix(
        num_classes, rate, confusions={i: (i + 1) % num_classes for i in range(num_classes)}
    )


def asymmetric_matrix(
    num_classes: int, rate: float, *, confusions: Mapping[int, int], in_turn: bool = False
) -> NDArray[np.float64]:
    """Each class named in `confusions` is written as the class it is confused with, at the rate.

    Args:
        num_classes: Number of classes.
        rate: The share of each such class that is written as another.
        confusions: For each class, which one.
        in_turn: Whether the classes are flipped one after the other, in the order of `confusions`,
            each as it stands by then: what came to a class before is flipped on with it.

    Example:
        >>> asymmetric_matrix(3, 0.4, confusions={0: 2})
        array([[0.6, 0. , 0.4],
               [0. , 1. , 0. ],
               [0. , 0. , 1. ]])
        >>> asymmetric_matrix(2, 0.4, confusions={0: 1, 1: 0}, in_turn=True)
        array([[0.76, 0.24],
               [0.4 , 0.6 ]])
    """
    rate = _check(num_classes, rate)
    if in_turn:
        matrix = np.eye(num_classes)
        for pair in confusions.items():
            matrix = matrix @ asymmetric_matrix(num_classes, rate, confusions=dict([pair]))
        return matrix
    matrix = np.eye(num_classes)
    for true, written in confusions.items():
        if not (0 <= true < num_classes and 0 <= written < num_classes):
            raise ValueError(
                f"confusions: expected classes from 0 to {num_classes - 1}, got {true} -> {written}"
            )
        matrix[true, true] = 1 - rate
        matrix[true, written] += rate
    return matrix


def check_matrix(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse what is not a square matrix whose rows are chances.

    >>> check_matrix(np.array([[0.5, 0.4], [0.0, 1.0]]))
    Traceback (most recent call last):
        ...
    ValueError: matrix: expected every row to add up to 1, got 0.9 in row 0
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix: expected a square matrix, got shape {matrix.shape}")
    bad = np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"matrix: expected finite chances of at least 0, got {matrix[row, column]:g} in row "
            f"{row}, column {column}"
        )
    sums = matrix.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1) > 1e-6)
    if off.size:
        raise ValueError(
            f"matrix: expected every row to add up to 1, got {sums[off[0]]:g} in row {off[0]}"
        )
    return matrix


def _check(num_classes: int, rate: float) -> float:
    if num_classes < 2:
        raise ValueError(f"num_classes: expected at least 2, got {num_classes}")
    return within("rate", rate, 0, 1)
