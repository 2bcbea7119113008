from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labelproof.noise import UnlearnableClassWarning, corrupt_by_instance
from labelproof.noise import sampling as module

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


def test_a_flip_follows_the_features() -> None:
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


def test_samples_differ_in_their_flip_rates_by_the_deviation() -> None:
    # With one sample in each class, the matrix has the rate of each sample.
    labels = np.arange(300)
    with pytest.warns(UnlearnableClassWarning):
        result = corrupt_by_instance(blobs(300)[0], labels, 0.5, num_classes=300, seed=1)
    assert result.matrix.diagonal().std() == pytest.approx(0.1, rel=0.1)


def test_the_seed_decides_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = blobs(3000)
    first = corrupt_by_instance(features, labels, 0.3, num_classes=5, seed=1)
    other = corrupt_by_instance(features, labels, 0.3, num_classes=5, seed=2)
    monkeypatch.setattr(module, "_BLOCK", 1000)
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


def test_bad_arguments_are_named() -> None:
    whole = {"features": np.zeros((6, 2)), "labels": np.arange(6) % 3, "rate": 0.2}
    whole |= {"num_classes": 3, "seed": 0}
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("rate", {"rate": 1.5}),
        ("deviation", {"deviation": -0.1}),
        ("num_classes", {"num_classes": 1}),
        ("labels", {"num_classes": 2}),
        ("seed", {"seed": -1}),
        *(("features", {"features": each}) for each in (np.zeros((5, 2)), np.zeros(6))),
        ("features", {"features": np.full((6, 2), np.nan)}),
    ]
    for name, changes in wrong:
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            corrupt_by_instance(**(whole | changes))
