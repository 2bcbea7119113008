"""Digits survive in single precision where the plain formula would lose them."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from labelproof import (
    CrossEntropy,
    GeneralizedCrossEntropy,
    Loss,
    NegativeLearning,
    PartiallyHuberizedCrossEntropy,
    ReverseCrossEntropy,
)

certain = torch.tensor([[24.0, 0.0, 0.0, 0.0, 2.0]])
ordinary = torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]])


@pytest.mark.parametrize("margin", [6.0, 12.0])
@pytest.mark.parametrize("kind", ["index", "probabilities"])
def test_negative_learning_of_a_certain_output(margin: float, kind: str):
    logits = torch.tensor([[margin, 0.0, 0.5, -1.0, 1.0]])
    target = torch.tensor([0]) if kind == "index" else torch.eye(5)[:1]
    loss = NegativeLearning(expected=True)
    assert_close(loss(logits, target).double(), loss(logits.double(), target), rtol=1e-5, atol=0)


@pytest.mark.parametrize("kind", ["index", "probabilities"])
def test_reverse_cross_entropy_of_a_certain_output(kind: str):
    target = torch.tensor([0]) if kind == "index" else torch.eye(5)[:1]
    loss = ReverseCrossEntropy(clamp=1e-7)
    assert_close(loss(certain, target).double(), loss(certain.double(), target), rtol=1e-5, atol=0)


def equals_cross_entropy(loss: Loss) -> None:
    label = torch.tensor([0, 2])
    results = []
    for candidate in (loss, CrossEntropy()):
        logits = ordinary.clone().requires_grad_()
        value = candidate(logits, label)
        results.append((value.detach(), torch.autograd.grad(value, logits)[0]))
    assert_close(results[0], results[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("q", [1e-6, 1e-20, 1e-30])
def test_generalized_cross_entropy_with_a_tiny_exponent(q: float):
    equals_cross_entropy(GeneralizedCrossEntropy(q))


@pytest.mark.parametrize("q", [1e-40, 1e-50, 1e-300])
def test_an_exponent_below_single_precision_is_refused_or_right(q: float):
    try:
        loss = GeneralizedCrossEntropy(q)
    except ValueError:
        return
    equals_cross_entropy(loss)


@pytest.mark.parametrize("tau", [1e6, 1e30])
def test_huberized_cross_entropy_with_a_huge_bound(tau: float):
    equals_cross_entropy(PartiallyHuberizedCrossEntropy(tau))


@pytest.mark.parametrize("tau", [1e39, 1e300])
def test_a_bound_beyond_single_precision_is_refused_or_right(tau: float):
    try:
        loss = PartiallyHuberizedCrossEntropy(tau)
    except ValueError:
        return
    equals_cross_entropy(loss)
