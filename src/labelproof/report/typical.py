"""Typical values of the rows of each class, and the cells that are unusual for a row's class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.audit.findings import FEWEST
from labelproof.audit.samples import Samples

_ROWS = 20_000
"""Rows that are looked at; more would not move a median."""
_CATEGORIES = 10
"""Distinct numbers up to which a column holds categories."""
_PROSE = 30
"""Characters from which on a column's mean cell is prose, which has no typical value."""
_FAR = 3.5
"""Robust standard deviations from the median: the usual limit (Iglewicz and Hoaglin, 1993)."""
_RARE = 0.05
_MAD_TO_DEVIATION = 1.4826
"""What the median absolute deviation of a normal distribution is multiplied by."""


@dataclass(frozen=True)
class _Column:
    """For each class its typical value, an interval of usual numbers, and unusual categories."""

    typical: Mapping[int, str]
    usual: Mapping[int, tuple[float, float]]
    unusual: frozenset[tuple[int, str]] = frozenset()


class Typical:
    """What is typical of the rows of each class, by the labels they are given.

    A number is unusual far from the median of its class, a category where it is rare in its class
    and not elsewhere.

    Args:
        samples: The rows of an audit.

    Example:
        >>> import labelproof, numpy as np
        >>> from labelproof.audit import open_samples
        >>> rows = [(n / 10, "hot", "tea") for n in range(30)]
        >>> rows += [(50 + n / 10, "cold", "ice") for n in range(30)] + [(51, "hot", "ice")]
        >>> table = pd.DataFrame(rows, columns=["grams", "served", "kind"])
        >>> path = getfixture("tmp_path") / "menu.csv"
        >>> table.to_csv(path, index=False)
        >>> told = np.where(table.kind == "ice", 0.9, 0.1)[:, None]
        >>> audit = labelproof.audit(path, "kind", probabilities=np.hstack([told, 1 - told]))
        >>> typical = Typical(open_samples(audit))
        >>> typical.values(1)[:2], typical.unusual(1, ["51", "cold", "tea"])
        (['1.45', 'hot'], [0, 1])
    """

    def __init__(self, samples: Samples):
        there = np.flatnonzero(samples.audit.index >= 0)
        chosen = np.random.default_rng(0).permutation(there)[:_ROWS]
        table, given = samples.table(chosen), samples.audit.findings.given[chosen]
        self._columns = [_column(table.iloc[:, n], given) for n in range(table.shape[1])]

    def values(self, label: int) -> list[str]:
        """The median or the commonest value of each column; empty where neither says anything."""
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
    # Twice as common elsewhere: a category that is rare in every class tells nothing.
    rare = (shares < _RARE) & (2 * shares < everywhere) & enough[:, None]
    classes, places = np.nonzero(rare.to_numpy())
    unusual = frozenset(zip(shares.index[classes], shares.columns[places], strict=True))
    return _Column(shares.idxmax(axis=1).to_dict(), {}, unusual)


def _numbers(numbers: Any, given: NDArray[np.int64]) -> _Column:
    groups = numbers.groupby(given)
    middle, size = groups.median(), groups.count()
    spread = (numbers - middle.reindex(given).to_numpy()).abs().groupby(given).median()
    reach = (_FAR * _MAD_TO_DEVIATION * spread).where((size >= FEWEST) & (spread > 0)).dropna()
    return _Column(
        {label: f"{value:.6g}" for label, value in middle.dropna().items()},
        {label: (middle[label] - far, middle[label] + far) for label, far in reach.items()},
    )
