"""What a trial came to, which is chosen, and the file that a search keeps."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_trials import made

from labelproof.tuning.trial import (
    STATES,
    OtherSearchError,
    choose_trial,
    rank,
    read_journal,
    write_journal,
)

steady = settings(deadline=None, derandomize=True, max_examples=25)
ABOUT: dict[str, Any] = {"data": "digits", "epochs": 2, "rows": [10, 10], "labels": "abc"}


def test_an_accuracy_counts_folds_by_their_examples() -> None:
    trial = made(0, [[60.0], [30.0]], rows=[300, 100])
    assert trial.accuracy == pytest.approx(52.5)
    assert trial.standard_error == pytest.approx(100 * math.sqrt(0.525 * 0.475 / 400))
    assert trial.trained == 2
    for accuracy in (0.0, 100.0):  # a perfect score is not without error
        error = made(0, [[accuracy]]).standard_error
        assert 0 < error < 1


def test_a_fold_that_was_begun_begins_anew_unless_the_trial_is_over() -> None:
    for state, folds in (("waiting", [0]), ("collapsed", [0, 1])):
        trial = made(0, [[1.0, 2.0], [3.0]], rows=[10, 10], epochs=2, state=state)
        trial.forget_begun()
        assert list(trial.curves) == folds


@steady
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
        assert chosen.state == "complete"
        assert chosen.accuracy == max(complete)
        assert rank(trials)[0] is chosen
    elif not any(trial.state == "waiting" for trial in trials):
        assert chosen is None
    assert sorted(trial.number for trial in rank(trials)) == list(range(len(trials)))


def test_all_folds_come_before_some_and_of_equals_the_earlier() -> None:
    whole = made(0, [[50.0], [50.0]], rows=[10, 10])
    part = made(1, [[90.0]], rows=[10, 10], state="waiting")
    assert choose_trial([part, whole]) is whole
    assert choose_trial([part]) is part
    equals = [made(number, [[50.0]]) for number in range(3)]
    assert choose_trial(equals[::-1]) is equals[0]


def test_trials_come_back_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "tuning.json"
    trials = [
        made(0, [[50.0, 51.0], [49.0, 52.0]], rows=[10, 10]),
        made(1, [[10.0]], rows=[10, 10], epochs=2, loss="ce+sr", state="collapsed"),
    ]
    write_journal(file, trials, ABOUT)
    assert read_journal(file, ABOUT) == trials
    assert json.loads(file.read_text())["choice"] == "ce"
    begun = made(0, [[50.0, 51.0], [9.0]], rows=[10, 10], epochs=2, state="waiting")
    write_journal(file, [begun], ABOUT)
    (trial,) = read_journal(file, ABOUT)
    assert (list(trial.curves), trial.finished) == ([0], [0])


def test_another_search_or_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "tuning.json"
    write_journal(file, [], ABOUT)
    for changed, said in (
        ({"epochs": 3}, "epochs: 2 there, 3 here"),
        ({"rows": [20]}, r"rows: \[10, 10\] there, \[20\] here"),
    ):
        with pytest.raises(OtherSearchError, match=said):
            read_journal(file, ABOUT | changed)
    for text in ("", "{", "[]", '{"a": 1}', '"text"', '{"format": 2, "about": {}}'):
        file.write_text(text)
        with pytest.raises(OtherSearchError, match=r"tuning\.json"):
            read_journal(file, ABOUT)
        assert file.read_text() == text
