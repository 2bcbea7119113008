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
    parse_loss,
    sharpen,
)
from labelproof.losses.gradient import mean_and_gradient

REGULARIZED = ["ce+sr", "ce+sr(clamp=1e-3)", "nce+sr", "ce+sr(smoothing=0.1)"]
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


@pytest.mark.parametrize("text", ["mae", "rce", "gce(q=0.7)", "gce(q=0.01)", "gce(q=1)", "sce"])
def test_value_and_gradient_keep_their_digits(text: str):
    spread = -torch.linspace(1, 30, 80)
    logits = torch.stack([spread, torch.log(-torch.expm1(spread))], dim=1)
    many = 3 * torch.randn(4, 100_000, generator=torch.Generator().manual_seed(0))
    sure = torch.tensor([[4.0, 0.0, 1.0], [12.0, 0.0, 1.0]])
    loss = parse_loss(text, reduction="none")
    # Of a sure output torch's log-softmax itself has seven digits of 1, and no more.
    for given, rounding in ((logits, 0.0), (many, 0.0), (sure, 1e-6)):
        results = []
        for each in (given, given.double()):
            outputs = each.clone().requires_grad_()
            values = loss(outputs, torch.zeros(len(given), dtype=torch.long))
            (slope,) = torch.autograd.grad(values.sum(), outputs)
            results.append((values.detach().double(), slope[:, 0].double()))
        # A logarithm of -30 has an ulp of 2e-6, and so has its exponential.
        assert_close(results[0], results[1], rtol=5e-6, atol=rounding)


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


def of_each(loss: Loss, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and the gradient of their sum, relative to its own size."""
    given = logits.clone().requires_grad_()
    values = loss(given, torch.arange(len(logits)) % logits.shape[1])
    (slope,) = torch.autograd.grad(values.sum(), given)
    return values.detach().double(), slope.double()


@pytest.mark.parametrize("text", REGULARIZED)
@pytest.mark.parametrize("size", [1e18, 1e20, 1e30])
def test_directions_are_told_apart_where_squares_are_past_the_floats(text: str, size: float):
    loss = parse_loss(text, reduction="none")
    # An ordinary example and one with a masked class stand beside the large ones.
    logits = torch.cat([ordinary * size, ordinary])
    logits[1, 2] = logits[3, 1] = -float("inf")
    values, slope = of_each(loss, logits)
    exact, exact_slope = of_each(loss, logits.double())
    assert_close(values, exact, rtol=1e-5, atol=0)
    assert_close(slope[:2] * size, exact_slope[:2] * size, rtol=1e-3, atol=1e-4)
    assert_close(slope[2:], exact_slope[2:], rtol=1e-4, atol=1e-5)


def test_a_large_example_leaves_the_others_as_they_were():
    mixed = torch.cat([ordinary, ordinary * 1e25])
    assert torch.equal(sharpen(mixed, temperature=0.5)[:2], sharpen(ordinary, temperature=0.5))
    loss = parse_loss("ce+sr", reduction="none")
    label = torch.tensor([0, 2, 0, 2])
    assert torch.equal(loss(mixed, label)[:2], loss(ordinary, label[:2]))


def test_the_gradient_without_a_graph_knows_large_logits():
    label = torch.tensor([0, 2])
    found = mean_and_gradient(parse_loss("ce+sr"), ordinary * 1e25, label)
    exact = mean_and_gradient(parse_loss("ce+sr"), ordinary.double(), label)
    assert_close(found.mean.double(), exact.mean)
    assert_close(found.gradient.double() * 1e25, exact.gradient, rtol=1e-4, atol=1e-5)


def test_infinite_logits_stay_a_fault():
    given = torch.tensor([[float("inf"), 0.0], [1.0, 0.0]])
    values = parse_loss("ce+sr", reduction="none")(given, torch.tensor([0, 0]))
    assert values.isnan().tolist() == [True, False]
