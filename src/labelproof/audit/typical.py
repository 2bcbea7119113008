"""Typical values of the rows of each class, and the cells that are unusual for a row's class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.audit.findings import FEWEST

_CATEGORIES = 10
"""Distinct numbers up to which a column holds categories."""
_PROSE = 30
"""Mean characters per cell above which a column is prose, which has no typical value."""
_FAR = 3.5
"""Robust standard deviations from the median: the usual limit (Iglewicz and Hoaglin, 1993)."""
_RARE = 0.05
MAD_TO_DEVIATION = 1.4826
"""Ratio of the standard to the median absolute deviation of a normal distribution."""


@dataclass(frozen=True)
class _Column:
    """The typical value and the usual interval of each class, and its unusual categories."""

    typical: Mapping[int, str]
    usual: Mapping[int, tuple[float, float]]
    unusual: frozenset[tuple[int, str]] = frozenset()


class Typical:
    """Typical values of each class, by the given labels.

    A number is unusual if it is far from the median of its class, a category if it is rare in its
    class but not elsewhere.

    Args:
        table: Rows as text, `(N, F)`.
        given: Their labels, `(N)`.

    Example:
        >>> rows = [(f"{n / 10}", "hot") for n in range(30)]
        >>> rows += [(f"{50 + n / 10}", "cold") for n in range(30)] + [("51", "hot")]
        >>> typical = Typical(pd.DataFrame(rows), np.repeat([1, 0], [30, 31]))
        >>> typical.values(1), typical.unusual(1, ["51", "cold"])
        (['1.45', 'hot'], [0, 1])
    """

    def __init__(self, table: pd.DataFrame, given: NDArray[np.int64]):
        self._columns = [_column(table.iloc[:, n], given) for n in range(table.shape[1])]

    def values(self, label: int) -> list[str]:
        """The median or the mode of each column; empty if it has neither."""
        return [column.typical.get(label, "") for column in self._columns]

    def unusual(self, label: int, cells: Sequence[str]) -> list[int]:
        """Which cells of a row are unusual for its label."""
        found = []
        for number, (column, cell) in enumerate(zip(self._columns, cells, strict=False)):
            if (label, cell) in column.unusual:
                found.append(number)
            elif label in column.usual:
                low, high = column.usual[label]
                value: Any = pd.to_numeric(cell, errors="coerce")
                if value < low or value > high:
                    found.append(number)
        return found


def _column(cells: Any, given: NDArray[np.int64]) -> _Column:
    numbers: Any = pd.to_numeric(cells, errors="coerce")
    filled = cells.astype(str).str.strip() != ""
    if numbers.nunique() > _CATEGORIES and numbers.notna().sum() >= 0.9 * filled.sum():
        return _numbers(numbers, given)
    texts = cells[filled].astype(str)
    prose = texts.str.len().mean() > _PROSE
    if texts.empty or prose or texts.nunique() > len(texts) / 2:
        return _Column({}, {})
    labels = given[filled.to_numpy()]
    shares: Any = pd.crosstab(labels, texts.to_numpy(), normalize="index")
    everywhere = texts.value_counts(normalize=True)[shares.columns].to_numpy()
    enough = np.bincount(labels)[shares.index] >= FEWEST
    # Twice as common overall: a category that is rare in every class says nothing.
    rare = (shares < _RARE) & (2 * shares < everywhere) & enough[:, None]
    classes, places = np.nonzero(rare.to_numpy())
    unusual = frozenset(zip(shares.index[classes], shares.columns[places], strict=True))
    return _Column(shares.idxmax(axis=1).to_dict(), {}, unusual)


def _numbers(numbers: Any, given: NDArray[np.int64]) -> _Column:
    groups = numbers.groupby(given)
    median, size = groups.median(), groups.count()
    spread = (numbers - median.reindex(given).to_numpy()).abs().groupby(given).median()
    reach = (_FAR * MAD_TO_DEVIATION * spread).where((size >= FEWEST) & (spread > 0)).dropna()
    return _Column(
        {label: f"{value:.6g}" for label, value in median.dropna().items()},
        {label: (median[label] - far, median[label] + far) for label, far in reach.items()},
    )
