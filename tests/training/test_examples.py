from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_runs import small, small_digits

from labelproof.data import load_digits
from labelproof.noise import parse_noise
from labelproof.training import choose_examples


def test_without_noise_or_imbalance_everything_is_as_it_came() -> None:
    dataset = small_digits()
    examples = choose_examples(small(noise="none"), dataset)
    np.testing.assert_array_equal(examples.used, np.arange(200))
    np.testing.assert_array_equal(examples.given, dataset.train.labels)
    assert examples.given is not dataset.train.labels
    assert examples.clean is dataset.train.labels
    assert examples.noise_rate == 0


@pytest.mark.filterwarnings("ignore::labelproof.noise.UnlearnableClassWarning")
@pytest.mark.parametrize("noise", ["symmetric:0.4", "pair:0.3:exact", "instance:0.3"])
@pytest.mark.parametrize("imbalance", ["none", "long-tailed:0.1", "step:0.2"])
def test_noise_is_put_on_the_examples_that_are_used(noise: str, imbalance: str) -> None:
    dataset = load_digits()
    examples = choose_examples(small(noise=noise, imbalance=imbalance), dataset)
    labels, used = dataset.train.labels, examples.used
    assert (np.diff(used) > 0).all()
    assert (len(used) < len(labels)) == (imbalance != "none")
    unused = np.setdiff1d(np.arange(len(labels)), used)
    np.testing.assert_array_equal(examples.given[unused], labels[unused])
    wrong = np.mean(examples.given[used] != labels[used])
    assert examples.noise_rate == pytest.approx(wrong)
    rate = float(noise.split(":")[1])
    # Five standard deviations.
    assert abs(wrong - rate) < 5 * np.sqrt(rate * (1 - rate) / len(used))
    np.testing.assert_array_equal(examples.clean, labels)


def test_the_noise_is_the_specs_own() -> None:
    dataset = small_digits()
    configuration = small(noise="symmetric:0.4", seed=7)
    expected = parse_noise("symmetric:0.4").apply(dataset.train.labels, num_classes=10, seed=7)
    np.testing.assert_array_equal(choose_examples(configuration, dataset).given, expected.noisy)


def test_the_seed_decides_which_labels_and_which_examples() -> None:
    first, again, other = (
        choose_examples(small(imbalance="step:0.3", seed=seed), small_digits())
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.used, again.used)
    np.testing.assert_array_equal(first.given, again.given)
    assert first.used.tolist() != other.used.tolist()


def test_labels_that_no_one_vouches_for_are_not_called_clean() -> None:
    examples = choose_examples(small(), replace(small_digits(), clean=False))
    assert examples.clean is None
    assert examples.noise_rate > 0.2


def test_the_dataset_is_left_as_it_was() -> None:
    dataset = small_digits()
    before = dataset.train.labels.copy()
    choose_examples(small(noise="symmetric:0.6:exact"), dataset).given[:] = 0
    np.testing.assert_array_equal(dataset.train.labels, before)


def test_human_labels_come_from_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from labelproof.noise.text import NoiseSpec

    dataset = small_digits()
    asked = {}

    class Noisy:
        noisy = (dataset.train.labels + 1) % 10

    def apply(self: NoiseSpec, labels: np.ndarray, **options: object) -> type[Noisy]:
        asked.update(options, count=len(labels))
        return Noisy

    monkeypatch.setattr(NoiseSpec, "apply", apply)
    examples = choose_examples(
        small(noise="human:worse", imbalance="step:0.5"), dataset, human="labels.npy"
    )
    assert asked["human"] == "labels.npy"
    assert asked["count"] == 200
    np.testing.assert_array_equal(examples.given, Noisy.noisy)
    assert examples.noise_rate == 1
