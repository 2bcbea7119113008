"""The paper's figures, drawn from records and embeddings."""

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

from labelproof.experiments.curves import (
    FITTED,
    SWEEPS,
    Panel,
    accuracy_panels,
    memorisation_panels,
    sparse_panels,
    sweep_panels,
)
from labelproof.experiments.embeddings import MOST_CLASSES, Embedding
from labelproof.experiments.records import RecordStore
from labelproof.report.figures import (
    CLASS_COLORS,
    PALETTE,
    SOFT,
    Styles,
    draw_panels,
    loss_labels,
    make_handles,
    method_styles,
    soften,
    wrap_to,
)
from labelproof.report.page import DATASETS

SUFFIXES = (".svg", ".png", ".pdf")
"""What a figure can be saved as."""

_INK = "#1c2128"
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
        title: Above all panels; the dataset is put into its place.
        datasets: What it can be drawn for; the first is the paper's, or the first of the paper's.
        panels: One of `labelproof.experiments.curves`.
        styles: From a panel to the styles of the lines of all.
        across: Panels in a row.
        size: Of a panel, in inches.
        limits: Of what is measured, where they are known.
    """

    summary: str
    title: str
    datasets: tuple[str, ...]
    panels: Callable[..., list[Panel]]
    styles: Callable[[Panel], Styles]
    across: int
    size: tuple[float, float]
    limits: tuple[float, float] | None = None

    def has_records(self, store: RecordStore, dataset: str) -> bool:
        """Whether there is anything to draw."""
        return any(line.seeds for panel in self.panels(store, dataset) for line in panel.lines)


def draw_figure(
    store: RecordStore,
    name: str,
    dataset: str,
    *,
    methods: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Figure:
    """Draw one of `FIGURES` in the house style.

    `methods` are rows of the tables, or losses as text, and `columns` those of the tables; without
    them it is the paper's figure.

    Example:
        >>> from pathlib import Path
        >>> figure = draw_figure(RecordStore(Path("nowhere")), "sweep-tau", "cifar10")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['no records yet']
    """
    kind = FIGURES[name]
    panels = kind.panels(store, dataset, methods=methods, columns=columns)
    styles, across = kind.styles(panels[0]), min(kind.across, len(panels))
    width, height = kind.size
    with house_style():
        figure = Figure(
            (max(width * across, 6.3), height * -(-len(panels) // across) + 1.2),
            layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.1),
        )
        title = kind.title.format(DATASETS[dataset])
        figure.suptitle(title, fontsize=13, fontweight="bold", color=_INK)
        draw_panels(figure, panels, styles, across=across, limits=kind.limits)
        figure.legend(
            handles=make_handles(styles),
            loc="outside lower center",
            ncols=max(across, 3),
            frameon=False,
        )
    return figure


def house_style() -> Any:
    """Inside, matplotlib draws as all figures of this package do."""
    return matplotlib.rc_context(_STYLE)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as its file's name says; the same figure gives the same bytes."""
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with house_style():
        # Around all there is: a legend of long losses is wider than the panels.
        figure.savefig(path, dpi=200, bbox_inches="tight", metadata=dates.get(path.suffix.lower()))


def _shades(panel: Panel) -> Styles:
    """From dark to light in the order of the lines."""
    shades, last = colormaps["viridis"], max(len(panel.lines) - 1, 1)
    return {
        line.name: (to_hex(shades(0.88 * number / last)), False)
        for number, line in enumerate(panel.lines)
    }


def _fates(_: Panel) -> Styles:
    """What becomes of labels; dashed, where the true class is predicted instead."""
    names = zip(FITTED.values(), PALETTE, strict=False)
    return {name: (color, "true class" in name) for name, color in names}


FIGURES: Mapping[str, FigureKind] = {
    "accuracy": FigureKind(
        "accuracy of every method by epoch, a panel for each kind and rate of noise",
        "Test accuracy (%) by epoch, {}",
        ("mnist", "cifar10", "cifar100"),
        accuracy_panels,
        method_styles,
        across=5,
        size=(2.5, 2.4),
    ),
    "sparse": FigureKind(
        "sparse rate and accuracy by epoch, symmetric noise 0.8",
        "Sparse rate and accuracy, {}",
        ("mnist", "cifar10", "cifar100"),
        sparse_panels,
        method_styles,
        across=2,
        size=(4.75, 3.4),
        limits=(-2, 102),
    ),
    "memorisation": FigureKind(
        "shares of right and wrong labels that are fitted, CE against CE+SR; not in the paper",
        "What becomes of the training labels (%), {}",
        ("mnist", "cifar10", "cifar100"),
        memorisation_panels,
        _fates,
        across=4,
        size=(2.75, 2.4),
        limits=(-2, 102),
    ),
    **{
        name: FigureKind(
            f"accuracy by epoch for different {symbol}, symmetric noise 0.6",
            f"Test accuracy (%) for different {symbol}, {{}}, symmetric 0.6",
            ("cifar10",),
            partial(sweep_panels, name),
            _shades,
            across=2,
            size=(5.5, 3.4),
        )
        for name, symbol in SWEEPS.items()
    },
}
"""What can be drawn from records, by name."""

_PANEL = 2.7
"""Inches, of either side."""
_LINE = 0.2
"""Inches that a further line of a row's name takes."""


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
        figure = Figure(
            (max(_PANEL * len(noises), 6.2) + beside, _PANEL * len(methods) + 1.1),
            layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06),
        )
        figure.suptitle(title, fontsize=13, fontweight="bold")
        grid = figure.subplots(len(methods), len(noises), squeeze=False)
        for row, method in enumerate(methods):
            for column, noise in enumerate(noises):
                _draw(grid[row, column], by_place.get((method, noise)))
                if column == 0:
                    grid[row, column].set_ylabel(labels[row])
        names = list(class_names)[:MOST_CLASSES]
        handles = [
            grid[0, 0].scatter([], [], s=30, color=color, label=name, lw=0)
            for color, name in zip(CLASS_COLORS, names, strict=False)
        ]
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=len(names) if max(map(len, names)) < 3 else 5,
            frameon=False,
            handletextpad=0.1,
            columnspacing=0.9,
        )
    return figure


def _draw(axes: Axes, embedding: Embedding | None) -> None:
    axes.set(xticks=[], yticks=[])
    soften(axes)
    if embedding is None:
        axes.text(0.5, 0.5, "no run", transform=axes.transAxes, ha="center", color=SOFT)
        return
    for label in range(MOST_CLASSES):
        points = embedding.points[embedding.labels == label]
        if len(points):
            axes.scatter(*points.T, s=7, color=CLASS_COLORS[label], lw=0, rasterized=True)
    noise = "no noise" if embedding.noise == "none" else embedding.noise.replace(":", " ")
    axes.set_title(f"{noise}: {embedding.accuracy:.2f}%", fontsize=10)
