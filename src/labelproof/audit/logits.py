"""Networks' outputs before the softmax, admitted or refused with the reason."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.audit.named_tables import refuse_other_index, refuse_other_order
from labelproof.audit.probabilities import LogProbabilities, Table, admit_given, admit_table

__all__ = ["admit_logits", "admit_temperature"]

_CHUNK = 1 << 16
_LARGEST = float(np.finfo(np.float32).max)


def admit_logits(
    logits: LogProbabilities | ArrayLike, given: ArrayLike
) -> tuple[Table, NDArray[np.int64]]:
    """Return logits `(N, C)` and the labels of their rows, or say what is wrong with them.

    They are looked through part by part, and not copied: they may be a file that is mapped.

    Args:
        logits: Numbers; minus infinity rules a class out.
        given: Class indices.

    Raises:
        ValueError: The shape is another, a number is NaN or too large, a row rules out every class,
            or labels are not those of the rows.

    Example:
        >>> admit_logits([[2.0, -np.inf]], [0])[1]
        array([0])
        >>> admit_logits([[2.0, np.nan]], [0])
        Traceback (most recent call last):
            ...
        ValueError: logits: expected numbers, or -inf for what is ruled out, got nan in row 0, ...
    """
    refuse_other_order(logits, place="logits")
    refuse_other_index(logits, given, place="logits")
    if isinstance(logits, LogProbabilities):
        # Looked through when they were admitted, as probabilities.
        table: Table = logits
    else:
        table = admit_table(logits, place="logits")
        for begin in range(0, len(table), _CHUNK):
            _refuse_rows(np.asarray(table[begin : begin + _CHUNK]), begin)
    samples, classes = table.shape
    return table, admit_given(given, samples=samples, classes=classes, place="logits")


def _refuse_rows(chunk: NDArray[Any], begin: int) -> None:
    # Of all at once first, which is quicker. NaN is neither above nor below anything.
    if float(chunk.min()) >= -_LARGEST and float(chunk.max()) <= _LARGEST:
        return
    highest = chunk.max(axis=1).astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(highest) <= _LARGEST))
    if not len(wrong):
        return
    row = int(wrong[0])
    if highest[row] < 0:
        raise ValueError(
            "logits: expected a class in each row that is not ruled out, got -inf for all of row "
            f"{begin + row}"
        )
    column = int(np.flatnonzero(~(chunk[row] <= _LARGEST))[0])
    raise ValueError(
        f"logits: expected numbers, or -inf for what is ruled out, got {chunk[row, column]:g} in "
        f"row {begin + row}, column {column}; leave such samples out"
    )


def admit_temperature(temperature: float) -> float:
    """Return what logits can be divided by, or say that it is nothing of the kind.

    >>> admit_temperature(0)
    Traceback (most recent call last):
        ...
    ValueError: temperature: expected a number above 0, got 0
    """
    number = isinstance(temperature, Real) and math.isfinite(temperature)
    # As float32, which logits are divided in: what is smaller would be 0 there.
    if not number or not float(np.float32(temperature)) > 0:
        raise ValueError(f"temperature: expected a number above 0, got {temperature!r}")
    return float(temperature)
