"""The options that reproduce the field's published scripts do reproduce them, digit for digit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import reference
import torch
import torch.nn.functional as F
from losses.catalogue import batch
from torch import Tensor
from torch.testing import assert_close

from labelproof import (
    CrossEntropy,
    Focal,
    GeneralizedCrossEntropy,
    Loss,
    Normalized,
    ReverseCrossEntropy,
    SparseRegularized,
    SymmetricCrossEntropy,
)

Script = Callable[[Tensor, Tensor], Tensor]

either_confidence = pytest.mark.parametrize("scale", [1.0, 20.0], ids=["unsure", "confident"])


def compare(loss: Loss, script: Script, scale: float) -> None:
    logits, label = batch(40, 10, scale=scale)
    clamped = (torch.softmax(logits, dim=1) < 1e-7).any()
    assert bool(clamped) is (scale > 5), "confident outputs are those the floor acts on"
    inputs = [logits.clone().requires_grad_() for _ in range(2)]
    values = loss(inputs[0], label), script(inputs[1], label)
    assert_close(values[0], values[1], rtol=1e-9, atol=1e-12)
    slopes = [
        torch.autograd.grad(value.sum(), source)[0]
        for value, source in zip(values, inputs, strict=True)
    ]
    assert_close(slopes[0], slopes[1], rtol=1e-8, atol=1e-11)


@either_confidence
@pytest.mark.parametrize("q", [0.001, 0.01, 0.7, 1])
def test_generalized_cross_entropy(q: float, scale: float):
    loss = GeneralizedCrossEntropy(q, clamp=1e-7, reduction="none")
    compare(loss, lambda z, y: reference.published_generalized(z, y, q), scale)


@either_confidence
@pytest.mark.parametrize("q", [0.01, 0.7])
def test_normalized_generalized_cross_entropy(q: float, scale: float):
    loss = Normalized(GeneralizedCrossEntropy(q, clamp=1e-7, reduction="none"))
    compare(loss, lambda z, y: reference.published_normalized_generalized(z, y, q), scale)


@either_confidence
def test_reverse_cross_entropy(scale: float):
    loss = ReverseCrossEntropy(clamp=1e-7, reduction="none")
    compare(loss, reference.published_reverse, scale)


@either_confidence
@pytest.mark.parametrize(("alpha", "beta"), [(0.01, 1), (0.1, 1), (6, 0.1)])
def test_symmetric_cross_entropy(alpha: float, beta: float, scale: float):
    loss = SymmetricCrossEntropy(alpha, beta, clamp=1e-7, reduction="none")
    compare(loss, lambda z, y: reference.published_symmetric(z, y, alpha, beta), scale)


@either_confidence
@pytest.mark.parametrize("gamma", [0.5, 2])
def test_focal(gamma: float, scale: float):
    loss = Focal(gamma, detach=True, reduction="none")
    compare(loss, lambda z, y: reference.published_focal(z, y, gamma), scale)
    loss = Normalized(loss)
    compare(loss, lambda z, y: reference.published_normalized_focal(z, y, gamma), scale)


def test_stopping_the_focal_gradient_changes_the_gradient_alone():
    logits, label = batch()
    logits.requires_grad_()
    values, slopes = [], []
    for detach in (False, True):
        values.append(Focal(0.5, detach=detach)(logits, label))
        slopes.append(torch.autograd.grad(values[-1], logits)[0])
    assert torch.equal(values[0], values[1])
    assert (slopes[0] - slopes[1]).abs().max() > 0.01


def cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    return F.cross_entropy(logits, label, reduction="none")


def focal(logits: Tensor, label: Tensor) -> Tensor:
    return reference.published_focal(logits, label, 0.5)


def generalized(logits: Tensor, label: Tensor) -> Tensor:
    return reference.published_generalized(logits, label, 0.01)


BASES: dict[str, tuple[Callable[[], Loss], Script]] = {
    "ce": (lambda: CrossEntropy(reduction="none"), cross_entropy),
    "fl": (lambda: Focal(0.5, detach=True, reduction="none"), focal),
    "gce": (lambda: GeneralizedCrossEntropy(0.01, clamp=1e-7, reduction="none"), generalized),
}
SETTINGS: dict[str, tuple[float, float, float, bool]] = {
    "mnist": (0.1, 0.1, 4, False),
    "cifar10": (0.5, 0.1, 1.2, True),
    "cifar100": (0.5, 0.01, 10, True),
    "sharper": (0.05, 0.1, 1, True),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("dataset", SETTINGS)
def test_sparse_regularization(base: str, dataset: str):
    temperature, p, weight, normalize = SETTINGS[dataset]
    make, script = BASES[base]
    loss = SparseRegularized(make(), temperature, p, weight, normalize, clamp=1e-7)
    logits, label = batch(40, 10, scale=4)
    inputs = [logits.clone().requires_grad_() for _ in range(2)]
    expected = reference.published_sparse(
        inputs[1], label, script, temperature=temperature, p=p, weight=weight, normalize=normalize
    )
    value = loss(inputs[0], label)
    assert_close(value, expected, rtol=1e-10, atol=1e-12)
    slopes = [
        torch.autograd.grad(result.sum(), source)[0]
        for result, source in zip((value, expected), inputs, strict=True)
    ]
    assert_close(slopes[0], slopes[1], rtol=1e-8, atol=1e-11)


def test_floor_under_the_norm_is_not_cosmetic():
    certain = torch.tensor([[60.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    label = torch.tensor([1])
    penalties = []
    for clamp in (None, 1e-7):
        loss = SparseRegularized(CrossEntropy(), 1, 0.01, 1, normalize=False, clamp=clamp)
        penalty = loss.parts(certain, label).penalty
        penalties.append((float(penalty.detach()), torch.autograd.grad(penalty, certain)[0]))
    assert penalties[0][0] == pytest.approx(1 + 2 * 2.718281828 ** (-0.6))
    assert penalties[1][0] == pytest.approx(1 + 2 * 1e-7**0.01)
    assert penalties[0][1].abs().max() > 1e-3
    assert penalties[1][1].abs().max() < 1e-12
