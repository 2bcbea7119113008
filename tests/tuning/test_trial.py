"""What a trial came to, and its way through JSON."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_trials import made

from labelproof.tuning.trial import settled

steady = settings(deadline=None, derandomize=True, max_examples=50)
curves = st.lists(st.floats(0, 100), min_size=1, max_size=60)


@steady
@given(curves)
def test_an_accuracy_is_between_the_last_few(curve: list[float]) -> None:
    count = 5
    value = settled(curve, epochs=len(curve))
    assert min(curve[-count:]) - 1e-9 <= value <= max(curve[-count:]) + 1e-9


def test_an_accuracy_counts_folds_by_their_examples() -> None:
    trial = made(0, [[60.0], [30.0]], rows=[300, 100])
    assert trial.accuracy == pytest.approx(52.5)
    assert trial.standard_error == pytest.approx(100 * math.sqrt(0.525 * 0.475 / 400))
    assert trial.trained == 2


@pytest.mark.parametrize("accuracy", [0.0, 100.0])
def test_a_perfect_score_is_not_without_error(accuracy: float) -> None:
    error = made(0, [[accuracy]]).standard_error
    assert error is not None
    assert 0 < error < 1


def test_a_fold_that_was_begun_begins_anew_unless_the_trial_is_over() -> None:
    waiting = made(0, [[1.0, 2.0], [3.0]], rows=[10, 10], epochs=2, state="waiting")
    waiting.forget_begun()
    assert list(waiting.curves) == [0]
    gone = made(0, [[1.0, 2.0], [3.0]], rows=[10, 10], epochs=2, state="collapsed")
    gone.forget_begun()
    assert list(gone.curves) == [0, 1]
