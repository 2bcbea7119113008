"""Figures from records and embeddings: curves, scatters, their styles and legends."""

from __future__ import annotations

import io
import itertools
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colormaps, style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from labelproof.experiments import figures
from labelproof.experiments.figures import MOST_CLASSES, Embedding, Panel
from labelproof.experiments.grids import Names
from labelproof.experiments.records import RecordStore
from labelproof.report.page import DATASETS
from labelproof.report.tables import loss_labels

# Colours that keep their contrast on white and on near-black, and differ for the colour-blind
# (after Okabe and Ito).
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
CLASS_COLORS = (*PALETTE, "#8c564b", "#7f7f7f", "#bcbd22", "#9467bd")
SOFT = "#57606a"
"""The colour of notes."""

Styles = Mapping[str, tuple[str, bool]]
"""The colour of each line by name, and whether it is dashed."""

SUFFIXES = (".svg", ".png", ".pdf")
"""File formats of figures."""


@dataclass(frozen=True)
class FigureKind:
    """A figure that can be drawn.

    Attributes:
        title: Above all panels, with `{}` for the dataset.
        datasets: The datasets it can be drawn for; the first is in the paper.
        panels: A function of `labelproof.experiments.figures`.
        styles: The styles of the lines in all panels, by a function of the first panel.
        layout: Panels in a row, and the width and height of a panel in inches.
        limits: Of the vertical axis; by the data if `None`.
    """

    title: str
    datasets: tuple[str, ...]
    panels: Callable[..., list[Panel]]
    styles: Callable[[Panel], Styles]
    layout: tuple[int, float, float]
    limits: tuple[float, float] | None = None


def draw_figure(
    store: RecordStore, name: str, dataset: str, *, methods: Names = (), columns: Names = ()
) -> Figure:
    """Draw one of `FIGURES` in the house style.

    `methods` are rows of the tables or losses as text, and `columns` are those of the tables; the
    default is the paper's figure.

    Example:
        >>> from pathlib import Path
        >>> figure = draw_figure(RecordStore(Path("nowhere")), "sweep-tau", "cifar10")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['no records yet']
    """
    kind = FIGURES[name]
    panels = kind.panels(store, dataset, methods=methods, columns=columns)
    across, width, height = kind.layout
    styles, across = kind.styles(panels[0]), min(across, len(panels))
    with house_style():
        down = -(-len(panels) // across)
        figure = Figure((max(width * across, 6.3), height * down + 1.2))
        figure.suptitle(kind.title.format(DATASETS[dataset]))
        places = figure.subplots(down, across, squeeze=False).flat
        for axes, panel in itertools.zip_longest(places, panels):
            if panel is None:  # the rest of the last row
                axes.set_axis_off()
            else:
                width = figure.get_figwidth() / across - 0.4  # about, without its ticks
                _draw_panel(axes, panel, styles, width, kind.limits)
        figure.legend(
            handles=[
                Line2D([], [], color=color, linestyle=_line(dashed), label=name)
                for name, (color, dashed) in styles.items()
            ],
            loc="outside lower center",
            ncols=max(across, 3),
        )
    return figure


def draw_curves(panel: Panel, styles: Styles, *, limits: tuple[float, float]) -> str:
    """Draw mean curves with a band from the lowest to the highest seed; return SVG."""
    with house_style():
        figure = Figure((5.6, 3.6))
        axes = figure.add_subplot(title=panel.title)
        _plot(axes, panel, styles, limits)
        axes.legend(ncols=2, fontsize="small")
    return to_svg(figure, panel.title)


def _plot(axes: Axes, panel: Panel, styles: Styles, limits: tuple[float, float] | None) -> None:
    """Draw the mean of each line's seeds, and a band from the lowest to the highest."""
    for name, seeds in panel.lines.items():
        if seeds:
            length = min(len(seed) for seed in seeds)
            values = np.array([seed[:length] for seed in seeds])
            epochs, (color, dashed) = np.arange(1, length + 1), styles[name]
            axes.plot(epochs, values.mean(0), color=color, ls=_line(dashed), label=name)
            if len(values) > 1:
                low, high = values.min(0), values.max(0)
                axes.fill_between(epochs, low, high, color=color, alpha=0.15, lw=0)
    axes.set(xlabel="epoch", xlim=(0, panel.epochs), ylim=limits)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(visible=True)


def _line(dashed: bool) -> Any:
    return (0, (4, 2)) if dashed else "solid"


def to_svg(figure: Figure, description: str) -> str:
    """A figure as SVG to embed in a page, with the description as its label."""
    figure.patch.set_alpha(0)
    for axes in figure.axes:
        axes.patch.set_alpha(0)
    stream = io.StringIO()
    # Text stays text: it can be searched, read aloud, and coloured by the page.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": description}):
        FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    # Two figures in one page must not share the ids of their clips and markers.
    unique = re.sub(r"\W+", "-", description.lower())
    svg = re.sub(r'id="([^"]+)"', rf'id="{unique}-\1"', svg)
    svg = re.sub(r'"#([^"]+)"', rf'"#{unique}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{unique}-\1)", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1)


NO_RECORDS = "no records yet"

_FAMILIES = ("CE", "FL", "GCE", "SCE", "APL", "NLNL")


def method_styles(panel: Panel) -> Styles:
    """A method and its regularised form share a colour; the plain one is dashed.

    >>> method_styles(Panel("a", {"CE": [], "CE+SR": []}, epochs=3))
    {'CE': ('#0072b2', True), 'CE+SR': ('#0072b2', False)}
    """
    suffix = re.compile(r"\+sr(\([^()]*\))?$", re.IGNORECASE)
    plain = {name: suffix.sub("", name) for name in panel.lines}
    known = {base: PALETTE[_FAMILIES.index(base)] for base in plain.values() if base in _FAMILIES}
    others = [base for base in dict.fromkeys(plain.values()) if base not in known]
    free = [color for color in CLASS_COLORS if color not in known.values()]
    colors = known | {base: free[at % len(free)] for at, base in enumerate(others)}
    return {name: (colors[base], base == name) for name, base in plain.items()}


def _draw_panel(
    axes: Axes, panel: Panel, styles: Styles, width: float, limits: tuple[float, float] | None
) -> None:
    """Draw a panel of about `width` inches, with a note on missing records."""
    _plot(axes, panel, styles, limits)
    axes.set(title=wrap_to(width, panel.title, size=11.5))
    if len(panel.missing) == len(panel.lines):
        axes.set(yticks=[])
        axes.grid(visible=False)
        _note(axes, 0.5, NO_RECORDS, size=11)
    elif panel.missing:
        without = wrap_to(width, f"without {', '.join(panel.missing)}", size=8)
        _note(axes, 0.07, without, size=8)


def _note(axes: Axes, height: float, text: str, *, size: float) -> None:
    note = axes.text(0.5, height, text, transform=axes.transAxes, ha="center", va="center")
    note.set(color=SOFT, fontsize=size)
    note.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5})


def wrap_to(width: float, text: str, *, size: float) -> str:
    """Wrap a text to about `width` inches in a font of `size` points.

    >>> print(wrap_to(2, "no records yet: SCE, APL, NLNL, GCE+SR", size=9))
    no records yet: SCE, APL,
    NLNL, GCE+SR
    >>> print(wrap_to(2, "gce(q=0.5)+sr(tau=0.5,p=0.01,lambda0=5)", size=9))
    gce(q=0.5)+sr(tau=0.5,
    p=0.01,lambda0=5)
    """
    wrapper = textwrap.TextWrapper(max(int(width * 72 / (0.6 * size)), 10))
    # A loss as text has no spaces; it breaks between its arguments.
    wrapper.wordsep_re = re.compile(r"(\s+)|(?<=[,+])")
    return wrapper.fill(text)


def house_style() -> Any:
    """A context in which matplotlib draws in the style of this package."""
    return style.context(Path(__file__).with_name("figures.mplstyle"))


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's suffix; the same figure gives the same bytes."""
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with house_style():
        # Tight, since a legend of long losses is wider than the panels.
        figure.savefig(path, dpi=200, bbox_inches="tight", metadata=dates.get(path.suffix.lower()))


def _shades(panel: Panel) -> Styles:
    """Shades from dark to light, in the order of the lines."""
    shades, last = colormaps["viridis"], max(len(panel.lines) - 1, 1)
    return {
        name: (to_hex(shades(0.88 * number / last)), False)
        for number, name in enumerate(panel.lines)
    }


def _fates(_: Panel) -> Styles:
    """Styles of the fates of labels; dashed if the true class is predicted instead."""
    names = zip(figures.FITTED.values(), PALETTE, strict=False)
    return {name: (color, "true class" in name) for name, color in names}


FIGURES: Mapping[str, FigureKind] = {
    "accuracy": FigureKind(
        "Test accuracy (%) by epoch, {}",
        ("mnist", "cifar10", "cifar100"),
        figures.accuracy_panels,
        method_styles,
        layout=(5, 2.5, 2.4),
    ),
    "sparse": FigureKind(
        "Sparse rate and accuracy, {}",
        ("mnist", "cifar10", "cifar100"),
        figures.sparse_panels,
        method_styles,
        layout=(2, 4.75, 3.4),
        limits=(-2, 102),
    ),
    "memorisation": FigureKind(
        "What becomes of the training labels (%), {}",
        ("mnist", "cifar10", "cifar100"),
        figures.memorisation_panels,
        _fates,
        layout=(4, 2.75, 2.4),
        limits=(-2, 102),
    ),
    **{
        name: FigureKind(
            f"Test accuracy (%) for different {symbol}, {{}}, symmetric 0.6",
            ("cifar10",),
            partial(figures.sweep_panels, name),
            _shades,
            layout=(2, 5.5, 3.4),
        )
        for name, symbol in figures.SWEEPS.items()
    },
}
"""The figures that can be drawn from records, by name."""

_PANEL = 2.7
"""Width and height of a panel, in inches."""
_LINE = 0.2
"""Height of a further line of a row's name, in inches."""


def draw_embeddings(
    embeddings: Sequence[Embedding], *, title: str, class_names: Sequence[str]
) -> Figure:
    """Draw embeddings, a row for each method and a column for each noise."""
    by_place = {(one.method, one.noise): one for one in reversed(embeddings)}
    methods = list(dict.fromkeys(one.method for one in embeddings))
    noises = list(dict.fromkeys(one.noise for one in embeddings))
    labels = [wrap_to(_PANEL - 0.5, label, size=11) for label in loss_labels(methods)]
    beside = _LINE * max(label.count("\n") for label in labels)
    with house_style():
        width = max(_PANEL * len(noises), 6.2) + beside
        figure = Figure((width, _PANEL * len(methods) + 1.1))
        figure.suptitle(title)
        grid = figure.subplots(len(methods), len(noises), squeeze=False)
        for method, label, places in zip(methods, labels, grid, strict=True):
            places[0].set_ylabel(label)
            for noise, axes in zip(noises, places, strict=True):
                _draw(axes, by_place.get((method, noise)))
        names = list(class_names)[:MOST_CLASSES]
        handles = [
            grid[0, 0].scatter([], [], s=30, color=color, label=name, lw=0)
            for color, name in zip(CLASS_COLORS, names, strict=False)
        ]
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=len(names) if max(map(len, names)) < 3 else 5,
            handletextpad=0.1,
            columnspacing=0.9,
        )
    return figure


def _draw(axes: Axes, embedding: Embedding | None) -> None:
    axes.set(xticks=[], yticks=[])
    if embedding is None:
        axes.text(0.5, 0.5, "no run", transform=axes.transAxes, ha="center", color=SOFT)
        return
    for label in range(MOST_CLASSES):
        points = embedding.points[embedding.labels == label]
        if len(points):
            axes.scatter(*points.T, s=7, color=CLASS_COLORS[label], lw=0, rasterized=True)
    noise = "no noise" if embedding.noise == "none" else embedding.noise.replace(":", " ")
    axes.set_title(f"{noise}: {embedding.accuracy:.2f}%", fontsize=10)
