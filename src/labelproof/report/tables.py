"""Tables of results, summaries of what reproduces, and comparisons of runs, in several formats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import TypeAlias

import pandas as pd
from markupsafe import Markup, escape

from labelproof.experiments.comparison import Compared
from labelproof.experiments.grids import GRIDS
from labelproof.experiments.tables import Entry, ResultTable
from labelproof.losses import format_loss, parse_loss
from labelproof.report.page import DATASETS, TABLES, render_page, render_words

MISSING = "–"
"""The cell of a missing measurement."""

Rows: TypeAlias = list[list[str]]
"""Cells of a table, the header first; `**best**` is bold."""

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
_BOLD = re.compile(r"\*\*(.+?)\*\*")


def align_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table with aligned columns; the first row is the header.

    >>> print(align_markdown([["method", "0.2"], ["CE", "91.30"]]))
    | method | 0.2   |
    |--------|-------|
    | CE     | 91.30 |
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(map(str.ljust, row, widths)) for row in rows]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def _escaped(text: str) -> str:
    """A text that neither ends a cell of a Markdown table nor makes it bold."""
    return text.replace("|", "\\|").replace("*", "\\*")


def latex_table(title: str, rows: Rows, *, numbers: int = 0) -> str:
    r"""Rows as a LaTeX table for the package booktabs; the first row is the header.

    The last `numbers` columns are aligned right, with a space above every row that has a name.

    >>> print(latex_table("Accuracy", [["loss", "%"], ["ce", "91.30"]]).splitlines()[-4].strip())
    ce & 91.30 \\
    """
    return render_page(
        "table.tex",
        title=_latex(title),
        columns="l" * (len(rows[0]) - numbers) + "r" * numbers,
        rows=[list(map(_latex, row)) for row in rows],
        spaced=numbers > 0,
    )


def _latex(text: str) -> str:
    text = "".join(_LATEX.get(character, character) for character in text)
    # In text mode a minus would be a hyphen; in math mode it is as wide as the plus.
    return _BOLD.sub(r"\\textbf{\1}", re.sub(r"^([+-]\d[\d.]*)$", r"$\1$", text))


def as_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as comma-separated values, numbers to six digits.

    >>> print(as_csv(["loss", "mean", "std"], [["ce", 91.2345678, None]]))
    loss,mean,std
    ce,91.2346,
    """
    table = pd.DataFrame(list(rows), columns=list(head)).round(6)
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n").removesuffix("\n")


def signed(number: float) -> str:
    """A difference with its sign and two decimals.

    >>> signed(0.614), signed(-0.001)
    ('+0.61', '+0.00')
    """
    return f"{round(number, 2) + 0.0:+.2f}"


def _with_spread(mean: float, deviation: float | None) -> str:
    return f"{mean:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


# A table of results.


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
    rows = [[_escaped(name), *others] for name, *others in _grid(table)]
    return f"{caption(table)}\n\n{align_markdown(rows)}"


def table_latex(table: ResultTable) -> str:
    """As a LaTeX table for the package booktabs."""
    return latex_table(caption(table), _grid(table), numbers=len(table.columns))


def table_html(table: ResultTable) -> str:
    """As a self-contained page, with everything escaped."""
    return render_page(
        "table.html",
        title=_title(table),
        finding=finding(table),
        caption=caption(table),
        columns=table.columns,
        rows=_rows(table),
        bold=lambda text: Markup(_BOLD.sub(r"<strong>\1</strong>", str(escape(text)))),  # noqa: S704
        command=f"labelproof table {table.table} --dataset {table.dataset} --format html",
    )


def table_csv(table: ResultTable) -> str:
    """As comma-separated values, a line for each cell; missing values are empty."""
    head = (
        *("table", "dataset", "method", "column", "mean", "std", "n", "paper_mean", "paper_std"),
        *("difference", "best_mean", "best_std"),
    )
    rows = [
        [
            *astuple(entry.cell),
            *(entry.mean, entry.std, entry.n),
            *(entry.published or (None, None)),
            *(entry.difference, _best(entry).mean, _best(entry).std),
        ]
        for entry in table.entries.values()
    ]
    return as_csv(head, rows)


FORMATS: Mapping[str, Callable[[ResultTable], str]] = {
    "markdown": table_markdown,
    "latex": table_latex,
    "html": table_html,
    "csv": table_csv,
}
"""The formats of a table, by name."""

PUBLISHED_EPOCH = {"human": "best"}
"""The epoch of published results, if it is not the last."""

SUFFIXES = {".md": "markdown", ".tex": "latex", ".html": "html", ".csv": "csv"}
"""The format of each file suffix."""


def caption(table: ResultTable) -> str:
    """What a table shows, and how to read it."""
    return _describe("caption", table)


def finding(table: ResultTable) -> str:
    """How much of a table was measured, and how much of that agrees with the paper."""
    return _describe("finding", table)


def _describe(part: str, table: ResultTable) -> str:
    entries = table.entries.values()
    return render_words(
        "table_words.txt",
        part=part,
        title=_title(table),
        later=GRIDS[table.table].later,
        seeds=sorted({seed for entry in entries for seed in entry.accuracies}),
        published=any(map(table.is_published, table.methods)),
        epoch=PUBLISHED_EPOCH.get(table.table, "last"),
        measured=sum(entry.n > 0 for entry in entries),
        cells=len(entries),
        compared=table,
    )


def _title(table: ResultTable) -> str:
    return f"{DATASETS[table.dataset]}, {TABLES[table.table]}"


def _grid(table: ResultTable) -> Rows:
    """The header, and a row for each line; only the first of a method has its name."""
    return [
        ["method", "", *table.columns],
        *(
            ["" if number else method, kind, *texts]
            for method, lines in _rows(table)
            for number, (kind, texts) in enumerate(lines.items())
        ),
    ]


def _rows(table: ResultTable) -> list[tuple[str, dict[str, list[str]]]]:
    """For each method its lines by kind: measured, published, or the difference."""
    best = {column: table.best(column) for column in table.columns}
    later = GRIDS[table.table].later
    rows = []
    for method in table.methods:
        entries = [table[method, column] for column in table.columns]
        ours = [_ours(entry, bold=method in best[entry.cell.column]) for entry in entries]
        lines = {"last" if later else "ours": ours}
        if later and any(entry.n for entry in entries):
            lines["best"] = [_ours(_best(entry)) for entry in entries]
        if table.is_published(method):
            lines["published" if later else "paper"] = [_paper(entry) for entry in entries]
            if not later:
                lines["difference"] = [_difference(entry) for entry in entries]
        rows.append((method, lines))
    return rows


def _best(entry: Entry) -> Entry:
    return replace(entry, accuracies=entry.best)


def _ours(entry: Entry, *, bold: bool = False) -> str:
    if entry.mean is None:
        return MISSING
    whole = f"{_with_spread(entry.mean, entry.std)} ({entry.n})"
    return re.sub(r"^\S+", r"**\g<0>**", whole) if bold else whole


def _paper(entry: Entry) -> str:
    return MISSING if entry.published is None else _with_spread(*entry.published)


def _difference(entry: Entry) -> str:
    return MISSING if entry.difference is None else signed(entry.difference)


# What reproduces.


def summary(comparisons: Sequence[ResultTable]) -> str:
    """The shares that reproduce, the cells that differ, and those without records."""
    return (
        f"{share_of_cells(comparisons)}\n\nCells that differ by more than is allowed:\n\n"
        f"{list_outside(comparisons)}\n\nCells without records:\n\n{list_missing(comparisons)}"
    )


def summary_html(comparisons: Sequence[ResultTable]) -> str:
    """The same as a self-contained page, with everything escaped.

    >>> summary_html([])[:15]
    '<!doctype html>'
    """
    return render_page(
        "summary.html",
        title="What reproduces, and what does not",
        finding=render_words("table_words.txt", part="summary", comparisons=comparisons),
        shares=_shares(comparisons),
        outside=_outside(comparisons),
        missing=_missing(comparisons),
        command="labelproof table summary --format html",
    )


def summary_csv(comparisons: Sequence[ResultTable]) -> str:
    """The numbers of cells of each table, measured, and within tolerance, as CSV.

    >>> print(summary_csv([ResultTable("symmetric", "mnist", [], [], {})]))
    table,dataset,cells,measured,within
    symmetric,mnist,0,0,0
    """
    rows = [
        (table.table, table.dataset, table.cells, table.measured, len(table.within))
        for table in comparisons
    ]
    return as_csv(("table", "dataset", "cells", "measured", "within"), rows)


SUMMARIES: Mapping[str, Callable[[Sequence[ResultTable]], str]] = {
    "markdown": summary,
    "html": summary_html,
    "csv": summary_csv,
}
"""The formats of a summary, by name."""


def share_of_cells(comparisons: Sequence[ResultTable]) -> str:
    """For each table how many cells were measured, and how many of those reproduce.

    Example:
        >>> print(share_of_cells([ResultTable("symmetric", "mnist", [], [], {})]))
        | table           | dataset | cells | measured | seeds | within | share |
        |-----------------|---------|-------|----------|-------|--------|-------|
        | symmetric noise | MNIST   | 0     | 0        | –     | 0      | –     |
    """
    return align_markdown(_shares(comparisons))


def list_outside(comparisons: Sequence[ResultTable]) -> str:
    """The cells that do not reproduce, the largest differences first."""
    rows = _outside(comparisons)
    return align_markdown(rows) if len(rows) > 1 else "None of those measured."


def list_missing(comparisons: Sequence[ResultTable]) -> str:
    """The cells that have no records, row by row."""
    return "\n".join(f"- {line}" for line in _missing(comparisons)) or "None."


def _shares(comparisons: Sequence[ResultTable]) -> Rows:
    rows = [["table", "dataset", "cells", "measured", "seeds", "within", "share"]]
    for table in comparisons:
        within, measured = len(table.within), table.measured
        share = f"{100 * within / measured:.0f}%" if measured else MISSING
        # The numbers of seeds of the measured cells.
        counts = sorted({entry.n for entry in (*table.within, *table.outside)}) or [MISSING]
        seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        numbers = [str(table.cells), str(measured), seeds, str(within), share]
        rows.append([TABLES[table.table], DATASETS[table.dataset], *numbers])
    return rows


def _outside(comparisons: Sequence[ResultTable]) -> Rows:
    outside = [entry for table in comparisons for entry in table.outside]
    outside.sort(key=lambda entry: -abs(entry.difference or 0.0))
    rows = [["table", "dataset", "method", "column", "ours", "paper", "difference", "allowed"]]
    for entry in outside:
        cell, allowed = entry.cell, f"{entry.tolerance:.2f}"
        place = [TABLES[cell.table], DATASETS[cell.dataset], cell.method, cell.column]
        rows.append([*place, _ours(entry), _paper(entry), _difference(entry), allowed])
    return rows


def _missing(comparisons: Sequence[ResultTable]) -> list[str]:
    lines = []
    for table in comparisons:
        columns: dict[str, list[str]] = {}
        for entry in table.missing:
            columns.setdefault(entry.cell.method, []).append(entry.cell.column)
        whole = len(GRIDS[table.table].columns)
        rows = "; ".join(
            method if len(missing) == whole else f"{method} at {', '.join(missing)}"
            for method, missing in columns.items()
        )
        if rows:
            which = rows if table.measured else f"all {table.cells}"
            lines.append(f"{TABLES[table.table]}, {DATASETS[table.dataset]}: {which}")
    return lines


# Comparisons of runs.


def comparison_markdown(compared: Sequence[Compared]) -> str:
    """As aligned Markdown.

    Example:
        >>> runs = [Compared({"loss": "ce"}, "test", {1: 80.0, 2: 82.0}, 0.2)]
        >>> print(comparison_markdown(runs).splitlines()[2])
        | loss | test accuracy (%) | to the first | wrong labels |
        >>> print(comparison_markdown(runs).splitlines()[-1])
        | ce   | 81.00 ± 1.41 (2)  |              | 20.0%        |
    """
    rows = [[_escaped(cell) for cell in row] for row in _compared(compared)]
    return f"{_explained(compared)}\n\n{align_markdown(rows)}"


def comparison_csv(compared: Sequence[Compared]) -> str:
    """As CSV, a line for each group of runs, with losses in full."""
    numbers = ("measured_on", "mean", "std", "n", "difference", "difference_std", "noise_rate")
    rows = [
        [
            *(*map(str, each.settings.values()), each.measured_on),
            *(each.mean, each.deviation, len(each.accuracies)),
            *(*(each.difference or (None, None)), each.noise_rate),
        ]
        for each in compared
    ]
    return as_csv([*compared[0].settings, *numbers], rows)


COMPARISONS: Mapping[str, Callable[[Sequence[Compared]], str]] = {
    "markdown": comparison_markdown,
    "latex": lambda compared: latex_table(_explained(compared), _compared(compared)),
    "csv": comparison_csv,
}
"""The formats of a comparison of runs, by name."""


def _explained(compared: Sequence[Compared]) -> str:
    kinds = {each.measured_on for each in compared}
    return render_words("table_words.txt", part="comparison", kinds=kinds)


def _compared(compared: Sequence[Compared]) -> Rows:
    kinds = {each.measured_on for each in compared}
    measured = f"{kinds.pop()} accuracy (%)" if len(kinds) == 1 else "accuracy (%)"
    losses = list(dict.fromkeys(str(each.settings["loss"]) for each in compared))
    labels = dict(zip(losses, loss_labels(losses), strict=True))
    rows = [[*compared[0].settings, measured, "to the first", "wrong labels"]]
    for each in compared:
        settings = {**each.settings, "loss": labels[str(each.settings["loss"])]}
        accuracy = f"{_with_spread(each.mean, each.deviation)} ({len(each.accuracies)})"
        if measured == "accuracy (%)":
            accuracy += f", {each.measured_on}"
        ahead, spread = each.difference or (None, None)
        difference = "" if ahead is None else signed(ahead)
        difference += "" if spread is None else f" ± {spread:.2f}"
        rows.append([*map(str, settings.values()), accuracy, difference, f"{each.noise_rate:.1%}"])
    return rows


_CALL = re.compile(r"([A-Za-z_]\w*)(@[0-9a-f]{6})?\(([^()]*)\)")
_VERSION = re.compile(r"@[0-9a-f]{6}\b")


def loss_labels(methods: Sequence[str]) -> list[str]:
    """Short names of methods: without default arguments and without versions.

    Methods are rows of the tables, or losses as in records; those that would have the same name
    keep what they differ in.

    Example:
        >>> loss_labels(["CE+SR", format_loss(parse_loss("gce(q=0.5)+sr(p=0.01)"))])
        ['CE+SR', 'gce(q=0.5)+sr(p=0.01)']
        >>> loss_labels(["mine@0a1b2c"]), loss_labels(["mine@0a1b2c", "mine@3f9c21"])
        (['mine'], ['mine@0a1b2c', 'mine@3f9c21'])
    """
    plain = [_CALL.sub(_without_defaults, method) for method in methods]
    short = [_VERSION.sub("", name) for name in plain]
    alike = Counter(dict(zip(methods, short, strict=True)).values())
    return [name if alike[name] == 1 else full for name, full in zip(short, plain, strict=True)]


def _without_defaults(call: re.Match[str]) -> str:
    name, version, arguments = call[1], call[2] or "", call[3].split(",")
    usual = _usual_arguments(name)
    kept = ",".join(argument for argument in arguments if argument not in usual)
    return f"{name}{version}({kept})" if kept else f"{name}{version}"


def _usual_arguments(name: str) -> list[str]:
    try:
        written = format_loss(parse_loss("ce+sr" if name == "sr" else name))
    except ValueError:  # a row of the tables, or a user's own loss that is not defined here
        return []
    match = _CALL.search(written)
    return match[3].split(",") if match else []
