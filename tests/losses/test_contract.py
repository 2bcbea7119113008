"""What every loss promises, whatever its formula: one contract, run over all of them."""

import copy
import math
import pickle
from collections.abc import Callable

import numpy as np
import torch
from losses.catalogue import (
    CLIPPED,
    DISTINCT,
    EVERY_KIND,
    EVERY_ONE,
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

from labelproof import Loss

HALF_PRECISIONS = (torch.bfloat16, torch.float16)
ONE_HOT = torch.eye(NUM_CLASSES, dtype=torch.float64)
class_weight = torch.tensor([0.5, 2.0, 0.0, 1.0, 3.0], dtype=torch.float64)
logits, label = batch()


def over(cases: list[Case]) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """A test of what is promised of one loss that goes over many."""

    def decorate(promise: Callable[[Case], None]) -> Callable[[], None]:
        def test() -> None:
            for case in cases:
                try:
                    promise(case)
                except AssertionError as error:
                    raise AssertionError(f"{case.name}: {error}") from error

        return test

    return decorate


def gradient(loss: Loss, logits: Tensor, target: Tensor) -> Tensor:
    return value_and_gradient(loss, logits, target)[1]


@over([*PLAIN, *CLIPPED, *(sparse(case, variant) for case in DISTINCT for variant in VARIANTS)])
def test_value_is_the_formula(case: Case):
    loss = case.make(reduction="none")
    for logits, label in (batch(scale=scale) for scale in (0.5, 8.0)):
        value = loss(logits, label)
        assert value.dtype == torch.float64
        expected = case.expected(logits.numpy(), label.numpy())
        np.testing.assert_allclose(value.numpy(), expected, rtol=1e-10, atol=1e-13)


@over([case for case in EVERY_ONE if "detach" not in case.name])  # which has another on purpose
def test_gradient_is_that_of_the_value(case: Case):
    loss = case.make(reduction="none")
    torch.manual_seed(0)
    # The fast mode compares one random direction, which is enough on top of a checked base.
    assert torch.autograd.gradcheck(
        lambda inputs: loss(inputs, label[:2]),
        logits[:2].clone().requires_grad_(),
        check_undefined_grad=False,
        fast_mode="+sr" in case.name,
    )


@over(EVERY_ONE)
def test_fewer_digits_follow_more(case: Case):
    single = logits.float()
    for loss in (case.make(reduction="none"), case.make()):  # a mean may have a gradient of its own
        value = loss(single, label)
        assert value.dtype == torch.float32
        assert_close(value.double(), loss(single.double(), label), rtol=1e-5, atol=1e-6)
        exact = gradient(loss, single.double(), label)
        error = (gradient(loss, single, label) - exact).abs().max()
        assert error <= 2e-6 * max(1.0, float(exact.abs().max()))
        for dtype in HALF_PRECISIONS:
            rounded = logits.to(dtype)
            value, slope = value_and_gradient(loss, rounded, label)
            exact, exact_slope = value_and_gradient(loss, rounded.float(), label)
            assert (value.dtype, slope.dtype) == (torch.float32, dtype)
            assert torch.equal(value, exact)
            assert torch.equal(slope, exact_slope.to(dtype))


EXTREME = torch.tensor(
    [
        [1e4, -1e4, 0.0, 1.0, 2.0],  # right beyond doubt
        [1e4, -1e4, 0.0, 1.0, 2.0],  # wrong beyond doubt
        [1e4, 1e4, -1e4, -1e4, -1e4],  # torn between two
        [-1e4, -1e4, -1e4, -1e4, -1e4],
        [1e4, 1e4, 1e4, 1e4, 1e4],
        [0.0, 0.0, 0.0, 0.0, -1e4],
    ]
)


@over(EVERY_ONE)
def test_extreme_logits_are_survived(case: Case):
    label = torch.tensor([0, 1, 1, 2, 3, 4])
    loss, mean = case.make(reduction="none"), case.make()
    for dtype in (torch.float64, torch.float32, *HALF_PRECISIONS):
        cast = EXTREME.to(dtype)
        exact = loss(cast.double(), label)
        assert exact.isfinite().all()
        assert_close(loss(cast, label).double(), exact, rtol=1e-5, atol=1e-5)
        for each in (loss, mean):
            assert gradient(each, cast, label).isfinite().all()


@over(EVERY_KIND)
def test_reductions_weights_and_ignored_targets_are_those_of_torch(case: Case):
    each = case.make(reduction="none")(logits, label)
    given = logits.clone().requires_grad_()  # with a gradient, a mean may take a shorter way
    for mean in (case.make(), case.make(reduction="mean")):
        assert_close(mean(logits, label), each.mean())
        assert_close(mean(given, label), each.mean())
    assert_close(case.make(reduction="sum")(logits, label), each.sum())
    some = label.clone()
    some[2] = NUM_CLASSES + 3
    counts = torch.where(some == some[2], 0, class_weight[some % NUM_CLASSES])
    settings = {"weight": class_weight, "ignore_index": NUM_CLASSES + 3}
    assert_close(case.make(reduction="none", **settings)(logits, some), counts * each)
    assert_close(case.make(reduction="sum", **settings)(logits, some), (counts * each).sum())
    mean = case.make(reduction="mean", **settings)
    assert_close(mean(logits, some), (counts * each).sum() / counts.sum())
    slopes = gradient(mean, logits, some)
    assert not slopes[2].any()
    assert slopes.any()
    assert_close(mean.per_example(logits, some), torch.where(some == some[2], 0, each))


@over(EVERY_KIND)
def test_shapes_with_more_axes_and_with_fewer(case: Case):
    logits, label = batch(2, NUM_CLASSES, 3, 2)
    flat_logits, flat_label = logits.movedim(1, -1).reshape(-1, NUM_CLASSES), label.reshape(-1)
    loss = case.make(reduction="none")
    value, flat = loss(logits, label), loss(flat_logits, flat_label)
    assert value.shape == label.shape
    assert_close(value.reshape(-1), flat)
    weighted = case.make(weight=class_weight, ignore_index=1)
    assert_close(weighted(logits, label), weighted(flat_logits, flat_label))
    mean = case.make()
    for call in (loss, mean, mean.per_example):
        assert_close(call(flat_logits[0], flat_label[0]), flat[0])


@over(EVERY_KIND)
def test_class_probabilities_give_the_expected_loss(case: Case):
    share = torch.softmax(batch(seed=1)[0], dim=1)
    loss = case.make(reduction="none")
    assert_close(loss(logits, ONE_HOT[label]), loss(logits, label))
    labels = [torch.full_like(label, each) for each in range(NUM_CLASSES)]
    every = torch.stack([loss(logits, each) for each in labels], 1)
    assert_close(loss(logits, share), (share * every).sum(dim=1))
    assert_close(case.make()(logits, share), (share * every).sum(dim=1).mean())
    weighted = case.make(reduction="none", weight=class_weight)
    assert_close(weighted(logits, share), (share * class_weight * every).sum(dim=1))
    assert_close(loss(logits[0], share[0]), loss(logits, share)[0])


EMPTY, EMPTY_TARGET = torch.zeros(0, NUM_CLASSES), torch.zeros(0, dtype=torch.long)
WITHOUT_EXAMPLES = [
    (logits, torch.full_like(label, -100)),
    (EMPTY, EMPTY_TARGET),
    (EMPTY, EMPTY),
    (torch.zeros(2, NUM_CLASSES, 0), torch.zeros(2, 0, dtype=torch.long)),
]


@over([*DISTINCT, *EVERY_KIND[-len(VARIANTS) :]])
def test_a_batch_without_examples_costs_nothing(case: Case):
    for reduction in ("none", "mean", "sum"):
        loss = case.make(reduction=reduction)
        for outputs, target in WITHOUT_EXAMPLES:
            value = loss(outputs, target)
            shape = (outputs.shape[0], *outputs.shape[2:]) if reduction == "none" else ()
            assert value.shape == shape
            assert not value.any()
            assert not gradient(loss, outputs, target).any()


@over(EVERY_KIND)
def test_masked_classes_take_no_part(case: Case):
    loss, mean = case.make(reduction="none"), case.make()
    for hidden in ([3], [0, 2], [1, 2, 3, 4]):
        target = label[:4] % 3 if hidden == [3] else label[:4] * 0
        given = logits[:4].clone()
        given[:, hidden] = -math.inf
        assert not loss(given, target).isnan().any()
        for each in (loss, mean):
            slope = gradient(each, given, target)
            assert slope.isfinite().all()
            assert hidden != [3] or not slope[:, 3].any()


@over(EVERY_KIND)
def test_copies_are_the_same_loss(case: Case):
    loss = case.make(weight=class_weight)
    value = loss(logits, label)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):  # noqa: S301
        assert torch.equal(twin(logits, label), value)
        assert repr(twin) == repr(loss)
