r"""The search space: plain and generalised cross entropy, alone and with sparse regularization.

A setting is a loss as text. Its coordinates mean the same for any number of epochs and any
exponent: not $\lambda_0$ but $\lambda_0 p$, which the paper keeps below 1, and not $\rho$ but the
growth of the weight over the whole run.

Proposals alternate between a step from one of the best trials and a new draw. Each depends only on
the trials and a seed of its own, so a search that resumes proposes the same as one that was never
stopped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from labelproof.losses import (
    CrossEntropy,
    GeneralizedCrossEntropy,
    SparseRegularized,
    format_loss,
    parse_loss,
)
from labelproof.schedules import Constant, Exponential
from labelproof.seeds import as_generator, derive_seed
from labelproof.tuning.trial import Trial, rank

Coordinates = dict[str, Any]


RANGES = {
    "q": (0.2, 1.0),
    "sparse_q": (0.01, 0.7),
    "pull": (0.02, 0.6),
    "tau": (0.1, 1.0),
    "growth": (5.0, 1024.0),
}
"""Bounds, on a logarithmic scale: `q` of generalised cross entropy, alone and with the regularizer,
where the paper has other ones; `pull`, the first weight times p, in the paper 0.02 to 0.4; the
temperature; the growth of the weight over the run."""

CHOICES: dict[str, tuple[Any, ...]] = {"p": (0.01, 0.1), "normalize": (False, True)}

KINDS = ("ce+sr", "gce+sr", "gce")
"""Losses that are searched. Plain cross entropy has no hyperparameters and is always tried."""

_MANY = 20
"""Number of classes above which regularization is weak, as in the paper for CIFAR-100."""


_FIRST: tuple[tuple[str, float], ...] = (
    ("ce", 0.0),
    ("gce(q=0.7)", 0.0),
    ("ce+sr(lambda0=5,rho=45,normalize=false)", 0.0),
    ("3*ce+sr(lambda0=3.6,rho=35,lambda_max=19)", 1e-4),
    ("ce+sr(lambda0=1.2,rho=35)", 5e-5),
    ("ce+sr(lambda0=1.2,rho=35)", 0.0),
    ("ce+sr(tau=0.1,lambda0=4,rho=1024,normalize=false)", 0.0),
    ("gce(q=0.01)+sr(lambda0=3,rho=1024,normalize=false)", 0.0),
    ("ce+sr(p=0.01,lambda0=4,rho=52)", 0.0),
    ("ce+sr(lambda0=2.5,rho=1024,normalize=false)", 0.0),
)
_FIRST_OF_MANY: tuple[tuple[str, float], ...] = (
    ("ce", 0.0),
    ("gce(q=0.7)", 0.0),
    ("ce+sr(p=0.01,lambda0=4,rho=52)", 0.0),
    ("3*ce+sr(p=0.01,lambda0=12,rho=52,lambda_max=80)", 3e-5),
    ("3*ce+sr(p=0.01,lambda0=2,rho=52,lambda_max=80)", 1e-5),
    ("ce+sr(p=0.01,lambda0=10,rho=52)", 0.0),
    ("gce(q=0.01)+sr(p=0.01,lambda0=4,rho=52)", 0.0),
    ("ce+sr(lambda0=1.2,rho=35)", 0.0),
)
"""The first trials with few and with many classes: losses, whose rho is the growth of the weight
over the whole run, and the weight of an l1 penalty.

The paper's settings for MNIST, CIFAR-10 and CIFAR-100, and one for small datasets. Those with an l1
penalty are from `benchmarks/sparse_weights_search.py`: one for much noise, since its penalty on the
outputs stops growing, and one whose penalty keeps growing, for wrong labels with a pattern."""


def first_settings(*, epochs: int, classes: int, images: bool) -> list[tuple[str, float]]:
    """The losses to try first and the weights of their l1 penalties, which are for images only."""

    def stretch(match: re.Match[str]) -> str:
        return f"rho={round(float(match[1]) ** (1 / epochs), 5):.10g}"

    return [
        (format_loss(parse_loss(re.sub(r"rho=(\d+)", stretch, loss))), l1)
        for loss, l1 in (_FIRST_OF_MANY if classes > _MANY else _FIRST)
        if images or not l1
    ]


def starts(*, epochs: int, classes: int) -> list[str]:
    """The settings to try first, which are known to work elsewhere, plain losses first.

    The paper's settings for MNIST, CIFAR-10 and CIFAR-100, and one for small datasets, with the
    growth of the weight spread over the number of epochs. With many classes, weak regularizers come
    first.

    Example:
        >>> for loss in starts(epochs=40, classes=10):
        ...     print(loss)
        ce
        gce(q=0.7)
        ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.09984,r=1,normalize=false)
        ce+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.09295,r=1,normalize=true)
        ce+sr(tau=0.1,p=0.1,lambda0=4,rho=1.18921,r=1,normalize=false)
        gce(q=0.01)+sr(tau=0.5,p=0.1,lambda0=3,rho=1.18921,r=1,normalize=false)
        ce+sr(tau=0.5,p=0.01,lambda0=4,rho=1.10382,r=1,normalize=true)
        ce+sr(tau=0.5,p=0.1,lambda0=2.5,rho=1.18921,r=1,normalize=false)
    """
    return [loss for loss, _ in first_settings(epochs=epochs, classes=classes, images=False)]


def loss_at(place: Coordinates, *, epochs: int) -> str:
    """The loss with these coordinates, as canonical text.

    >>> loss_at({"kind": "gce", "q": 0.7}, epochs=10)
    'gce(q=0.7)'
    """
    base, _, sparse = place["kind"].partition("+")
    if base == "gce":
        base = f"gce(q={place['sparse_q' if sparse else 'q']:.3g})"
    if not sparse:
        return base
    weight, growth = place["pull"] / place["p"], place["growth"] ** (1 / epochs)
    normalize = str(place["normalize"]).lower()
    text = (
        f"{base}+sr(tau={place['tau']:.3g},p={place['p']:g},lambda0={weight:.3g},"
        f"rho={round(growth, 5):.10g},normalize={normalize})"
    )
    return format_loss(parse_loss(text))


def coordinates(loss: str, *, epochs: int) -> Coordinates | None:
    """The coordinates of a loss, clipped to their bounds; `None` if it is not searched.

    Example:
        >>> coordinates("ce+sr(p=0.1,lambda0=5,rho=1.1)", epochs=40)["pull"]
        0.5
        >>> coordinates("nce+mae", epochs=40) is None
        True
    """
    parsed = parse_loss(loss)
    if not isinstance(parsed, SparseRegularized):
        if isinstance(parsed, GeneralizedCrossEntropy) and parsed.clamp is None:
            return {"kind": "gce", "q": _inside("q", parsed.q)}
        return None
    base: Coordinates = {"kind": "ce+sr"}
    if isinstance(parsed.base, GeneralizedCrossEntropy) and parsed.base.clamp is None:
        base = {"kind": "gce+sr", "sparse_q": _inside("sparse_q", parsed.base.q)}
    elif not isinstance(parsed.base, CrossEntropy):
        return None
    weight, temperature = parsed.weight_schedule, parsed.temperature_schedule
    if parsed.clamp is not None or parsed.smoothing:
        return None
    if not isinstance(weight, Exponential) or not isinstance(temperature, Constant):
        return None
    growth = weight.growth ** (epochs / weight.every)
    return base | {
        "pull": _inside("pull", weight.initial * parsed.p),
        "tau": _inside("tau", temperature.value),
        "p": min(CHOICES["p"], key=lambda known: abs(known - parsed.p)),
        "growth": _inside("growth", growth),
        "normalize": parsed.normalize,
    }


def strongest(*, classes: int, plain: float | None) -> float:
    r"""The largest `pull`, the first weight times p, that is worth a trial.

    After section 3.1 of the paper: easy data bear a strong regularizer, hard data a weak one. Data
    are hard if they have many classes, or if `plain`, the accuracy of cross entropy, is low.

    Example:
        >>> strongest(classes=10, plain=55.0), strongest(classes=100, plain=8.0)
        (0.6, 0.15)
    """
    limit = RANGES["pull"][1]
    if classes > _MANY:
        limit /= 2
    # Relative to chance, since with many wrong labels no accuracy is high.
    if plain is not None and classes > 2 and plain < min(25.0, 300 / classes + 10):
        limit /= 2
    return round(limit, 2)


def draw_coordinates(generator: np.random.Generator, kind: str, *, limit: float) -> Coordinates:
    """Random coordinates, with a `pull` of at most `limit`."""
    numbers = ["q"] if kind == "gce" else ["pull", "tau", "growth"]
    if kind == "gce+sr":
        numbers.append("sparse_q")
    place: Coordinates = {"kind": kind}
    for name in numbers:
        low, high = RANGES[name]
        top = min(high, limit) if name == "pull" else high
        place[name] = low * (top / low) ** generator.random()
    if kind != "gce":
        place |= {name: _pick(values, generator) for name, values in CHOICES.items()}
    return place


def nearby(place: Coordinates, generator: np.random.Generator, *, limit: float) -> Coordinates:
    """Random coordinates near others: numbers within a factor of two, choices rarely changed."""
    near = dict(place)
    for name, value in place.items():
        drawn = generator.random()
        if name in RANGES:
            near[name] = _inside(name, value * 2.0 ** (2 * drawn - 1))
        elif name in CHOICES and drawn < 0.15:
            near[name] = _pick(CHOICES[name], generator)
    if "pull" in near:
        near["pull"] = min(near["pull"], limit)
    return near


def _inside(name: str, value: float) -> float:
    low, high = RANGES[name]
    return min(max(value, low), high)


def _pick(values: Sequence[Any], generator: np.random.Generator) -> Any:
    return values[int(generator.random() * len(values))]


DEFAULT_TRIALS = 12
"""Default number of trials: the known settings and a few more."""

_ATTEMPTS = 25
"""Draws to find a proposal that was not tried before."""

_BEST = 3
"""Number of best trials to step from."""


def propose(trials: Sequence[Trial], *, epochs: int, classes: int, seed: int) -> str:
    """The loss to try next."""
    number, tried = len(trials), {trial.loss for trial in trials}
    plain = next((trial.accuracy for trial in trials if trial.loss == "ce"), None)
    limit = strongest(classes=classes, plain=plain)
    good = [trial for trial in rank(trials) if trial.state == "complete"]
    places = [place for trial in good if (place := coordinates(trial.loss, epochs=epochs))]
    loss = ""
    for attempt in range(_ATTEMPTS):
        generator = as_generator(derive_seed(seed, f"proposal/{attempt}", number))
        if number % 2 and places:
            place = nearby(_pick(places[:_BEST], generator), generator, limit=limit)
        else:
            kind = places[0]["kind"] if places and generator.random() < 0.5 else None
            place = draw_coordinates(generator, kind or _pick(KINDS, generator), limit=limit)
        loss = loss_at(place, epochs=epochs)
        if loss not in tried:
            break
    return loss
