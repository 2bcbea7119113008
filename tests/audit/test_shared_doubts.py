from __future__ import annotations

import numpy as np
import pytest
from audit.noisy_logits import make, symmetric

from labelproof.audit import audit_logits
from labelproof.audit.anchors import share_of_doubts


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


def score_of(logits: np.ndarray, given: np.ndarray) -> np.ndarray:
    return (logits.argmax(axis=1) != given).astype(np.float32)


@pytest.mark.parametrize("classes", [3, 10, 50])
@pytest.mark.parametrize("share", [0.0, 0.15, 0.3])
def test_the_share_of_mistakes_that_are_the_second_choice_comes_back(
    share: float, classes: int
) -> None:
    logits = drawn(classes, 20_000)
    given = labels_with(logits, share)
    found = share_of_doubts(logits, given, score_of(logits, given))
    assert found == pytest.approx(share, abs=0.1)


def test_without_a_wrong_label_or_a_third_class_nothing_is_shared() -> None:
    logits = drawn(10)
    given = logits.argmax(axis=1)
    assert share_of_doubts(logits, given, score_of(logits, given)) == 0
    two = drawn(2)
    assert share_of_doubts(two, labels_with(two, 1.0), np.ones(4000, np.float32)) == 0
    unsuspected = labels_with(logits, 1.0)
    assert share_of_doubts(logits, unsuspected, np.zeros(4000, np.float32)) == 0


def test_only_what_the_network_is_sure_of_is_looked_at() -> None:
    logits = drawn(10)
    order = choices(logits)
    margin = np.sort(logits, axis=1)[:, -1] - np.sort(logits, axis=1)[:, -2]
    # Where it is not sure, the label is always its second choice, as with its own mistakes.
    given = np.where(margin < np.median(margin), order[:, 1], labels_with(logits, 0.0))
    assert share_of_doubts(logits, given, score_of(logits, given)) < 0.06


def test_a_network_that_has_seen_the_labels_is_not_asked_for_its_doubts() -> None:
    made = make(1000, symmetric(5, 0.3))
    found = audit_logits(made.logits, made.given, seen=True)
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
