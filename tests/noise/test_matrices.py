"""Transition matrices, the classes they make unlearnable, and labels drawn by them or by sample."""

import hashlib
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from labelproof.data.published import known_dataset
from labelproof.noise import (
    CONFUSIONS,
    REFERENCE_CONFUSIONS,
    SUPER_CLASSES,
    UnlearnableClassWarning,
    asymmetric_matrix,
    check_matrix,
    corrupt,
    corrupt_by_instance,
    find_rivals,
    pair_matrix,
    parse_noise,
    sampling,
    symmetric_matrix,
)
from labelproof.noise.sampling import draw_labels, exact_counts

# The digits 0 to 9 in MNIST's training set.
MNIST_SIZES = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def test_bad_arguments_are_named() -> None:
    for rows, named in (
        (np.ones((2, 3)), "square"),
        ([[1.0, 0.0], [0.5, 0.4]], "row 1"),
        ([[1.5, -0.5], [0.0, 1.0]], "smallest -0.5 .* row 0"),
        ([[np.nan, 1.0], [0.0, 1.0]], "nan .* row 0"),
        ([[np.inf, 0.0], [0.0, 1.0]], "inf .* row 0"),
    ):
        with pytest.raises(ValueError, match=named):
            check_matrix(np.array(rows))
    for named, call in (
        ("rate", lambda: symmetric_matrix(10, 1.2)),
        ("num_classes", lambda: symmetric_matrix(1, 0.2)),
        *(
            ("^confusions: expected", partial(asymmetric_matrix, 9, 0.2, confusions=wrong))
            for wrong in ({0: 9}, {3: 3}, {3: [8, 5]}, {"3": 8}, {-1: 2})
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=named):
            call()
    for labels in ([0.5, 1.0], [True, False], [[0, 1]], [0, 3], [-1, 2]):
        with pytest.raises((TypeError, ValueError), match="labels"):
            corrupt(labels, symmetric_matrix(3, 0.2), seed=0)
    for seed in (None, "1", True):
        with pytest.raises(TypeError, match="seed"):
            corrupt([0, 1], symmetric_matrix(2, 0.2), seed=seed)


def test_only_confused_classes_flip_and_the_named_ones_are_the_papers() -> None:
    matrix = asymmetric_matrix(4, 0.3, confusions={1: 2, 2: 1})
    assert np.array_equal(matrix, asymmetric_matrix(4, 0.3, confusions=[(1, 2), (2, 1)]))
    expected = [[1, 0, 0, 0], [0, 0.7, 0.3, 0], [0, 0.3, 0.7, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(matrix, expected)
    assert CONFUSIONS["mnist"] == {2: 7, 3: 8, 5: 6, 6: 5, 7: 1}
    names = known_dataset("cifar10").class_names
    written = {f"{names[true]} {names[label]}" for true, label in CONFUSIONS["cifar10"].items()}
    pairs = ("truck automobile", "bird airplane", "deer horse", "cat dog", "dog cat")
    assert written == set(pairs)
    # The code flips class after class, so that cats come back.
    matrix = parse_noise("asymmetric-reference:0.4").matrix(10, dataset="cifar10")
    cat, dog = 3, 5
    assert matrix[cat, dog] == pytest.approx(0.4 * 0.6)
    assert matrix[dog, cat] == pytest.approx(0.4)
    assert 1 - np.trace(matrix) / 10 == pytest.approx(0.184)


def test_cifar100_flips_within_its_super_classes_or_as_the_code_along_the_alphabet() -> None:
    assert [len(group) for group in SUPER_CLASSES] == [5] * 20
    assert sorted(label for group in SUPER_CLASSES for label in group) == list(range(100))
    chain = [4, 30, 55, 72, 95]  # beaver, dolphin, otter, seal, whale
    assert [CONFUSIONS["cifar100"][label] for label in chain] == [30, 55, 72, 95, 4]
    group = {label: place for place, labels in enumerate(SUPER_CLASSES) for label in labels}
    assert all(group[true] == group[written] for true, written in CONFUSIONS["cifar100"].items())
    reference = REFERENCE_CONFUSIONS["cifar100"]
    assert [reference[label] for label in (*range(6), 99)] == [1, 2, 3, 4, 0, 6, 95]
    for kind in ("asymmetric", "asymmetric-reference"):
        matrix = parse_noise(f"{kind}:0.3").matrix(100, dataset="cifar100")
        np.testing.assert_allclose(matrix.diagonal(), 0.7)
        # Each class is also the one that another is taken for.
        np.testing.assert_allclose(matrix.sum(axis=0), 1)


def test_a_draw_is_lost_by_row_and_by_column() -> None:
    for num_classes in (2, 3, 10, 100):
        tie = 1 - 1 / num_classes
        for rate in (tie, np.nextafter(tie, 0), np.nextafter(tie, 1)):
            assert len(find_rivals(symmetric_matrix(num_classes, rate))) == 2 * num_classes
        assert find_rivals(symmetric_matrix(num_classes, tie - 0.01)) == []


def test_the_warning_is_short_from_the_users_line_and_of_the_classes_that_came() -> None:
    with pytest.warns(UnlearnableClassWarning, match=r"class 0 is .* and 197 more") as found:
        corrupt(np.arange(1000) % 100, symmetric_matrix(100, 1), seed=0)
    assert found[0].filename == __file__
    with pytest.warns(UnlearnableClassWarning, match="label 1 is on about 200 samples"):
        corrupt(np.repeat([0, 1], [1000, 100]), symmetric_matrix(2, 0.2), seed=0)


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


def test_a_label_without_a_chance_is_never_drawn() -> None:
    def always(number: float) -> Mock:
        return Mock(random=lambda count: np.full(count, number))

    # As a user might bring it, rounded: the rows add up to a little less than 1.
    matrix = check_matrix(np.array([[0.1] * 10 + [0.0] * 2] * 12) * (1 - 1e-8))
    assert (draw_labels(np.arange(12), matrix, always(np.nextafter(1, 0))) == 9).all()
    assert draw_labels(np.arange(2), np.array([[0.0, 1.0]] * 2), always(0.0)).tolist() == [1, 1]


@settings(derandomize=True, deadline=None, max_examples=30)
@given(matrices(), st.integers(0, 2**32), st.integers(0, 5000))
def test_exact_counts_are_the_nearest_that_add_up(matrix, seed: int, largest: int) -> None:
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


SAMPLES = 20_000


def blobs(samples: int = SAMPLES) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features of mean 0 with unequal classes, the last of five without a sample."""
    generator = np.random.default_rng(7)
    labels = generator.choice(4, samples, p=[0.1, 0.2, 0.3, 0.4])
    return generator.normal(size=(samples, 3, 4)), labels.astype(np.int64)


def test_the_rate_is_the_one_asked_for_and_the_matrix_the_mean_of_the_chances() -> None:
    for rate, deviation in ((0.05, 0.1), (0.2, 1e-6), (0.4, 0.1), (0.3, 10.0)):
        how = {"deviation": deviation, "num_classes": 5, "seed": 1}
        result = corrupt_by_instance(*blobs(), rate, **how)
        assert abs(result.rate - rate) < 5 * np.sqrt(rate * (1 - rate) / SAMPLES)
        # The spread of 20,000 flip rates over four classes, of which the smallest has 2,000.
        stays = result.matrix.diagonal()[:4]
        np.testing.assert_allclose(stays, 1 - rate, atol=5 * min(deviation, 0.3) / np.sqrt(2000))
    result = corrupt_by_instance(*blobs(), 0.3, num_classes=5, seed=1)
    np.testing.assert_allclose(result.matrix.sum(axis=1), 1)
    assert result.matrix[4].tolist() == [0, 0, 0, 0, 1]
    bound = 5 * np.sqrt(result.matrix * (1 - result.matrix) / 2000)
    assert (np.abs(result.empirical_matrix - result.matrix)[:4] <= bound[:4]).all()


def test_a_flip_follows_the_features_and_rates_differ_by_the_deviation() -> None:
    # Two kinds of samples in one class: each kind is mistaken for one class of its own.
    features = np.repeat([[900.0, 0.0], [0.0, 900.0]], 2000, axis=0)
    labels = np.zeros(4000, dtype=np.int64)
    result = corrupt_by_instance(features, labels, 0.3, num_classes=10, seed=1)
    first, second = (
        np.unique(result.noisy[part][result.flipped[part]])
        for part in (slice(2000), slice(2000, None))
    )
    assert len(first) == len(second) == 1
    assert first != second
    assert result.rate == pytest.approx(0.3, abs=0.04)
    # With one sample in each class, the matrix has the rate of each sample.
    with pytest.warns(UnlearnableClassWarning):
        result = corrupt_by_instance(blobs(300)[0], np.arange(300), 0.5, num_classes=300, seed=1)
    assert result.matrix.diagonal().std() == pytest.approx(0.1, rel=0.1)


def test_instances_follow_the_seed_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = blobs(3000)
    first = corrupt_by_instance(features, labels, 0.3, num_classes=5, seed=1)
    other = corrupt_by_instance(features, labels, 0.3, num_classes=5, seed=2)
    monkeypatch.setattr(sampling, "_BLOCK", 1000)
    again = corrupt_by_instance(features, labels, 0.3, num_classes=5, seed=1)
    np.testing.assert_array_equal(first.noisy, again.noisy)
    np.testing.assert_allclose(first.matrix, again.matrix)
    assert (first.noisy != other.noisy).any()
    with pytest.warns(UnlearnableClassWarning) as found:
        assert corrupt_by_instance(features, labels, 1, num_classes=5, seed=1).rate == 1
    assert found[0].filename == __file__
    # The labels of a seed are what they always were.
    features = np.arange(24).reshape(12, 2) % 5 - 2
    noisy = corrupt_by_instance(features, np.arange(12) % 3, 0.4, num_classes=3, seed=3).noisy
    assert noisy.tolist() == [0, 1, 2, 2, 1, 2, 1, 0, 0, 1, 1, 1]


def test_bad_arguments_of_instances_are_named() -> None:
    whole = {"features": np.zeros((6, 2)), "labels": np.arange(6) % 3, "rate": 0.2}
    whole |= {"num_classes": 3, "seed": 0}
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("rate", {"rate": 1.5}),
        ("deviation", {"deviation": -0.1}),
        ("labels", {"num_classes": 2}),
        ("seed", {"seed": -1}),
        *(("features", {"features": each}) for each in (np.zeros((5, 2)), np.zeros(6))),
        ("features", {"features": np.full((6, 2), np.nan)}),
    ]
    for name, changes in wrong:
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            corrupt_by_instance(**(whole | changes))
