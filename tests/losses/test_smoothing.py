"""Outputs drawn to permutations of a vector that is not one-hot."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.catalogue import batch
from torch import Tensor
from torch.testing import assert_close

from labelproof import CrossEntropy, SparseRegularized, lp_norm, smoothing_vector
from labelproof.losses import permutation_penalty

steady = settings(deadline=None, derandomize=True, max_examples=50)


def on_the_simplex(row: list[float]) -> Tensor:
    vector = torch.tensor(row, dtype=torch.float64)
    return vector / vector.sum()


distributions = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(on_the_simplex)
exponents = st.floats(0.05, 0.95)


@steady
@given(vector=distributions, p=exponents)
def test_penalty_is_one_on_every_permutation(vector: Tensor, p: float):
    every = torch.stack([vector[list(order)] for order in itertools.permutations(range(4))])
    penalty = permutation_penalty(every, p=p, vector=vector, cusp=0)
    # |rounding| ** p is far from 0 for a small p, so compare where it is small.
    assert_close(penalty, torch.ones(24, dtype=torch.float64), rtol=0, atol=4 * 1e-16**p)


@steady
@given(vector=distributions, output=distributions, p=exponents)
def test_penalty_is_above_one_elsewhere(vector: Tensor, output: Tensor, p: float):
    distance = (output.sort().values - vector.sort().values).abs().max()
    penalty = float(permutation_penalty(output[None], p=p, vector=vector, cusp=0))
    assert penalty >= 1 - 1e-12
    if distance > 1e-3:
        assert penalty > 1 + 1e-6


@steady
@given(output=distributions, p=exponents)
def test_penalty_for_a_one_hot_vector_is_the_norm(output: Tensor, p: float):
    one_hot = torch.tensor([0.0, 0.0, 1.0, 0.0], dtype=torch.float64)
    norm = lp_norm(output[None].log(), p=p)
    assert_close(permutation_penalty(output[None], p=p, vector=one_hot, cusp=0), norm)
    assert_close(permutation_penalty(output[None], p=p, vector=0, cusp=0), norm)


@pytest.mark.parametrize("cusp", [1e-3])
def test_rounding_off_the_cusp_moves_the_penalty_little_and_keeps_the_gradient(cusp: float):
    vector = smoothing_vector(5, 0.2).double()
    exact = vector[torch.tensor([2, 0, 1, 3, 4])][None].requires_grad_()
    penalty = permutation_penalty(exact, p=0.5, vector=vector, cusp=cusp)
    assert 1 < float(penalty.detach()) < 1 + 4 * (2 * cusp) ** 0.5
    (slope,) = torch.autograd.grad(penalty, exact)
    assert slope.isfinite().all()
    near = torch.softmax(batch(20, 5)[0], dim=1)
    rounded, sharp = (
        permutation_penalty(near, p=0.5, vector=vector, cusp=width) for width in (cusp, 0)
    )
    assert (rounded >= sharp).all()
    assert_close(rounded, sharp, rtol=0, atol=5 * cusp**0.5)


def test_smoothing_vector_spreads_a_share():
    vector = smoothing_vector(4, 0.3)
    assert vector.tolist() == pytest.approx([0.7, 0.1, 0.1, 0.1])
    assert smoothing_vector(3, 0).tolist() == [1, 0, 0]
    assert smoothing_vector(2, 1).tolist() == [0, 1]


def test_no_share_is_the_plain_norm():
    logits, label = batch()
    plain = SparseRegularized(CrossEntropy())
    assert torch.equal(
        SparseRegularized(CrossEntropy(), vector=0)(logits, label), plain(logits, label)
    )


def test_what_is_no_distribution_is_refused():
    nan = float("nan")
    for vector in ([0.5, 0.6], [1.5, -0.5], [[0.5, 0.5]], [nan, 0.5], []):
        with pytest.raises(ValueError, match="vector"):
            SparseRegularized(CrossEntropy(), vector=torch.tensor(vector))
    for share in (1.5, -0.1, nan):
        with pytest.raises(ValueError, match="vector"):
            SparseRegularized(CrossEntropy(), vector=share)


def test_a_vector_of_another_length_is_refused():
    logits, label = batch()
    loss = SparseRegularized(CrossEntropy(), vector=torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="vector: expected one number for each of 5 classes"):
        loss(logits, label)
    with pytest.raises(ValueError, match="num_classes"):
        smoothing_vector(1, 0.1)
    with pytest.raises(ValueError, match="smoothing"):
        smoothing_vector(3, 1.1)
