"""Tables of results, summaries of what reproduces, and comparisons of runs, in several formats."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd
from markupsafe import Markup, escape

from labelproof.experiments.comparison import Compared
from labelproof.experiments.grids import GRIDS
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


def as_csv(table: pd.DataFrame) -> str:
    """A table as comma-separated values, numbers to six digits.

    >>> print(as_csv(pd.DataFrame({"loss": ["ce"], "mean": [91.2345678], "std": [None]})))
    loss,mean,std
    ce,91.2346,
    """
    text = table.round(6).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return text.removesuffix("\n")


def signed(number: float) -> str:
    """A difference with its sign and two decimals.

    >>> signed(0.614), signed(-0.001)
    ('+0.61', '+0.00')
    """
    return MISSING if math.isnan(number) else f"{round(number, 2) + 0.0:+.2f}"


def with_spread(mean: float, deviation: float | None) -> str:
    """A mean and its standard deviation, if it is known.

    >>> with_spread(22.66, 0.61), with_spread(22.66, None), with_spread(math.nan, None)
    ('22.66 ± 0.61', '22.66', '–')
    """
    if math.isnan(mean):
        return MISSING
    known = deviation is not None and not math.isnan(deviation)
    return f"{mean:.2f}" + (f" ± {deviation:.2f}" if known else "")


# A table of results, from `labelproof.experiments.tables.make_table`.


def table_markdown(table: pd.DataFrame) -> str:
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


def table_latex(table: pd.DataFrame) -> str:
    """As a LaTeX table for the package booktabs."""
    return latex_table(caption(table), _grid(table), numbers=table["column"].nunique())


def table_html(table: pd.DataFrame) -> str:
    """As a self-contained page, with everything escaped."""
    name, dataset = table[["table", "dataset"]].iloc[0]
    return render_page(
        "table.html",
        title=_title(name, dataset),
        finding=finding(table),
        caption=caption(table),
        columns=table["column"].unique(),
        rows=_rows(table),
        bold=lambda text: Markup(_BOLD.sub(r"<strong>\1</strong>", str(escape(text)))),  # noqa: S704
        command=f"labelproof table {name} --dataset {dataset} --format html",
    )


def table_csv(table: pd.DataFrame) -> str:
    """As comma-separated values, a line for each cell; missing values are empty."""
    columns = (
        *("table", "dataset", "method", "column", "mean", "std", "n", "paper_mean", "paper_std"),
        *("difference", "best_mean", "best_std"),
    )
    return as_csv(table.filter(columns))


FORMATS: Mapping[str, Callable[[pd.DataFrame], str]] = {
    "markdown": table_markdown,
    "latex": table_latex,
    "html": table_html,
    "csv": table_csv,
}
"""The formats of a table, by name."""

SUFFIXES = {".md": "markdown", ".tex": "latex", ".html": "html", ".csv": "csv"}
"""The format of each file suffix."""


def caption(table: pd.DataFrame) -> str:
    """What a table shows, and how to read it."""
    return _describe("caption", table)


def finding(table: pd.DataFrame) -> str:
    """How much of a table was measured, and how much of that agrees with the paper."""
    return _describe("finding", table)


def _describe(part: str, table: pd.DataFrame) -> str:
    name, dataset = table[["table", "dataset"]].iloc[0]
    return render_words(
        "table_words.txt",
        part=part,
        title=_title(name, dataset),
        later=GRIDS[name].later,
        seeds=sorted(table["seeds"].explode().dropna().unique()),
        published=table["paper_mean"].notna().any(),
        epoch="best" if name == "human" else "last",
        cells=len(table),
        measured=table["mean"].count(),
        compared=table["difference"].count(),
        agreeing=table["agrees"].sum(),
    )


def _title(table: str, dataset: str) -> str:
    return f"{DATASETS[dataset]}, {TABLES[table]}"


def _grid(table: pd.DataFrame) -> Rows:
    """The header, and a row for each line; only the first of a method has its name."""
    return [
        ["method", "", *table["column"].unique()],
        *(
            ["" if number else method, kind, *texts]
            for method, lines in _rows(table)
            for number, (kind, texts) in enumerate(lines.items())
        ),
    ]


def _rows(table: pd.DataFrame) -> list[tuple[Any, dict[str, list[str]]]]:
    """For each method its lines by kind: measured, published, or the difference."""
    later = GRIDS[table["table"].iloc[0]].later
    rows = []
    for method, row in table.groupby("method", sort=False):
        cells = row.to_dict("records")
        lines = {"last" if later else "ours": [_ours(cell, bold=cell["leads"]) for cell in cells]}
        if later and row["n"].any():
            lines["best"] = [_ours(cell, "best_") for cell in cells]
        if row["paper_mean"].notna().any():
            lines["published" if later else "paper"] = [_paper(cell) for cell in cells]
            if not later:
                lines["difference"] = [signed(cell["difference"]) for cell in cells]
        rows.append((method, lines))
    return rows


def _ours(cell: Mapping[Any, Any], epoch: str = "", *, bold: bool = False) -> str:
    whole = with_spread(cell[f"{epoch}mean"], cell[f"{epoch}std"])
    whole += f" ({cell['n']})" if cell["n"] else ""
    return re.sub(r"^\S+", r"**\g<0>**", whole) if bold else whole


def _paper(cell: Mapping[Any, Any]) -> str:
    return with_spread(cell["paper_mean"], cell["paper_std"])


# What reproduces: cells from `labelproof.experiments.tables.compare_all`.


def summary(cells: pd.DataFrame) -> str:
    """The shares that reproduce, the cells that differ, and those without records."""
    return (
        f"{share_of_cells(cells)}\n\nCells that differ by more than is allowed:\n\n"
        f"{list_outside(cells)}\n\nCells without records:\n\n{list_missing(cells)}"
    )


def summary_html(cells: pd.DataFrame) -> str:
    """The same as a self-contained page, with everything escaped."""
    return render_page(
        "summary.html",
        title="What reproduces, and what does not",
        finding=render_words(
            "table_words.txt",
            part="summary",
            cells=len(cells),
            measured=cells["mean"].count(),
            agreeing=cells["agrees"].sum(),
        ),
        shares=_shares(cells),
        outside=_outside(cells),
        missing=_missing(cells),
        command="labelproof table summary --format html",
    )


def summary_csv(cells: pd.DataFrame) -> str:
    """The numbers of cells of each table, measured, and within tolerance, as CSV.

    Example:
        >>> from pathlib import Path
        >>> from labelproof.experiments.records import RecordStore
        >>> from labelproof.experiments.tables import compare_all
        >>> print(summary_csv(compare_all(RecordStore(Path("nowhere")))).splitlines()[1])
        symmetric,mnist,45,0,0
    """
    return as_csv(_counts(cells).drop(columns="seeds"))


SUMMARIES: Mapping[str, Callable[[pd.DataFrame], str]] = {
    "markdown": summary,
    "html": summary_html,
    "csv": summary_csv,
}
"""The formats of a summary, by name."""


def share_of_cells(cells: pd.DataFrame) -> str:
    """For each table how many cells were measured, and how many of those reproduce."""
    return align_markdown(_shares(cells))


def list_outside(cells: pd.DataFrame) -> str:
    """The cells that do not reproduce, the largest differences first."""
    rows = _outside(cells)
    return align_markdown(rows) if len(rows) > 1 else "None of those measured."


def list_missing(cells: pd.DataFrame) -> str:
    """The cells that have no records, row by row."""
    return "\n".join(f"- {line}" for line in _missing(cells)) or "None."


def _counts(cells: pd.DataFrame) -> pd.DataFrame:
    tables = cells.groupby(["table", "dataset"], sort=False)
    return tables.agg(
        cells=("n", "size"),
        measured=("mean", "count"),
        seeds=("n", _seeds),
        within=("agrees", "sum"),
    ).reset_index()


def _seeds(numbers: pd.Series) -> str:
    """The fewest and the most seeds of the measured cells."""
    counts = sorted(set(numbers) - {0}) or [MISSING]
    return " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def _shares(cells: pd.DataFrame) -> Rows:
    counts = _counts(cells)
    share = (100 * counts["within"] / counts["measured"]).map("{:.0f}%".format)
    counts["share"] = share.where(counts["measured"] > 0, MISSING)
    counts = counts.replace({"table": TABLES, "dataset": DATASETS})
    return [list(counts), *counts.astype(str).to_numpy().tolist()]


def _outside(cells: pd.DataFrame) -> Rows:
    outside = cells.dropna(subset="difference").query("not agrees").to_dict("records")
    outside.sort(key=lambda cell: -abs(cell["difference"]))
    rows = [["table", "dataset", "method", "column", "ours", "paper", "difference", "allowed"]]
    for cell in outside:
        place = [TABLES[cell["table"]], DATASETS[cell["dataset"]], cell["method"], cell["column"]]
        difference, allowed = signed(cell["difference"]), f"{cell['allowed']:.2f}"
        rows.append([*place, _ours(cell), _paper(cell), difference, allowed])
    return rows


def _missing(cells: pd.DataFrame) -> list[str]:
    lines = []
    for _, every in cells.groupby(["table", "dataset"], sort=False):
        table, dataset = every[["table", "dataset"]].iloc[0]
        whole = len(GRIDS[table].columns)
        missing = every[every["mean"].isna()].groupby("method", sort=False)["column"]
        rows = "; ".join(
            f"{method}" if len(columns) == whole else f"{method} at {', '.join(columns)}"
            for method, columns in missing
        )
        if rows:
            which = rows if every["n"].any() else f"all {len(every)}"
            lines.append(f"{TABLES[table]}, {DATASETS[dataset]}: {which}")
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
    numbers = ["measured_on", "mean", "std", "n", "difference", "difference_std", "noise_rate"]
    rows = [
        [
            *(*map(str, each.settings.values()), each.measured_on),
            *(each.mean, each.deviation, len(each.accuracies)),
            *(*(each.difference or (None, None)), each.noise_rate),
        ]
        for each in compared
    ]
    return as_csv(pd.DataFrame(rows, columns=[*compared[0].settings, *numbers]))


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
        accuracy = f"{with_spread(each.mean, each.deviation)} ({len(each.accuracies)})"
        if measured == "accuracy (%)":
            accuracy += f", {each.measured_on}"
        ahead, spread = each.difference or (None, None)
        difference = "" if ahead is None else signed(ahead)
        difference += "" if spread is None else f" ± {spread:.2f}"
        wrong = "unknown" if each.noise_rate is None else f"{each.noise_rate:.1%}"
        rows.append([*map(str, settings.values()), accuracy, difference, wrong])
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
