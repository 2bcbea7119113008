from __future__ import annotations

import numpy as np
import pytest
from audit.noisy_logits import make, softmax, symmetric, temperature_of

from labelproof.audit.anchors import find_anchors, read_through, read_word
from labelproof.audit.noise_model import fit_noise_model


def test_anchors_are_a_tenth_or_a_hundred_but_no_more_than_a_quarter() -> None:
    generator = np.random.default_rng(0)
    sizes = (40, 600, 3000)
    predicted = np.repeat(np.arange(3), sizes)
    logits = (1 + generator.random(len(predicted)))[:, None] * np.eye(3)[predicted]
    chosen, _ = find_anchors(logits.astype(np.float32))
    assert np.bincount(predicted[chosen]).tolist() == [10, 100, 300]
    margins = logits.max(axis=1)
    for label in range(3):
        mine = predicted == label
        assert margins[mine & chosen].min() > margins[mine & ~chosen].max()


@pytest.mark.parametrize("classes", [2, 10], ids=str)
def test_a_network_that_has_not_learned_the_noise_is_mostly_taken_at_its_word(classes: int) -> None:
    read = 0
    for seed in range(20):
        made = make(1000, symmetric(classes, 0.2), seed=seed)
        model = fit_noise_model(made.logits, made.given)
        again = read_through(made.logits, made.given, model)
        read += again is not model
        # And where it is not, by chance, little comes of it.
        assert again.noise_rate == pytest.approx(model.noise_rate, abs=0.03)
    assert read < 10


def test_what_was_learned_is_taken_out() -> None:
    transition = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    made = make(6000, transition)
    clean = softmax(made.logits, temperature_of())
    learned = np.log(clean @ transition + 1e-9).astype(np.float32)
    model = fit_noise_model(learned, made.given)
    read = read_through(learned, made.given, model)
    assert read.transition.sum(axis=1) == pytest.approx(1)
    assert read.joint.sum() == pytest.approx(1, abs=1e-5)
    assert read.transition[0] == pytest.approx(transition[0], abs=0.06)
    assert read.transition[1:] == pytest.approx(transition[1:], abs=0.06)
    assert read.noise_rate == pytest.approx(made.rate, abs=0.03)
    # What is said of each sample is what a network says that was taught the truth.
    assert read.reading is not None
    word = read_word(softmax(learned, read.temperature), read.reading)
    assert np.abs(word - clean).mean() < 0.03


def test_classes_that_are_labelled_alike_are_not_taken_apart() -> None:
    generator = np.random.default_rng(0)
    true = generator.integers(2, size=2000)
    given = generator.integers(2, size=2000)
    logits = (4 * np.eye(2)[true] + generator.normal(size=(2000, 2))).astype(np.float32)
    model = fit_noise_model(logits, given)
    read = read_through(logits, given, model)
    assert np.isfinite(read.joint).all()
    assert 0.3 < read.noise_rate < 0.7


def test_a_class_that_was_hardly_learned_says_nothing() -> None:
    generator = np.random.default_rng(0)
    given = (generator.random(2000) < 0.03).astype(np.int64)
    # The rare class is predicted of a dozen samples, nearly all of which are of the other one.
    score = generator.normal(-3, 1, 2000)
    score[np.flatnonzero(given == 0)[:12]] = 1.0
    logits = np.stack([np.zeros(2000), score], axis=1).astype(np.float32)
    model = fit_noise_model(logits, given)
    assert read_through(logits, given, model) is model


def test_not_many_more_labels_are_wrong_than_differ() -> None:
    for seed in range(5):
        generator = np.random.default_rng(seed)
        given = (generator.random(1500) < 0.1).astype(np.int64)
        logits = generator.normal(0, 1, (1500, 2)).astype(np.float32)
        logits[:, 0] += 2
        model = fit_noise_model(logits, given)
        read = read_through(logits, given, model, by_chance=1.0)
        differing = np.mean(logits.argmax(axis=1) != given)
        assert read is model or read.noise_rate <= 2 * differing
