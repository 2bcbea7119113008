"""The paper's figures, and one of ours, from records: panels without records say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from labelproof.experiments.curves import (
    FITTED,
    SWEEPS,
    Panel,
    accuracy_panels,
    memorisation_panels,
    sparse_panels,
    sweep_panels,
)
from labelproof.experiments.store import RecordStore
from labelproof.report.figures import PALETTE, Curve, plot_curve, soften
from labelproof.report.titles import DATASETS

__all__ = ["FIGURES", "SUFFIXES", "FigureKind", "draw_figure", "house_style", "save_figure"]

SUFFIXES = (".svg", ".png", ".pdf")
"""What a figure can be saved as."""

NO_RECORDS = "no records yet"

_INK, _SOFT = "#1c2128", "#57606a"
_FAMILIES = ("CE", "FL", "GCE", "SCE", "APL", "NLNL")
_STYLE: Any = {
    "font.size": 11,
    "axes.titlesize": 11.5,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "labelproof",
}


@dataclass(frozen=True)
class FigureKind:
    """A figure that can be drawn.

    Attributes:
        summary: One line for a list of figures.
        datasets: What it can be drawn for; the first is the paper's, or the first of the paper's.
        panels: From records and a dataset to what is drawn.
        draw: From panels and a dataset to a figure.
    """

    summary: str
    datasets: tuple[str, ...]
    panels: Callable[[RecordStore, str], list[Panel]]
    draw: Callable[[Sequence[Panel], str], Figure]

    def has_records(self, store: RecordStore, dataset: str) -> bool:
        """Whether there is anything to draw."""
        return any(line.seeds for panel in self.panels(store, dataset) for line in panel.lines)


def draw_figure(store: RecordStore, name: str, dataset: str) -> Figure:
    """Draw one of `FIGURES` in the house style.

    Example:
        >>> from pathlib import Path
        >>> figure = draw_figure(RecordStore(Path("nowhere")), "sweep-tau", "cifar10")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['no records yet']
    """
    kind = FIGURES[name]
    with house_style():
        return kind.draw(kind.panels(store, dataset), dataset)


def house_style() -> Any:
    """Inside, matplotlib draws as all figures of this package do."""
    return matplotlib.rc_context(_STYLE)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as its file's name says; the same figure gives the same bytes.

    Args:
        figure: What to write.
        path: Ends in one of `SUFFIXES`; its folder is made.
    """
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with house_style():
        figure.savefig(path, dpi=200, metadata=dates.get(path.suffix.lower()))


def _draw_accuracy(panels: Sequence[Panel], dataset: str) -> Figure:
    figure = _figure(12.6, 5.8, f"Test accuracy (%) by epoch, {DATASETS[dataset]}")
    grid = figure.subplots(2, 5)
    styles = _method_styles(panels[0])
    # As in the paper: symmetric noise above, asymmetric below, and room for a legend beside it.
    _draw_panels([*grid[0], *grid[1, 1:]], panels, styles)
    grid[1, 0].set_axis_off()
    grid[1, 0].legend(handles=_handles(panels, styles), loc="center", frameon=False)
    return figure


def _draw_sparse(panels: Sequence[Panel], dataset: str) -> Figure:
    figure = _figure(9.5, 4.6, f"Sparse rate and accuracy, {DATASETS[dataset]}, symmetric 0.8")
    styles = _method_styles(panels[0])
    _draw_panels(figure.subplots(1, 2), panels, styles, limits=(-2, 102))
    _legend_below(figure, panels, styles, columns=3)
    return figure


def _draw_sweep(name: str, panels: Sequence[Panel], dataset: str) -> Figure:
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    title = f"Test accuracy (%) for different {SWEEPS[name]}, {DATASETS[dataset]}, symmetric 0.6"
    figure = _figure(4.4 * columns + 2.2, 3.4 * rows + 1, title)
    shades, last = colormaps["cividis"], max(len(panels[0].lines) - 1, 1)
    styles = {
        line.name: (to_hex(shades(0.88 * number / last)), False)
        for number, line in enumerate(panels[0].lines)
    }
    _draw_panels(list(figure.subplots(rows, columns, squeeze=False).flat), panels, styles)
    _legend_below(figure, panels, styles, columns=3 * columns)
    return figure


def _draw_memorisation(panels: Sequence[Panel], dataset: str) -> Figure:
    figure = _figure(11, 6, f"What becomes of the training labels (%), {DATASETS[dataset]}")
    styles = {
        name: (PALETTE[number], dashed)
        for number, (name, dashed) in enumerate(
            zip(FITTED.values(), (False, False, True), strict=True)
        )
    }
    _draw_panels(list(figure.subplots(2, 4).flat), panels, styles, limits=(-2, 102))
    _legend_below(figure, panels, styles, columns=3)
    return figure


FIGURES: Mapping[str, FigureKind] = {
    "accuracy": FigureKind(
        "accuracy of every method by epoch, a panel for each kind and rate of noise",
        ("mnist", "cifar10", "cifar100"),
        accuracy_panels,
        _draw_accuracy,
    ),
    "sparse": FigureKind(
        "sparse rate and accuracy by epoch, symmetric noise 0.8",
        ("mnist", "cifar10", "cifar100"),
        sparse_panels,
        _draw_sparse,
    ),
    "memorisation": FigureKind(
        "shares of right and wrong labels that are fitted, CE against CE+SR; not in the paper",
        ("mnist", "cifar10", "cifar100"),
        memorisation_panels,
        _draw_memorisation,
    ),
    **{
        name: FigureKind(
            f"accuracy by epoch for different {symbol}, symmetric noise 0.6",
            ("cifar10",),
            partial(sweep_panels, name),
            partial(_draw_sweep, name),
        )
        for name, symbol in SWEEPS.items()
    },
}
"""What can be drawn from records, by name."""

Styles = Mapping[str, tuple[str, bool]]
"""For each line's name its colour, and whether it is dashed."""


def _method_styles(panel: Panel) -> Styles:
    """A method and its regularised form share a colour; the plain one is dashed."""
    styles = {}
    for line in panel.lines:
        base = line.name.removesuffix("+SR")
        styles[line.name] = (PALETTE[_FAMILIES.index(base)], base == line.name)
    return styles


def _draw_panels(
    places: Sequence[Axes],
    panels: Sequence[Panel],
    styles: Styles,
    *,
    limits: tuple[float, float] | None = None,
) -> None:
    nowhere = _missing_everywhere(panels)
    for axes, panel in zip(places, panels, strict=True):
        for line in panel.lines:
            if line.seeds:
                color, dashed = styles[line.name]
                curve = Curve(line.name, line.seeds, 0, dashed)
                plot_curve(axes, curve, color=color, squeeze_to=panel.epochs)
        axes.set(title=panel.title, xlabel="epoch", xlim=(0, panel.epochs))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        if limits:
            axes.set_ylim(*limits)
        axes.grid(alpha=0.25)
        soften(axes)
        # What no panel has is said once, in the legend.
        missing = [name for name in panel.missing if name not in nowhere]
        if len(panel.missing) == len(panel.lines):
            axes.set(yticks=[])
            axes.grid(visible=False)
            _note(axes, 0.5, NO_RECORDS, size=11)
        elif missing:
            _note(axes, 0.07, f"without {', '.join(missing)}", size=8)


def _missing_everywhere(panels: Sequence[Panel]) -> set[str]:
    """What to mark in the legend; where nothing is there at all, the panels say so."""
    missing = set.intersection(*(set(panel.missing) for panel in panels))
    return missing if len(missing) < len(panels[0].lines) else set()


def _handles(panels: Sequence[Panel], styles: Styles) -> list[Line2D]:
    nowhere = _missing_everywhere(panels)
    handles = []
    for name, (color, dashed) in styles.items():
        longest = max(_length(panel, name) / panel.epochs for panel in panels)
        label = name
        if name in nowhere:
            label = f"{name} ({NO_RECORDS})"
        elif longest > 1:
            label = f"{name} ({round(longest * panels[0].epochs)} epochs, squeezed)"
        style = (0, (4, 2)) if dashed else "solid"
        handles.append(Line2D([], [], color=color, linestyle=style, label=label))
    return handles


def _length(panel: Panel, name: str) -> int:
    return max(
        (len(seed) for line in panel.lines if line.name == name for seed in line.seeds), default=0
    )


def _legend_below(figure: Figure, panels: Sequence[Panel], styles: Styles, *, columns: int) -> None:
    handles = _handles(panels, styles)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)


def _note(axes: Axes, height: float, text: str, *, size: float) -> None:
    note = axes.text(0.5, height, text, transform=axes.transAxes, ha="center", va="center")
    note.set(color=_SOFT, fontsize=size)
    note.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5})


def _figure(width: float, height: float, title: str) -> Figure:
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.1)
    figure = Figure((width, height), layout=layout)
    figure.suptitle(title, fontsize=13, fontweight="bold", color=_INK)
    return figure
