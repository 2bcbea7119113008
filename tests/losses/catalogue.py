"""Every loss of the package with its formula, for the tests that go over all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import reference
import torch
from reference import Array, Formula
from torch import Tensor

from labelproof import Loss, SparseRegularized, exponential, parse_loss

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

    def make(self, **settings: Any) -> Loss:
        loss = self.build(**settings)
        loss.set_epoch(EPOCH)
        return loss


def written(text: str, expected: Callable[[Array, Array], Array]) -> Case:
    """A loss as text, with its value from the logits."""
    return Case(text, lambda **settings: parse_loss(text, **settings), expected)


def plain(text: str, formula: Formula) -> Case:
    """A loss as text, with its value from the probabilities."""
    return written(text, lambda logits, label: formula(reference.softmax(logits), label))


_CROSS = reference.cross_entropy
_FOCAL = reference.focal(0.5)

ELEMENTARY: dict[str, Formula] = {
    "ce": _CROSS,
    "fl(gamma=0)": reference.focal(0),
    "fl(gamma=0.5)": _FOCAL,
    "fl(gamma=2)": reference.focal(2),
    "fl(gamma=0.5,detach=true)": _FOCAL,
    "mae": reference.absolute_error,
    "rce": reference.reverse_cross_entropy(),
    "rce(A=-4)": reference.reverse_cross_entropy(-4),
    "rce(A=-0.5)": reference.reverse_cross_entropy(-0.5),
    "gce(q=1e-8)": reference.generalized(1e-8),
    "gce(q=0.001)": reference.generalized(0.001),
    "gce(q=0.7)": reference.generalized(0.7),
    "gce(q=1)": reference.generalized(1),
    "gce(q=0.01,clamp=0.01)": reference.generalized(0.01, clamp=0.01),
    "sce": reference.symmetric(0.1, 1),
    "sce(alpha=6,beta=0.1,A=-4)": reference.symmetric(6, 0.1, -4),
    "phuber(tau=2)": reference.huberized(2),
    "phuber(tau=10)": reference.huberized(10),
    "nl(expected=true)": reference.negative(),
    "nl(expected=true,clamp=0.3)": reference.negative(clamp=0.3),
    "agce": reference.asymmetric_generalized(0.6, 0.6),
    "agce(a=1e-5,q=1.5)": reference.asymmetric_generalized(1e-5, 1.5),
    "aul": reference.asymmetric_unhinged(5.5, 3),
    "aul(a=1.5,q=0.1)": reference.asymmetric_unhinged(1.5, 0.1),
    "ael": reference.asymmetric_exponential(2.5),
    "amse(a=3)": reference.asymmetric_squared(3),
    "negce": reference.negative_normalized(_CROSS),
    "negfl": reference.negative_normalized(_FOCAL),
    "epsce(m=3)": reference.epsilon_softmax(_CROSS, 3),
    "epsce(m=0.5,clamp=0.1)": reference.epsilon_softmax(_CROSS, 0.5, clamp=0.1),
    "epsfl(m=3)": reference.epsilon_softmax(_FOCAL, 3),
    "js": reference.jensen_shannon(0.5),
    "js(pi=0.9)": reference.jensen_shannon(0.9),
    "taylor(terms=6)": reference.taylor(6),
}

_SUMS: dict[str, Formula] = {
    "10*nce+0.1*mae": reference.weighted(
        (10, reference.normalized(_CROSS)), (0.1, reference.absolute_error)
    ),
    "nce+rce": reference.weighted(
        (1, reference.normalized(_CROSS)), (1, reference.reverse_cross_entropy())
    ),
    "2*(nfl+0.5*nl(expected=true))+gce": reference.weighted(
        (2, reference.normalized(_FOCAL)),
        (1, reference.negative()),
        (1, reference.generalized(0.7)),
    ),
    "normalized(ce+3*mae)": reference.normalized(
        reference.weighted((1, _CROSS), (3, reference.absolute_error))
    ),
}


def _tempered(t1: float, t2: float) -> Case:
    """One of another softmax, whose formula therefore starts from the logits."""
    return written(
        f"bitempered(t1={t1},t2={t2})",
        lambda logits, label: reference.bi_tempered(logits, label, t1, t2),
    )


def _normalized_tempered(logits: Array, label: Array) -> Array:
    labels = [np.full(len(logits), each) for each in range(logits.shape[1])]
    values = np.stack([reference.bi_tempered(logits, each, 0.8, 1.2) for each in labels], axis=1)
    return reference.of_label(values, label) / values.sum(axis=1)


PLAIN: list[Case] = [
    *(plain(text, formula) for text, formula in ELEMENTARY.items()),
    *(plain(f"n{text}", reference.normalized(formula)) for text, formula in ELEMENTARY.items()),
    *(plain(text, formula) for text, formula in _SUMS.items()),
    *(_tempered(t1, t2) for t1, t2 in ((0.8, 1.2), (0, 4), (1, 1))),
    written("nbitempered", _normalized_tempered),
]
"""Every loss without sparse regularization: elementary, normalised and summed."""

_NUMBERS = ("gamma=0)", "gamma=2", "A=-0.5", "A=-4", "q=1e-8", "q=0.001", "q=1)", "tau=2")
_NUMBERS += ("q=1.5", "q=0.1", "pi=0.9", "t1=0,", "t1=1")

DISTINCT = [case for case in PLAIN if not any(number in case.name for number in _NUMBERS)]
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
"""The settings of sparse regularization that losses are combined with."""


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

    def expected(logits: Array, label: Array) -> Array:
        sharp = logits / np.linalg.norm(logits, axis=1, keepdims=True) if normalize else logits
        outputs = reference.sharpened(logits, temperature=temperature, normalize=normalize)
        if "vector" in options:
            vector = _as_vector(options["vector"])
            penalty = reference.permutation_penalty(outputs, p=p, vector=vector, cusp=CUSP)
        else:
            penalty = reference.norm_penalty(outputs, p=p, clamp=options.get("clamp", 0))
        return case.expected(sharp / temperature, label) + weight * penalty

    return Case(
        f"{case.name}+{variant}",
        lambda **settings: SparseRegularized(case.build(**settings), **options),
        expected,
    )


def _clipped(text: str, delta: float, inner: Case) -> Case:
    return written(
        text, lambda logits, label: inner.expected(reference.clipped(logits, delta), label)
    )


CLIPPED: list[Case] = [
    _clipped("ce+clip(delta=0.5)", 0.5, PLAIN[0]),
    sparse(_clipped("ce+clip(delta=1.5)", 1.5, PLAIN[0]), "sr"),
    _clipped(
        "ce+sr(tau=0.8,p=0.01,lambda0=3,rho=1,normalize=false)+clip(delta=1.5)",
        1.5,
        sparse(PLAIN[0], "sr(raw)"),
    ),
]
"""Logit clipping on its own, under sparse regularization, and over it."""

_BASES = ("fl(gamma=0.5,detach=true)", "rce", "nl(expected=true)", "negce", "epsce(m=3)", "nce")
_BASES += ("10*nce+0.1*mae", "normalized(ce+3*mae)", "bitempered(t1=0.8,t2=1.2)", "gce(q=0.7)")

REGULARIZED = [
    *(sparse(case, "sr") for case in PLAIN if case.name in _BASES),
    *(sparse(PLAIN[0], variant) for variant in VARIANTS),
]
"""One loss of each base class under sparse regularization, and each setting of that."""

EVERY_KIND = [*DISTINCT, *CLIPPED, *REGULARIZED]
EVERY_ONE = [*PLAIN, *CLIPPED, *REGULARIZED]


def batch(
    *shape: int, seed: int = 0, scale: float = 2.0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Logits `(N, C, ...)` and labels that fit; the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)
    shape = shape or (6, NUM_CLASSES)
    logits = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    label = torch.randint(shape[1], (shape[0], *shape[2:]), generator=generator)
    return logits.to(dtype), label


def value_and_gradient(
    loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    """What a loss gives, and the gradient of its sum."""
    logits = logits.detach().clone().requires_grad_()
    value = loss(logits, target)
    return value.detach(), torch.autograd.grad(value.sum(), logits)[0]
