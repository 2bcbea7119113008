"""Comparisons of runs as Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labelproof.experiments.comparison import Compared
from labelproof.report.figures import loss_labels
from labelproof.report.tables import (
    align_markdown,
    as_csv,
    escape_markdown,
    latex_table,
    signed,
    with_spread,
)

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
    rows = [[escape_markdown(cell) for cell in row] for row in _cells(compared)]
    return f"{_caption(compared)}\n\n{align_markdown(rows)}"


def comparison_latex(compared: Sequence[Compared]) -> str:
    """As a LaTeX table for the package booktabs."""
    return latex_table(_caption(compared), _cells(compared))


def comparison_csv(compared: Sequence[Compared]) -> str:
    """As CSV, a line for each group of runs; losses as they are written in full."""
    names = list(compared[0].settings) if compared else ["loss"]
    rows = [
        [
            *(*map(str, each.settings.values()), each.measured_on),
            *(each.mean, each.deviation, len(each.accuracies)),
            *(each.difference or (None, None)),
            each.noise_rate,
        ]
        for each in compared
    ]
    return as_csv([*names, *_NUMBERS], rows)


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
    losses = list(dict.fromkeys(str(each.settings["loss"]) for each in compared))
    labels = dict(zip(losses, loss_labels(losses), strict=True))
    rows = [[*names, measured, "to the first", "wrong labels"]]
    for each in compared:
        shown = [
            labels[str(value)] if name == "loss" else str(value)
            for name, value in each.settings.items()
        ]
        accuracy = f"{with_spread(each.mean, each.deviation)} ({len(each.accuracies)})"
        if measured == "accuracy (%)":
            accuracy += f", {each.measured_on}"
        difference = ""
        if each.difference is not None:
            spread = with_spread(*each.difference).partition(" ")[1:]
            difference = signed(each.difference[0]) + "".join(spread)
        rows.append([*shown, accuracy, difference, f"{each.noise_rate:.1%}"])
    return rows


COMPARISONS: Mapping[str, Callable[[Sequence[Compared]], str]] = {
    "markdown": comparison_markdown,
    "latex": comparison_latex,
    "csv": comparison_csv,
}
"""What `--format` takes."""
