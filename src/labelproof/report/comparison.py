"""Comparisons of runs as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence

from labelproof.experiments.comparison import Compared
from labelproof.report.figures import loss_labels
from labelproof.report.tables import align_markdown, latex_table, signed

_NUMBERS = ("measured_on", "mean", "std", "n", "difference", "difference_std", "noise_rate")


def comparison_markdown(compared: Sequence[Compared]) -> str:
    """As aligned Markdown.

    Example:
        >>> runs = [Compared({"loss": "ce"}, "test", {1: 80.0, 2: 82.0}, 0.2)]
        >>> print(comparison_markdown(runs).splitlines()[2])
        | loss | test accuracy (%) | to the first | wrong labels |
        >>> print(comparison_markdown(runs).splitlines()[-1])
        | ce   | 81.00 ± 1.41 (2)  |              | 20.0%        |
    """
    rows = [
        [cell.replace("|", "\\|").replace("*", "\\*") for cell in row] for row in _cells(compared)
    ]
    return f"{_caption(compared)}\n\n{align_markdown(rows)}"


def comparison_latex(compared: Sequence[Compared]) -> str:
    """As a LaTeX table for the package booktabs."""
    return latex_table(_caption(compared), _cells(compared))


def comparison_csv(compared: Sequence[Compared]) -> str:
    """As CSV, a line for each group of runs; losses as they are written in full."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = list(compared[0].settings) if compared else ["loss"]
    writer.writerow([*names, *_NUMBERS])
    for each in compared:
        mean, deviation = each.difference or (math.nan, math.nan)
        numbers = [each.mean, each.deviation, len(each.accuracies), mean, deviation]
        writer.writerow(
            [
                *each.settings.values(),
                each.measured_on,
                *("" if math.isnan(value) else f"{value:.6g}" for value in numbers),
                f"{each.noise_rate:.6g}",
            ]
        )
    return stream.getvalue().rstrip("\n")


def _caption(compared: Sequence[Compared]) -> str:
    text = (
        "Accuracy (%) of the last epoch: mean ± standard deviation (number of seeds). To the "
        "first: the mean difference, over common seeds, to the first row of the same data and "
        "noise."
    )
    if any(each.measured_on == "validation" for each in compared):
        text += " Validation: on held-out labels, which may be wrong themselves."
    return text


def _cells(compared: Sequence[Compared]) -> list[list[str]]:
    names = list(compared[0].settings) if compared else ["loss"]
    kinds = {each.measured_on for each in compared}
    measured = f"{kinds.pop()} accuracy (%)" if len(kinds) == 1 else "accuracy (%)"
    labels = dict(zip(*_losses(compared), strict=True))
    rows = [[*names, measured, "to the first", "wrong labels"]]
    for each in compared:
        shown = [
            labels[str(value)] if name == "loss" else str(value)
            for name, value in each.settings.items()
        ]
        accuracy = f"{_spread(each.mean, each.deviation)} ({len(each.accuracies)})"
        if measured == "accuracy (%)":
            accuracy += f", {each.measured_on}"
        difference = "" if each.difference is None else _spread(*each.difference, sign=True)
        rows.append([*shown, accuracy, difference, f"{each.noise_rate:.1%}"])
    return rows


def _losses(compared: Sequence[Compared]) -> tuple[list[str], list[str]]:
    written = list(dict.fromkeys(str(each.settings["loss"]) for each in compared))
    return written, loss_labels(written)


def _spread(mean: float, deviation: float, *, sign: bool = False) -> str:
    text = signed(mean) if sign else f"{mean:.2f}"
    return text if math.isnan(deviation) else f"{text} ± {deviation:.2f}"


COMPARISONS: Mapping[str, Callable[[Sequence[Compared]], str]] = {
    "markdown": comparison_markdown,
    "latex": comparison_latex,
    "csv": comparison_csv,
}
"""What `--format` takes."""
