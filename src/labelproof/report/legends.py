"""Legends that stay inside their picture, whatever their entries are called."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from labelproof.report.figures import SOFT

__all__ = ["legend_below", "legend_inside", "wrap_to"]

_NOTE_SIZE = 9
_ROW = 0.25
"""Inches that a line of a legend takes."""


def legend_below(figure: Figure, handles: Sequence[Line2D], *, note: str, columns: int) -> None:
    """Put a legend under all panels, in as many columns as the width has room for.

    Where it needs more than two lines the figure grows by the others, so that panels stay as large
    as they are.

    Args:
        figure: Whose.
        handles: Its entries; their labels are folded where one alone is too wide.
        note: What is said above the entries, if anything.
        columns: At most so many.

    Example:
        >>> figure = Figure((4, 3))
        >>> handles = [Line2D([], [], label=f"a method with a long name {n}") for n in range(4)]
        >>> legend_below(figure, handles, note="", columns=4)
        >>> figure.legends[0]._ncols
        1
    """
    width = figure.get_figwidth()
    for handle in handles:
        handle.set_label(wrap_to(width - 1, str(handle.get_label()), size=11))
    renderer = FigureCanvasAgg(figure).get_renderer()
    for wanted in range(min(columns, len(handles)), 0, -1):
        legend = figure.legend(
            handles=handles, loc="outside lower center", ncols=wanted, frameon=False
        )
        _say(legend, wrap_to(width - 0.5, note, size=_NOTE_SIZE))
        if wanted == 1 or legend.get_window_extent(renderer).width <= 0.98 * figure.bbox.width:
            lines = [str(handle.get_label()).count("\n") + 1 for handle in handles]
            height = sum(max(lines[at : at + wanted]) for at in range(0, len(lines), wanted))
            figure.set_figheight(figure.get_figheight() + _ROW * max(height - 2, 0))
            return
        legend.remove()


def legend_inside(axes: Axes, handles: Sequence[Line2D], *, note: str, width: float) -> None:
    """Put a legend in the place of a panel.

    Args:
        axes: The place, in which nothing is drawn then.
        handles: Its entries.
        note: What is said above them, if anything.
        width: Of the place, in inches.
    """
    axes.set_axis_off()
    legend = axes.legend(handles=handles, loc="center", frameon=False)
    _say(legend, wrap_to(width, note, size=_NOTE_SIZE))


def wrap_to(width: float, text: str, *, size: float) -> str:
    """Fold a text that is wider than so many inches in letters of a size, as far as can be guessed.

    >>> print(wrap_to(2, "no records yet: SCE, APL, NLNL, GCE+SR", size=9))
    no records yet: SCE, APL,
    NLNL, GCE+SR
    >>> print(wrap_to(2, "gce(q=0.5)+sr(tau=0.5,p=0.01,lambda0=5)", size=9))
    gce(q=0.5)+sr(tau=0.5,
    p=0.01,lambda0=5)
    """
    letters = max(int(width * 72 / (0.6 * size)), 10)
    words = textwrap.wrap(text, letters, break_long_words=False)
    return "\n".join(line for word in words for line in _break(word, letters))


def _break(word: str, letters: int) -> list[str]:
    """A word in lines: a loss as text has no spaces, and is better broken between its arguments."""
    lines = [""]
    for part in re.split(r"(?<=[,+])", word):
        if len(lines[-1] + part) <= letters or not lines[-1]:
            lines[-1] += part
        else:
            lines.append(part)
    return [line[at : at + letters] for line in lines for at in range(0, len(line), letters)]


def _say(legend: Legend, note: str) -> None:
    if note:
        legend.set_title(note, prop=FontProperties(size=_NOTE_SIZE))
        legend.get_title().set(color=SOFT, multialignment="center")
