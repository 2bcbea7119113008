"""Every loss of the package with its formula, for the tests that go over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import reference
import torch
from reference import Array, Formula
from torch import Tensor

from labelproof import (
    CrossEntropy,
    Focal,
    GeneralizedCrossEntropy,
    Loss,
    MeanAbsoluteError,
    NegativeLearning,
    Normalized,
    PartiallyHuberizedCrossEntropy,
    ReverseCrossEntropy,
    SparseRegularized,
    SymmetricCrossEntropy,
    exponential,
)
from labelproof.losses import (
    AsymmetricExponential,
    AsymmetricGeneralizedCrossEntropy,
    AsymmetricSquaredError,
    AsymmetricUnhinged,
    BiTempered,
    EpsilonCrossEntropy,
    EpsilonFocal,
    JensenShannon,
    LogitClip,
    NormalizedNegativeCrossEntropy,
    NormalizedNegativeFocal,
    TaylorCrossEntropy,
)

NUM_CLASSES = 5
EPOCH = 7
"""The epoch every loss is at, so that a schedule that does not move is noticed."""
CUSP = 1e-3
"""Where the penalty for a smoothing vector is rounded off."""


@dataclass(frozen=True)
class Case:
    """One loss: how it is made, and its value per example from the formulas."""

    name: str
    build: Callable[..., Loss]
    expected: Callable[[Array, Array], Array]
    detached: bool = False
    """Whether the gradient deliberately is not that of the value."""

    def make(self, **settings: Any) -> Loss:
        loss = self.build(**settings)
        loss.set_epoch(EPOCH)
        return loss


def plain(name: str, build: Callable[..., Loss], formula: Formula, *, detached: bool = False):
    def expected(logits: Array, label: Array) -> Array:
        return formula(reference.softmax(logits), label)

    return Case(name, build, expected, detached)


_ABSOLUTE = reference.absolute_error
_CROSS = reference.cross_entropy
_NORMALIZED_CROSS = reference.normalized(reference.cross_entropy)
_REVERSE = reference.reverse_cross_entropy()

ELEMENTARY: dict[str, tuple[Callable[..., Loss], Formula]] = {
    "ce": (CrossEntropy, _CROSS),
    "fl(gamma=0)": (lambda **s: Focal(0, **s), reference.focal(0)),
    "fl(gamma=0.5)": (lambda **s: Focal(0.5, **s), reference.focal(0.5)),
    "fl(gamma=2)": (lambda **s: Focal(2, **s), reference.focal(2)),
    "fl(gamma=0.5,detach)": (lambda **s: Focal(0.5, detach=True, **s), reference.focal(0.5)),
    "mae": (MeanAbsoluteError, _ABSOLUTE),
    "rce": (ReverseCrossEntropy, _REVERSE),
    "rce(A=-4)": (lambda **s: ReverseCrossEntropy(-4, **s), reference.reverse_cross_entropy(-4)),
    "rce(A=-0.5)": (
        lambda **s: ReverseCrossEntropy(-0.5, **s),
        reference.reverse_cross_entropy(-0.5),
    ),
    "gce(q=1e-8)": (lambda **s: GeneralizedCrossEntropy(1e-8, **s), reference.generalized(1e-8)),
    "gce(q=0.001)": (lambda **s: GeneralizedCrossEntropy(0.001, **s), reference.generalized(0.001)),
    "gce(q=0.7)": (lambda **s: GeneralizedCrossEntropy(0.7, **s), reference.generalized(0.7)),
    "gce(q=1)": (lambda **s: GeneralizedCrossEntropy(1, **s), reference.generalized(1)),
    "gce(q=0.01,clamp=0.01)": (
        lambda **s: GeneralizedCrossEntropy(0.01, clamp=0.01, **s),
        reference.generalized(0.01, clamp=0.01),
    ),
    "sce": (SymmetricCrossEntropy, reference.symmetric(0.1, 1)),
    "sce(alpha=6,beta=0.1,A=-4)": (
        lambda **s: SymmetricCrossEntropy(6, 0.1, log_zero=-4, **s),
        reference.symmetric(6, 0.1, -4),
    ),
    "phuber(tau=2)": (
        lambda **s: PartiallyHuberizedCrossEntropy(2, **s),
        reference.huberized(2),
    ),
    "phuber(tau=10)": (PartiallyHuberizedCrossEntropy, reference.huberized(10)),
    "nl": (lambda **s: NegativeLearning(expected=True, **s), reference.negative()),
    "nl(clamp=0.3)": (
        lambda **s: NegativeLearning(expected=True, clamp=0.3, **s),
        reference.negative(clamp=0.3),
    ),
    "agce": (AsymmetricGeneralizedCrossEntropy, reference.asymmetric_generalized(0.6, 0.6)),
    "agce(q=1.5)": (
        lambda **s: AsymmetricGeneralizedCrossEntropy(1e-5, 1.5, **s),
        reference.asymmetric_generalized(1e-5, 1.5),
    ),
    "aul": (AsymmetricUnhinged, reference.asymmetric_unhinged(5.5, 3)),
    "aul(q=0.1)": (
        lambda **s: AsymmetricUnhinged(1.5, 0.1, **s),
        reference.asymmetric_unhinged(1.5, 0.1),
    ),
    "ael": (AsymmetricExponential, reference.asymmetric_exponential(2.5)),
    "amse": (lambda **s: AsymmetricSquaredError(3, **s), reference.asymmetric_squared(3)),
    "negce": (NormalizedNegativeCrossEntropy, reference.negative_normalized(_CROSS)),
    "negfl": (NormalizedNegativeFocal, reference.negative_normalized(reference.focal(0.5))),
    "epsce": (lambda **s: EpsilonCrossEntropy(3, **s), reference.epsilon_softmax(_CROSS, 3)),
    "epsce(clamp=0.1)": (
        lambda **s: EpsilonCrossEntropy(0.5, clamp=0.1, **s),
        reference.epsilon_softmax(_CROSS, 0.5, clamp=0.1),
    ),
    "epsfl": (
        lambda **s: EpsilonFocal(3, **s),
        reference.epsilon_softmax(reference.focal(0.5), 3),
    ),
    "js": (JensenShannon, reference.jensen_shannon(0.5)),
    "js(pi=0.9)": (lambda **s: JensenShannon(0.9, **s), reference.jensen_shannon(0.9)),
    "taylor": (lambda **s: TaylorCrossEntropy(6, **s), reference.taylor(6)),
}


def _normalized_case(name: str) -> Case:
    build, formula = ELEMENTARY[name]
    return plain(
        f"n{name}",
        lambda **settings: Normalized(build(**settings)),
        reference.normalized(formula),
        detached="detach" in name,
    )


def _active_passive_cases() -> list[Case]:
    return [
        plain(
            "10*nce+0.1*mae",
            lambda **s: 10 * Normalized(CrossEntropy(**s)) + 0.1 * MeanAbsoluteError(**s),
            reference.weighted((10, _NORMALIZED_CROSS), (0.1, _ABSOLUTE)),
        ),
        plain(
            "nce+rce",
            lambda **s: Normalized(CrossEntropy(**s)) + ReverseCrossEntropy(**s),
            reference.weighted((1, _NORMALIZED_CROSS), (1, _REVERSE)),
        ),
        plain(
            "2*(nfl+0.5*nl)+gce",
            lambda **s: (
                2 * (Normalized(Focal(**s)) + 0.5 * NegativeLearning(expected=True, **s))
                + GeneralizedCrossEntropy(**s)
            ),
            reference.weighted(
                (2, reference.normalized(reference.focal(0.5))),
                (1, reference.negative()),
                (1, reference.generalized(0.7)),
            ),
        ),
        plain(
            "normalized(ce+3*mae)",
            lambda **s: Normalized(CrossEntropy(**s) + 3 * MeanAbsoluteError(**s)),
            reference.normalized(reference.weighted((1, _CROSS), (3, _ABSOLUTE))),
        ),
    ]


def _tempered_cases() -> list[Case]:
    """Those of another softmax, whose formula therefore starts from the logits."""

    def every_label(logits: Array, t1: float, t2: float) -> Array:
        labels = [np.full(len(logits), label) for label in range(logits.shape[1])]
        return np.stack([reference.bi_tempered(logits, each, t1, t2) for each in labels], axis=1)

    def normalized(logits: Array, label: Array) -> Array:
        values = every_label(logits, 0.8, 1.2)
        return reference.of_label(values, label) / values.sum(axis=1)

    def case(t1: float, t2: float) -> Case:
        return Case(
            f"bitempered(t1={t1},t2={t2})",
            lambda **s: BiTempered(t1, t2, **s),
            lambda logits, label: reference.bi_tempered(logits, label, t1, t2),
        )

    divided = Case("nbitempered", lambda **s: Normalized(BiTempered(**s)), normalized)
    return [case(0.8, 1.2), case(0, 4), case(1, 1), divided]


PLAIN: list[Case] = [
    *(
        plain(name, build, formula, detached="detach" in name)
        for name, (build, formula) in ELEMENTARY.items()
    ),
    *(_normalized_case(name) for name in ELEMENTARY),
    *_active_passive_cases(),
    *_tempered_cases(),
]
"""Every loss without sparse regularization: elementary, normalised and summed."""

_NUMBERS = ("gamma=0)", "gamma=2", "A=-0.5", "A=-4", "q=1e-8", "q=0.001", "q=1)", "tau=2")
_NUMBERS += ("q=1.5", "q=0.1", "pi=0.9", "t1=0,", "t1=1")

DISTINCT: list[Case] = [
    case for case in PLAIN if not any(number in case.name for number in _NUMBERS)
]
"""Those that differ by more than a number: enough for what does not depend on the formula."""

_VECTOR = torch.tensor([0.1, 0.5, 0.2, 0.15, 0.05], dtype=torch.float64)

VARIANTS: dict[str, dict[str, Any]] = {
    "sr": {},
    "sr(raw)": {"normalize": False, "temperature": 0.8, "p": 0.01, "weight": 3},
    "sr(clamp)": {"clamp": 0.02, "temperature": 0.2, "p": 0.5},
    "sr(smoothing)": {"vector": 0.25, "p": 0.7},
    "sr(vector)": {"vector": _VECTOR, "normalize": False, "p": 0.7},
    "sr(decay)": {
        "temperature": exponential(0.9, growth=0.8, every=2, minimum=0.3),
        "weight": exponential(4, growth=2, every=5),
        "p": 1,
    },
}
"""The settings of sparse regularization that every loss is combined with."""


def _as_vector(given: Tensor | float) -> Array:
    if isinstance(given, Tensor):
        return given.numpy()
    spread = given / (NUM_CLASSES - 1)
    return np.array([spread] * (NUM_CLASSES - 1) + [1 - given])  # any order will do


def sparse(case: Case, variant: str) -> Case:
    options = VARIANTS[variant]
    if variant == "sr(decay)":
        temperature = max(reference.decayed(0.9, 0.8, 2, EPOCH), 0.3)
        weight = reference.decayed(4, 2, 5, EPOCH)
    else:
        temperature = options.get("temperature", 0.5)
        weight = options.get("weight", reference.decayed(1.2, 1.03, 1, EPOCH))
    normalize, p = options.get("normalize", True), options.get("p", 0.1)

    def build(**settings: Any) -> Loss:
        return SparseRegularized(case.build(**settings), **options)

    def expected(logits: Array, label: Array) -> Array:
        sharp = logits / np.linalg.norm(logits, axis=1, keepdims=True) if normalize else logits
        outputs = reference.sharpened(logits, temperature=temperature, normalize=normalize)
        if "vector" in options:
            vector = _as_vector(options["vector"])
            penalty = reference.permutation_penalty(outputs, p=p, vector=vector, cusp=CUSP)
        else:
            penalty = reference.norm_penalty(outputs, p=p, clamp=options.get("clamp", 0))
        return case.expected(sharp / temperature, label) + weight * penalty

    return Case(f"{case.name}+{variant}", build, expected, case.detached)


SPARSE: list[Case] = [sparse(case, variant) for case in PLAIN for variant in VARIANTS]
"""Every loss with every setting of sparse regularization."""


def _clipped(case: Case, delta: float) -> Case:
    def expected(logits: Array, label: Array) -> Array:
        return case.expected(reference.clipped(logits, delta), label)

    return Case(
        f"{case.name}+clip(delta={delta})",
        lambda **settings: LogitClip(case.build(**settings), delta),
        expected,
        case.detached,
    )


CLIPPED: list[Case] = [
    *(_clipped(PLAIN[0], delta) for delta in (0.5, 3)),
    sparse(_clipped(PLAIN[0], 1.5), "sr"),
    _clipped(sparse(PLAIN[0], "sr(raw)"), 1.5),
]
"""Logit clipping on its own, under sparse regularization, and over it."""

EVERY: list[Case] = [*PLAIN, *SPARSE, *CLIPPED]
EVERY_KIND: list[Case] = [
    *DISTINCT,
    *CLIPPED,
    *(sparse(case, variant) for case in DISTINCT for variant in VARIANTS),
]


def names(cases: list[Case]) -> list[str]:
    return [case.name for case in cases]


def batch(
    *shape: int, seed: int = 0, scale: float = 2.0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Logits `(N, C, ...)` and labels that fit; the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)
    shape = shape or (6, NUM_CLASSES)
    logits = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    label = torch.randint(shape[1], (shape[0], *shape[2:]), generator=generator)
    return logits.to(dtype), label
