"""What every loss promises, whatever its formula: one contract, run over all of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from losses.catalogue import EVERY, EVERY_KIND, NUM_CLASSES, PLAIN, Case, batch, names
from torch import Tensor
from torch.testing import assert_close

from labelproof import Loss

every_kind = pytest.mark.parametrize("case", EVERY_KIND, ids=names(EVERY_KIND))
every_loss = pytest.mark.parametrize("case", EVERY, ids=names(EVERY))
DIFFERENTIATED = [case for case in EVERY if not case.detached]
half_precisions = (torch.bfloat16, torch.float16)
class_weight = torch.tensor([0.5, 2.0, 0.0, 1.0, 3.0], dtype=torch.float64)


def gradient(loss: Loss, logits: Tensor, target: Tensor) -> Tensor:
    logits = logits.clone().requires_grad_()
    (result,) = torch.autograd.grad(loss(logits, target).sum(), logits)
    return result


def extreme_logits() -> tuple[Tensor, Tensor]:
    rows = [
        [1e4, -1e4, 0.0, 1.0, 2.0],  # right beyond doubt
        [1e4, -1e4, 0.0, 1.0, 2.0],  # wrong beyond doubt
        [1e4, 1e4, -1e4, -1e4, -1e4],  # torn between two
        [-1e4, -1e4, -1e4, -1e4, -1e4],
        [1e4, 1e4, 1e4, 1e4, 1e4],
        [0.0, 0.0, 0.0, 0.0, -1e4],
    ]
    return torch.tensor(rows), torch.tensor([0, 1, 1, 2, 3, 4])


@every_loss
@pytest.mark.parametrize("scale", [0.5, 8.0], ids=["unsure", "confident"])
def test_value_is_the_formula(case: Case, scale: float):
    logits, label = batch(scale=scale)
    value = case.make(reduction="none")(logits, label)
    assert value.dtype == torch.float64
    np.testing.assert_allclose(
        value.numpy(), case.expected(logits.numpy(), label.numpy()), rtol=1e-10, atol=1e-13
    )


@pytest.mark.parametrize("case", DIFFERENTIATED, ids=names(DIFFERENTIATED))
def test_gradient_is_that_of_the_value(case: Case):
    logits, label = batch(2, NUM_CLASSES)
    loss = case.make(reduction="none")
    # The fast mode compares one random direction, which is enough on top of a checked base.
    assert torch.autograd.gradcheck(
        lambda inputs: loss(inputs, label),
        logits.requires_grad_(),
        check_undefined_grad=False,
        fast_mode=case not in PLAIN,
    )


@every_loss
def test_single_precision_follows_double(case: Case):
    logits, label = batch(dtype=torch.float32)
    loss = case.make(reduction="none")
    value = loss(logits, label)
    assert value.dtype == torch.float32
    assert_close(value.double(), loss(logits.double(), label), rtol=1e-5, atol=1e-6)
    exact = gradient(loss, logits.double(), label)
    error = (gradient(loss, logits, label) - exact).abs().max()
    assert error <= 2e-6 * max(1.0, float(exact.abs().max()))


@every_loss
def test_half_precisions_are_lifted_to_single(case: Case):
    logits, label = batch(dtype=torch.float32)
    loss = case.make(reduction="none")
    for dtype in half_precisions:
        rounded = logits.to(dtype)
        value, slope = loss(rounded, label), gradient(loss, rounded, label)
        assert value.dtype == torch.float32
        assert torch.equal(value, loss(rounded.float(), label))
        assert slope.dtype == dtype
        assert torch.equal(slope, gradient(loss, rounded.float(), label).to(dtype))


@every_loss
def test_extreme_logits_are_survived(case: Case):
    logits, label = extreme_logits()
    loss = case.make(reduction="none")
    exact = loss(logits.double(), label)
    assert exact.isfinite().all()
    assert gradient(loss, logits.double(), label).isfinite().all()
    for dtype in (torch.float32, *half_precisions):
        cast = logits.to(dtype)
        value = loss(cast, label)
        assert_close(value.double(), loss(cast.double(), label), rtol=1e-5, atol=1e-5)
        assert gradient(loss, cast, label).isfinite().all()


@every_kind
def test_reductions_are_those_of_torch(case: Case):
    logits, label = batch()
    each = case.make(reduction="none")(logits, label)
    assert each.shape == label.shape
    assert_close(case.make(reduction="mean")(logits, label), each.mean())
    assert_close(case.make(reduction="sum")(logits, label), each.sum())
    assert case.make().reduction == "mean"


@every_kind
def test_classes_are_weighed_and_targets_ignored_as_torch_does(case: Case):
    logits, label = batch()
    each = case.make(reduction="none")(logits, label)
    label[2] = NUM_CLASSES + 3
    counts = torch.where(label == label[2], 0, class_weight[label % NUM_CLASSES])
    settings = {"weight": class_weight, "ignore_index": NUM_CLASSES + 3}
    value = case.make(reduction="none", **settings)(logits, label)
    assert_close(value, counts * each)
    assert_close(case.make(reduction="sum", **settings)(logits, label), (counts * each).sum())
    mean = case.make(reduction="mean", **settings)
    assert_close(mean(logits, label), (counts * each).sum() / counts.sum())
    slopes = gradient(mean, logits, label)
    assert not slopes[2].any()
    assert slopes.any()
    assert_close(mean.per_example(logits, label), torch.where(label == label[2], 0, each))


@every_kind
def test_more_axes_are_more_examples(case: Case):
    logits, label = batch(2, NUM_CLASSES, 3, 2)
    flat_logits, flat_label = logits.movedim(1, -1).reshape(-1, NUM_CLASSES), label.reshape(-1)
    loss = case.make(reduction="none")
    value = loss(logits, label)
    assert value.shape == label.shape
    assert_close(value.reshape(-1), loss(flat_logits, flat_label))
    weighted = case.make(weight=class_weight, ignore_index=1)
    assert_close(weighted(logits, label), weighted(flat_logits, flat_label))


@every_kind
def test_single_example_needs_no_batch_axis(case: Case):
    logits, label = batch()
    loss = case.make(reduction="none")
    value = loss(logits[0], label[0])
    assert value.shape == ()
    assert_close(value, loss(logits, label)[0])
    assert_close(case.make()(logits[0], label[0]), value)
    assert_close(case.make().per_example(logits[0], label[0]), value)


@every_kind
def test_class_probabilities_give_the_expected_loss(case: Case):
    logits, label = batch()
    loss = case.make(reduction="none")
    one_hot = torch.eye(NUM_CLASSES, dtype=torch.float64)
    assert_close(loss(logits, one_hot[label]), loss(logits, label))
    every = torch.stack([loss(logits, torch.full_like(label, k)) for k in range(NUM_CLASSES)], 1)
    share = torch.softmax(batch(seed=1)[0], dim=1)
    assert_close(loss(logits, share), (share * every).sum(dim=1))
    assert_close(case.make()(logits, share), (share * every).sum(dim=1).mean())
    weighted = case.make(reduction="none", weight=class_weight)
    assert_close(weighted(logits, share), (share * class_weight * every).sum(dim=1))
    assert_close(loss(logits[0], share[0]), loss(logits, share)[0])


@every_kind
def test_batch_that_is_ignored_costs_nothing(case: Case):
    logits, label = batch()
    nothing = torch.full_like(label, -100)
    for reduction in ("none", "mean", "sum"):
        loss = case.make(reduction=reduction)
        assert not loss(logits, nothing).any()
        assert not gradient(loss, logits, nothing).any()


@every_kind
def test_copies_are_the_same_loss(case: Case):
    logits, label = batch()
    loss = case.make(weight=class_weight)
    value = loss(logits, label)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):  # noqa: S301
        assert torch.equal(twin(logits, label), value)
        assert repr(twin) == repr(loss)
