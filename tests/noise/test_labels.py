import hashlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labelproof.noise import (
    UnlearnableClassWarning,
    asymmetric_matrix,
    corrupt,
    pair_matrix,
    symmetric_matrix,
)

# The digits 0 to 9 in MNIST's training set.
MNIST_SIZES = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@pytest.mark.parametrize(
    "matrix",
    [
        symmetric_matrix(10, 0.4),
        symmetric_matrix(10, 0.8),
        pair_matrix(10, 0.45),
        asymmetric_matrix(10, 0.4, confusions={2: 7, 3: 8, 5: 6, 6: 5, 7: 1}),
    ],
)
def test_rates_come_out_within_binomial_bounds(matrix: NDArray[np.float64]) -> None:
    labels = np.repeat(np.arange(10), 20_000)
    result = corrupt(labels, matrix, seed=3)
    # Five standard deviations of a share of 20,000 draws.
    bound = 5 * np.sqrt(matrix * (1 - matrix) / 20_000)
    assert (np.abs(result.empirical_matrix - matrix) <= bound).all()
    rate = 1 - matrix.diagonal().mean()
    assert abs(result.rate - rate) < 5 * np.sqrt(rate * (1 - rate) / 200_000)


def test_the_result_agrees_with_itself() -> None:
    result = corrupt(np.arange(900) % 3, pair_matrix(3, 0.3), seed=1)
    np.testing.assert_array_equal(result.flipped, result.clean != result.noisy)
    assert result.rate == result.flipped.mean()
    assert result.counts.sum() == 900
    assert result.counts[0, 1] == ((result.clean == 0) & (result.noisy == 1)).sum()
    np.testing.assert_allclose(result.empirical_matrix, result.counts / 300)


def test_the_same_seed_gives_the_same_labels() -> None:
    labels = np.arange(1000) % 7
    for exact in (False, True):
        first, again, other = (
            corrupt(labels, pair_matrix(7, 0.3), seed=seed, exact=exact).noisy for seed in (5, 5, 6)
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


@pytest.mark.parametrize(
    ("matrix", "exact", "pinned"),
    [
        (symmetric_matrix(3, 0.5), False, [1, 1, 0, 0, 2, 2, 1, 1, 2, 2, 2, 0]),
        (symmetric_matrix(3, 0.5), True, [2, 1, 0, 1, 0, 2, 0, 2, 2, 0, 1, 1]),
        (pair_matrix(3, 0.25), False, [0, 1, 0, 0, 2, 2, 0, 1, 2, 1, 2, 0]),
        (pair_matrix(3, 0.25), True, [1, 1, 0, 0, 1, 2, 0, 2, 2, 0, 1, 2]),
    ],
)
def test_the_drawn_labels_are_pinned(
    matrix: NDArray[np.float64], exact: bool, pinned: list[int]
) -> None:
    noisy = corrupt(np.arange(12) % 3, matrix, seed=0, exact=exact).noisy
    assert noisy.tolist() == pinned


@pytest.mark.parametrize(
    ("exact", "pinned"),
    [(False, "522ab9a2ed6786b3"), (True, "1b55864e27c79147")],
)
def test_a_whole_training_set_is_pinned(exact: bool, pinned: str) -> None:
    noisy = corrupt(np.arange(50_000) % 100, symmetric_matrix(100, 0.6), seed=1, exact=exact).noisy
    assert hashlib.sha256(noisy.astype("<i8").tobytes()).hexdigest()[:16] == pinned


def test_rate_zero_changes_nothing_and_rate_one_everything() -> None:
    labels = np.arange(500) % 5
    assert corrupt(labels, symmetric_matrix(5, 0), seed=1).rate == 0
    with pytest.warns(UnlearnableClassWarning):
        assert corrupt(labels, symmetric_matrix(5, 1), seed=1).rate == 1


def test_exact_counts_hold_the_rate_in_classes_of_any_size() -> None:
    clean = np.repeat(np.arange(10), MNIST_SIZES)
    result = corrupt(clean, symmetric_matrix(10, 0.8), seed=1, exact=True)
    sizes = np.array(MNIST_SIZES)
    np.testing.assert_array_equal(result.counts.sum(axis=1), sizes)
    np.testing.assert_array_equal(result.counts.diagonal(), np.round(0.2 * sizes))
    assert result.rate == pytest.approx(0.8, abs=1e-4)
    # Nothing beats a digit, neither on its images nor under its label.
    others = result.counts - np.diag(result.counts.diagonal())
    assert (result.counts.diagonal() > 1.5 * others.max(axis=0)).all()
    assert (result.counts.diagonal() > 1.5 * others.max(axis=1)).all()


def test_bad_labels_and_seeds_are_refused() -> None:
    labels: list[Any] = [[0.5, 1.0], [True, False], [[0, 1]], [0, 3], [-1, 2]]
    for given in labels:
        with pytest.raises((TypeError, ValueError), match="labels"):
            corrupt(given, symmetric_matrix(3, 0.2), seed=0)
    seeds: list[Any] = [None, 1.0, "1", True]
    for seed in seeds:
        with pytest.raises(TypeError, match="seed"):
            corrupt([0, 1], symmetric_matrix(2, 0.2), seed=seed)
