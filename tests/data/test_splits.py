from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from labelproof.data.splits import folds, hold_out

sizes = st.lists(st.integers(0, 30), min_size=1, max_size=12).filter(lambda found: sum(found) > 1)
seeds = st.integers(0, 2**32)


def labels_of(found: list[int], seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(found)), found))


@settings(derandomize=True, deadline=None)
@given(sizes, st.floats(0.01, 0.99), seeds)
def test_each_class_gives_its_share_and_keeps_one(
    found: list[int], share: float, seed: int
) -> None:
    labels = labels_of(found, seed)
    train, validation = hold_out(labels, share, seed=seed)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([train, validation])), np.arange(len(labels))
    )
    held = np.bincount(labels[validation], minlength=len(found))
    most = np.maximum(np.array(found) - 1, 0)
    assert (held <= most).all()
    assert (np.abs(held - np.minimum(share * np.array(found), most)) < 1 + 1e-6).all()
    wanted = round(share * len(labels))
    if len(validation) != wanted:
        assert len(validation) < wanted
        assert (held == most).any()


@settings(derandomize=True, deadline=None)
@given(sizes, st.integers(2, 7), seeds)
def test_folds_hold_every_sample_out_once_and_are_alike(
    found: list[int], count: int, seed: int
) -> None:
    labels = labels_of(found, seed)
    count = min(count, len(labels))
    cut = folds(labels, count, seed=seed)
    assert len(cut) == count
    together = np.concatenate([fold.validation for fold in cut])
    np.testing.assert_array_equal(np.sort(together), np.arange(len(labels)))
    assert np.ptp([len(fold.validation) for fold in cut]) <= 1
    classes = [np.bincount(labels[fold.validation], minlength=len(found)) for fold in cut]
    assert np.ptp(classes, axis=0).max() <= 1
    for train, validation in cut:
        np.testing.assert_array_equal(
            np.sort(np.concatenate([train, validation])), np.arange(len(labels))
        )


def test_indices_in_indices_out_and_a_single_sample_stays_to_be_learned_from() -> None:
    labels = np.arange(100) % 4
    kept = np.arange(20, 60)
    train, validation = hold_out(labels, 0.25, seed=1, indices=kept)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, validation])), kept)
    # A quarter of ten is 2.5, so two classes give one more than the other two.
    assert sorted(np.bincount(labels[validation])) == [2, 2, 3, 3]
    backwards = hold_out(labels, 0.25, seed=1, indices=kept[::-1])
    np.testing.assert_array_equal(backwards.validation, validation)
    for fold in folds(labels, 4, seed=1, indices=kept):
        assert set(fold.train) | set(fold.validation) == set(kept)
        assert len(fold.validation) == 10
    labels = np.array([0] * 10 + [1] + [2] * 10)
    for seed in range(20):
        train, validation = hold_out(labels, 0.5, seed=seed)
        assert 10 in train
        assert len(validation) == 10


def test_the_seed_decides_and_the_choice_is_pinned() -> None:
    labels = np.arange(16) % 2
    assert hold_out(labels, 0.25, seed=0).validation.tolist() == [2, 3, 8, 11]
    assert [fold.validation.tolist() for fold in folds(labels, 4, seed=0)] == [
        [1, 2, 11, 14],
        [3, 4, 7, 8],
        [5, 6, 10, 13],
        [0, 9, 12, 15],
    ]
    first, again, other = (hold_out(labels, 0.5, seed=seed).train for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)
    generator = np.random.Generator(np.random.PCG64(1))
    np.testing.assert_array_equal(hold_out(labels, 0.5, seed=generator).train, first)
    assert set(hold_out(labels, 0.5, seed=generator).train) != set(first)


def test_bad_arguments_are_named() -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"labels": [0.5, 1]}, TypeError, "labels: expected one integer per sample, got float64"),
        ({"labels": [[0], [1]]}, TypeError, r"labels: expected one integer .* shape \(2, 1\)"),
        ({"labels": [0, -1]}, ValueError, "labels: expected class indices of at least 0, got -1"),
        ({"indices": [0, 4]}, ValueError, r"indices: expected 0 to 3, .* got \[0, 4\]"),
        ({"indices": [0, -1]}, ValueError, r"indices: expected 0 to 3, .* got \[0, -1\]"),
        ({"indices": [1, 1]}, ValueError, r"indices: .* each once at most, got \[1, 1\]"),
        ({"indices": [0.5]}, TypeError, "indices: expected one integer"),
        ({"seed": -1}, ValueError, "seed: expected a whole number of at least 0"),
        ({"seed": None}, TypeError, "seed: expected a whole number of at least 0"),
        ({"seed": True}, TypeError, "seed: expected a whole number of at least 0"),
    ]
    for arguments, error, message in cases:
        given: Any = {"labels": [0, 1, 0, 1], "seed": 0} | arguments
        with pytest.raises(error, match=message):
            hold_out(share=0.5, **given)
        with pytest.raises(error, match=message):
            folds(count=2, **given)
    for share in (0, 1, -0.1, 1.5):
        with pytest.raises(ValueError, match="share: expected a number between 0 and 1, got"):
            hold_out([0, 1], share, seed=0)
    for count in (1, 5):
        with pytest.raises(ValueError, match=f"count: expected 2 to 4 folds, got {count}"):
            folds([0, 1, 0, 1], count, seed=0)
    for count in (2.0, True):
        with pytest.raises(TypeError, match="count: expected a whole number"):
            folds([0, 1, 0, 1], count, seed=0)  # pyright: ignore[reportArgumentType]
