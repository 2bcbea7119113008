import numpy as np
import pytest

from labelproof.noise import corrupt, pair_matrix, symmetric_matrix


def test_rates_come_out_within_binomial_bounds() -> None:
    labels = np.repeat(np.arange(10), 20_000)
    result = corrupt(labels, symmetric_matrix(10, 0.4), seed=3)
    # Five standard deviations of a share of 20,000 draws.
    bound = 5 * np.sqrt(result.matrix * (1 - result.matrix) / 20_000)
    assert (np.abs(result.empirical_matrix - result.matrix) <= bound).all()
    assert abs(result.rate - 0.4) < 5 * np.sqrt(0.24 / 200_000)
    np.testing.assert_array_equal(result.flipped, result.clean != result.noisy)


def test_the_same_seed_gives_the_same_labels() -> None:
    labels = np.arange(1000) % 7
    first, again = (corrupt(labels, pair_matrix(7, 0.3), seed=5).noisy for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first != corrupt(labels, pair_matrix(7, 0.3), seed=6).noisy).any()


def test_the_drawn_labels_are_pinned() -> None:
    labels = np.arange(12) % 3
    noisy = corrupt(labels, symmetric_matrix(3, 0.5), seed=0).noisy
    np.testing.assert_array_equal(noisy, PINNED)


PINNED = [1, 1, 0, 0, 2, 2, 1, 1, 2, 2, 2, 0]


def test_rate_zero_changes_nothing_and_rate_one_everything() -> None:
    labels = np.arange(500) % 5
    assert corrupt(labels, symmetric_matrix(5, 0), seed=1).rate == 0
    assert corrupt(labels, symmetric_matrix(5, 1), seed=1).rate == 1


def test_a_class_without_labels_has_an_empty_row() -> None:
    result = corrupt(np.zeros(10, dtype=np.int64), symmetric_matrix(3, 0.5), seed=1)
    assert result.empirical_matrix[1].sum() == 0


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0.5, 1.0], TypeError, "one integer per sample"),
        ([[0, 1]], TypeError, "one integer per sample"),
        ([0, 3], ValueError, "expected 0 to 2, got 3"),
        ([-1, 2], ValueError, "expected 0 to 2, got -1"),
    ],
)
def test_bad_labels_are_refused(labels: list, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        corrupt(labels, symmetric_matrix(3, 0.2), seed=0)
