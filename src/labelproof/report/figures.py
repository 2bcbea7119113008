"""Pictures as inline SVG that follow the page into light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

__all__ = [
    "CLASS_COLORS",
    "PALETTE",
    "SOFT",
    "Curve",
    "Scatter",
    "draw_curves",
    "draw_scatters",
    "plot_curve",
    "soften",
]

# Colours that keep their contrast on white and on near-black, and differ for the colour-blind
# (after Okabe and Ito).
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
CLASS_COLORS = (*PALETTE, "#8c564b", "#7f7f7f", "#bcbd22", "#9467bd")
SOFT = "#57606a"
"""Of words that are beside the point."""
_GREY = "#8a8f98"


@dataclass(frozen=True)
class Curve:
    """A metric by epoch for several seeds.

    Attributes:
        label: The method.
        seeds: One list of values for each seed.
        color: Index into the palette; a method and its regularised form share one.
        dashed: Whether the line is dashed, as the plain forms are.
    """

    label: str
    seeds: Sequence[Sequence[float]]
    color: int
    dashed: bool


@dataclass(frozen=True)
class Scatter:
    """Points of the plane with a class each."""

    title: str
    points: NDArray[np.floating]
    labels: NDArray[np.integer]


def draw_curves(curves: Sequence[Curve], *, title: str, limits: tuple[float, float]) -> str:
    """Draw mean curves with a band from the lowest to the highest seed; return SVG."""
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for curve in curves:
        plot_curve(axes, curve, color=PALETTE[curve.color % len(PALETTE)])
    axes.set(title=title, xlabel="epoch", ylim=limits)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.legend(ncols=2, fontsize="small", frameon=False)
    soften(axes)
    return _to_svg(figure, title)


def plot_curve(axes: Axes, curve: Curve, *, color: str, width: float = 1.5) -> None:
    """Draw the mean of a curve's seeds and a band from the lowest to the highest.

    Args:
        axes: Where to.
        curve: At least one seed.
        color: Of the line and the band.
        width: Of the line.
    """
    length = min(len(seed) for seed in curve.seeds)
    values = np.array([seed[:length] for seed in curve.seeds])
    epochs = np.arange(1, length + 1)
    style = (0, (4, 2)) if curve.dashed else "solid"
    axes.plot(epochs, values.mean(0), color=color, linestyle=style, label=curve.label, lw=width)
    if len(values) > 1:
        axes.fill_between(epochs, values.min(0), values.max(0), color=color, alpha=0.15, lw=0)


def draw_scatters(
    scatters: Sequence[Scatter], *, title: str, class_names: Sequence[str], columns: int = 2
) -> str:
    """Draw scatter plots side by side with one legend of classes; return SVG."""
    rows = -(-len(scatters) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.7 * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, scatter in zip(grid.flat, scatters, strict=False):
        for label, name in enumerate(class_names):
            chosen = scatter.points[scatter.labels == label]
            color = CLASS_COLORS[label % len(CLASS_COLORS)]
            axes.scatter(*chosen.T, s=6, color=color, label=name, rasterized=True, lw=0)
        axes.set(title=scatter.title, xticks=[], yticks=[])
        soften(axes)
    for axes in grid.flat[len(scatters) :]:
        axes.set_axis_off()
    handles, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside lower center",
        ncols=len(class_names),
        frameon=False,
        markerscale=2,
        handletextpad=0.1,
        columnspacing=0.9,
    )
    return _to_svg(figure, title)


def soften(axes: Axes) -> None:
    """Grey frames and ticks read on both backgrounds; the page colours the text."""
    for spine in axes.spines.values():
        spine.set_color(_GREY)
    axes.tick_params(color=_GREY)


def _to_svg(figure: Figure, description: str) -> str:
    figure.patch.set_alpha(0)
    for axes in figure.axes:
        axes.patch.set_alpha(0)
    stream = io.StringIO()
    # Text stays text: it can be searched, read aloud, and coloured by the page.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": description}):
        FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    # Two pictures in one page must not share the ids of their clips and markers.
    unique = re.sub(r"\W+", "-", description.lower())
    svg = re.sub(r'id="([^"]+)"', rf'id="{unique}-\1"', svg)
    svg = re.sub(r'"#([^"]+)"', rf'"#{unique}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{unique}-\1)", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1)
