"""Losses add and scale like numbers."""

from typing import Any

import pytest
import torch
from losses.catalogue import batch
from torch.testing import assert_close

from labelproof import (
    CrossEntropy,
    Focal,
    MeanAbsoluteError,
    Normalized,
    ReverseCrossEntropy,
    SparseRegularized,
    exponential,
)
from labelproof.losses import WeightedSum


def test_losses_add_scale_and_sum():
    loss = 2 * (CrossEntropy() + 3 * MeanAbsoluteError()) + Focal() * 0.5
    assert loss.coefficients == [2, 6, 0.5] == [number for number, _ in loss.terms]
    assert [type(part) for part in loss.parts] == [CrossEntropy, MeanAbsoluteError, Focal]
    logits, label = batch()
    losses = [CrossEntropy(), MeanAbsoluteError(), ReverseCrossEntropy()]
    total = sum(losses)
    assert isinstance(total, WeightedSum)
    assert_close(total(logits, label), torch.stack([loss(logits, label) for loss in losses]).sum())


def test_parts_agree_on_the_settings_of_their_sum():
    weight = torch.tensor([1.0, 2.0])
    settings: dict[str, Any] = {"reduction": "sum", "ignore_index": 7, "weight": weight}
    total = CrossEntropy(**settings) + 2 * Normalized(MeanAbsoluteError(**settings))
    assert (total.reduction, total.ignore_index) == ("sum", 7)
    assert total.class_weight is weight
    assert SparseRegularized(total).settings == total.settings
    for name, value in {"reduction": "none", "ignore_index": 0, "weight": 2 * weight}.items():
        for other in ({}, settings | {name: value}):
            with pytest.raises(ValueError, match=f"{name if other else ''}: losses that are added"):
                _ = CrossEntropy(**settings) + MeanAbsoluteError(**other)
    careful = CrossEntropy() + MeanAbsoluteError(check=True)
    with pytest.raises(ValueError, match="logits: expected finite values"):
        careful(torch.tensor([[float("nan"), 0.0]]), torch.tensor([0]))


def test_only_losses_add_and_coefficients_are_finite_and_not_negative():
    for other in (1, torch.tensor(1.0), torch.nn.CrossEntropyLoss(), "ce", None):
        with pytest.raises(TypeError):
            _ = CrossEntropy() + other  # pyright: ignore
        with pytest.raises(TypeError):
            _ = other + CrossEntropy()  # pyright: ignore
    with pytest.raises(TypeError, match=r"CrossEntropyLoss; .*as_loss"):
        _ = CrossEntropy() + torch.nn.CrossEntropyLoss()  # pyright: ignore
    for coefficient in (-1, float("nan"), float("inf"), "2", None, True, CrossEntropy()):
        with pytest.raises((TypeError, ValueError), match="coefficient"):
            _ = CrossEntropy() * coefficient  # pyright: ignore


def test_epoch_reaches_the_terms_of_a_sum():
    inner = SparseRegularized(CrossEntropy(), weight=exponential(1, growth=2))
    total = MeanAbsoluteError() + 0.5 * inner
    total.set_epoch(3)
    assert inner.weight == 8
    total.set_step(5, steps_per_epoch=2)
    assert inner.epoch == 2.5
    outer = SparseRegularized(Normalized(total))
    outer.set_epoch(6)
    assert inner.epoch == 6
