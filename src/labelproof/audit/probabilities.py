"""Predictions that come from elsewhere, admitted or refused with the reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.data.array_files import why_unreadable
from labelproof.data.notices import count

__all__ = [
    "LogProbabilities",
    "Table",
    "admit_given",
    "admit_probabilities",
    "admit_table",
    "are_decisions",
    "read_probabilities",
]

_CHUNK = 1 << 16
_SUM_TOLERANCE = 0.01
"""How far from 1 a row may sum up: half precision loses as much over a thousand classes."""

_LARGEST = 2.0**53
"""Beyond it, two whole numbers may be the same as floats."""

_TO_INDICES = (
    "a label is the place of a column, counted from 0: numpy.searchsorted(model.classes_, labels)"
)

_SMALLEST = 1e-12
"""Probabilities below are taken for this one: a model that says 0 would rule a class out for ever,
and few can know as much."""


class Table(Protocol):
    """Numbers for each sample and class, read part by part."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Samples and classes."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, part: Any, /) -> NDArray[np.floating]: ...


Probabilities: TypeAlias = NDArray[np.floating]


class LogProbabilities:
    """Probabilities as logits: their logarithms, taken of each part when it is asked for.

    Args:
        probabilities: `(N, C)`, such as a file that is mapped.

    Example:
        >>> LogProbabilities(np.array([[1.0, 0.0]]))[:1].round(1)
        array([[  0. , -27.6]], dtype=float32)
    """

    def __init__(self, probabilities: Probabilities):
        self.probabilities = probabilities

    @property
    def shape(self) -> tuple[int, ...]:
        """Samples and classes."""
        return self.probabilities.shape

    def __len__(self) -> int:
        return len(self.probabilities)

    def __getitem__(self, part: Any, /) -> NDArray[np.float32]:
        chosen = np.array(self.probabilities[part], dtype=np.float32)
        np.maximum(chosen, np.float32(_SMALLEST), out=chosen)
        return np.log(chosen, out=chosen)


def read_probabilities(path: str | os.PathLike[str]) -> Probabilities:
    """Map an array file, without reading it yet and without running anything in it.

    Args:
        path: A `.npy` file of floating-point numbers, as `numpy.save` writes it.

    Raises:
        ValueError: The file is something else; the message says what.
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file")
    try:
        return np.lib.format.open_memmap(file, mode="r")
    except (ValueError, EOFError, OSError) as error:
        reason = why_unreadable(error, advice="save plain numbers")
        raise ValueError(
            f"{file}: expected an array of numbers as numpy.save writes it ({reason})"
        ) from None


def admit_probabilities(probabilities: ArrayLike) -> Probabilities:
    """Return probabilities as an array `(N, C)`, or say what is wrong with them.

    Args:
        probabilities: For each sample, the probability of each class.

    Raises:
        ValueError: The shape is another, an entry is not a number or negative, or a row does not
            sum to 1; the message names the first such row.

    Example:
        >>> admit_probabilities([[0.5, 0.6]])
        Traceback (most recent call last):
            ...
        ValueError: probabilities: expected rows that sum to 1, got 1.1 in row 0 (1 of 1 row); ...
    """
    table = admit_table(probabilities)
    first: tuple[int, float] | None = None
    bad = 0
    for begin in range(0, len(table), _CHUNK):
        chunk = np.asarray(table[begin : begin + _CHUNK])
        _refuse_entries(chunk, begin)
        with np.errstate(over="ignore"):  # a sum of infinity is refused as any other
            sums = chunk.sum(axis=1, dtype=np.float32)
        wrong = np.flatnonzero(np.abs(sums - 1) > _SUM_TOLERANCE)
        bad += len(wrong)
        if first is None and len(wrong):
            first = begin + int(wrong[0]), float(sums[wrong[0]])
    if first is not None:
        row, total = first
        raise ValueError(
            f"probabilities: expected rows that sum to 1, got {total:.4g} in row {row} ({bad:,} of "
            f"{count(len(table), 'row')}); {_advice(total)}"
        )
    return table


def admit_table(probabilities: ArrayLike, *, place: str = "probabilities") -> Probabilities:
    """Return an array `(N, C)` of numbers, whatever they are, or say what else it is.

    >>> admit_table([[0.5, 0.5], [1.0]])
    Traceback (most recent call last):
        ...
    ValueError: probabilities: expected an array of shape (samples, classes) ... different lengths
    """
    expected = (
        f"{place}: expected an array of shape (samples, classes) with at least two classes, got"
    )
    try:
        table = np.asanyarray(probabilities)
    except ValueError:
        raise ValueError(f"{expected} rows of different lengths") from None
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"{expected} shape {table.shape}")
    if table.dtype.kind not in "fiu":
        raise ValueError(f"{place}: expected numbers, got {table.dtype}")
    if not len(table):
        raise ValueError(f"{place}: expected at least one row, got none")
    return table


def are_decisions(table: Probabilities) -> bool:
    """Whether every number is 0 or 1: what a model decided, and not how sure it is.

    >>> are_decisions(np.eye(3)), are_decisions(np.full((2, 2), 0.5))
    (True, False)
    """
    chunks = range(0, len(table), _CHUNK)
    return all(bool(np.isin(table[begin : begin + _CHUNK], (0, 1)).all()) for begin in chunks)


def _advice(total: float) -> str:
    """What rows that sum to something else probably are."""
    if 98 <= total <= 102:
        return "these look like percentages: divide by 100"
    if total < 1:
        return "is there a class without a column?"
    return "if these are logits, take their softmax first"


def _refuse_entries(chunk: NDArray[Any], begin: int) -> None:
    # NaN is neither at least 0 nor less than anything, so two comparisons find all there is.
    if chunk.min() >= 0 and chunk.max() < np.inf:
        return
    row, column = np.argwhere(~((chunk >= 0) & (chunk < np.inf)))[0].tolist()
    logits = "; if these are logits, take their softmax first" if chunk[row, column] < 0 else ""
    raise ValueError(
        f"probabilities: expected numbers from 0 to 1, got {chunk[row, column]:g} in row "
        f"{begin + row}, column {column}{logits}"
    )


def admit_given(
    given: ArrayLike, *, samples: int, classes: int, place: str = "probabilities"
) -> NDArray[np.int64]:
    """Return labels as class indices, one for each row of the probabilities, or say what is wrong.

    Args:
        given: Class indices: whole numbers, which may have come as floats, or no and yes for the
            first class and the second.
        samples: Rows of the probabilities.
        classes: Their columns.
        place: What those are called, for the message.

    Example:
        >>> admit_given([0.0, 2.0], samples=2, classes=3)
        array([0, 2])
        >>> admit_given([0, 3], samples=2, classes=3)
        Traceback (most recent call last):
            ...
        ValueError: labels: expected 0 to 2, one of the 3 columns of the probabilities, got 3 ...
    """
    labels = _as_indices(given)
    if len(labels) != samples:
        raise ValueError(
            f"labels: expected one for each of {count(samples, 'row')} of the {place}, got "
            f"{len(labels):,}"
        )
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(outside):
        raise ValueError(
            f"labels: expected 0 to {classes - 1}, one of the {classes} columns of the {place}, "
            f"got {labels[outside[0]]} for sample {outside[0]}; {_TO_INDICES}"
        )
    return labels.astype(np.int64)


def _as_indices(given: ArrayLike) -> NDArray[Any]:
    """Labels as whole numbers, whatever they are."""
    try:
        labels = np.asarray(given)
    except ValueError:
        raise ValueError(
            "labels: expected one class index per sample, got several of some"
        ) from None
    if labels.ndim == 1 and labels.dtype.kind == "O" and len(labels):
        # As pandas gives whole numbers; of text and numbers together NumPy would make text.
        values: list[Any] = labels.tolist()
        if all(isinstance(value, (int, float)) for value in values):
            labels = np.array(values)
    kind = labels.dtype.kind
    if labels.ndim != 1 or kind not in "iufb":
        raise ValueError(
            f"labels: expected one class index per sample, got {labels.dtype} of shape "
            f"{labels.shape}" + (f"; {_TO_INDICES}" if labels.ndim == 1 else "")
        )
    if kind == "b":
        return labels.astype(np.int64)
    if kind == "f":
        broken = np.flatnonzero(~(np.abs(labels) < _LARGEST) | (labels != np.rint(labels)))
        if len(broken):
            raise ValueError(
                f"labels: expected one class index per sample, got {labels[broken[0]]:g} for "
                f"sample {broken[0]}"
            )
        return labels.astype(np.int64)
    return labels
