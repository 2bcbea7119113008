from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from labelproof.noise import check_matrix, symmetric_matrix
from labelproof.noise.sampling import cumulative_chances, draw_labels, exact_counts


class Scripted:
    """A generator whose uniform numbers are written down."""

    def __init__(self, numbers: NDArray[np.float64]):
        self.numbers = numbers

    def random(self, count: int) -> NDArray[np.float64]:
        assert count == len(self.numbers)
        return self.numbers


def searched(
    clean: NDArray[np.int64], matrix: NDArray[np.float64], uniform: NDArray[np.float64]
) -> list[int]:
    """The draw as it is defined, label by label."""
    rows = cumulative_chances(matrix)
    return [
        int(np.searchsorted(rows[label], number, side="right"))
        for label, number in zip(clean, uniform, strict=True)
    ]


@st.composite
def matrices(draw: st.DrawFn) -> NDArray[np.float64]:
    """Any row-stochastic matrix: many classes, rows with zeros, chances of very different size."""
    num_classes = draw(st.integers(2, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = generator.random((num_classes, num_classes)) ** draw(st.sampled_from([1, 20, 200]))
    weights[generator.random(weights.shape) < draw(st.sampled_from([0, 0.5, 0.95]))] = 0
    np.fill_diagonal(weights, weights.diagonal() + 1e-3)
    return weights / weights.sum(axis=1, keepdims=True)


@settings(derandomize=True, deadline=None)
@given(matrices(), st.integers(0, 2**32))
def test_every_label_is_drawn_by_its_own_number(matrix: NDArray[np.float64], seed: int) -> None:
    clean = np.random.default_rng(seed + 1).integers(0, len(matrix), 500)
    noisy = draw_labels(clean, matrix, np.random.default_rng(seed))
    uniform = np.random.default_rng(seed).random(500)
    np.testing.assert_array_equal(noisy, searched(clean, matrix, uniform))


def test_a_label_without_a_chance_is_never_drawn() -> None:
    # As a user might bring it, rounded: the rows add up to a little less than 1.
    matrix = check_matrix(np.array([[0.1] * 10 + [0.0] * 2] * 12) * (1 - 1e-8))
    generator: Any = Scripted(np.full(12, np.nextafter(1, 0)))
    noisy = draw_labels(np.arange(12), matrix, generator)
    assert (noisy == 9).all()
    generator = Scripted(np.zeros(2))
    assert draw_labels(np.arange(2), np.array([[0.0, 1.0]] * 2), generator).tolist() == [1, 1]


@settings(derandomize=True, deadline=None)
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


def test_what_cannot_be_divided_goes_to_no_class_by_preference() -> None:
    # Three of 500 labels of each of 100 classes are left over: 300, for any of 99 to get.
    counts = exact_counts(np.full(100, 500), symmetric_matrix(100, 0.6), np.random.default_rng(0))
    assert (counts.diagonal() == 200).all()
    assert (counts[~np.eye(100, dtype=bool)] >= 3).all()
    extra = (counts - 3 * (1 - np.eye(100)) - 200 * np.eye(100)).sum(axis=0)
    assert extra.sum() == 300
    assert extra.max() <= 12
