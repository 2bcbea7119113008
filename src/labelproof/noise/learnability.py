"""Noise that drowns a class: another one has as many of its samples, or of its labels."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.noise.matrices import check_matrix

__all__ = ["Rival", "UnlearnableClassWarning", "find_rivals", "warn_of_rivals"]

_SHOWN = 3


class UnlearnableClassWarning(UserWarning):
    """Noise drowns a class: another one is written as often where it should stand.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnlearnableClassWarning)
    """


class Rival(NamedTuple):
    """A class that is beaten, what beats it, and by how much; prints as a sentence."""

    label: int
    """The class that is beaten."""
    rival: int
    """The class that beats it."""
    own: float
    """What the beaten class has: its chance to stay itself, or how many of its labels are right."""
    other: float
    """What the rival has instead."""
    samples: bool
    """Whether samples of the class get the rival's label, or its label stands on the rival's."""

    def __str__(self) -> str:
        if self.samples:
            return (
                f"class {self.label} is written {self.rival} with chance {self.other:.3g} "
                f"and {self.label} with chance {self.own:.3g}"
            )
        return (
            f"label {self.label} stands on about {self.other:.4g} samples of class {self.rival} "
            f"and {self.own:.4g} of its own"
        )


def find_rivals(
    matrix: NDArray[np.float64], *, class_sizes: ArrayLike | None = None
) -> list[Rival]:
    r"""Find the classes that noise drowns.

    The diagonal has to be the largest entry of its row, or the samples of a class have another's
    label at least as often as their own. Times the class sizes it also has to be the largest of
    its column, or a label stands on another class's samples at least as often as on its own.

    Args:
        matrix: Row-stochastic, `(C, C)`.
        class_sizes: Number of samples of each class, `(C)`; without it all classes are as large as
            1. A class without samples cannot be lost.

    Returns:
        One entry for each row and each column that is lost; none when all is well.

    Example:
        >>> from labelproof.noise import pair_matrix, symmetric_matrix
        >>> find_rivals(symmetric_matrix(10, 0.8))
        []
        >>> print(find_rivals(pair_matrix(3, 0.6))[0])
        class 0 is written 1 with chance 0.6 and 0 with chance 0.4
        >>> print(*find_rivals(pair_matrix(2, 0.2), class_sizes=[1000, 100]))
        label 1 stands on about 200 samples of class 0 and 80 of its own
    """
    matrix = check_matrix(matrix)
    num_classes = len(matrix)
    sizes = np.ones(num_classes) if class_sizes is None else np.asarray(class_sizes, np.float64)
    if sizes.shape != (num_classes,) or not np.isfinite(sizes).all() or (sizes < 0).any():
        raise ValueError(
            f"class_sizes: expected {num_classes} numbers of at least 0, got {class_sizes!r}"
        )
    present = sizes > 0
    return [
        *_beaten(matrix, present, samples=True),
        *_beaten((sizes[:, None] * matrix).T, present, samples=False),
    ]


def warn_of_rivals(
    matrix: NDArray[np.float64], *, class_sizes: ArrayLike | None = None, stacklevel: int = 1
) -> None:
    """Raise an `UnlearnableClassWarning` that names the first few classes that noise drowns.

    Args:
        matrix: As for `find_rivals`.
        class_sizes: As for `find_rivals`.
        stacklevel: Whose line the warning shows: 1 is the caller's, 2 the caller's caller's.

    Example:
        >>> from labelproof.noise import symmetric_matrix
        >>> warn_of_rivals(symmetric_matrix(10, 0.4))
    """
    rivals = find_rivals(matrix, class_sizes=class_sizes)
    if rivals:
        sentences = [str(rival) for rival in rivals[:_SHOWN]]
        more = len(rivals) - _SHOWN
        if more > 0:
            sentences.append(f"and {more} more like these")
        warnings.warn(
            f"this noise drowns classes, which may not be learned: {'; '.join(sentences)}",
            UnlearnableClassWarning,
            stacklevel=stacklevel + 1,
        )


def _beaten(
    weights: NDArray[np.float64], present: NDArray[np.bool_], *, samples: bool
) -> list[Rival]:
    own = weights.diagonal()
    others = weights.copy()
    np.fill_diagonal(others, -np.inf)
    best = others.max(axis=1)
    # At a draw such as 1 - 0.9 against 0.9 / 9, rounding would decide; both ways count as lost.
    lost = np.flatnonzero(present & (best >= own * (1 - 1e-9)))
    return [
        Rival(int(i), int(others[i].argmax()), float(own[i]), float(best[i]), samples) for i in lost
    ]
