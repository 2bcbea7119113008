"""What networks see, as scatter plots: a row for each method, a column for each noise."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from labelproof.experiments.embeddings import MOST_CLASSES, Embedding
from labelproof.report.figures import CLASS_COLORS, SOFT, soften
from labelproof.report.legends import wrap_to
from labelproof.report.loss_labels import loss_labels
from labelproof.report.paper_figures import house_style

__all__ = ["draw_embeddings"]

_PANEL = 2.7
"""Inches, of either side."""
_LINE = 0.2
"""Inches that a further line of a row's name takes."""


def draw_embeddings(
    embeddings: Sequence[Embedding], *, title: str, class_names: Sequence[str]
) -> Figure:
    """Draw embeddings, a row for each method and a column for each noise.

    Args:
        embeddings: At least one; of the same method and noise, the first.
        title: Above all.
        class_names: Of the dataset.
    """
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
