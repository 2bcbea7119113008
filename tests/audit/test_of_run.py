from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from small_runs import CPU, load_small, small, small_digits

from labelproof.audit import audit_logits
from labelproof.audit.cross_validation import Predictions
from labelproof.audit.labels import conclude
from labelproof.audit.predictions import predict_trained
from labelproof.data.dataset import Dataset, Split
from labelproof.training import Job, choose_examples
from labelproof.training.runner import train_runs
from labelproof.training.trained_network import TrainedNetwork, load_network

CONFIGURATION = small(loss="gce(q=0.7)", epochs=15, batch_size=16, validation=0.2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TrainedNetwork:
    folder = tmp_path_factory.mktemp("of_run") / "run"
    for _ in train_runs([Job(CONFIGURATION, folder)], CPU, load=load_small):
        pass
    return load_network(folder)


def test_all_samples_are_looked_at_those_held_out_among_them(run: TrainedNetwork) -> None:
    found = predict_trained(run, small_digits())
    assert np.array_equal(found.index, np.arange(200))
    expected = run.probabilities(small_digits().train.array).numpy()
    shares = np.exp(found.logits - found.logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(shares / shares.sum(axis=1, keepdims=True), expected, atol=1e-5)
    with np.load(run.folder / "predictions.npz") as arrays:
        held = found.logits[arrays["held"]]
        # A run keeps its own in half precision.
        np.testing.assert_allclose(held, arrays["held_logits"], rtol=1e-3, atol=1e-3)


def test_what_the_run_left_out_is_left_out(run: TrainedNetwork) -> None:
    uneven = replace(run, configuration=replace(CONFIGURATION, noise="none", imbalance="step:0.1"))
    found = predict_trained(uneven, small_digits())
    chosen = choose_examples(uneven.configuration, small_digits())
    expected = np.sort(np.concatenate([chosen.used, chosen.held]))
    assert len(expected) < 200
    assert np.array_equal(found.index, expected)
    everything = predict_trained(run, small_digits())
    np.testing.assert_array_equal(found.logits, everything.logits[expected])


def test_what_the_run_held_out_it_has_not_seen(run: TrainedNetwork) -> None:
    found = predict_trained(run, small_digits())
    held = load_small(CONFIGURATION).held
    assert np.array_equal(np.flatnonzero(found.unseen), np.sort(held))


@pytest.mark.parametrize("samples", [2_000, 100])
def test_what_a_network_never_learned_is_not_said_to_be_wrong_for_sure(samples: int) -> None:
    logits, given, unseen = hard_run(samples)
    dataset = Dataset(
        name="hard",
        splits={"train": Split(np.zeros((samples, 1), np.float32), given)},
        class_names=("a", "b", "c"),
        mean=(0.0,),
        std=(1.0,),
    )
    found = Predictions(logits, np.arange(samples), given, unseen=unseen)
    told = conclude(dataset, found, data="hard.csv", method={"predictions": "run"})
    alone = audit_logits(logits, given, seen=True).noise_rate
    rate = told.findings.noise_rate
    assert alone.low > 0.1  # though no label is wrong
    if unseen.sum() < 30:
        assert rate == alone
    else:
        assert rate.low < 0.05
        assert rate.high >= alone.high
        assert rate.low <= rate.value <= rate.high


def hard_run(
    samples: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.bool_]]:
    """A sure network that is right about four of five samples whose labels are all right.

    Of a tenth it has not seen it is unsure where it is wrong, as networks are.
    """
    generator = np.random.default_rng(0)
    true = generator.integers(3, size=samples)
    right = generator.random(samples) < 0.8
    said = np.where(right, true, (true + 1) % 3)
    unseen = np.arange(samples) % 10 == 0
    sure = np.where(unseen & ~right, 0.5, np.where(unseen, generator.exponential(3, samples), 9))
    logits = np.eye(3, dtype=np.float32)[said] * sure[:, None].astype(np.float32)
    return logits, true, unseen


def test_other_classes_are_refused(run: TrainedNetwork) -> None:
    other = replace(small_digits(), class_names=(*"012345678", "nine"))
    with pytest.raises(ValueError, match=r"digits: expected the classes that .* 9, nine"):
        predict_trained(run, other)
