"""Negative learning: labels an example is told it does not have."""

from __future__ import annotations

import math

import pytest
import torch
from losses.catalogue import batch
from torch.testing import assert_close

from labelproof import NegativeLearning, SparseRegularized
from labelproof.losses import draw_complementary
from labelproof.losses.negative import log_complements


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_drawn_labels_are_uniform_over_the_others():
    target = torch.tensor([0, 3, 4]).repeat(4000)
    drawn = draw_complementary(target, 5, generator=seeded()).squeeze(1)
    assert drawn.shape == target.shape
    assert not (drawn == target).any()
    for label in (0, 3, 4):
        counts = torch.bincount(drawn[target == label], minlength=5)
        deviation = math.sqrt(4000 * 0.25 * 0.75)
        others = counts[torch.arange(5) != label].double()
        assert (others - 1000).abs().max() < 4 * deviation


def test_loss_is_that_of_the_labels_drawn():
    logits, label = batch(4, 5, 3)
    value = NegativeLearning(samples=3, generator=seeded(), reduction="none")(logits, label)
    drawn = draw_complementary(label, 5, samples=3, generator=seeded())
    expected = -torch.log(1 - torch.softmax(logits, dim=1).gather(1, drawn)).mean(dim=1)
    assert_close(value, expected)


def test_drawing_needs_labels():
    logits, _ = batch()
    for loss in (NegativeLearning(), SparseRegularized(NegativeLearning())):
        with pytest.raises(ValueError, match=r"target: .* expected=True"):
            loss(logits, torch.softmax(logits, dim=1))


def test_complements_have_their_digits_at_both_ends():
    logits = torch.tensor([[30.0, 0.0, -5.0], [700.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    logits = logits.double()
    expected = torch.tensor(
        [
            [-30 + math.log1p(math.exp(-5)), -math.exp(-30), -math.exp(-35)],
            [-700 + math.log(2), -math.exp(-700), -math.exp(-700)],
            [math.log(2 / 3)] * 3,
        ],
        dtype=torch.float64,
    )
    assert_close(log_complements(torch.log_softmax(logits, 1)), expected, rtol=1e-12, atol=0)
