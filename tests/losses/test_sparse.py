"""Sparse regularization as an object: its parts, its schedules, and what it keeps when moved."""

from __future__ import annotations

import io

import pytest
import torch
from losses.catalogue import batch
from torch.testing import assert_close

from labelproof import (
    CrossEntropy,
    SparseRegularized,
    constant,
    cosine,
    exponential,
    linear,
    lp_norm,
    sharpen,
)
from labelproof.losses import sparse_rate
from labelproof.losses.batch import Reduction


def scheduled() -> SparseRegularized:
    return SparseRegularized(
        CrossEntropy(),
        temperature=exponential(0.9, growth=0.7, minimum=0.1),
        weight=exponential(1.2, growth=1.03),
    )


def test_defaults_are_those_of_the_paper():
    loss = SparseRegularized(CrossEntropy())
    assert (loss.temperature, loss.p, loss.weight, loss.normalize) == (0.5, 0.1, 1.2, True)
    assert (loss.clamp, loss.vector, loss.epoch) == (None, None, 0)
    loss.set_epoch(50)
    assert loss.weight == pytest.approx(1.2 * 1.03**50, rel=1e-14)
    assert loss.temperature == 0.5


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_parts_add_up_to_the_loss(reduction: Reduction):
    logits, label = batch(8, 5)
    weight = torch.tensor([1.0, 2.0, 0.5, 0.1, 3.0], dtype=torch.float64)
    loss = SparseRegularized(CrossEntropy(reduction=reduction, weight=weight), weight=3, p=0.3)
    parts = loss.parts(logits, label)
    assert_close(parts.total, loss(logits, label), rtol=1e-14, atol=0)
    assert torch.equal(parts.total, parts.base + 3 * parts.penalty)
    sharp = sharpen(logits, temperature=0.5)
    assert torch.equal(parts.base, CrossEntropy(reduction=reduction, weight=weight)(sharp, label))


def test_parts_leave_out_what_is_ignored():
    logits, label = batch(8, 5)
    logits[:3] = 100 * torch.eye(5, dtype=torch.float64)[:3]  # certain, and ignored
    some = label.clone()
    some[:3] = -100
    loss = SparseRegularized(CrossEntropy(), normalize=False)
    assert_close(loss.parts(logits, some), loss.parts(logits[3:], label[3:]))
    nothing = loss.parts(logits, torch.full_like(label, -100))
    assert [float(part) for part in nothing] == [0, 0, 0, 0]


def test_sparse_rate_is_the_share_of_certain_outputs():
    log_probabilities = torch.tensor([[0.991, 0.009], [0.989, 0.011], [0.5, 0.5], [1, 0]]).log()
    assert sparse_rate(log_probabilities).tolist() == [1, 0, 0, 1]
    assert float(sparse_rate(log_probabilities[0])) == 1
    loss = SparseRegularized(CrossEntropy(), temperature=1, normalize=False)
    label = torch.zeros(4, dtype=torch.long)
    finite = log_probabilities.clamp_min(-50)
    assert float(loss.parts(finite, label).sparse_rate) == 0.5
    assert float(loss.parts(finite[0], label[0]).sparse_rate) == 1


def test_schedules_are_followed_by_epoch_and_by_step():
    loss = SparseRegularized(
        CrossEntropy(), temperature=cosine(1, 0.1, epochs=10), weight=linear(0, 5, epochs=10)
    )
    assert (loss.weight, loss.temperature) == (0, 1)
    loss.set_epoch(5)
    assert (loss.weight, loss.temperature) == (2.5, pytest.approx(0.55))
    loss.set_step(15, steps_per_epoch=2)
    assert loss.epoch == 7.5
    assert loss.weight == 3.75
    logits, label = batch()
    fixed = SparseRegularized(CrossEntropy(), loss.temperature, weight=loss.weight)
    assert_close(loss(logits, label), fixed(logits, label))


def test_the_schedule_of_the_paper_moves_with_every_step():
    for steps in (3, 10, 49, 391):
        loss = SparseRegularized(CrossEntropy(), weight=exponential(1, growth=2, every=1 / steps))
        for step in range(90):
            loss.set_step(step, steps_per_epoch=steps)
            assert loss.weight == 2.0**step, f"step {step} of {steps}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": lambda epoch: 2.0 - epoch}, "weight at epoch 3: .* got -1"),
        ({"temperature": lambda epoch: 1.0 - epoch / 3}, "temperature at epoch 3: .* got 0"),
        (
            {"weight": lambda epoch: float("nan") if epoch > 2 else 1.0},
            "weight at epoch 3: .* got nan",
        ),
        ({"temperature": linear(1, -1, epochs=4)}, "temperature at epoch 3: .* got -0.5"),
    ],
)
def test_a_schedule_that_leaves_its_range_is_refused(options: dict, message: str):
    loss = SparseRegularized(CrossEntropy(), **options)
    loss.set_epoch(1)
    with pytest.raises(ValueError, match=message):
        loss.set_epoch(3)
    assert loss.epoch == 1, "a refused epoch changes nothing"
    logits, label = batch()
    fixed = SparseRegularized(CrossEntropy(), loss.temperature, weight=loss.weight)
    assert_close(loss(logits, label), fixed(logits, label))


def test_a_temperature_that_float32_has_no_gradient_for_is_refused():
    loss = SparseRegularized(CrossEntropy(), temperature=exponential(1, growth=0.5))
    with pytest.raises(ValueError, match=r"^temperature at epoch 50: expected .*1e-12"):
        loss.set_epoch(50)
    assert (loss.epoch, loss.temperature) == (0, 1)
    with pytest.raises(ValueError, match=r"temperature at epoch 0: expected .*1e-12"):
        SparseRegularized(CrossEntropy(), temperature=1e-20)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_the_smallest_temperature_has_its_gradient(scale: float):
    logits, label = batch(50, 5, scale=scale)
    loss = SparseRegularized(CrossEntropy(), temperature=1e-12)
    slopes = []
    for given in (logits, logits.float(), logits.float().unsqueeze(2)):
        given = given.clone().requires_grad_()
        value = loss(given, label.reshape(50, *given.shape[2:]))
        slopes.append(torch.autograd.grad(value, given)[0].reshape(50, 5).double())
    assert_close(slopes[1], slopes[0], rtol=1e-4, atol=1e-4 * float(slopes[0].abs().max()))
    assert_close(slopes[2], slopes[1], rtol=1e-4, atol=1e-4 * float(slopes[0].abs().max()))


def test_state_restores_epoch_weight_and_temperature():
    saved = scheduled()
    saved.set_epoch(13)
    file = io.BytesIO()
    torch.save(saved.state_dict(), file)
    file.seek(0)
    restored = scheduled()
    restored.load_state_dict(torch.load(file, weights_only=True))
    assert (restored.epoch, restored.weight, restored.temperature) == (
        13,
        1.2 * 1.03**13,
        0.1,
    )
    logits, label = batch()
    assert torch.equal(restored(logits, label), saved(logits, label))


@pytest.mark.parametrize("move", ["half", "bfloat16", "float", "double"])
def test_moving_to_another_precision_keeps_the_values_exact(move: str):
    logits, label = batch()
    loss = scheduled()
    loss.set_epoch(9)
    before = loss(logits, label)
    assert getattr(loss, move)() is loss
    assert loss.weight == 1.2 * 1.03**9
    assert torch.equal(loss(logits, label), before)
    loss.set_epoch(10)
    fixed = SparseRegularized(CrossEntropy(), loss.temperature, weight=1.2 * 1.03**10)
    assert torch.equal(loss(logits, label), fixed(logits, label))


def test_moving_to_a_device_moves_everything():
    loss = scheduled().to("cpu", torch.float16)
    assert loss.weight == 1.2
    moved = scheduled().to("meta")
    assert {tensor.device.type for tensor in (moved._weight, moved._temperature)} == {"meta"}
    filled = moved.to_empty(device="cpu")
    assert (float(filled._weight), float(filled._temperature)) == (1.2, 0.9)


def test_a_network_that_starts_at_zero_can_start():
    logits = torch.zeros(3, 5, requires_grad=True)
    label = torch.tensor([0, 1, 2])
    for reduction in ("mean", "none"):  # by its own gradient, and by torch's
        value = SparseRegularized(CrossEntropy(reduction=reduction))(logits, label).sum()
        (slope,) = torch.autograd.grad(value, logits)
        assert value.isfinite()
        assert slope.isfinite().all()
        assert (slope[label == 0, 0] < 0).all(), "towards the label"


def test_regularized_losses_can_be_built_upon():
    logits, label = batch()
    inner = SparseRegularized(CrossEntropy(reduction="none"), weight=2)
    twice = SparseRegularized(inner, temperature=1, normalize=False, weight=constant(3), p=0.5)
    penalty = lp_norm(torch.log_softmax(logits, dim=1), p=0.5)
    assert_close(twice(logits, label), inner(logits, label) + 3 * penalty)
    assert_close(inner.per_example(logits, label), inner(logits, label))


def test_printing_shows_what_it_is():
    shown = repr(SparseRegularized(CrossEntropy(), p=0.25, clamp=1e-7))
    for part in ("CrossEntropy", "p=0.25", "growth=1.03", "clamp=1e-07", "vector=None"):
        assert part in shown
    short, long = torch.tensor([0.75, 0.25]), torch.ones(1000) / 1000
    for vector, part in (
        (0.2, "vector=0.2"),
        (short, "vector=[0.75, 0.25]"),
        (long, "0.001, ...]"),
    ):
        assert part in repr(SparseRegularized(CrossEntropy(), vector=vector))
