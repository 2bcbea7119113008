"""Panels of a figure: where they are, what their lines look like, and what is said in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from labelproof.experiments.curves import Panel
from labelproof.report.figures import CLASS_COLORS, PALETTE, SOFT, Curve, plot_curve, soften
from labelproof.report.legends import wrap_to

__all__ = [
    "NO_RECORDS",
    "Styles",
    "count_rows",
    "draw_panels",
    "make_handles",
    "make_places",
    "method_styles",
    "remark_on",
]

NO_RECORDS = "no records yet"

_FAMILIES = ("CE", "FL", "GCE", "SCE", "APL", "NLNL")


def count_rows(panels: Sequence[Panel], columns: int) -> int:
    """Rows that panels fill.

    >>> count_rows([Panel("a", [], 50)] * 5, 2)
    3
    """
    return -(-len(panels) // columns)


def make_places(figure: Figure, panels: Sequence[Panel], columns: int) -> list[Axes]:
    """One for each panel; what is left of the last row stays empty."""
    axes = list(figure.subplots(count_rows(panels, columns), columns, squeeze=False).flat)
    for left in axes[len(panels) :]:
        left.set_axis_off()
    return axes[: len(panels)]


Styles = Mapping[str, tuple[str, bool]]
"""For each line's name its colour, and whether it is dashed."""


def method_styles(panel: Panel) -> Styles:
    """A method and its regularised form share a colour; the plain one is dashed.

    >>> from labelproof.experiments.curves import Line
    >>> method_styles(Panel("a", [Line("CE", []), Line("CE+SR", [])], epochs=3))
    {'CE': ('#0072b2', True), 'CE+SR': ('#0072b2', False)}
    """
    plain = {
        line.name: re.sub(r"\+sr(\([^()]*\))?$", "", line.name, flags=re.IGNORECASE)
        for line in panel.lines
    }
    known = {base: PALETTE[_FAMILIES.index(base)] for base in plain.values() if base in _FAMILIES}
    others = [base for base in dict.fromkeys(plain.values()) if base not in known]
    free = [color for color in CLASS_COLORS if color not in known.values()]
    colors = known | {base: free[at % len(free)] for at, base in enumerate(others)}
    return {name: (colors[base], base == name) for name, base in plain.items()}


def draw_panels(
    places: Sequence[Axes],
    panels: Sequence[Panel],
    styles: Styles,
    *,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw each panel in its place; one without records says so.

    Args:
        places: As many as panels.
        panels: What is drawn.
        styles: Of all lines.
        limits: Of what is measured, where they are known.
    """
    nowhere = _missing_everywhere(panels)
    for axes, panel in zip(places, panels, strict=True):
        for line in panel.lines:
            if line.seeds:
                color, dashed = styles[line.name]
                curve = Curve(line.name, line.seeds, 0, dashed)
                plot_curve(axes, curve, color=color)
        title = wrap_to(_width(axes), panel.title, size=11.5)
        axes.set(title=title, xlabel="epoch", xlim=(0, panel.epochs))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        if limits:
            axes.set_ylim(*limits)
        axes.grid(alpha=0.25)
        soften(axes)
        # What no panel has is said once, beside the legend.
        missing = [name for name in panel.missing if name not in nowhere]
        if len(panel.missing) == len(panel.lines):
            axes.set(yticks=[])
            axes.grid(visible=False)
            _note(axes, 0.5, NO_RECORDS, size=11)
        elif missing:
            without = wrap_to(_width(axes), f"without {', '.join(missing)}", size=8)
            _note(axes, 0.07, without, size=8)


def _width(axes: Axes) -> float:
    """Inches that a panel will have, about, of which its ticks take some."""
    specification = axes.get_subplotspec()
    columns = specification.get_gridspec().ncols if specification else 1
    figure = axes.get_figure()
    width = figure.get_figwidth() if isinstance(figure, Figure) else 0.0
    return width / columns - 0.4


def _missing_everywhere(panels: Sequence[Panel]) -> set[str]:
    """What to say beside the legend; where nothing is there at all, the panels say so."""
    missing = set.intersection(*(set(panel.missing) for panel in panels))
    return missing if len(missing) < len(panels[0].lines) else set()


def make_handles(styles: Styles) -> list[Line2D]:
    """Entries of a legend.

    >>> [handle.get_label() for handle in make_handles({"CE": ("#0072b2", True)})]
    ['CE']
    """
    return [
        Line2D([], [], color=color, linestyle=(0, (4, 2)) if dashed else "solid", label=name)
        for name, (color, dashed) in styles.items()
    ]


def remark_on(panels: Sequence[Panel]) -> str:
    """What there is to say about lines in all panels; beside their names there is no room.

    >>> from labelproof.experiments.curves import Line
    >>> remark_on([Panel("a", [Line("CE", [[50.0] * 3]), Line("FL", [])], epochs=3)])
    'no records yet: FL'
    """
    nowhere = _missing_everywhere(panels)
    if not nowhere:
        return ""
    names = [line.name for line in panels[0].lines if line.name in nowhere]
    return f"{NO_RECORDS}: {', '.join(names)}"


def _note(axes: Axes, height: float, text: str, *, size: float) -> None:
    note = axes.text(0.5, height, text, transform=axes.transAxes, ha="center", va="center")
    note.set(color=SOFT, fontsize=size)
    note.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5})
