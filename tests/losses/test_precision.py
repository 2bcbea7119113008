"""Digits survive in single precision where the plain formula would lose them."""

from __future__ import annotations

import itertools

import pytest
import torch
from losses.catalogue import value_and_gradient
from torch.testing import assert_close

from labelproof import (
    CrossEntropy,
    GeneralizedCrossEntropy,
    Loss,
    NegativeLearning,
    PartiallyHuberizedCrossEntropy,
    ReverseCrossEntropy,
    parse_loss,
)

REGULARIZED = ["ce+sr", "ce+sr(clamp=1e-3)", "nce+sr", "ce+sr(smoothing=0.1)"]
ordinary = torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]])


def test_negative_and_reverse_losses_of_a_certain_output():
    sure = [torch.tensor([[margin, 0.0, 0.5, -1.0, 1.0]]) for margin in (6.0, 12.0)]
    sure.append(torch.tensor([[24.0, 0.0, 0.0, 0.0, 2.0]]))
    for loss in (NegativeLearning(expected=True), ReverseCrossEntropy(clamp=1e-7)):
        for given in sure[:2] if isinstance(loss, NegativeLearning) else sure[2:]:
            for target in (torch.tensor([0]), torch.eye(5)[:1]):
                exact = loss(given.double(), target)
                assert_close(loss(given, target).double(), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("text", ["mae", "rce", "gce(q=0.7)", "gce(q=0.01)", "gce(q=1)", "sce"])
def test_value_and_gradient_keep_their_digits(text: str):
    spread = -torch.linspace(1, 30, 80)
    logits = torch.stack([spread, torch.log(-torch.expm1(spread))], dim=1)
    many = 3 * torch.randn(4, 100_000, generator=torch.Generator().manual_seed(0))
    sure = torch.tensor([[4.0, 0.0, 1.0], [12.0, 0.0, 1.0]])
    loss = parse_loss(text, reduction="none")
    # Of a sure output torch's log-softmax itself has seven digits of 1, and no more.
    for given, rounding in ((logits, 0.0), (many, 0.0), (sure, 1e-6)):
        label = torch.zeros(len(given), dtype=torch.long)
        exact, exact_slope = value_and_gradient(loss, given.double(), label)
        values, slope = value_and_gradient(loss, given, label)
        # A logarithm of -30 has an ulp of 2e-6, and so has its exponential.
        assert_close(values.double(), exact, rtol=5e-6, atol=rounding)
        assert_close(slope[:, 0].double(), exact_slope[:, 0], rtol=5e-6, atol=rounding)


def equals_cross_entropy(loss: Loss) -> None:
    found, expected = (
        value_and_gradient(each, ordinary, torch.tensor([0, 2])) for each in (loss, CrossEntropy())
    )
    assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_tiny_exponents_and_huge_bounds_are_cross_entropy():
    for q in (1e-6, 1e-20, 1e-30, 1e-40, 1e-300):
        equals_cross_entropy(GeneralizedCrossEntropy(q))
    for tau in (1e6, 1e30):
        equals_cross_entropy(PartiallyHuberizedCrossEntropy(tau))
    with pytest.raises(ValueError, match="tau"):
        PartiallyHuberizedCrossEntropy(1e39)


def test_directions_are_told_apart_where_squares_are_past_the_floats():
    label = torch.arange(4) % 3
    for text, size in itertools.product(REGULARIZED, (1e18, 1e20, 1e30)):
        loss = parse_loss(text, reduction="none")
        # An ordinary example and one with a masked class stand beside the large ones.
        logits = torch.cat([ordinary * size, ordinary])
        logits[1, 2] = logits[3, 1] = -float("inf")
        values, slope = (each.double() for each in value_and_gradient(loss, logits, label))
        exact, exact_slope = value_and_gradient(loss, logits.double(), label)
        assert_close(values, exact, rtol=1e-5, atol=0)
        assert_close(slope[:2] * size, exact_slope[:2] * size, rtol=1e-3, atol=1e-4)
        assert_close(slope[2:], exact_slope[2:], rtol=1e-4, atol=1e-5)
