import itertools
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit.noisy_logits import make, pair, softmax, symmetric, temperature_of
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict

import labelproof
from labelproof.audit import audit_labels, audit_logits, labels, read_probabilities
from labelproof.audit.findings import Findings
from labelproof.data.notices import DataWarning


@pytest.fixture(scope="module")
def findings() -> Findings:
    made = make(2000, pair(5, 0.2))
    return audit_logits(made.logits, made.given)


def test_the_interval_of_the_rate_holds_and_shrinks_with_samples() -> None:
    covered, widths = 0, []
    for seed in range(15):
        made = make(300, symmetric(4, 0.2), seed=seed)
        found = audit_logits(made.logits, made.given).noise_rate
        covered += found.low <= 0.2 <= found.high
        widths.append(found.high - found.low)
    assert covered >= 12
    # And not since they are wide: the share of as many that were counted has 0.09.
    assert np.mean(widths) < 0.14
    widths = []
    for samples in (150, 2400):
        made = [make(samples, symmetric(3, 0.3), seed=seed) for seed in range(3)]
        rates = [audit_logits(each.logits, each.given).noise_rate for each in made]
        widths.append(np.mean([rate.high - rate.low for rate in rates]))
    # Four times as many halve them.
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.4)


def test_the_interval_of_the_rate_of_a_weak_model_reaches_what_it_says_itself() -> None:
    pixels, true = load_digits(return_X_y=True)
    for seed in range(3):
        generator = np.random.default_rng(seed)
        few = pixels[:, generator.choice(64, 8, replace=False)] / 16
        wrong = generator.random(len(true)) < 0.1
        given = np.where(wrong, (true + generator.integers(1, 10, len(true))) % 10, true)
        model = LogisticRegression(max_iter=200)
        told = cross_val_predict(model, few, given, cv=5, method="predict_proba")
        with pytest.warns(DataWarning, match="agree with only"):
            found = audit_labels(told, given)
        rate = found.noise_rate
        assert rate.low <= wrong.mean() <= rate.high
        assert rate.high < 0.7
    # One that has learned enough is judged by its order, whatever it says.
    made = make(2000, symmetric(4, 0.2))
    ends = [audit_logits(scale * made.logits, made.given).noise_rate.low for scale in (1, 0.3)]
    assert ends[1] == pytest.approx(ends[0], abs=0.02)


def test_intervals_of_rare_mistakes_and_small_classes_hold() -> None:
    matrix = symmetric(20, 0.2)
    made = make(3000, matrix)
    found = audit_logits(made.logits, made.given)
    held = (found.transition_low <= matrix) & (matrix <= found.transition_high)
    other = ~np.eye(20, dtype=np.bool_)
    assert held[other].mean() > 0.9
    assert held[~other].mean() > 0.8
    assert np.median(found.transition_high[other]) < 0.15
    matrix = symmetric(60, 0.2)
    made = make(600, matrix, scale=4)
    found = audit_logits(made.logits, made.given)
    assert found.noise_rate.low <= 0.2 <= found.noise_rate.high
    assert found.noise_rate.value == pytest.approx(0.2, abs=0.07)
    held = (found.transition_low <= matrix) & (matrix <= found.transition_high)
    assert held.diagonal().mean() > 0.9


def test_chance_widens_the_interval_of_the_rate_to_both_sides() -> None:
    score = np.full(10_000, 0.3, np.float32)
    ends = [
        labels._rate(score, 0.4, 0.1, spread, hidden=0.3, others=[0.28, 0.32])
        for spread in (0.05, 0.1)
    ]
    assert ends[0].low - ends[1].low == pytest.approx(0.05)
    assert ends[1].high - ends[0].high == pytest.approx(0.05)
    assert ends[0].low < 0.28 - 0.04


def test_the_rate_is_that_of_the_labels_and_suspects_are_the_wrong_ones() -> None:
    made = make(3000, symmetric(10, 0.2), scale=8)
    found = audit_logits(made.logits, made.given)
    wrong = made.given != made.true
    assert found.noise_rate.value == pytest.approx(made.rate, abs=0.01)
    assert wrong[found.suspects].mean() > 0.97
    assert np.isin(np.flatnonzero(wrong), found.suspects).mean() > 0.97
    assert (found.suggested[found.suspects] == made.true[found.suspects]).mean() > 0.97
    assert found.estimated_count == pytest.approx(wrong.sum(), abs=30)


def test_suspects_come_by_their_score_and_are_summed_up_in_a_line(findings: Findings) -> None:
    scores = findings.score[findings.suspects]
    assert (np.diff(scores) <= 0).all()
    assert scores.min() > 0.5
    assert np.array_equal(findings.order[: len(scores)], findings.suspects)
    assert sorted(findings.order) == list(range(len(findings)))
    changed = np.flatnonzero(findings.suggested != findings.given)
    assert np.array_equal(changed, np.sort(findings.suspects))
    assert repr(findings).startswith("Findings(2,000 labels, ")
    assert repr(findings).endswith(f", agreement {findings.agreement.value:.0%})")
    assert "% to " in repr(findings)
    assert findings.num_classes == 5


def test_probabilities_and_logits_come_to_the_same() -> None:
    made = make(1000, pair(4, 0.2))
    by_logits = audit_logits(made.logits, made.given)
    by_shares = audit_labels(softmax(made.logits, temperature_of()), made.given)
    np.testing.assert_allclose(by_shares.score, by_logits.score, atol=0.05)
    assert by_shares.temperature == pytest.approx(by_logits.temperature / temperature_of(), rel=0.2)


def test_the_seed_draws_what_the_noise_is_estimated_from(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(400, symmetric(3, 0.3))
    state = np.random.get_state(legacy=False)
    for fitted, all_same in ((400, True), (300, False)):
        monkeypatch.setattr(labels, "_FITTED", fitted)
        rates = [audit_logits(*made[:2], seed=seed).noise_rate for seed in (0, 0, 1)]
        assert rates[0] == rates[1]
        assert (rates[0] == rates[2]) == all_same
    assert str(np.random.get_state(legacy=False)) == str(state)


def test_a_handful_of_samples_is_judged_without_a_warning() -> None:
    for samples in (1, 2, 3):
        found = audit_labels([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]][:samples], [1, 1, 0][:samples])
        assert len(found) == samples
        assert np.isfinite(found.score).all()
        assert found.noise_rate.high > 0.5


def test_predictions_in_another_order_are_told() -> None:
    made = make(300, symmetric(3, 0.1), deviation=1)
    table = softmax(made.logits, 0.2)
    assert audit_labels(table, made.given).agreement.value > 0.8
    with pytest.warns(DataWarning, match=r"only \d+% .* columns or rows in another order") as told:
        found = audit_labels(table[:, [1, 2, 0]], made.given)
    assert [warning.filename for warning in told] == [__file__]
    assert f"only {found.agreement.value:.0%} of" in str(told[0].message)
    frame = pd.DataFrame({"size": range(300), "kind": made.given})
    shuffled = pd.DataFrame(table, columns=["0", "1", "2"]).sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match="labels: expected the index of probabilities"):
        labelproof.audit(frame, "kind", probabilities=shuffled)
    # Confident predictions of other samples look like labels that are nearly all wrong.
    made = make(1000, symmetric(4, 0.1), deviation=1)
    table = np.roll(softmax(made.logits, 0.2), 1, axis=0)
    with pytest.warns(DataWarning, match=r"only 2\d% .* rows in another order\?"):
        assert audit_labels(table, made.given).noise_rate.low > 0.7


def test_a_large_file_is_audited_in_little_memory(tmp_path: Path) -> None:
    samples, classes = 50_000, 20
    generator = np.random.default_rng(0)
    true = generator.integers(classes, size=samples)
    table = generator.random((samples, classes), dtype=np.float32) * np.float32(0.2 / classes)
    table[np.arange(samples), true] += 1 - table.sum(axis=1)
    given = np.where(generator.random(samples) < 0.1, (true + 1) % classes, true)
    np.save(tmp_path / "table.npy", table)
    tracemalloc.start()
    try:
        found = audit_labels(read_probabilities(tmp_path / "table.npy"), given)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.noise_rate.value == pytest.approx(0.1, abs=0.003)
    assert len(found.suspects) == pytest.approx(5_000, rel=0.05)
    assert most < 10 * table.nbytes


def test_noise_that_the_network_has_learned_is_taken_out_and_found_by_anchors() -> None:
    for matrix, classes in itertools.product((symmetric, pair), (3, 10)):
        transition = matrix(classes, 0.3)
        made = make(4000, transition)
        learned = np.log(softmax(made.logits, temperature_of()) @ transition)
        rate = audit_logits(learned.astype(np.float32), made.given).noise_rate
        assert rate.value == pytest.approx(made.rate, abs=0.07)
        # Whose the doubts are cannot be known: the lower end is as if they were the network's own.
        assert rate.low < made.rate - 0.1
        assert made.rate - 0.03 < rate.high
    transition = np.array([[0.65, 0.35], [0.0, 1.0]])
    for seed in range(3):
        made = make(1500, transition, scale=3, deviation=1.5, seed=seed)
        word = softmax(made.logits, temperature_of(3, 1.5)) @ transition
        found = audit_logits(np.log(word).astype(np.float32), made.given)
        wrong = made.given != made.true
        assert found.noise_rate.low <= made.rate <= found.noise_rate.high
        assert found.noise_rate.value == pytest.approx(made.rate, abs=0.05)
        assert wrong[found.suspects].mean() > 0.8
        assert np.isin(np.flatnonzero(wrong), found.suspects).mean() > 0.7


def test_labels_are_ordered_at_least_as_well_as_by_self_confidence() -> None:
    generator = np.random.default_rng(0)
    true = generator.integers(3, size=3000)
    # A weak network: it is right about two of three.
    logits = (1.5 * np.eye(3)[true] + generator.normal(size=(3000, 3))).astype(np.float32)
    wrong = generator.random(3000) < 0.2
    own = softmax(logits, 1.0)
    for given, ahead in (((true + generator.integers(1, 3, 3000)) % 3, 0.0), (np.zeros(3000), 0.1)):
        given = np.where(wrong, given, true).astype(np.int64)
        score = audit_logits(logits, given).score
        plain = average_precision_score(given != true, 1 - own[np.arange(3000), given])
        assert average_precision_score(given != true, score) > plain + ahead - 0.01
