import itertools

import numpy as np
import pytest
from audit.noisy_logits import draw_labels, make, softmax, symmetric
from hypothesis import example, settings
from hypothesis import given as examples
from hypothesis import strategies as st

from labelproof.audit import findings
from labelproof.audit.findings import suspect
from labelproof.audit.noise_model import NoiseModel


def model_of(transition: np.ndarray, temperature: float = 1.0) -> NoiseModel:
    return NoiseModel(transition, temperature, 0.0, transition / len(transition))


def by_bayes(logits: np.ndarray, labels: np.ndarray, model: NoiseModel) -> np.ndarray:
    """The probability of each true class, in float64 and one sample at a time."""
    found = np.empty(logits.shape)
    for row, (said, label) in enumerate(zip(softmax(logits, model.temperature), labels)):  # noqa: B905
        joint = said * model.transition[:, label]
        found[row] = joint / joint.sum()
    return found


@settings(max_examples=30)
@example(7, 40, 0.05, 10.0, 0)
@examples(
    st.integers(2, 7),
    st.integers(1, 40),
    st.floats(0.05, 20),
    st.floats(0.1, 20),
    st.integers(0, 1 << 30),
)
def test_it_is_bayes_rule(
    classes: int, samples: int, temperature: float, spread: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    logits = generator.normal(0, spread, (samples, classes)).astype(np.float32)
    labels = generator.integers(classes, size=samples)
    model = model_of(generator.dirichlet(np.full(classes, 0.7), classes) + 1e-4, temperature)
    found = suspect(logits, labels, model)
    expected = by_bayes(logits, labels, model)
    wrong = 1 - expected[np.arange(samples), labels]
    np.testing.assert_allclose(found.score, wrong, atol=2e-4)
    assert found.score.dtype == np.float32
    assert found.other.dtype == np.int64
    assert ((found.score >= 0) & (found.score <= 1)).all()
    assert (found.other != labels).all()
    for row in np.flatnonzero(found.score > 0.5):
        others = np.delete(expected[row], labels[row])
        assert expected[row, found.other[row]] > others.max() - 1e-3
    softmax = np.exp((logits - logits.max(1, keepdims=True)) / temperature)
    softmax /= softmax.sum(1, keepdims=True)
    np.testing.assert_allclose(found.probability, -np.sort(-softmax)[:, :3], atol=1e-5)
    # By the logits, even where all but one of the probabilities vanish.
    assert np.array_equal(found.likeliest, np.argsort(-logits, axis=1, kind="stable")[:, :3])
    predicted = logits.argmax(axis=1)
    for said in range(classes):
        for label in range(classes):
            times = np.count_nonzero((predicted == said) & (labels == label))
            assert found.confusion[said, label] == times


@settings(max_examples=20)
@examples(st.integers(2, 6), st.floats(0, 1 / 3), st.integers(0, 1 << 30))
def test_shared_doubts_make_its_word_count_more(classes: int, shared: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    logits = generator.normal(0, 2, (30, classes)).astype(np.float32)
    labels = generator.integers(classes, size=30)
    model = model_of(symmetric(classes, 0.2))
    found = suspect(logits, labels, model, shared=shared)
    right = by_bayes(logits, labels, model)[np.arange(30), labels]
    expected = (1 - shared) * right + shared * (logits.argmax(axis=1) == labels)
    np.testing.assert_allclose(found.score, 1 - expected, atol=1e-4)
    assert (found.other != labels).all()


def test_where_a_part_ends_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(1003, symmetric(5, 0.3))
    model = model_of(symmetric(5, 0.3), 0.4)
    whole = suspect(made.logits, made.given, model)
    for size, cores in itertools.product((1, 85, 5010, 5015, 5020), (1, 3)):
        monkeypatch.setattr(findings, "CACHED", size)
        monkeypatch.setattr("joblib.cpu_count", lambda cores=cores: cores)
        parts = suspect(made.logits, made.given, model)
        np.testing.assert_allclose(parts.score, whole.score, atol=1e-6)
        assert np.array_equal(parts.other, whole.other)
        assert np.array_equal(parts.likeliest, whole.likeliest)
        assert np.array_equal(parts.confusion, whole.confusion)


def test_scores_are_how_often_labels_are_wrong() -> None:
    true = np.random.default_rng(0).integers(3, size=20_000)
    given = draw_labels(true, symmetric(3, 0.3), seed=1)
    logits = 2 * np.eye(3)[true] + np.random.default_rng(2).normal(size=(20_000, 3))
    found = suspect(logits, given, model_of(symmetric(3, 0.3), 0.5))
    wrong = given != true
    for low in np.arange(0, 1, 0.1):
        chosen = (found.score >= low) & (found.score < low + 0.1)
        if chosen.sum() > 200:
            assert wrong[chosen].mean() == pytest.approx(found.score[chosen].mean(), abs=0.06)


def test_classes_that_are_ruled_out_leave_numbers_and_scores_are_sorted_stably() -> None:
    lowest = (-np.inf, float(np.finfo(np.float32).min), -1e30)
    for low, temperature in itertools.product(lowest, (0.05, 1.0, 20.0)):
        logits = np.array([[0.0, low, low], [5.0, 0.0, low], [1.0, low, 0.0]])
        found = suspect(logits, np.array([1, 2, 0]), model_of(symmetric(3, 0.2), temperature))
        assert np.isfinite(found.score).all()
        assert found.score[0] == 1
        assert found.other.tolist()[:2] == [0, 0]
    generator = np.random.default_rng(0)
    for numbers in (generator.normal(size=999), generator.integers(-2, 3, 999), [np.inf, -np.inf]):
        numbers = np.asarray(numbers, np.float32)
        assert np.array_equal(findings._sort(numbers), np.argsort(numbers, kind="stable"))


def test_a_weak_network_orders_labels_by_its_own_word() -> None:
    made = make(200, symmetric(3, 0.2))
    found = suspect(made.logits, made.given, model_of(symmetric(3, 0.2)))
    for trust, follows in ((1.0, found.score), (0.0, found.unlike)):
        ranked = findings.reorder(found, trust).score
        assert (np.diff(ranked[np.argsort(follows)]) >= 0).all()
        np.testing.assert_allclose(np.sort(ranked), np.sort(found.score), atol=1e-3)
