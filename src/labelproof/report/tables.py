"""Tables of results and what reproduces, as Markdown, LaTeX, HTML and CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import TypeAlias

import pandas as pd
from markupsafe import Markup, escape

from labelproof.experiments.grids import GRIDS
from labelproof.experiments.tables import Comparison, Entry, ResultTable, compare, tolerance
from labelproof.report.page import DATASETS, TABLES, render_page

MISSING = "–"
"""Where nothing was measured; never a number."""

_CSV = (
    *("table", "dataset", "method", "column"),
    *("mean", "std", "n", "paper_mean", "paper_std", "difference", "best_mean", "best_std"),
)
_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "λ": r"$\lambda$",
    "τ": r"$\tau$",
}


Line: TypeAlias = tuple[str, list[str]]
"""A line of a method's (measured, published, or the difference) and its cells; `**best**`."""
_BOLD = re.compile(r"\*\*(.+?)\*\*")


def table_markdown(table: ResultTable) -> str:
    """As aligned Markdown.

    Example:
        >>> from pathlib import Path
        >>> from labelproof.experiments.records import RecordStore
        >>> from labelproof.experiments.tables import make_table
        >>> no_records = RecordStore(Path("nowhere"))
        >>> empty = make_table(no_records, "sweep-tau", "cifar10")
        >>> print(table_markdown(empty).splitlines()[-1])
        | CE+SR  | ours | –    | –    | –   | –   | –   | – |
    """
    rows = [[escape_markdown(name), *others] for name, *others in _grid(table)]
    return f"{caption(table)}\n\n{align_markdown(rows)}"


def escape_markdown(text: str) -> str:
    """A text that ends no cell of a table and makes nothing bold."""
    return text.replace("|", "\\|").replace("*", "\\*")


def align_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table with columns of one width; the first row is the head.

    >>> print(align_markdown([["method", "0.2"], ["CE", "91.30"]]))
    | method | 0.2   |
    |--------|-------|
    | CE     | 91.30 |
    """
    widths = [max(len(text) for text in column) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def table_latex(table: ResultTable) -> str:
    """As a LaTeX table for the package booktabs."""
    return latex_table(caption(table), _grid(table), numbers=len(table.columns))


def latex_table(title: str, rows: Sequence[Sequence[str]], *, numbers: int = 0) -> str:
    r"""Rows as a LaTeX table for the package booktabs; the first row is the head.

    So many of the last columns are `numbers`, with a space above every row that has a name.

    >>> print(latex_table("Accuracy", [["loss", "%"], ["ce", "91.30"]]).splitlines()[-4].strip())
    ce & 91.30 \\
    """
    head, *body = [
        "    " + " & ".join(_BOLD.sub(r"\\textbf{\1}", _latex(cell)) for cell in row) + r" \\"
        for row in rows
    ]
    if numbers:
        body = [
            r"    \addlinespace" + "\n" + line if row[0] and at else line
            for at, (row, line) in enumerate(zip(rows[1:], body, strict=True))
        ]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_latex(title)}}}",
            rf"  \begin{{tabular}}{{{'l' * (len(rows[0]) - numbers)}{'r' * numbers}}}",
            r"    \toprule",
            head,
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )


def table_html(table: ResultTable) -> str:
    """As a self-contained page, with everything escaped."""
    return render_page(
        "table.html",
        title=f"{DATASETS[table.dataset]}, {TABLES[table.table]}",
        finding=finding(table),
        caption=caption(table),
        columns=table.columns,
        rows=_rows(table),
        bold=lambda text: Markup(_BOLD.sub(r"<strong>\1</strong>", str(escape(text)))),  # noqa: S704
        command=f"labelproof table {table.table} --dataset {table.dataset} --format html",
    )


def table_csv(table: ResultTable) -> str:
    """As comma-separated values, a line for each cell; what is not there is left empty."""
    rows = [
        [
            *astuple(entry.cell),
            *(entry.mean, entry.std, entry.n),
            *(entry.published or (None, None)),
            *(entry.difference, _best(entry).mean, _best(entry).std),
        ]
        for entry in table.entries.values()
    ]
    return as_csv(_CSV, [[_rounded(value) for value in row] for row in rows])


def as_csv(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as comma-separated values, numbers to six digits.

    >>> print(as_csv(["loss", "mean", "std"], [["ce", 91.2345678, None]]))
    loss,mean,std
    ce,91.2346,
    """
    table = pd.DataFrame(rows, columns=list(head))
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n").removesuffix("\n")


FORMATS: Mapping[str, Callable[[ResultTable], str]] = {
    "markdown": table_markdown,
    "latex": table_latex,
    "html": table_html,
    "csv": table_csv,
}
"""How a table can be written, by name."""

PUBLISHED_EPOCH = {"human": "best"}
"""Which epoch others publish, where it is not the last."""

SUFFIXES = {".md": "markdown", ".tex": "latex", ".html": "html", ".csv": "csv"}
"""The format that a file's name asks for."""


def caption(table: ResultTable) -> str:
    """What a table shows, and how to read it."""
    # What is bold is `ResultTable.best`.
    seeds = sorted({seed for entry in table.entries.values() for seed in entry.accuracies})
    listed = ", ".join(str(seed) for seed in seeds)
    counted = f"{'seed' if len(seeds) == 1 else 'seeds'} {listed}" if seeds else "no records yet"
    title = f"{DATASETS[table.dataset]}, {TABLES[table.table]}"
    rest = f"in bold the best of each column, up to three and never all. {MISSING}: no records."
    if GRIDS[table.table].later:
        epoch = PUBLISHED_EPOCH.get(table.table, "last")
        return (
            f"{title}: test accuracy (%) after the last epoch, and of the best one by test "
            f"accuracy, mean ± std (number of seeds), {counted}; published: the {epoch} epoch, by "
            f"the method's authors or a later comparison; {rest}"
        )
    published = any(map(table.is_published, table.methods))
    paper = " paper: as published, mean ± std;" if published else ""
    return (
        f"{title}: test accuracy (%) of the last epoch. "
        f"ours: mean ± std (number of seeds), {counted};{paper} {rest}"
    )


def finding(table: ResultTable) -> str:
    """How much of a table was measured, and how much of that agrees with the paper."""
    measured = sum(entry.n > 0 for entry in table.entries.values())
    opening = f"{measured} of {len(table.entries)} cells have records."
    compared = compare(table)
    if not compared.measured or GRIDS[table.table].later:
        return opening
    return (
        f"{opening} Of {compared.measured} that the paper has too, {len(compared.within)} agree "
        "with it: they differ by at most 1 point or twice the spread of the runs."
    )


def signed(number: float) -> str:
    """A difference with two digits.

    >>> signed(0.614), signed(-0.001)
    ('+0.61', '+0.00')
    """
    return f"{round(number, 2) + 0.0:+.2f}"


def _grid(table: ResultTable) -> list[list[str]]:
    """The head, and a row for each line, of which the first has the method's name."""
    return [
        ["method", "", *table.columns],
        *(
            ["" if number else method, kind, *texts]
            for method, lines in _rows(table)
            for number, (kind, texts) in enumerate(lines)
        ),
    ]


def _rows(table: ResultTable) -> list[tuple[str, list[Line]]]:
    best = {column: table.best(column) for column in table.columns}
    rows = []
    for method in table.methods:
        entries = [table[method, column] for column in table.columns]
        ours = [_ours(entry, bold=method in best[entry.cell.column]) for entry in entries]
        published = [_paper(entry) for entry in entries]
        later = GRIDS[table.table].later
        lines: list[Line] = [("last" if later else "ours", ours)]
        if later and any(entry.n for entry in entries):
            lines.append(("best", [_ours(_best(entry)) for entry in entries]))
        if table.is_published(method):
            lines.append(("published" if later else "paper", published))
            if not later:
                lines.append(("difference", [_difference(entry) for entry in entries]))
        rows.append((method, lines))
    return rows


def _best(entry: Entry) -> Entry:
    return replace(entry, accuracies=entry.best)


def _ours(entry: Entry, *, bold: bool = False) -> str:
    if entry.mean is None:
        return MISSING
    whole = f"{with_spread(entry.mean, entry.std)} ({entry.n})"
    return re.sub(r"^\S+", r"**\g<0>**", whole) if bold else whole


def with_spread(mean: float, deviation: float | None) -> str:
    """A mean and, where it is known, the standard deviation.

    >>> with_spread(91.345, 0.2), with_spread(91.3, None)
    ('91.34 ± 0.20', '91.30')
    """
    return f"{mean:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


def _paper(entry: Entry) -> str:
    return MISSING if entry.published is None else with_spread(*entry.published)


def _difference(entry: Entry) -> str:
    return MISSING if entry.difference is None else signed(entry.difference)


def _rounded(value: object) -> object:
    return round(value, 4) + 0.0 if isinstance(value, float) else value


def _latex(text: str) -> str:
    # A minus in text mode is a hyphen; between dollars it is as wide as the plus.
    text = "".join(_LATEX.get(character, character) for character in text)
    return re.sub(r"^([+-]\d[\d.]*)$", r"$\1$", text)


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
    """The same as a self-contained page, with everything escaped.

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
    rows = [
        (found.table, found.dataset, found.cells, found.measured, len(found.within))
        for found in comparisons
    ]
    return as_csv(("table", "dataset", "cells", "measured", "within"), rows)


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
    cell = entry.cell
    place = [TABLES[cell.table], DATASETS[cell.dataset], cell.method, cell.column]
    return [*place, _ours(entry), _paper(entry), _difference(entry), f"{tolerance(entry):.2f}"]


def _missing(found: Comparison) -> str:
    columns: dict[str, list[str]] = {}
    for entry in found.missing:
        columns.setdefault(entry.cell.method, []).append(entry.cell.column)
    whole = len(GRIDS[found.table].columns)
    return "; ".join(
        method if len(missing) == whole else f"{method} at {', '.join(missing)}"
        for method, missing in columns.items()
    )
