"""What reproduces and what does not, as Markdown, HTML and CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labelproof.experiments.grids import GRIDS
from labelproof.experiments.tables import Comparison, Entry, tolerance
from labelproof.report.page import render_page
from labelproof.report.tables import align_markdown, signed
from labelproof.report.titles import DATASETS, TABLES

__all__ = [
    "SUMMARIES",
    "list_missing",
    "list_outside",
    "share_of_cells",
    "summary",
    "summary_csv",
    "summary_html",
]


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


def summary_html(comparisons: Sequence[Comparison]) -> str:
    """The same as a page that stands alone; whatever is shown is escaped.

    >>> summary_html([])[:15]
    '<!doctype html>'
    """
    measured = sum(found.measured for found in comparisons)
    within = sum(len(found.within) for found in comparisons)
    cells = sum(found.cells for found in comparisons)
    return render_page(
        "summary.html",
        title="What reproduces, and what does not",
        finding=(
            f"{measured} of the paper's {cells} cells have records, and {within} of these agree "
            "with it: they differ by at most 1 point or twice the spread of the runs."
        ),
        shares=_shares(comparisons),
        outside=_differing(comparisons),
        missing=_lacking(comparisons),
        command="labelproof table summary --format html",
    )


def summary_csv(comparisons: Sequence[Comparison]) -> str:
    """How many cells each table has, were measured, and agree, as comma-separated values.

    >>> print(summary_csv([Comparison("symmetric", "mnist", [], [], [])]))
    table,dataset,cells,measured,within
    symmetric,mnist,0,0,0
    """
    lines = [("table", "dataset", "cells", "measured", "within")]
    for found in comparisons:
        cells, measured, within = found.cells, found.measured, len(found.within)
        lines.append((found.table, found.dataset, str(cells), str(measured), str(within)))
    return "\n".join(",".join(line) for line in lines)


SUMMARIES: Mapping[str, Callable[[Sequence[Comparison]], str]] = {
    "markdown": summary,
    "html": summary_html,
    "csv": summary_csv,
}
"""How a summary can be written, by name."""


def share_of_cells(comparisons: Sequence[Comparison]) -> str:
    """For each table how many cells were measured, and how many of those reproduce.

    Example:
        >>> from labelproof.experiments.tables import Comparison
        >>> print(share_of_cells([Comparison("symmetric", "mnist", [], [], [])]))
        | table           | dataset | cells | measured | seeds | within | share |
        |-----------------|---------|-------|----------|-------|--------|-------|
        | symmetric noise | MNIST   | 0     | 0        | –     | 0      | –     |
    """
    return align_markdown(_shares(comparisons))


def _shares(comparisons: Sequence[Comparison]) -> list[list[str]]:
    rows = [["table", "dataset", "cells", "measured", "seeds", "within", "share"]]
    for found in comparisons:
        share = f"{100 * len(found.within) / found.measured:.0f}%" if found.measured else "–"
        counts = [str(found.cells), str(found.measured), _seeds(found), str(len(found.within))]
        rows.append([*_names(found), *counts, share])
    return rows


def list_outside(comparisons: Sequence[Comparison]) -> str:
    """The cells that do not reproduce, the largest differences first."""
    rows = _differing(comparisons)
    return align_markdown(rows) if len(rows) > 1 else "None of those measured."


def _differing(comparisons: Sequence[Comparison]) -> list[list[str]]:
    outside = [entry for found in comparisons for entry in found.outside]
    outside.sort(key=lambda entry: -abs(entry.difference or 0.0))
    rows = [["table", "dataset", "method", "column", "ours", "paper", "difference", "allowed"]]
    return [*rows, *(_outside(entry) for entry in outside)]


def list_missing(comparisons: Sequence[Comparison]) -> str:
    """The cells that have no records, row by row."""
    return "\n".join(f"- {line}" for line in _lacking(comparisons)) or "None."


def _lacking(comparisons: Sequence[Comparison]) -> list[str]:
    lines = []
    for found in comparisons:
        name = ", ".join(_names(found))
        if found.missing and not found.measured:
            lines.append(f"{name}: all {found.cells}")
        elif found.missing:
            lines.append(f"{name}: {_missing(found)}")
    return lines


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
