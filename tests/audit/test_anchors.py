import numpy as np
import pytest
from audit.noisy_logits import make, softmax, symmetric, temperature_of

from labelproof.audit import anchors, audit_logits
from labelproof.audit.anchors import correct, correct_by_anchors, find_anchors, share_of_doubts
from labelproof.audit.noise_model import Groups, fit_noise_model


def test_anchors_are_a_tenth_or_a_hundred_but_no_more_than_a_quarter() -> None:
    generator = np.random.default_rng(0)
    sizes = (40, 600, 3000)
    predicted = np.repeat(np.arange(3), sizes)
    logits = (1 + generator.random(len(predicted)))[:, None] * np.eye(3)[predicted]
    chosen = find_anchors(Groups(logits.astype(np.float32), predicted))
    assert np.bincount(predicted[chosen]).tolist() == [10, 100, 300]
    margins = logits.max(axis=1)
    for label in range(3):
        mine = predicted == label
        assert margins[mine & chosen].min() > margins[mine & ~chosen].max()
    # Among equals they do not depend on the label.
    given = generator.integers(2, size=4000)
    samples = Groups(np.tile(np.float32([1, 0]), (4000, 1)), given)
    assert samples.given[find_anchors(samples)].mean() == pytest.approx(0.5, abs=0.1)


def test_a_network_that_has_not_learned_the_noise_is_mostly_taken_at_its_word() -> None:
    for classes in (2, 10):
        read = 0
        for seed in range(10):
            made = make(1000, symmetric(classes, 0.2), seed=seed)
            model = fit_noise_model(made.logits, made.given)
            again = correct_by_anchors(Groups(made.logits, made.given), model)
            read += again is not model
            # And where it is not, by chance, little comes of it.
            assert again.noise_rate == pytest.approx(model.noise_rate, abs=0.03)
        assert read < 5


def test_what_was_learned_is_taken_out() -> None:
    transition = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    made = make(6000, transition)
    clean = softmax(made.logits, temperature_of())
    learned = np.log(clean @ transition + 1e-9).astype(np.float32)
    model = fit_noise_model(learned, made.given)
    read = correct_by_anchors(Groups(learned, made.given), model)
    assert read.transition.sum(axis=1) == pytest.approx(1)
    assert read.joint.sum() == pytest.approx(1, abs=1e-5)
    assert read.transition[0] == pytest.approx(transition[0], abs=0.06)
    assert read.transition[1:] == pytest.approx(transition[1:], abs=0.06)
    assert read.noise_rate == pytest.approx(made.rate, abs=0.03)
    # What is said of each sample is what a network says that was taught the truth.
    word = correct(softmax(learned, read.temperature), read.correction)
    assert np.abs(word - clean).mean() < 0.03


def test_classes_that_are_labelled_alike_are_not_taken_apart() -> None:
    generator = np.random.default_rng(0)
    true = generator.integers(2, size=2000)
    given = generator.integers(2, size=2000)
    logits = (4 * np.eye(2)[true] + generator.normal(size=(2000, 2))).astype(np.float32)
    model = fit_noise_model(logits, given)
    read = correct_by_anchors(Groups(logits, given), model)
    assert np.isfinite(read.joint).all()
    assert 0.3 < read.noise_rate < 0.7


def test_a_class_that_was_hardly_learned_or_anchors_that_say_too_much_say_nothing() -> None:
    generator = np.random.default_rng(0)
    given = (generator.random(2000) < 0.03).astype(np.int64)
    # The rare class is predicted of a dozen samples, nearly all of which are of the other one.
    score = generator.normal(-3, 1, 2000)
    score[np.flatnonzero(given == 0)[:12]] = 1.0
    logits = np.stack([np.zeros(2000), score], axis=1).astype(np.float32)
    model = fit_noise_model(logits, given)
    assert correct_by_anchors(Groups(logits, given), model) is model
    generator = np.random.default_rng(0)
    true = generator.integers(2, size=2000)
    sure = 0.01 + 0.1 * generator.exponential(size=2000)
    logits = (sure[:, None] * np.eye(2)[true]).astype(np.float32)
    # Its anchors alone have wrong labels: what they say of the others is far too much.
    order = np.argsort(true, kind="stable")
    true, logits = true[order], logits[order]
    chosen = find_anchors(Groups(logits, true))
    given = np.where(chosen & (true == 0) & (generator.random(2000) < 0.3), 1, true)
    model = fit_noise_model(logits, given)
    assert correct_by_anchors(Groups(logits, given), model) is model


def choices(logits: np.ndarray) -> np.ndarray:
    """The classes of each sample, the most probable first."""
    return np.argsort(-logits, axis=1)


def drawn(classes: int, samples: int = 4000) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 3, (samples, classes)).astype(np.float32)


def labels_with(logits: np.ndarray, share: float, *, wrong: float = 0.3) -> np.ndarray:
    """Labels of which some are wrong, a share of those the second choice and the others any."""
    generator = np.random.default_rng(1)
    samples, classes = logits.shape
    order = choices(logits)
    other = (order[:, 0] + generator.integers(1, classes, samples)) % classes
    mistaken = np.where(generator.random(samples) < share, order[:, 1], other)
    return np.where(generator.random(samples) < wrong, mistaken, order[:, 0])


def shared(logits: np.ndarray, given: np.ndarray) -> float:
    samples = Groups(logits, given)
    return share_of_doubts(samples, (samples.predicted != samples.given).astype(np.float32))


def test_a_few_anchors_say_nothing_of_their_class() -> None:
    counts = np.array([[5.0, 4.0], [0.0, 90.0]])
    assert anchors._raised(np.eye(2), counts, 0.1) is None
    raised = anchors._raised(np.eye(2), 10 * counts, 0.1)
    assert raised is not None
    np.testing.assert_allclose(raised, [[5 / 9, 4 / 9], [0, 1]], atol=0.02)


def test_the_share_of_doubts_is_told_by_mistakes_that_are_the_second_choice() -> None:
    for classes in (3, 10, 50):
        logits = drawn(classes, 20_000)
        for share in (0.0, 0.15, 0.3):
            given = labels_with(logits, share)
            found = shared(logits, given)
            assert found == pytest.approx(share, abs=0.1)
    logits = drawn(10)
    given = logits.argmax(axis=1)
    assert shared(logits, given) == 0
    two = drawn(2)
    assert shared(two, labels_with(two, 1.0)) == 0
    unsuspected = Groups(logits, labels_with(logits, 1.0))
    assert share_of_doubts(unsuspected, np.zeros(4000, np.float32)) == 0
    logits = drawn(10)
    order = choices(logits)
    margin = np.sort(logits, axis=1)[:, -1] - np.sort(logits, axis=1)[:, -2]
    # Where it is not sure, the label is always its second choice, as with its own mistakes.
    given = np.where(margin < np.median(margin), order[:, 1], labels_with(logits, 0.0))
    assert shared(logits, given) < 0.06


def test_a_network_that_has_seen_the_labels_is_not_asked_for_its_doubts() -> None:
    made = make(1000, symmetric(5, 0.3))
    found = audit_logits(made.logits, made.given, unseen=np.zeros(1000, np.bool_))
    assert found.shared_doubts == 0
    differing = made.logits.argmax(axis=1) != made.given
    assert found.noise_rate.value == pytest.approx(differing.mean(), abs=0.02)
    assert found.noise_rate.low < found.noise_rate.value < found.noise_rate.high


def test_mistakes_that_the_network_understands_make_it_trusted_more() -> None:
    made = make(4000, np.eye(10), scale=4)
    given = labels_with(made.logits, 0.8, wrong=0.2)
    found = audit_logits(made.logits, given)
    assert found.shared_doubts > 0.2
    rate = found.noise_rate
    assert 0 <= rate.low < rate.value < rate.high <= 1
