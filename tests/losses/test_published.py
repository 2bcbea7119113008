"""The options that reproduce the field's published scripts do reproduce them, digit for digit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

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


def settings() -> Iterator[tuple[Loss, Script]]:
    for q in (0.001, 0.01, 0.7, 1):
        loss = GeneralizedCrossEntropy(q, clamp=1e-7, reduction="none")
        yield loss, lambda z, y, q=q: reference.published_generalized(z, y, q)
        if q in (0.01, 0.7):
            script = reference.published_normalized_generalized
            yield Normalized(loss), lambda z, y, q=q, script=script: script(z, y, q)
    yield ReverseCrossEntropy(clamp=1e-7, reduction="none"), reference.published_reverse
    for alpha, beta in ((0.01, 1), (0.1, 1), (6, 0.1)):
        loss = SymmetricCrossEntropy(alpha, beta, clamp=1e-7, reduction="none")
        yield loss, lambda z, y, a=alpha, b=beta: reference.published_symmetric(z, y, a, b)
    for gamma in (0.5, 2):
        loss = Focal(gamma, detach=True, reduction="none")
        yield loss, lambda z, y, g=gamma: reference.published_focal(z, y, g)
        yield Normalized(loss), lambda z, y, g=gamma: reference.published_normalized_focal(z, y, g)


def test_losses_are_those_of_the_scripts():
    for loss, script in settings():
        for scale in (1.0, 20.0):
            compare(loss, script, scale)


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


def test_sparse_regularization():
    for settings, base in itertools.product(SETTINGS.values(), BASES.values()):
        check_sparse_regularization(*settings, *base)


def check_sparse_regularization(
    temperature: float, p: float, weight: float, normalize: bool, make, script: Script
) -> None:
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
