"""What reproduces and what does not: every published cell against what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labelproof.experiments.grids import GRIDS
from labelproof.experiments.paper import published
from labelproof.experiments.store import RecordStore
from labelproof.experiments.tables import Entry, ResultTable, make_table

__all__ = ["LEAST", "Comparison", "compare", "compare_all", "reproduces", "tolerance"]

LEAST = 1.0
"""Points by which any cell may differ: about what a machine, a library and a seed make of it."""


@dataclass(frozen=True)
class Comparison:
    """The published cells of a table, sorted by what became of them.

    Attributes:
        table: One of `GRIDS`.
        dataset: The dataset's name.
        within: Cells that reproduce.
        outside: Cells that do not.
        missing: Cells that no record is there for.
    """

    table: str
    dataset: str
    within: Sequence[Entry]
    outside: Sequence[Entry]
    missing: Sequence[Entry]

    @property
    def measured(self) -> int:
        """Cells that have records."""
        return len(self.within) + len(self.outside)

    @property
    def cells(self) -> int:
        """Cells that the paper has."""
        return self.measured + len(self.missing)


def tolerance(entry: Entry) -> float:
    """How many points a cell may differ from the paper's: 1, or twice the spread if that is more.

    The spread is the root of the sum of both variances, the paper's and ours. A deviation that is
    not known, because the paper gives none or because there is only one seed, counts as 0: whoever
    has run once gets no allowance for it.

    Example:
        >>> from labelproof.experiments.grids import Cell
        >>> from labelproof.experiments.paper import Published
        >>> cell = Cell("symmetric", "mnist", "FL+SR", "0.8")
        >>> tolerance(Entry(cell, {1: 98.65}, Published(97.0, 1.28)))
        2.56
        >>> tolerance(Entry(cell, {1: 98.65}, Published(97.0, None)))
        1.0
    """
    paper = (entry.published.std if entry.published else None) or 0.0
    return max(LEAST, 2 * math.hypot(paper, entry.std or 0.0))


def reproduces(entry: Entry) -> bool | None:
    """Whether a cell lies within its tolerance; `None` where one side is missing.

    >>> from labelproof.experiments.grids import Cell
    >>> from labelproof.experiments.paper import Published
    >>> cell = Cell("symmetric", "mnist", "FL+SR", "0.8")
    >>> reproduces(Entry(cell, {1: 98.65}, Published(97.0, 1.28)))
    True
    """
    if entry.difference is None:
        return None
    # Both numbers have two digits; a difference of 1 must not fail for the bits behind them.
    return round(abs(entry.difference), 6) <= round(tolerance(entry), 6)


def compare(table: ResultTable) -> Comparison:
    """Sort the published cells of a table."""
    sorted_cells: dict[bool | None, list[Entry]] = {True: [], False: [], None: []}
    for entry in table.entries.values():
        if entry.published is not None:
            sorted_cells[reproduces(entry)].append(entry)
    return Comparison(
        table.table, table.dataset, sorted_cells[True], sorted_cells[False], sorted_cells[None]
    )


def compare_all(store: RecordStore) -> list[Comparison]:
    """All tables that the paper has numbers for, dataset by dataset.

    Example:
        >>> from pathlib import Path
        >>> [comparison.measured for comparison in compare_all(RecordStore(Path("nowhere")))]
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    """
    return [
        compare(make_table(store, name, dataset))
        for name, grid in GRIDS.items()
        for dataset in grid.datasets
        if published(name, dataset) and not grid.later
    ]
