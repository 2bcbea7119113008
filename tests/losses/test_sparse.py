"""Sparse regularization: its parts, its schedules, its vectors, and what it keeps when moved."""

import io
import itertools
from math import nan
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.catalogue import batch
from torch import Tensor
from torch.testing import assert_close

import labelproof as lp
from labelproof.losses import permutation_penalty, sparse_rate


def scheduled() -> lp.SparseRegularized:
    """Its weight grows as the paper's, by default."""
    lowered = lp.exponential(0.9, growth=0.7, minimum=0.1)
    return lp.SparseRegularized(lp.CrossEntropy(), lowered)


def test_parts_add_up_to_the_loss_without_what_is_ignored():
    logits, label = batch(8, 5)
    settings: Any = {"weight": torch.tensor([1.0, 2.0, 0.5, 0.1, 3.0], dtype=torch.float64)}
    sharp = lp.sharpen(logits, temperature=0.5)
    for settings["reduction"] in ("none", "mean", "sum"):
        loss = lp.SparseRegularized(lp.CrossEntropy(**settings), weight=3, p=0.3)
        parts = loss.parts(logits, label)
        assert_close(parts.total, loss(logits, label), rtol=1e-14, atol=0)
        assert torch.equal(parts.total, parts.base + 3 * parts.penalty)
        assert torch.equal(parts.base, lp.CrossEntropy(**settings)(sharp, label))
    # What is ignored is left out.
    logits[:3] = 100 * torch.eye(5, dtype=torch.float64)[:3]  # certain, and ignored
    some = label.clone()
    some[:3] = -100
    careful = lp.CrossEntropy(weight=settings["weight"], check=True)
    loss = lp.SparseRegularized(careful, normalize=False)
    assert_close(loss.parts(logits, some), loss.parts(logits[3:], label[3:]))
    for nothing in (torch.full_like(label, -100), label[:0]):
        parts = loss.parts(logits[: len(nothing)], nothing)
        assert [float(part) for part in parts] == [0, 0, 0, 0]


def test_sparse_rate_is_the_share_of_certain_outputs():
    log_probabilities = torch.tensor([[0.991, 0.009], [0.989, 0.011], [0.5, 0.5], [1, 0]]).log()
    assert sparse_rate(log_probabilities).tolist() == [1, 0, 0, 1]
    assert float(sparse_rate(log_probabilities[0])) == 1
    loss = lp.SparseRegularized(lp.CrossEntropy(), temperature=1, normalize=False)
    label = torch.zeros(4, dtype=torch.long)
    finite = log_probabilities.clamp_min(-50)
    assert float(loss.parts(finite, label).sparse_rate) == 0.5
    assert float(loss.parts(finite[0], label[0]).sparse_rate) == 1


def test_schedules_are_followed_by_epoch_and_the_papers_moves_with_every_step():
    loss = lp.SparseRegularized(lp.CrossEntropy())  # the defaults are the paper's
    assert (loss.temperature, loss.p, loss.weight, loss.normalize) == (0.5, 0.1, 1.2, True)
    assert (loss.clamp, loss.vector, loss.epoch) == (None, None, 0)
    loss.set_epoch(50)
    assert (loss.weight, loss.temperature) == (pytest.approx(1.2 * 1.03**50, rel=1e-14), 0.5)
    loss = lp.SparseRegularized(
        lp.CrossEntropy(), lp.cosine(1, 0.1, epochs=10), weight=lp.linear(0, 5, epochs=10)
    )
    assert (loss.weight, loss.temperature) == (0, 1)
    loss.set_epoch(5)
    assert (loss.weight, loss.temperature) == (2.5, pytest.approx(0.55))
    loss.set_step(15, steps_per_epoch=2)
    assert loss.epoch == 7.5
    assert loss.weight == 3.75
    logits, label = batch()
    fixed = lp.SparseRegularized(lp.CrossEntropy(), loss.temperature, weight=loss.weight)
    assert_close(loss(logits, label), fixed(logits, label))
    for steps in (3, 7, 10, 49, 391, 1000):
        growing = lp.exponential(1, growth=2, every=1 / steps)
        loss = lp.SparseRegularized(lp.CrossEntropy(), weight=growing)
        for step in range(99):
            loss.set_step(step, steps_per_epoch=steps)
            assert loss.weight == 2.0**step, f"step {step} of {steps}"


LEAVING: list[tuple[dict[str, Any], str]] = [
    ({"weight": lambda epoch: 2.0 - epoch}, "weight at epoch 3: .* got -1"),
    ({"weight": lambda epoch: nan if epoch > 2 else 1.0}, "weight at epoch 3: .* got nan"),
    ({"temperature": lambda epoch: 1.0 - epoch / 3}, "temperature at epoch 3: .* got 0"),
    ({"temperature": lp.linear(1, -1, epochs=4)}, "temperature at epoch 3: .* got -0.5"),
    # Of a smaller one float32 has no gradient.
    ({"temperature": lp.exponential(1, growth=1e-5)}, "^temperature at epoch 3: expected .*1e-12"),
]


def test_a_schedule_that_leaves_its_range_is_refused():
    logits, label = batch()
    for options, message in LEAVING:
        loss = lp.SparseRegularized(lp.CrossEntropy(), **options)
        loss.set_epoch(1)
        with pytest.raises(ValueError, match=message):
            loss.set_epoch(3)
        assert loss.epoch == 1, "a refused epoch changes nothing"
        fixed = lp.SparseRegularized(lp.CrossEntropy(), loss.temperature, weight=loss.weight)
        assert_close(loss(logits, label), fixed(logits, label))


def test_state_and_moves_to_another_precision_keep_the_values_exact():
    saved = scheduled()
    saved.set_epoch(13)
    file = io.BytesIO()
    torch.save(saved.state_dict(), file)
    file.seek(0)
    restored = scheduled()
    restored.load_state_dict(torch.load(file, weights_only=True))
    found = (restored.epoch, restored.weight, restored.temperature)
    assert found == (13, 1.2 * 1.03**13, 0.1)
    logits, label = batch()
    assert torch.equal(restored(logits, label), saved(logits, label))
    for move in ("half", "bfloat16", "float", "double"):
        loss = scheduled()
        loss.set_epoch(9)
        before = loss(logits, label)
        assert getattr(loss, move)() is loss
        assert loss.weight == 1.2 * 1.03**9
        assert torch.equal(loss(logits, label), before)
        loss.set_epoch(10)
        fixed = lp.SparseRegularized(lp.CrossEntropy(), loss.temperature, weight=1.2 * 1.03**10)
        assert torch.equal(loss(logits, label), fixed(logits, label))


def test_a_network_that_starts_at_zero_can_start():
    logits = torch.zeros(3, 5, requires_grad=True)
    label = torch.tensor([0, 1, 2])
    for reduction in ("mean", "none"):  # by its own gradient, and by torch's
        value = lp.SparseRegularized(lp.CrossEntropy(reduction=reduction))(logits, label).sum()
        (slope,) = torch.autograd.grad(value, logits)
        assert value.isfinite()
        assert slope.isfinite().all()
        assert (slope[label == 0, 0] < 0).all(), "towards the label"


def test_regularized_losses_can_be_built_upon():
    logits, label = batch()
    inner = lp.SparseRegularized(lp.CrossEntropy(reduction="none"), weight=2)
    both = lp.SparseRegularized(inner, temperature=1, normalize=False, weight=lp.constant(3), p=0.5)
    penalty = lp.lp_norm(torch.log_softmax(logits, dim=1), p=0.5)
    assert_close(both(logits, label), inner(logits, label) + 3 * penalty)
    assert_close(inner.per_example(logits, label), inner(logits, label))


def test_printing_shows_what_it_is():
    shown = repr(lp.SparseRegularized(lp.CrossEntropy(), p=0.25, clamp=1e-7))
    for part in ("CrossEntropy", "p=0.25", "growth=1.03", "clamp=1e-07", "vector=None"):
        assert part in shown
    assert "vector=0.2" in repr(lp.SparseRegularized(lp.CrossEntropy(), vector=0.2))


distributions = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(
    lambda row: torch.tensor(row, dtype=torch.float64) / sum(row)
)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(distributions, distributions, st.floats(0.05, 0.95))
def test_penalty_is_one_on_permutations_alone_and_for_a_one_hot_vector_the_norm(vector, output, p):
    every = torch.stack([vector[list(order)] for order in itertools.permutations(range(4))])
    penalty = permutation_penalty(every, p=p, vector=vector, cusp=0)
    # |rounding| ** p is far from 0 for a small p, so compare where it is small.
    assert_close(penalty, torch.ones(24, dtype=torch.float64), rtol=0, atol=4 * 1e-16**p)
    distance = (output.sort().values - vector.sort().values).abs().max()
    penalty = float(permutation_penalty(output[None], p=p, vector=vector, cusp=0))
    assert penalty > (1 + 1e-6 if distance > 1e-3 else 1 - 1e-12)
    norm = lp.lp_norm(output[None].log(), p=p)
    for one_hot in (torch.eye(4, dtype=torch.float64)[2], 0):
        assert_close(permutation_penalty(output[None], p=p, vector=one_hot, cusp=0), norm)


def test_rounding_off_the_cusp_moves_the_penalty_little_and_keeps_the_gradient():
    cusp, vector = 1e-3, lp.smoothing_vector(5, 0.2).double()
    exact = vector[torch.tensor([2, 0, 1, 3, 4])][None].requires_grad_()
    penalty = permutation_penalty(exact, p=0.5, vector=vector, cusp=cusp)
    assert 1 < float(penalty.detach()) < 1 + 4 * (2 * cusp) ** 0.5
    assert torch.autograd.grad(penalty, exact)[0].isfinite().all()
    near = torch.softmax(batch(20, 5)[0], dim=1)
    rounded, sharp = (
        permutation_penalty(near, p=0.5, vector=vector, cusp=width) for width in (cusp, 0)
    )
    assert (rounded >= sharp).all()
    assert_close(rounded, sharp, rtol=0, atol=5 * cusp**0.5)


def test_smoothing_vector_spreads_a_share_and_what_is_no_distribution_is_refused():
    for share, numbers in ((0.3, [0.7, 0.1, 0.1, 0.1]), (0, [1, 0, 0]), (1, [0, 1])):
        assert lp.smoothing_vector(len(numbers), share).tolist() == pytest.approx(numbers)
    plain, without = (lp.SparseRegularized(lp.CrossEntropy(), vector=each) for each in (None, 0))
    assert torch.equal(without(*batch()), plain(*batch()))
    vectors = ([0.5, 0.6], [1.5, -0.5], [[0.5, 0.5]], [nan, 0.5], [])
    for vector in (*map(torch.tensor, vectors), 1.5, -0.1, nan):
        with pytest.raises(ValueError, match="vector"):
            lp.SparseRegularized(lp.CrossEntropy(), vector=vector)
    loss = lp.SparseRegularized(lp.CrossEntropy(), vector=torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="vector: expected one number for each of 5 classes"):
        loss(*batch())
    with pytest.raises(ValueError, match="num_classes"):
        lp.smoothing_vector(1, 0.1)


CLASS_WEIGHT, VECTOR = (1.0, 2.0, 0.5, 0.25, 3.0), (0.6, 0.2, 0.1, 0.1, 0.0)


def with_tensors() -> lp.SparseRegularized:
    weight, vector = (torch.tensor(each, device="cpu") for each in (CLASS_WEIGHT, VECTOR))
    return lp.SparseRegularized(lp.CrossEntropy(weight=weight), vector=vector)


def test_memory_that_a_checkpoint_would_fill_spoils_no_values_and_precision_is_followed():
    logits, label = batch(dtype=torch.float32)
    expected = with_tensors()(logits, label)
    for through in ("cpu", "meta"):
        # What `to_empty` gives at its worst.
        loss = with_tensors().to(through)._apply(lambda each: torch.full((), nan).expand_as(each))
        assert torch.equal(loss(logits, label), expected)
        emptied = with_tensors().to(through).to_empty(device="cpu")
        assert torch.equal(emptied(logits, label), expected)
    loss = with_tensors().double()
    held = (loss.class_weight, loss.base.class_weight, loss.vector)
    assert {tensor.dtype for tensor in held if isinstance(tensor, Tensor)} == {torch.float64}
    moved = scheduled().to("meta")
    assert {tensor.device.type for tensor in (moved._weight, moved._temperature)} == {"meta"}
    filled = moved.to_empty(device="cpu")
    assert (float(filled._weight), float(filled._temperature)) == (1.2, 0.9)


def test_made_or_moved_for_inference_it_can_be_trained_with():
    for move in ("cpu", torch.float32):
        with torch.inference_mode():
            loss = lp.SparseRegularized(lp.CrossEntropy()).to(move)
        loss.set_epoch(3)
        assert float(loss._weight) == loss.weight == 1.2 * 1.03**3
        logits, label = batch()
        loss(logits.requires_grad_(), label).backward()
