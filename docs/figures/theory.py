"""The theory page's picture: who is symmetric, what near one-hot costs, what pulls on a logit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from torch import Tensor

from labelproof import (
    CrossEntropy,
    Focal,
    GeneralizedCrossEntropy,
    Loss,
    MeanAbsoluteError,
    Normalized,
    PartiallyHuberizedCrossEntropy,
)
from labelproof.losses import Outputs
from labelproof.theory import confidence_epsilon, gradient_terms, risk_bound

__all__ = ["draw"]

CLASSES = 10
INK, FAINT = "#333333", "#d9d9d9"
# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#a05195"
SHADES = ["#7db8da", "#4292c6", "#2166ac", "#08306b"]


def draw(folder: Path) -> None:
    """Write `theory.svg` into `folder`."""
    with _style():
        figure = Figure((9, 7.4), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.14))
        sums, bounds, fitting, complementary = figure.subplots(2, 2).flat
        _draw_sums(sums)
        _draw_bounds(bounds)
        _draw_gradient(fitting, complementary)
        # Without a date the same code gives the same bytes.
        figure.savefig(folder / "theory.svg", metadata={"Date": None})


def _draw_sums(axes: Axes) -> None:
    """Sum over labels along the straight path from uniform to one-hot."""
    # Dense near one-hot, where cross entropy runs away.
    peak = 1 - 0.9 * torch.logspace(0, -6, 400, dtype=torch.float64)
    outputs = Outputs(_peaked(peak).log())
    curves: list[tuple[str, Loss, str]] = [
        ("CE", CrossEntropy(), RED),
        ("focal", Focal(0.5), ORANGE),
        ("Huberised CE", PartiallyHuberizedCrossEntropy(10), PURPLE),
        ("GCE, $q$ = 0.7", GeneralizedCrossEntropy(0.7), BLUE),
        ("MAE, NCE", MeanAbsoluteError(), GREEN),
        ("", Normalized(CrossEntropy()), "white"),
    ]
    top = 2.2
    for name, loss, color in curves:
        sums = loss.label_values(outputs).sum(dim=1)
        ratio = sums / sums[0]
        # The normalised loss lies on MAE's line and is drawn as dashes inside it.
        stroke = {} if name else {"linewidth": 1, "linestyle": (0, (2, 4))}
        axes.plot(peak, ratio, color=color, **stroke)
        if ratio[-1] < top:
            _name(axes, (1, float(ratio[-1])), name, color)
    # These two leave through the top, so they are named on their way.
    _name(axes, (0.84, 1.54), "CE", RED)
    _name(axes, (0.84, 1.68), "focal", ORANGE, right=False)
    axes.set(xlim=(0.1, 1), ylim=(0.9, top), xlabel="largest probability (the rest even)")
    axes.set_xticks([0.1, 0.4, 0.7, 1], ["0.1\nuniform", "0.4", "0.7", "1\none-hot"])
    axes.set_ylabel("sum over labels, 1 at uniform")
    axes.set_title("a   Flat is symmetric")


def _draw_bounds(axes: Axes) -> None:
    """The bound of theorem 3 over the distance, for a family from cross entropy to MAE."""
    epsilons = torch.logspace(-5, 0, 60, dtype=torch.float64).tolist()
    for q, shade in zip((0.9, 0.7, 0.5, 0.3), SHADES, strict=True):
        loss = GeneralizedCrossEntropy(q)
        bounds = [
            risk_bound(loss, rate=0.4, epsilon=epsilon, num_classes=CLASSES) for epsilon in epsilons
        ]
        axes.loglog(epsilons, bounds, color=shade)
        _name(axes, (1, bounds[-1]), f"$q$ = {q}", shade)
    sparse = confidence_epsilon()
    axes.axvline(sparse, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.text(sparse * 1.2, 1.5e-5, "largest\nprobability\nis 0.99", va="bottom")
    axes.set(xlim=(1e-5, 1), ylim=(1e-5, 5), xlabel="distance to one-hot, $\\varepsilon$")
    axes.set_ylabel("lost clean risk, at most $2c\\delta$")
    axes.set_title("b   Near one-hot, noise costs little")


def _draw_gradient(fitting: Axes, complementary: Axes) -> None:
    """Pull on the label's logit by both terms, over what the network believes of it."""
    # Dense at both ends, where powers of p = 0.1 turn within the width of the line.
    belief = torch.linspace(-26, 26, 600, dtype=torch.float64).sigmoid()
    logits = _peaked(belief).log()
    target = torch.zeros(len(belief), dtype=torch.long)
    for weight, shade in zip((0, 5, 10, 20), SHADES, strict=True):
        # At temperature 0.5 these outputs come from half their log-probabilities.
        terms = gradient_terms(0.5 * logits, target, weight=weight, p=0.1, temperature=0.5)
        for axes, term, place, above in (
            (fitting, terms.fitting, 0.3 if weight < 20 else 0.45, weight < 20),
            (complementary, terms.complementary, 0.75, weight == 0),
        ):
            pull = -term[:, 0]
            axes.plot(belief, pull, color=shade, clip_on=False)
            height = float(pull[(belief - place).abs().argmin()])
            offset = (2, 5 if above else -15)
            _name(axes, (place, height), f"$\\lambda$ = {weight}", shade, offset=offset)
    for axes in (fitting, complementary):
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set(xlim=(0, 1), xlabel="probability of the given label, $u_y$")
        axes.set_ylabel("pull on the label's logit")
    fitting.set_title("c   The fitting term gives way ...")
    complementary.set_title("d   ... the complementary term stays")


def _name(
    axes: Axes,
    point: tuple[float, float],
    name: str,
    color: str,
    *,
    right: bool = True,
    offset: tuple[int, int] | None = None,
) -> None:
    """Name a curve beside a point of it, so that no legend is needed."""
    axes.annotate(
        name,
        point,
        xytext=offset or (7 if right else -7, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="baseline" if offset else "center",
        color=color,
    )


def _peaked(peak: Tensor) -> Tensor:
    others = ((1 - peak) / (CLASSES - 1)).unsqueeze(1).expand(-1, CLASSES - 1)
    return torch.cat([peak.unsqueeze(1), others], dim=1)


@contextmanager
def _style() -> Iterator[None]:
    with mpl.rc_context(
        {
            "font.size": 10.5,
            "axes.titlesize": 11.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlepad": 10,
            "axes.labelcolor": INK,
            "axes.edgecolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": FAINT,
            "grid.linewidth": 0.6,
            "lines.linewidth": 2.2,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "figure.facecolor": "white",
            "svg.hashsalt": "labelproof",
        }
    ):
        yield
