"""Losses add and scale like numbers."""

from __future__ import annotations

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


def test_a_sum_is_a_list_of_terms():
    loss = 2 * (CrossEntropy() + 3 * MeanAbsoluteError()) + Focal() * 0.5
    assert loss.coefficients == [2, 6, 0.5]
    assert [type(part) for part in loss.parts] == [CrossEntropy, MeanAbsoluteError, Focal]
    assert [number for number, _ in loss.terms] == loss.coefficients


def test_the_builtin_sum_adds_losses():
    logits, label = batch()
    losses = [CrossEntropy(), MeanAbsoluteError(), ReverseCrossEntropy()]
    total = sum(losses)
    assert isinstance(total, WeightedSum)
    assert_close(total(logits, label), torch.stack([loss(logits, label) for loss in losses]).sum())


def test_parts_must_agree():
    weight = torch.tensor([1.0, 2.0])
    disagreements: list[tuple[str, Any]] = [
        ("reduction", {"reduction": "sum"}),
        ("ignore_index", {"ignore_index": 0}),
        ("weight", {"weight": weight}),
    ]
    for name, settings in disagreements:
        with pytest.raises(ValueError, match=f"{name}: losses that are added must"):
            _ = CrossEntropy() + MeanAbsoluteError(**settings)
    with pytest.raises(ValueError, match="weight"):
        _ = CrossEntropy(weight=weight) + MeanAbsoluteError(weight=2 * weight)


def test_what_the_parts_agree_on_is_the_sums():
    weight = torch.tensor([1.0, 2.0])
    settings: dict[str, Any] = {"reduction": "sum", "ignore_index": 7, "weight": weight}
    total = CrossEntropy(**settings) + 2 * Normalized(MeanAbsoluteError(**settings))
    assert total.reduction == "sum"
    assert total.ignore_index == 7
    assert total.class_weight is weight
    assert SparseRegularized(total).settings == total.settings


def test_one_careful_part_makes_a_careful_sum():
    total = CrossEntropy() + MeanAbsoluteError(check=True)
    with pytest.raises(ValueError, match="logits: expected finite values"):
        total(torch.tensor([[float("nan"), 0.0]]), torch.tensor([0]))


def test_only_losses_add():
    for other in (1, torch.tensor(1.0), torch.nn.CrossEntropyLoss(), "ce", None):
        with pytest.raises(TypeError):
            _ = CrossEntropy() + other  # pyright: ignore
        with pytest.raises(TypeError):
            _ = other + CrossEntropy()  # pyright: ignore
    with pytest.raises(TypeError, match=r"CrossEntropyLoss; .*as_loss"):
        _ = CrossEntropy() + torch.nn.CrossEntropyLoss()  # pyright: ignore


def test_a_coefficient_is_a_finite_number_of_at_least_zero():
    for coefficient in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="coefficient"):
            _ = coefficient * CrossEntropy()
    for coefficient in ("2", None, True, CrossEntropy()):
        with pytest.raises(TypeError, match="coefficient"):
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
