"""Figures of one or several panels: curves, scatters, their styles and legends."""

from __future__ import annotations

import io
import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from labelproof.experiments.curves import Panel
from labelproof.losses import format_loss, parse_loss

# Colours that keep their contrast on white and on near-black, and differ for the colour-blind
# (after Okabe and Ito).
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
CLASS_COLORS = (*PALETTE, "#8c564b", "#7f7f7f", "#bcbd22", "#9467bd")
SOFT = "#57606a"
"""Of words that are beside the point."""
_GREY = "#8a8f98"


Styles = Mapping[str, tuple[str, bool]]
"""For each line's name its colour, and whether it is dashed."""


def draw_curves(panel: Panel, styles: Styles, *, limits: tuple[float, float]) -> str:
    """Draw mean curves with a band from the lowest to the highest seed; return SVG."""
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    _plot(axes, panel, styles, limits=limits)
    axes.set(title=panel.title)
    axes.legend(ncols=2, fontsize="small", frameon=False)
    return to_svg(figure, panel.title)


def _plot(
    axes: Axes, panel: Panel, styles: Styles, *, limits: tuple[float, float] | None = None
) -> None:
    """Draw the mean of each line's seeds, and a band from the lowest to the highest."""
    for line in panel.lines:
        if line.seeds:
            length = min(len(seed) for seed in line.seeds)
            values = np.array([seed[:length] for seed in line.seeds])
            epochs, (color, dashed) = np.arange(1, length + 1), styles[line.name]
            style = (0, (4, 2)) if dashed else "solid"
            axes.plot(epochs, values.mean(0), color=color, linestyle=style, label=line.name)
            if len(values) > 1:
                low, high = values.min(0), values.max(0)
                axes.fill_between(epochs, low, high, color=color, alpha=0.15, lw=0)
    axes.set(xlabel="epoch", xlim=(0, panel.epochs), ylim=limits)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(alpha=0.25)
    soften(axes)


def soften(axes: Axes) -> None:
    """Grey frames and ticks read on both backgrounds; the page colours the text."""
    for spine in axes.spines.values():
        spine.set_color(_GREY)
    axes.tick_params(color=_GREY)


def to_svg(figure: Figure, description: str) -> str:
    """A figure as SVG that stands in a page, with the description as its label."""
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


NO_RECORDS = "no records yet"

_FAMILIES = ("CE", "FL", "GCE", "SCE", "APL", "NLNL")


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
    figure: Figure,
    panels: Sequence[Panel],
    styles: Styles,
    *,
    across: int,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw panels, so many in a row; one without records says so."""
    places = figure.subplots(-(-len(panels) // across), across, squeeze=False).flat
    width = figure.get_figwidth() / across - 0.4  # about: its ticks take some
    for axes, panel in itertools.zip_longest(places, panels):
        if panel is None:  # what is left of the last row
            axes.set_axis_off()
            continue
        _plot(axes, panel, styles, limits=limits)
        axes.set(title=wrap_to(width, panel.title, size=11.5))
        if len(panel.missing) == len(panel.lines):
            axes.set(yticks=[])
            axes.grid(visible=False)
            _note(axes, 0.5, NO_RECORDS, size=11)
        elif panel.missing:
            without = wrap_to(width, f"without {', '.join(panel.missing)}", size=8)
            _note(axes, 0.07, without, size=8)


def make_handles(styles: Styles) -> list[Line2D]:
    """Entries of a legend.

    >>> [handle.get_label() for handle in make_handles({"CE": ("#0072b2", True)})]
    ['CE']
    """
    return [
        Line2D([], [], color=color, linestyle=(0, (4, 2)) if dashed else "solid", label=name)
        for name, (color, dashed) in styles.items()
    ]


def _note(axes: Axes, height: float, text: str, *, size: float) -> None:
    note = axes.text(0.5, height, text, transform=axes.transAxes, ha="center", va="center")
    note.set(color=SOFT, fontsize=size)
    note.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5})


_CALL = re.compile(r"([A-Za-z_]\w*)(@[0-9a-f]{6})?\(([^()]*)\)")
_VERSION = re.compile(r"@[0-9a-f]{6}\b")


def loss_labels(methods: Sequence[str]) -> list[str]:
    """Short names of methods: without arguments that have their defaults, and without versions.

    They are rows of the tables, and losses as records have them; those that would be called the
    same keep what they differ in.

    Example:
        >>> loss_labels(["CE+SR", format_loss(parse_loss("gce(q=0.5)+sr(p=0.01)"))])
        ['CE+SR', 'gce(q=0.5)+sr(p=0.01)']
        >>> loss_labels(["mine@0a1b2c"]), loss_labels(["mine@0a1b2c", "mine@3f9c21"])
        (['mine'], ['mine@0a1b2c', 'mine@3f9c21'])
    """
    plain = [_CALL.sub(_without_defaults, method) for method in methods]
    short = [_VERSION.sub("", name) for name in plain]
    alike = Counter(dict(zip(methods, short, strict=True)).values())
    return [name if alike[name] == 1 else full for name, full in zip(short, plain, strict=True)]


def _without_defaults(call: re.Match[str]) -> str:
    name, version, arguments = call[1], call[2] or "", call[3].split(",")
    usual = _usual_arguments(name)
    kept = ",".join(argument for argument in arguments if argument not in usual)
    return f"{name}{version}({kept})" if kept else f"{name}{version}"


def _usual_arguments(name: str) -> list[str]:
    try:
        written = format_loss(parse_loss("ce+sr" if name == "sr" else name))
    except ValueError:  # a row of the tables, or a loss of someone's own that is not here
        return []
    found = _CALL.search(written)
    return found[3].split(",") if found else []


def wrap_to(width: float, text: str, *, size: float) -> str:
    """Fold a text that is wider than so many inches in letters of a size, as far as can be guessed.

    >>> print(wrap_to(2, "no records yet: SCE, APL, NLNL, GCE+SR", size=9))
    no records yet: SCE, APL,
    NLNL, GCE+SR
    >>> print(wrap_to(2, "gce(q=0.5)+sr(tau=0.5,p=0.01,lambda0=5)", size=9))
    gce(q=0.5)+sr(tau=0.5,
    p=0.01,lambda0=5)
    """
    wrapper = textwrap.TextWrapper(max(int(width * 72 / (0.6 * size)), 10))
    # A loss as text has no spaces, and is better broken between its arguments.
    wrapper.wordsep_re = re.compile(r"(\s+)|(?<=[,+])")
    return wrapper.fill(text)
