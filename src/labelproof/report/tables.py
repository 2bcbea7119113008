"""Tables of results, what reproduces, and comparisons of runs: Markdown, LaTeX, HTML and CSV."""

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
"""Where nothing was measured; never a number."""

Rows: TypeAlias = list[list[str]]
"""Cells of a table, the head first; `**best**` is bold."""

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
    """Rows as a Markdown table with columns of one width; the first row is the head.

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
    """A text that ends no cell of a Markdown table and makes nothing bold."""
    return text.replace("|", "\\|").replace("*", "\\*")


def latex_table(title: str, rows: Rows, *, numbers: int = 0) -> str:
    r"""Rows as a LaTeX table for the package booktabs; the first row is the head.

    So many of the last columns are `numbers`, with a space above every row that has a name.

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
    # A minus in text mode is a hyphen; between dollars it is as wide as the plus.
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
    """A difference with two digits.

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
    """As comma-separated values, a line for each cell; what is not there is left empty."""
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
"""How a table can be written, by name."""

PUBLISHED_EPOCH = {"human": "best"}
"""Which epoch others publish, where it is not the last."""

SUFFIXES = {".md": "markdown", ".tex": "latex", ".html": "html", ".csv": "csv"}
"""The format that a file's name asks for."""


def caption(table: ResultTable) -> str:
    """What a table shows, and how to read it."""
    return _said("caption", table)


def finding(table: ResultTable) -> str:
    """How much of a table was measured, and how much of that agrees with the paper."""
    return _said("finding", table)


def _said(part: str, table: ResultTable) -> str:
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
    """The head, and a row for each line, of which the first has the method's name."""
    return [
        ["method", "", *table.columns],
        *(
            ["" if number else method, kind, *texts]
            for method, lines in _rows(table)
            for number, (kind, texts) in enumerate(lines.items())
        ),
    ]


def _rows(table: ResultTable) -> list[tuple[str, dict[str, list[str]]]]:
    """For each method its lines by what they are: measured, published, or the difference."""
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
    """Everything: the shares, the cells that differ, and those that were not measured."""
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
    """How many cells each table has, were measured, and agree, as comma-separated values.

    >>> print(summary_csv([ResultTable("symmetric", "mnist", [], [], {})]))
    table,dataset,cells,measured,within
    symmetric,mnist,0,0,0
    """
    rows = [
        (found.table, found.dataset, found.cells, found.measured, len(found.within))
        for found in comparisons
    ]
    return as_csv(("table", "dataset", "cells", "measured", "within"), rows)


SUMMARIES: Mapping[str, Callable[[Sequence[ResultTable]], str]] = {
    "markdown": summary,
    "html": summary_html,
    "csv": summary_csv,
}
"""How a summary can be written, by name."""


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
    for found in comparisons:
        within, measured = len(found.within), found.measured
        share = f"{100 * within / measured:.0f}%" if measured else MISSING
        # How many seeds the measured cells have.
        counts = sorted({entry.n for entry in (*found.within, *found.outside)}) or [MISSING]
        seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        numbers = [str(found.cells), str(measured), seeds, str(within), share]
        rows.append([TABLES[found.table], DATASETS[found.dataset], *numbers])
    return rows


def _outside(comparisons: Sequence[ResultTable]) -> Rows:
    outside = [entry for found in comparisons for entry in found.outside]
    outside.sort(key=lambda entry: -abs(entry.difference or 0.0))
    rows = [["table", "dataset", "method", "column", "ours", "paper", "difference", "allowed"]]
    for entry in outside:
        cell, allowed = entry.cell, f"{entry.tolerance:.2f}"
        place = [TABLES[cell.table], DATASETS[cell.dataset], cell.method, cell.column]
        rows.append([*place, _ours(entry), _paper(entry), _difference(entry), allowed])
    return rows


def _missing(comparisons: Sequence[ResultTable]) -> list[str]:
    lines = []
    for found in comparisons:
        columns: dict[str, list[str]] = {}
        for entry in found.missing:
            columns.setdefault(entry.cell.method, []).append(entry.cell.column)
        whole = len(GRIDS[found.table].columns)
        rows = "; ".join(
            method if len(missing) == whole else f"{method} at {', '.join(missing)}"
            for method, missing in columns.items()
        )
        if rows:
            said = rows if found.measured else f"all {found.cells}"
            lines.append(f"{TABLES[found.table]}, {DATASETS[found.dataset]}: {said}")
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
    """As CSV, a line for each group of runs; losses as they are written in full."""
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
"""How a comparison of runs can be written, by name."""


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
    """Short names of methods: without arguments that have their defaults, and without versions.

    They are rows of the tables, and losses as records have them; those that would be called the
    same keep what they differ in.

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
    except ValueError:  # a row of the tables, or a loss of someone's own that is not here
        return []
    found = _CALL.search(written)
    return found[3].split(",") if found else []
