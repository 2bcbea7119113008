from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from small_runs import CPU, StopAfter, load_small, small, small_digits

import labelproof
from labelproof.audit import audit_logits, audit_loss
from labelproof.audit.cross_validation import CrossValidation, Predictions
from labelproof.audit.labels import conclude
from labelproof.audit.predictions import predict_trained
from labelproof.data.dataset import Dataset, Split
from labelproof.fitting.attempts import Attempts
from labelproof.fitting.recipe import Inputs
from labelproof.losses.text import parse_loss
from labelproof.training import Job, choose_examples
from labelproof.training.execution import StopRequest
from labelproof.training.record import read_record
from labelproof.training.runner import Event, train_runs
from labelproof.training.trained_network import TrainedNetwork, load_network

Validated = tuple[CrossValidation, list[Event]]

EPOCHS = 12
LEARNS = small(loss="gce(q=0.7)", epochs=EPOCHS, batch_size=16)
# What one of the settings for MNIST does to the digits: everything becomes one class.
TOO_STRONG = "ce+sr(tau=0.1,p=0.1,lambda0=60,rho=1,r=1,normalize=false)"
COLLAPSES = small(
    noise="none", loss=TOO_STRONG, network="mlp(hidden=16,depth=1)", epochs=14, batch_size=8
)


def validate(
    folder: Path, configuration: Any = LEARNS, *, stop: StopRequest | None = None, **options: Any
) -> Validated:
    """A cross-validation of 200 digits that has gone as far as it goes, and what was told."""
    options = {"folds": 3, **options}
    validation = CrossValidation(small_digits(), configuration, folder=folder, **options)
    return validation, list(validation.run(CPU, stop=stop))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Validated:
    return validate(tmp_path_factory.mktemp("whole") / "folds")


def test_every_sample_is_predicted_once_by_a_network_that_did_not_see_it(whole: Validated) -> None:
    validation, _ = whole
    examples = validation.load(validation.jobs[1].configuration)
    assert examples.clean is None
    assert set(examples.dataset.splits) == {"train"}
    assert np.array_equal(examples.dataset.train.labels, validation.predictions().given)
    times = np.zeros(200, int)
    for job in validation.jobs:
        with np.load(job.folder / "predictions.npz") as arrays:
            held = arrays["held"]
        times[held] += 1
        used = validation.load(job.configuration).used
        assert not set(held.tolist()) & set(used.tolist())
        assert len(held) + len(used) == 200
    assert (times == 1).all()


def test_finished_parts_are_not_trained_again(whole: Validated) -> None:
    validation, events = whole
    assert [event.kind for event in events].count("finished") == 3
    again, told = validate(validation.folder)
    assert told == []
    same(again.predictions(), validation.predictions())
    with pytest.raises(ValueError, match="another configuration"):
        validate(validation.folder, replace(LEARNS, learning_rate=0.2))


def same(first: Predictions, second: Predictions) -> None:
    assert np.array_equal(first.logits, second.logits)
    assert np.array_equal(first.given, second.given)
    assert np.array_equal(first.index, second.index)


def test_only_what_is_left_is_trained(whole: Validated, tmp_path: Path) -> None:
    stop = StopAfter(9 * EPOCHS + 30)
    validate(tmp_path, stop=stop)
    done = [read_record(tmp_path / name) is not None for name in "123"]
    assert done == [True, False, False]
    _, events = validate(tmp_path)
    assert {event.job.configuration.seed for event in events} == {LEARNS.seed + 1, LEARNS.seed + 2}
    resumed = next(event for event in events if event.kind == "started")
    assert resumed.value > 0


def test_what_a_configuration_leaves_out_is_not_predicted(tmp_path: Path) -> None:
    uneven = replace(LEARNS, noise="none", imbalance="step:0.1", epochs=1)
    validation, _ = validate(tmp_path, uneven, folds=2)
    found = validation.predictions()
    expected = choose_examples(uneven, small_digits()).used
    assert len(expected) < 200
    assert np.array_equal(found.index, expected)
    assert found.logits.shape == (len(expected), 10)
    audit = conclude(small_digits(), found, data="digits", method={"predictions": "made"})
    assert audit.samples == [str(index) for index in expected]
    assert np.array_equal(audit.index, expected)


def test_a_conclusion_is_about_the_labels_that_were_given(whole: Validated) -> None:
    found = whole[0].predictions()
    audit = conclude(
        small_digits(), found, data="digits", method={"folds": 3}, options={"label": None}
    )
    assert (audit.name, audit.data, audit.kind) == ("digits", "digits", "images")
    assert audit.class_names == small_digits().class_names
    assert np.array_equal(audit.findings.given, found.given)
    assert audit.agreement.value == np.mean(found.logits.argmax(axis=1) == found.given)
    assert audit.agreement.low < audit.agreement.value < audit.agreement.high
    assert (audit.method, audit.options) == ({"folds": 3}, {"label": None})


@pytest.fixture(scope="module")
def collapsed(tmp_path_factory: pytest.TempPathFactory) -> Validated:
    return validate(tmp_path_factory.mktemp("collapsed") / "folds", COLLAPSES, folds=2)


def test_where_a_network_collapses_all_parts_start_over_weaker(collapsed: Validated) -> None:
    validation, events = collapsed
    attempts = validation.attempts
    assert attempts.given_up[0]["loss"] == TOO_STRONG != attempts.loss
    said = [str(event.value) for event in events if event.kind == "notice"]
    assert any("collapsed" in line for line in said)
    assert any(attempts.loss in line for line in said)
    for name in "12":
        record = read_record(validation.folder / name)
        assert record.configuration["loss"] == attempts.loss
    predicted = validation.predictions().logits.argmax(axis=1)
    assert len(np.unique(predicted)) > 3


def test_killed_after_noting_a_weaker_loss_it_uses_it(collapsed: Validated, tmp_path: Path) -> None:
    attempts = Attempts({}, TOO_STRONG)

    def die() -> None:
        if attempts.given_up:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        validate(tmp_path, COLLAPSES, folds=2, attempts=attempts, note=die)
    validation, _ = validate(tmp_path, COLLAPSES, folds=2, attempts=attempts)
    same(validation.predictions(), collapsed[0].predictions())


def test_a_network_that_diverges_is_told_of(tmp_path: Path) -> None:
    wild = small(loss="ce", learning_rate=1e30, epochs=2, network="mlp(hidden=16,depth=1)")
    validation, events = validate(tmp_path, wild, folds=2)
    assert "failed" in [event.kind for event in events]
    assert validation.failure is not None


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
    # What it held out it has not seen, and what it left out is left out.
    assert np.array_equal(np.flatnonzero(found.unseen), np.sort(load_small(CONFIGURATION).held))
    uneven = replace(run, configuration=replace(CONFIGURATION, noise="none", imbalance="step:0.1"))
    some = predict_trained(uneven, small_digits())
    chosen = choose_examples(uneven.configuration, small_digits())
    expected = np.sort(np.concatenate([chosen.used, chosen.held]))
    assert len(expected) < 200
    assert np.array_equal(some.index, expected)
    np.testing.assert_array_equal(some.logits, found.logits[expected])
    other = replace(small_digits(), class_names=(*"012345678", "nine"))
    with pytest.raises(ValueError, match=r"digits: expected the classes of .* 9, nine"):
        predict_trained(run, other)


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
    alone = audit_logits(logits, given, unseen=np.zeros(samples, np.bool_)).noise_rate
    rate = told.findings.noise_rate
    assert alone.low > 0.1  # though no label is wrong
    if unseen.sum() < 30:
        assert rate == alone
    else:
        assert rate.low < 0.05
        assert rate.value < alone.low / 2
        assert rate.low <= rate.value <= rate.high


def hard_run(samples: int) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.bool_]]:
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


# The loss learns rare classes, and so finds their wrong labels.


def q_of(counts: list[int]) -> float:
    inputs = Inputs("rows", (8,), sum(counts), len(counts))
    text = audit_loss(inputs, np.repeat(np.arange(len(counts)), counts))
    parse_loss(text)
    return float(text.removeprefix("gce(q=").removesuffix(")"))


def test_the_loss_keeps_enough_weight_for_labels_of_the_rarest_class_that_can_be_learned() -> None:
    for share in (20, 30, 80):
        counts = [1000 - share, share]
        assert (share / 1000) ** q_of(counts) == pytest.approx(0.18, rel=0.02)
    assert q_of([100] * 10) == q_of([100, 900]) == q_of([500, 500]) == 0.7
    assert q_of([100] * 40) == 0.15
    assert q_of([500, 490, 9]) == 0.7
    assert q_of([500, 9]) == 0.7


def write_rare(path: Path) -> set[str]:
    """A table in which 3% of the rows are of the second class; the samples with wrong labels."""
    generator = np.random.default_rng(3)
    true = (generator.random(1500) < 0.03).astype(int)
    values = generator.normal(size=(1500, 4))
    values[:, :3] += 4 * true[:, None]
    wrong = np.zeros(1500, dtype=bool)
    for label, share in ((0, 0.01), (1, 0.15)):
        places = np.flatnonzero(true == label)
        wrong[generator.choice(places, round(share * len(places)), replace=False)] = True
    given = np.where(wrong, 1 - true, true)
    rows = [
        ",".join(f"{number:.3f}" for number in row) + f",{label}"
        for row, label in zip(values, given, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,d,fraud", *rows]) + "\n")
    return {f"line {place + 2}" for place in np.flatnonzero(wrong)}


def test_of_a_rare_class_the_wrong_labels_are_found_and_not_all(tmp_path: Path) -> None:
    wrong, said = write_rare(tmp_path / "table.csv"), []
    options: Any = {"folds": 2, "epochs": 15, "device": "cpu", "progress": said.append}
    findings = labelproof.audit(tmp_path / "table.csv", "fraud", **options).findings
    assert "hardly ever" not in str(said)
    suspects = {f"line {place + 2}" for place in findings.suspects.tolist()}
    assert len(suspects & wrong) >= 0.6 * len(wrong)
    assert len(suspects & wrong) >= 0.9 * len(suspects)
    assert findings.noise_rate.low <= len(wrong) / 1500 <= findings.noise_rate.high
