"""Which trial is chosen."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from made_trials import made

from labelproof.tuning.trial import STATES, choose_trial, rank


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from(STATES)), min_size=1, max_size=9))
def test_the_choice_is_the_best_that_was_trained_to_the_end(
    given: list[tuple[float, str]],
) -> None:
    trials = [
        made(number, [[accuracy]], state=state) for number, (accuracy, state) in enumerate(given)
    ]
    chosen = choose_trial(trials)
    complete = [trial.accuracy or 0.0 for trial in trials if trial.state == "complete"]
    if complete:
        assert chosen is not None
        assert chosen.state == "complete"
        assert chosen.accuracy == max(complete)
        assert rank(trials)[0] is chosen
    elif not any(trial.state == "waiting" for trial in trials):
        assert chosen is None
    assert sorted(trial.number for trial in rank(trials)) == list(range(len(trials)))


def test_a_part_of_the_folds_is_behind_all_of_them() -> None:
    whole = made(0, [[50.0], [50.0]], rows=[10, 10])
    part = made(1, [[90.0]], rows=[10, 10], state="waiting")
    assert choose_trial([part, whole]) is whole
    assert choose_trial([part]) is part


def test_of_equals_the_earlier_is_chosen() -> None:
    trials = [made(number, [[50.0]]) for number in range(3)]
    assert choose_trial(trials[::-1]) is trials[0]
