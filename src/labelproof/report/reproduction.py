"""What reproduces and what does not, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from labelproof.experiments.grids import GRIDS
from labelproof.experiments.reproduction import Comparison, tolerance
from labelproof.experiments.tables import Entry
from labelproof.report.tables import align_markdown, signed
from labelproof.report.titles import DATASETS, TABLES

__all__ = ["list_missing", "list_outside", "share_of_cells", "summary"]


def summary(comparisons: Sequence[Comparison]) -> str:
    """Everything: the shares, the cells that differ, and those that were not measured."""
    parts = [
        share_of_cells(comparisons),
        "Cells that differ by more than is allowed:",
        list_outside(comparisons),
        "Cells without records:",
        list_missing(comparisons),
    ]
    return "\n\n".join(parts)


def share_of_cells(comparisons: Sequence[Comparison]) -> str:
    """For each table how many cells were measured, and how many of those reproduce.

    Example:
        >>> from labelproof.experiments.reproduction import Comparison
        >>> print(share_of_cells([Comparison("symmetric", "mnist", [], [], [])]))
        | table           | dataset | cells | measured | seeds | within | share |
        |-----------------|---------|-------|----------|-------|--------|-------|
        | symmetric noise | MNIST   | 0     | 0        | –     | 0      | –     |
    """
    rows = [["table", "dataset", "cells", "measured", "seeds", "within", "share"]]
    for found in comparisons:
        share = f"{100 * len(found.within) / found.measured:.0f}%" if found.measured else "–"
        counts = [str(found.cells), str(found.measured), _seeds(found), str(len(found.within))]
        rows.append([*_names(found), *counts, share])
    return align_markdown(rows)


def list_outside(comparisons: Sequence[Comparison]) -> str:
    """The cells that do not reproduce, the largest differences first."""
    outside = [entry for found in comparisons for entry in found.outside]
    if not outside:
        return "None of those measured."
    outside.sort(key=lambda entry: -abs(entry.difference or 0.0))
    rows = [["table", "dataset", "method", "column", "ours", "paper", "difference", "allowed"]]
    return align_markdown([*rows, *(_outside(entry) for entry in outside)])


def list_missing(comparisons: Sequence[Comparison]) -> str:
    """The cells that have no records, row by row."""
    lines = []
    for found in comparisons:
        name = ", ".join(_names(found))
        if found.missing and not found.measured:
            lines.append(f"- {name}: all {found.cells}")
        elif found.missing:
            lines.append(f"- {name}: {_missing(found)}")
    return "\n".join(lines) or "None."


def _names(found: Comparison) -> list[str]:
    return [TABLES[found.table], DATASETS[found.dataset]]


def _seeds(found: Comparison) -> str:
    """How many seeds the measured cells have."""
    counts = sorted({entry.n for entry in (*found.within, *found.outside)})
    if not counts:
        return "–"
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _outside(entry: Entry) -> list[str]:
    assert entry.mean is not None  # noqa: S101
    assert entry.published is not None  # noqa: S101
    assert entry.difference is not None  # noqa: S101
    cell = entry.cell
    ours = f"{entry.mean:.2f}" + ("" if entry.std is None else f" ± {entry.std:.2f}")
    mean, std = entry.published
    return [
        TABLES[cell.table],
        DATASETS[cell.dataset],
        cell.method,
        cell.column,
        f"{ours} ({entry.n})",
        f"{mean:.2f}" + ("" if std is None else f" ± {std:.2f}"),
        signed(entry.difference),
        f"{tolerance(entry):.2f}",
    ]


def _missing(found: Comparison) -> str:
    columns: dict[str, list[str]] = {}
    for entry in found.missing:
        columns.setdefault(entry.cell.method, []).append(entry.cell.column)
    whole = len(GRIDS[found.table].columns)
    return "; ".join(
        method if len(missing) == whole else f"{method} at {', '.join(missing)}"
        for method, missing in columns.items()
    )
