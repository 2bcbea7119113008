"""What losses promise beyond the contract: torch's cross entropy, drawn labels, digits, sums."""

import itertools
import math
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from losses.catalogue import batch, value_and_gradient
from torch.testing import assert_close

import labelproof as lp
from labelproof.losses import WeightedSum, draw_complementary
from labelproof.losses.negative import log_complements

SHAPES: list[tuple[int, ...]] = [(7, 5), (1, 5), (2, 5, 3, 2), (2, 5, 1, 3, 2)]
WEIGHT = torch.tensor([0.2, 1.0, 3.0, 0.0, 0.7], dtype=torch.float64)


def test_cross_entropy_is_torchs_for_indices_probabilities_and_single_examples():
    for shape, reduction, dtype, weight, ignored in itertools.product(
        *(SHAPES, ("none", "mean", "sum"), (torch.float32, torch.float64)),
        *((None, WEIGHT), (-100, 2)),
    ):
        logits, label = batch(*shape, dtype=dtype)
        label.view(-1)[:1] = 1  # one example counts, or torch's mean is NaN
        share = torch.softmax(batch(*shape, seed=1, dtype=dtype)[0], dim=1)
        settings: dict[str, Any] = {"reduction": reduction, "ignore_index": ignored}
        settings["weight"] = None if weight is None else weight.to(dtype)
        pairs = [(logits, label)] if ignored == 2 else [(logits, label), (logits, share)]
        if logits.ndim == 2:
            pairs += [(logits[0], target[0]) for _, target in pairs]
        for given, target in pairs:
            expected = value_and_gradient(partial(F.cross_entropy, **settings), given, target)
            found = value_and_gradient(lp.CrossEntropy(**settings), given, target)
            tolerance = 1e-6 if dtype == torch.float32 else 1e-14
            assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_any_integer_type_is_an_index_arguments_have_torchs_names_and_autocast_is_left_alone():
    logits, label = batch()
    for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32"):
        value = lp.CrossEntropy()(logits, label.to(getattr(torch, name)))
        assert torch.equal(value, lp.CrossEntropy()(logits, label))
    theirs = torch.nn.CrossEntropyLoss()
    for loss in (lp.CrossEntropy(), lp.SparseRegularized(theirs), lp.as_loss(theirs)):
        assert torch.equal(loss(input=logits, target=label), loss(logits, label))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = lp.CrossEntropy()(logits.float(), label)
    assert value.dtype == torch.float32
    assert_close(value, F.cross_entropy(logits.float(), label))


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_drawn_labels_are_uniform_over_the_others_and_the_loss_is_theirs():
    target = torch.tensor([0, 3, 4]).repeat(4000)
    drawn = draw_complementary(target, 5, generator=seeded()).squeeze(1)
    assert drawn.shape == target.shape
    assert not (drawn == target).any()
    for label in (0, 3, 4):
        counts = torch.bincount(drawn[target == label], minlength=5)
        others = counts[torch.arange(5) != label].double()
        assert (others - 1000).abs().max() < 4 * math.sqrt(4000 * 0.25 * 0.75)
    logits, label = batch(4, 5, 3)
    value = lp.NegativeLearning(samples=3, generator=seeded(), reduction="none")(logits, label)
    drawn = draw_complementary(label, 5, samples=3, generator=seeded())
    expected = -torch.log(1 - torch.softmax(logits, dim=1).gather(1, drawn)).mean(dim=1)
    assert_close(value, expected)
    assert lp.NegativeLearning(samples=2)(logits[:0], label[:0]) == 0
    for loss in (lp.NegativeLearning(), lp.SparseRegularized(lp.NegativeLearning())):
        with pytest.raises(ValueError, match=r"target: .* expected=True"):
            loss(logits, torch.softmax(logits, dim=1))


def test_complements_have_their_digits_at_both_ends():
    logits = torch.tensor([[30.0, 0.0, -5.0], [700.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    expected = [
        [-30 + math.log1p(math.exp(-5)), -math.exp(-30), -math.exp(-35)],
        [-700 + math.log(2), -math.exp(-700), -math.exp(-700)],
        [math.log(2 / 3)] * 3,
    ]
    found = log_complements(torch.log_softmax(logits.double(), 1))
    assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=0)


REGULARIZED = ["ce+sr", "ce+sr(clamp=1e-3)", "nce+sr", "ce+sr(smoothing=0.1)"]
ordinary = torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]])


def test_negative_and_reverse_losses_of_a_certain_output():
    sure = [torch.tensor([[margin, 0.0, 0.5, -1.0, 1.0]]) for margin in (6.0, 12.0)]
    sure.append(torch.tensor([[24.0, 0.0, 0.0, 0.0, 2.0]]))
    for loss in (lp.NegativeLearning(expected=True), lp.ReverseCrossEntropy(clamp=1e-7)):
        for given in sure[:2] if isinstance(loss, lp.NegativeLearning) else sure[2:]:
            for target in (torch.tensor([0]), torch.eye(5)[:1]):
                exact = loss(given.double(), target)
                assert_close(loss(given, target).double(), exact, rtol=1e-5, atol=0)


def test_value_and_gradient_keep_their_digits():
    spread = -torch.linspace(1, 30, 80)
    logits = torch.stack([spread, torch.log(-torch.expm1(spread))], dim=1)
    many = 3 * torch.randn(4, 100_000, generator=seeded())
    sure = torch.tensor([[4.0, 0.0, 1.0], [12.0, 0.0, 1.0]])
    for text in ("mae", "rce", "gce(q=0.7)", "gce(q=0.01)", "gce(q=1)", "sce"):
        loss = lp.parse_loss(text, reduction="none")
        # Of a sure output torch's log-softmax itself has seven digits of 1, and no more.
        for given, rounding in ((logits, 0.0), (many, 0.0), (sure, 1e-6)):
            label = torch.zeros(len(given), dtype=torch.long)
            exact, exact_slope = value_and_gradient(loss, given.double(), label)
            values, slope = value_and_gradient(loss, given, label)
            # A logarithm of -30 has an ulp of 2e-6, and so has its exponential.
            assert_close(values.double(), exact, rtol=5e-6, atol=rounding)
            assert_close(slope[:, 0].double(), exact_slope[:, 0], rtol=5e-6, atol=rounding)


def test_tiny_exponents_and_huge_bounds_are_cross_entropy():
    label = torch.tensor([0, 2])
    expected = value_and_gradient(lp.CrossEntropy(), ordinary, label)
    for loss in (
        *map(lp.GeneralizedCrossEntropy, (1e-6, 1e-20, 1e-30, 1e-40, 1e-300)),
        *map(lp.PartiallyHuberizedCrossEntropy, (1e6, 1e30)),
    ):
        found = value_and_gradient(loss, ordinary, label)
        assert_close(found, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="tau"):
        lp.PartiallyHuberizedCrossEntropy(1e39)


def test_logits_whose_squares_overflow_count_as_equal():
    label = torch.arange(4) % 3
    for text, size in itertools.product(REGULARIZED, (1e20, 1e30)):
        loss = lp.parse_loss(text, reduction="none")
        # An ordinary example and one with a masked class stand beside the large ones.
        logits = torch.cat([ordinary * size, ordinary])
        logits[1, 2] = logits[3, 1] = -float("inf")
        values, slope = value_and_gradient(loss, logits, label)
        equal = torch.cat([torch.where(logits[:2].isinf(), logits[:2], 0), logits[2:]])
        expected, expected_slope = value_and_gradient(loss, equal, label)
        assert_close(values, expected)
        assert_close(slope[2:], expected_slope[2:])
        assert slope[:2].isfinite().all()


def test_losses_add_scale_and_sum():
    loss = 2 * (lp.CrossEntropy() + 3 * lp.MeanAbsoluteError()) + lp.Focal() * 0.5
    assert loss.coefficients == [2, 6, 0.5] == [number for number, _ in loss.terms]
    assert [type(part) for part in loss.parts] == [lp.CrossEntropy, lp.MeanAbsoluteError, lp.Focal]
    logits, label = batch()
    losses = [lp.CrossEntropy(), lp.MeanAbsoluteError(), lp.ReverseCrossEntropy()]
    total = sum(losses)
    assert isinstance(total, WeightedSum)
    assert_close(total(logits, label), torch.stack([loss(logits, label) for loss in losses]).sum())


def test_parts_agree_on_the_settings_of_their_sum():
    weight = torch.tensor([1.0, 2.0])
    settings: dict[str, Any] = {"reduction": "sum", "ignore_index": 7, "weight": weight}
    total = lp.CrossEntropy(**settings) + 2 * lp.Normalized(lp.MeanAbsoluteError(**settings))
    assert (total.reduction, total.ignore_index) == ("sum", 7)
    assert total.class_weight is weight
    assert lp.SparseRegularized(total).settings == total.settings
    for name, value in {"reduction": "none", "ignore_index": 0, "weight": 2 * weight}.items():
        for other in ({}, settings | {name: value}):
            with pytest.raises(ValueError, match=f"{name if other else ''}: losses that are added"):
                _ = lp.CrossEntropy(**settings) + lp.MeanAbsoluteError(**other)
    careful = lp.CrossEntropy() + lp.MeanAbsoluteError(check=True)
    with pytest.raises(ValueError, match="logits: expected finite values"):
        careful(torch.tensor([[float("nan"), 0.0]]), torch.tensor([0]))


def test_only_losses_add_and_coefficients_are_finite_and_not_negative():
    for other in (1, torch.tensor(1.0), torch.nn.CrossEntropyLoss(), "ce", None):
        with pytest.raises(TypeError):
            _ = lp.CrossEntropy() + other
        with pytest.raises(TypeError):
            _ = other + lp.CrossEntropy()
    with pytest.raises(TypeError, match=r"CrossEntropyLoss; .*as_loss"):
        _ = lp.CrossEntropy() + torch.nn.CrossEntropyLoss()
    for coefficient in (-1, float("nan"), float("inf"), "2", None, True, lp.CrossEntropy()):
        with pytest.raises((TypeError, ValueError), match="coefficient"):
            _ = lp.CrossEntropy() * coefficient


def test_epoch_reaches_the_terms_of_a_sum():
    inner = lp.SparseRegularized(lp.CrossEntropy(), weight=lp.exponential(1, growth=2))
    total = lp.MeanAbsoluteError() + 0.5 * inner
    total.set_epoch(3)
    assert inner.weight == 8
    total.set_step(5, steps_per_epoch=2)
    assert inner.epoch == 2.5
    outer = lp.SparseRegularized(lp.Normalized(total))
    outer.set_epoch(6)
    assert inner.epoch == 6
