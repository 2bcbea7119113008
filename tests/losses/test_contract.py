"""What every loss promises, whatever its formula: one contract, run over all of them."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch
from losses.catalogue import (
    DISTINCT,
    EVERY_KIND,
    NUM_CLASSES,
    PLAIN,
    VARIANTS,
    Case,
    batch,
    sparse,
    value_and_gradient,
)
from torch import Tensor
from torch.testing import assert_close

from labelproof import Loss, SparseRegularized, parse_loss

HALF_PRECISIONS = (torch.bfloat16, torch.float16)
class_weight = torch.tensor([0.5, 2.0, 0.0, 1.0, 3.0], dtype=torch.float64)


def for_each(cases: list[Case], check: Callable[[Case], None]) -> None:
    for case in cases:
        try:
            check(case)
        except AssertionError as error:
            raise AssertionError(f"{case.name}: {error}") from error


def gradient(loss: Loss, logits: Tensor, target: Tensor) -> Tensor:
    return value_and_gradient(loss, logits, target)[1]


def test_value_is_the_formula():
    batches = [batch(scale=scale) for scale in (0.5, 8.0)]

    def check(case: Case) -> None:
        loss = case.make(reduction="none")
        for logits, label in batches:
            value = loss(logits, label)
            assert value.dtype == torch.float64
            expected = case.expected(logits.numpy(), label.numpy())
            np.testing.assert_allclose(value.numpy(), expected, rtol=1e-10, atol=1e-13)

    for_each([*PLAIN, *(sparse(case, variant) for case in PLAIN for variant in VARIANTS)], check)
    for_each(EVERY_KIND, check)


def test_gradient_is_that_of_the_value():
    logits, label = batch(2, NUM_CLASSES)
    logits.requires_grad_()

    def check(case: Case) -> None:
        if "detach" in case.name:  # whose gradient is another on purpose
            return
        loss = case.make(reduction="none")
        # The fast mode compares one random direction, which is enough on top of a checked base.
        assert torch.autograd.gradcheck(
            lambda inputs: loss(inputs, label),
            logits,
            check_undefined_grad=False,
            fast_mode="+sr" in case.name,
        )

    torch.manual_seed(0)
    for_each([*PLAIN, *EVERY_KIND], check)


def test_fewer_digits_follow_more():
    logits, label = batch(dtype=torch.float32)

    def check(case: Case) -> None:
        loss = case.make(reduction="none")
        value = loss(logits, label)
        assert value.dtype == torch.float32
        assert_close(value.double(), loss(logits.double(), label), rtol=1e-5, atol=1e-6)
        exact = gradient(loss, logits.double(), label)
        error = (gradient(loss, logits, label) - exact).abs().max()
        assert error <= 2e-6 * max(1.0, float(exact.abs().max()))
        for dtype in HALF_PRECISIONS:
            rounded = logits.to(dtype)
            value, slope = loss(rounded, label), gradient(loss, rounded, label)
            assert (value.dtype, slope.dtype) == (torch.float32, dtype)
            assert torch.equal(value, loss(rounded.float(), label))
            assert torch.equal(slope, gradient(loss, rounded.float(), label).to(dtype))

    for_each([*PLAIN, *EVERY_KIND], check)


def test_extreme_logits_are_survived():
    rows = [
        [1e4, -1e4, 0.0, 1.0, 2.0],  # right beyond doubt
        [1e4, -1e4, 0.0, 1.0, 2.0],  # wrong beyond doubt
        [1e4, 1e4, -1e4, -1e4, -1e4],  # torn between two
        [-1e4, -1e4, -1e4, -1e4, -1e4],
        [1e4, 1e4, 1e4, 1e4, 1e4],
        [0.0, 0.0, 0.0, 0.0, -1e4],
    ]
    logits, label = torch.tensor(rows), torch.tensor([0, 1, 1, 2, 3, 4])

    def check(case: Case) -> None:
        loss = case.make(reduction="none")
        assert loss(logits.double(), label).isfinite().all()
        assert gradient(loss, logits.double(), label).isfinite().all()
        for dtype in (torch.float32, *HALF_PRECISIONS):
            cast = logits.to(dtype)
            assert_close(
                loss(cast, label).double(), loss(cast.double(), label), rtol=1e-5, atol=1e-5
            )
            assert gradient(loss, cast, label).isfinite().all()

    for_each([*PLAIN, *EVERY_KIND], check)


def test_reductions_are_those_of_torch():
    logits, label = batch()

    def check(case: Case) -> None:
        each = case.make(reduction="none")(logits, label)
        assert each.shape == label.shape
        given = logits.clone().requires_grad_()  # with a gradient, a mean may take a shorter way
        for mean in (case.make(), case.make(reduction="mean")):
            assert_close(mean(logits, label), each.mean())
            assert_close(mean(given, label), each.mean())
        assert_close(case.make(reduction="sum")(logits, label), each.sum())

    for_each(EVERY_KIND, check)


def test_classes_are_weighed_and_targets_ignored_as_torch_does():
    logits, label = batch()
    some = label.clone()
    some[2] = NUM_CLASSES + 3
    counts = torch.where(some == some[2], 0, class_weight[some % NUM_CLASSES])

    def check(case: Case) -> None:
        each = case.make(reduction="none")(logits, label)
        settings = {"weight": class_weight, "ignore_index": NUM_CLASSES + 3}
        assert_close(case.make(reduction="none", **settings)(logits, some), counts * each)
        assert_close(case.make(reduction="sum", **settings)(logits, some), (counts * each).sum())
        mean = case.make(reduction="mean", **settings)
        assert_close(mean(logits, some), (counts * each).sum() / counts.sum())
        slopes = gradient(mean, logits, some)
        assert not slopes[2].any()
        assert slopes.any()
        assert_close(mean.per_example(logits, some), torch.where(some == some[2], 0, each))

    for_each(EVERY_KIND, check)


def test_shapes_with_more_axes_and_with_fewer():
    logits, label = batch(2, NUM_CLASSES, 3, 2)
    flat_logits, flat_label = logits.movedim(1, -1).reshape(-1, NUM_CLASSES), label.reshape(-1)

    def check(case: Case) -> None:
        loss = case.make(reduction="none")
        value, flat = loss(logits, label), loss(flat_logits, flat_label)
        assert value.shape == label.shape
        assert_close(value.reshape(-1), flat)
        weighted = case.make(weight=class_weight, ignore_index=1)
        assert_close(weighted(logits, label), weighted(flat_logits, flat_label))
        single = loss(flat_logits[0], flat_label[0])
        assert single.shape == ()
        for value in (
            single,
            case.make()(flat_logits[0], flat_label[0]),
            case.make().per_example(flat_logits[0], flat_label[0]),
        ):
            assert_close(value, flat[0])

    for_each(EVERY_KIND, check)


def test_class_probabilities_give_the_expected_loss():
    logits, label = batch()
    one_hot = torch.eye(NUM_CLASSES, dtype=torch.float64)
    share = torch.softmax(batch(seed=1)[0], dim=1)

    def check(case: Case) -> None:
        loss = case.make(reduction="none")
        assert_close(loss(logits, one_hot[label]), loss(logits, label))
        labels = [torch.full_like(label, each) for each in range(NUM_CLASSES)]
        every = torch.stack([loss(logits, each) for each in labels], 1)
        assert_close(loss(logits, share), (share * every).sum(dim=1))
        assert_close(case.make()(logits, share), (share * every).sum(dim=1).mean())
        weighted = case.make(reduction="none", weight=class_weight)
        assert_close(weighted(logits, share), (share * class_weight * every).sum(dim=1))
        assert_close(loss(logits[0], share[0]), loss(logits, share)[0])

    for_each(EVERY_KIND, check)


def test_a_batch_without_examples_costs_nothing():
    logits, label = batch()
    given = [(logits, torch.full_like(label, -100))]
    for empty in (torch.zeros(0, NUM_CLASSES), torch.zeros(2, NUM_CLASSES, 0)):
        given += [(empty, empty[:, 0].long()), (empty, torch.zeros_like(empty))]

    def check(case: Case) -> None:
        for outputs, target in given:
            for reduction in ("none", "mean", "sum"):
                loss = case.make(reduction=reduction)
                value = loss(outputs, target)
                shape = (outputs.shape[0], *outputs.shape[2:]) if reduction == "none" else ()
                assert value.shape == shape
                assert not value.any()
                assert not gradient(loss, outputs, target).any()

    for_each([*DISTINCT, *EVERY_KIND[-len(VARIANTS) :]], check)
    empty, target = given[1]
    parts = parse_loss("ce+sr", weight=class_weight, check=True)
    assert isinstance(parts, SparseRegularized)
    assert [float(part) for part in parts.parts(empty, target)] == [0, 0, 0, 0]
    assert parse_loss("nl(samples=2)")(empty, target) == 0


def test_masked_classes_take_no_part():
    logits, label = batch(4, NUM_CLASSES)

    def with_masked(*classes: int) -> Tensor:
        given = logits.clone()
        given[:, list(classes)] = -math.inf
        return given

    def check(case: Case) -> None:
        loss = case.make(reduction="none")
        assert loss(with_masked(3), label % 3).isfinite().all()
        assert not gradient(loss, with_masked(3), label % 3)[:, 3].any()
        for hidden in ((0,), (0, 2), (1, 2, 3, 4), (0, 2, 3, 4)):
            assert not loss(with_masked(*hidden), label * 0).isnan().any()
            for each in (loss, case.make()):
                assert gradient(each, with_masked(*hidden), label * 0).isfinite().all()

    for_each(EVERY_KIND, check)


@pytest.mark.filterwarnings("error")
def test_copies_are_the_same_loss():
    logits, label = batch()

    def check(case: Case) -> None:
        loss = case.make(weight=class_weight)
        value = loss(logits, label)
        for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):  # noqa: S301
            assert torch.equal(twin(logits, label), value)
            assert repr(twin) == repr(loss)

    for_each(EVERY_KIND, check)
