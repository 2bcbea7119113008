"""Labels drawn by a matrix: at its rates, the same for a seed, or in exact counts."""

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from labelproof.noise import (
    UnlearnableClassWarning,
    asymmetric_matrix,
    check_matrix,
    corrupt,
    pair_matrix,
    symmetric_matrix,
)
from labelproof.noise.sampling import cumulative_chances, draw_labels, exact_counts

# The digits 0 to 9 in MNIST's training set.
MNIST_SIZES = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
steady = settings(derandomize=True, deadline=None, max_examples=30)


@st.composite
def matrices(draw: st.DrawFn) -> NDArray[np.float64]:
    """Any row-stochastic matrix: many classes, rows with zeros, chances of very different size."""
    num_classes = draw(st.integers(2, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = generator.random((num_classes, num_classes)) ** draw(st.sampled_from([1, 20, 200]))
    weights[generator.random(weights.shape) < draw(st.sampled_from([0, 0.5, 0.95]))] = 0
    np.fill_diagonal(weights, weights.diagonal() + 1e-3)
    return weights / weights.sum(axis=1, keepdims=True)


def test_rates_come_out_within_binomial_bounds() -> None:
    labels = np.repeat(np.arange(10), 20_000)
    for matrix in (
        symmetric_matrix(10, 0.4),
        symmetric_matrix(10, 0.8),
        pair_matrix(10, 0.45),
        asymmetric_matrix(10, 0.4, confusions={2: 7, 3: 8, 5: 6, 6: 5, 7: 1}),
    ):
        result = corrupt(labels, matrix, seed=3)
        # Five standard deviations of a share of 20,000 draws.
        bound = 5 * np.sqrt(matrix * (1 - matrix) / 20_000)
        assert (np.abs(result.empirical_matrix - matrix) <= bound).all()
        rate = 1 - matrix.diagonal().mean()
        assert abs(result.rate - rate) < 5 * np.sqrt(rate * (1 - rate) / 200_000)
    assert corrupt(labels, symmetric_matrix(10, 0), seed=1).rate == 0
    with pytest.warns(UnlearnableClassWarning):
        assert corrupt(labels, symmetric_matrix(10, 1), seed=1).rate == 1


def test_the_result_agrees_with_itself() -> None:
    result = corrupt(np.arange(900) % 3, pair_matrix(3, 0.3), seed=1)
    np.testing.assert_array_equal(result.flipped, result.clean != result.noisy)
    assert result.rate == result.flipped.mean()
    assert result.counts.sum() == 900
    assert result.counts[0, 1] == ((result.clean == 0) & (result.noisy == 1)).sum()
    np.testing.assert_allclose(result.empirical_matrix, result.counts / 300)


def test_a_seed_means_the_labels_it_always_meant() -> None:
    for matrix, exact, pinned in (
        (symmetric_matrix(3, 0.5), False, [1, 1, 0, 0, 2, 2, 1, 1, 2, 2, 2, 0]),
        (symmetric_matrix(3, 0.5), True, [2, 1, 0, 1, 0, 2, 0, 2, 2, 0, 1, 1]),
        (pair_matrix(3, 0.25), False, [0, 1, 0, 0, 2, 2, 0, 1, 2, 1, 2, 0]),
        (pair_matrix(3, 0.25), True, [1, 1, 0, 0, 1, 2, 0, 2, 2, 0, 1, 2]),
    ):
        noisy = corrupt(np.arange(12) % 3, matrix, seed=0, exact=exact).noisy
        assert noisy.tolist() == pinned
    labels = np.arange(50_000) % 100
    for exact, digest in ((False, "522ab9a2ed6786b3"), (True, "1b55864e27c79147")):
        noisy, other = (
            corrupt(labels, symmetric_matrix(100, 0.6), seed=seed, exact=exact).noisy
            for seed in (1, 2)
        )
        assert hashlib.sha256(noisy.astype("<i8").tobytes()).hexdigest()[:16] == digest
        assert (noisy != other).any()


@steady
@given(matrices(), st.integers(0, 2**32))
def test_every_label_is_drawn_by_its_own_number(matrix: NDArray[np.float64], seed: int) -> None:
    clean = np.random.default_rng(seed + 1).integers(0, len(matrix), 500)
    noisy = draw_labels(clean, matrix, np.random.default_rng(seed))
    rows, uniform = cumulative_chances(matrix), np.random.default_rng(seed).random(500)
    expected = [
        int(np.searchsorted(rows[label], number, side="right"))
        for label, number in zip(clean, uniform, strict=True)
    ]
    np.testing.assert_array_equal(noisy, expected)


class Scripted:
    """A generator whose uniform numbers are written down."""

    def __init__(self, number: float):
        self.number = number

    def random(self, count: int) -> NDArray[np.float64]:
        return np.full(count, self.number)


def test_a_label_without_a_chance_is_never_drawn() -> None:
    # As a user might bring it, rounded: the rows add up to a little less than 1.
    matrix = check_matrix(np.array([[0.1] * 10 + [0.0] * 2] * 12) * (1 - 1e-8))
    last: Any = Scripted(np.nextafter(1, 0))
    assert (draw_labels(np.arange(12), matrix, last) == 9).all()
    first: Any = Scripted(0.0)
    assert draw_labels(np.arange(2), np.array([[0.0, 1.0]] * 2), first).tolist() == [1, 1]


@steady
@given(matrices(), st.integers(0, 2**32), st.integers(0, 5000))
def test_exact_counts_are_the_nearest_that_add_up(
    matrix: NDArray[np.float64], seed: int, largest: int
) -> None:
    generator = np.random.default_rng(seed)
    sizes = generator.integers(0, largest + 1, len(matrix))
    counts = exact_counts(sizes, matrix, generator)
    np.testing.assert_array_equal(counts.sum(axis=1), sizes)
    assert (np.abs(counts - sizes[:, None] * matrix) < 1 + 1e-5).all()
    assert (counts[matrix == 0] == 0).all()


def test_exact_counts_hold_the_rate_in_classes_of_any_size_and_prefer_none() -> None:
    clean, sizes = np.repeat(np.arange(10), MNIST_SIZES), np.array(MNIST_SIZES)
    result = corrupt(clean, symmetric_matrix(10, 0.8), seed=1, exact=True)
    np.testing.assert_array_equal(result.counts.sum(axis=1), sizes)
    np.testing.assert_array_equal(result.counts.diagonal(), np.round(0.2 * sizes))
    assert result.rate == pytest.approx(0.8, abs=1e-4)
    # Three of 500 labels of each of 100 classes are left over: 300, for any of 99 to get.
    counts = exact_counts(np.full(100, 500), symmetric_matrix(100, 0.6), np.random.default_rng(0))
    assert (counts.diagonal() == 200).all()
    assert (counts[~np.eye(100, dtype=bool)] >= 3).all()
    extra = (counts - 3 * (1 - np.eye(100)) - 200 * np.eye(100)).sum(axis=0)
    assert extra.sum() == 300
    assert extra.max() <= 12


def test_bad_labels_and_seeds_are_refused() -> None:
    labels: list[Any] = [[0.5, 1.0], [True, False], [[0, 1]], [0, 3], [-1, 2]]
    for given_labels in labels:
        with pytest.raises((TypeError, ValueError), match="labels"):
            corrupt(given_labels, symmetric_matrix(3, 0.2), seed=0)
    seeds: list[Any] = [None, 1.0, "1", True]
    for seed in seeds:
        with pytest.raises(TypeError, match="seed"):
            corrupt([0, 1], symmetric_matrix(2, 0.2), seed=seed)
