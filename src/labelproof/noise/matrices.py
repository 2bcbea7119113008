"""Transition matrices: row i holds the probabilities of the labels of true class i.

Also the classes that asymmetric noise confuses, and those that a matrix makes unlearnable.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.ranges import whole, within

Matrix: TypeAlias = NDArray[np.float64]
"""Probabilities, `(C, C)`: a row for each true class, a column for each label."""
Labels: TypeAlias = NDArray[np.int64]
"""Class indices, `(N)`."""


def symmetric_matrix(num_classes: int, rate: float) -> Matrix:
    """A flipped label goes to each of the OTHER classes with equal probability.

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


def pair_matrix(num_classes: int, rate: float) -> Matrix:
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
    num_classes: int,
    rate: float,
    *,
    confusions: Mapping[int, int] | Iterable[tuple[int, int]],
    in_turn: bool = False,
) -> Matrix:
    """Each class in `confusions` flips to the class it is confused with, at the rate.

    Args:
        num_classes: Number of classes.
        rate: The share of each such class that flips.
        confusions: From a class to the one it is confused with, as a dictionary or as pairs.
        in_turn: Whether classes flip one after the other, in the order of `confusions`: labels that
            have flipped to a class before then flip with it.

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
    matrix = np.eye(num_classes)
    for true, written in dict(confusions).items():
        classes = {whole("confusions", label, 0) for label in (true, written)}
        if len(classes) < 2 or max(classes) >= num_classes:
            raise ValueError(
                f"confusions: expected two classes from 0 to {num_classes - 1}, got {true} -> "
                f"{written}"
            )
        flip = np.eye(num_classes)
        flip[true, true] = 1 - rate
        flip[true, written] += rate
        if in_turn:
            matrix = matrix @ flip
        else:
            matrix[true] = flip[true]
    return matrix


def check_matrix(matrix: Matrix) -> Matrix:
    """Return a square matrix with rows of probabilities; refuse any other.

    >>> check_matrix(np.array([[0.5, 0.4], [0.0, 1.0]]))
    Traceback (most recent call last):
        ...
    ValueError: matrix: expected rows of numbers from 0 to 1 with a sum of 1, got the smallest 0.4
    and the sum 0.9 in row 0
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix: expected a square matrix, got shape {matrix.shape}")
    least, sums = matrix.min(axis=1), matrix.sum(axis=1)
    off = np.flatnonzero(~((least >= 0) & (np.abs(sums - 1) <= 1e-6)))  # NaN counts, too
    if off.size:
        raise ValueError(
            f"matrix: expected rows of numbers from 0 to 1 with a sum of 1, got the smallest "
            f"{least[off[0]]:g} and the sum {sums[off[0]]:g} in row {off[0]}"
        )
    return matrix


def _check(num_classes: int, rate: float) -> float:
    whole("num_classes", num_classes, 2)
    return within("rate", rate, 0, 1)


_SUPER_CLASS_OF = (
    *(4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7),
    *(6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10),
    *(16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16),
    *(12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13),
)
"""The super-class of each class of CIFAR-100, by the publisher's number."""

SUPER_CLASSES: tuple[tuple[int, ...], ...] = tuple(
    tuple(label for label, group in enumerate(_SUPER_CLASS_OF) if group == number)
    for number in range(20)
)
"""CIFAR-100's 20 super-classes in the publisher's order, each with its five classes."""


def _next_in_group(groups: Iterable[Sequence[int]]) -> dict[int, int]:
    return {
        label: group[(place + 1) % len(group)]
        for group in groups
        for place, label in enumerate(group)
    }


_DIGITS = {2: 7, 3: 8, 5: 6, 6: 5, 7: 1}

CONFUSIONS: Mapping[str, Mapping[int, int]] = {
    "digits": _DIGITS,
    "mnist": _DIGITS,
    # Truck as automobile, bird as airplane, deer as horse, cat and dog exchanged.
    "cifar10": {9: 1, 2: 0, 4: 7, 3: 5, 5: 3},
    # Each class as the next of its super-class, the last as the first.
    "cifar100": _next_in_group(SUPER_CLASSES),
}
"""For each dataset, the confusions of asymmetric noise in the paper's text."""

REFERENCE_CONFUSIONS: Mapping[str, Mapping[int, int]] = {
    # In the code's order, which matters: see IN_TURN.
    "cifar10": {9: 1, 2: 0, 3: 5, 5: 3, 4: 7},
    "cifar100": _next_in_group([range(start, start + 5) for start in range(0, 100, 5)]),
}
"""Those in the authors' code, where they differ.

It groups CIFAR-100's classes alphabetically, 0 to 4, 5 to 9 and so on, and not by super-class:
apples become aquarium fish. The published numbers for asymmetric
noise on CIFAR-100 come from this grouping.
"""

IN_TURN = frozenset({"cifar10"})
"""Datasets whose classes the code flips one after the other, each on the labels so far.

On CIFAR-10 cats become dogs first; then dogs become cats, including some that were cats before. At
rate 0.4, 24% of the cats end as dogs, and 18.4% of all labels are wrong instead of 20%. The public
code whose protocol the paper follows (HanxunH's Active-Passive-Losses) does so, as does much code
derived from it.
"""


_SHOWN = 3


class UnlearnableClassWarning(UserWarning):
    """Noise may make a class unlearnable: another label is as frequent as its own.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnlearnableClassWarning)
    """


def find_rivals(matrix: Matrix, *, class_sizes: ArrayLike | None = None) -> list[str]:
    r"""Find the classes that noise may make unlearnable.

    The diagonal must be the largest entry of its row, or samples of a class have another label at
    least as often as their own. Weighted by class sizes, it must also be the largest entry of its
    column, or a label is on samples of another class at least as often as on its own.

    Args:
        matrix: Row-stochastic, `(C, C)`.
        class_sizes: Number of samples of each class, `(C)`; equal by default. A class without
            samples is not reported.

    Returns:
        A sentence for each such row and column; empty if there is none.

    Example:
        >>> from labelproof.noise import pair_matrix, symmetric_matrix
        >>> find_rivals(symmetric_matrix(10, 0.8))
        []
        >>> find_rivals(pair_matrix(3, 0.6))[0]
        'class 0 is labelled 1 with probability 0.6 and 0 with probability 0.4'
        >>> print(*find_rivals(pair_matrix(2, 0.2), class_sizes=[1000, 100]))
        label 1 is on about 200 samples of class 0 and on 80 of its own
    """
    matrix = check_matrix(matrix)
    num_classes = len(matrix)
    sizes = np.ones(num_classes) if class_sizes is None else np.asarray(class_sizes, np.float64)
    present = sizes > 0
    rows = [
        f"class {label} is labelled {rival} with probability {other:.3g} and {label} with "
        f"probability {own:.3g}"
        for label, rival, own, other in _beaten(matrix, present)
    ]
    columns = [
        f"label {label} is on about {other:.4g} samples of class {rival} and on {own:.4g} of its "
        "own"
        for label, rival, own, other in _beaten((sizes[:, None] * matrix).T, present)
    ]
    return rows + columns


def _beaten(weights: Matrix, present: NDArray[np.bool_]) -> Iterator[tuple[int, int, float, float]]:
    """Rows whose diagonal is not the largest: the row, the largest column, and both entries."""
    own = weights.diagonal()
    others = weights.copy()
    np.fill_diagonal(others, -np.inf)
    best = others.max(axis=1)
    # In a tie such as 1 - 0.9 and 0.9 / 9, rounding would decide; a tie counts as lost.
    for row in np.flatnonzero(present & (best >= own * (1 - 1e-9))):
        yield int(row), int(others[row].argmax()), float(own[row]), float(best[row])


def warn_of_rivals(
    matrix: Matrix, *, class_sizes: ArrayLike | None = None, stacklevel: int = 1
) -> None:
    """Issue an `UnlearnableClassWarning` that names the first few classes found.

    Args:
        matrix: As for `find_rivals`.
        class_sizes: As for `find_rivals`.
        stacklevel: The line that the warning shows: 1 is the caller's, 2 its caller's.

    Example:
        >>> from labelproof.noise import symmetric_matrix
        >>> warn_of_rivals(symmetric_matrix(10, 0.4))
    """
    rivals = find_rivals(matrix, class_sizes=class_sizes)
    if rivals:
        sentences, more = rivals[:_SHOWN], len(rivals) - _SHOWN
        if more > 0:
            sentences.append(f"and {more} more like these")
        warnings.warn(
            f"this noise may make classes unlearnable: {'; '.join(sentences)}",
            UnlearnableClassWarning,
            stacklevel=stacklevel + 1,
        )
