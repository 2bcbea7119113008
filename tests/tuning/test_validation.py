"""The search gets the given labels, and nothing that is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_runs import small, small_digits

from labelproof.data import Split, load_digits
from labelproof.training import choose_examples
from labelproof.tuning.validation import choose_validation


@pytest.mark.parametrize("noise", ["none", "symmetric:0.4", "pair:0.2"])
def test_all_labels_are_the_given_ones(noise: str) -> None:
    digits, configuration = small_digits(), small(noise=noise)
    validation = choose_validation(digits, configuration)
    given = choose_examples(configuration, digits).given
    for fold in range(3):
        examples = validation.examples(fold)
        assert examples.clean is None
        assert list(examples.dataset.splits) == ["train"]
        assert not examples.dataset.clean
        np.testing.assert_array_equal(examples.dataset.train.labels, given)
        np.testing.assert_array_equal(examples.given, given)


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_every_example_is_validated_on_once(parts: int) -> None:
    validation = choose_validation(small_digits(), small(), parts=parts)
    held = np.concatenate([validation.examples(fold).held for fold in range(parts)])
    np.testing.assert_array_equal(np.sort(held), np.arange(200))
    for fold in range(parts):
        examples = validation.examples(fold)
        assert not set(examples.held) & set(examples.used)
        assert len(examples.held) + len(examples.used) == 200


@pytest.mark.parametrize(("count", "held"), [(10_000, 2000), (60_000, 10_000), (200_000, 20_000)])
def test_a_large_set_holds_out_one_part(count: int, held: int) -> None:
    digits = load_digits()
    images = np.broadcast_to(digits.train.array[:1], (count, 1, 8, 8))
    labels = np.arange(count) % 10
    large = replace(digits, splits={"train": Split(images, labels)})
    assert choose_validation(large, small(noise="none")).rows == [held]


def test_other_noise_is_another_search() -> None:
    prints = [
        choose_validation(small_digits(), small(noise=noise, seed=seed)).fingerprint()
        for noise, seed in (("symmetric:0.4", 1), ("symmetric:0.4", 2), ("none", 1))
    ]
    assert len({str(each) for each in prints}) == 3


@pytest.mark.parametrize(("parts", "error"), [(0, "folds"), ("three", "folds"), (1000, "count")])
def test_what_cannot_be_meant_is_refused(parts: int | str, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{error}: expected"):
        choose_validation(small_digits(), small(), parts=parts)
