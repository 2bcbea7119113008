"""The places of a search, its trials, which is proposed next, and the file that it keeps."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_trials import made

from labelproof.losses import SparseRegularized, format_loss, parse_loss
from labelproof.tuning import space
from labelproof.tuning.trial import (
    STATES,
    OtherSearchError,
    choose_trial,
    rank,
    read_journal,
    write_journal,
)

steady = settings(deadline=None, derandomize=True, max_examples=20)


@st.composite
def places(draw: st.DrawFn) -> space.Coordinates:
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    limit = draw(st.sampled_from([0.15, 0.3, 0.6]))
    return space.draw_coordinates(generator, draw(st.sampled_from(space.KINDS)), limit=limit)


@steady
@given(places(), st.integers(1, 300))
def test_every_place_is_a_loss_that_is_found_there(place: space.Coordinates, epochs: int) -> None:
    text = space.loss_at(place, epochs=epochs)
    loss = parse_loss(text)
    assert format_loss(loss) == text
    if isinstance(loss, SparseRegularized):
        assert loss.weight_schedule(0) * loss.p < 1
    if epochs < 5:
        return
    found = space.coordinates(text, epochs=epochs)
    for name, value in place.items():
        # The text has three digits; over a hundred epochs the fifth decimal of the growth counts.
        expected = pytest.approx(value, rel=0.02) if isinstance(value, float) else value
        assert found[name] == expected, name
    assert set(found) == set(place)


def test_the_first_trials_are_different_losses_within_the_ranges() -> None:
    for classes, epochs in itertools.product((2, 10, 100, 1000), (1, 10, 50, 200)):
        losses = space.starts(epochs=epochs, classes=classes)
        assert losses[:2] == ["ce", "gce(q=0.7)"]
        assert len(set(losses)) == len(losses) >= 6
        for loss in losses[1:]:
            place = space.coordinates(loss, epochs=epochs)
            assert place.pop("kind") in space.KINDS
            for name, value in place.items():
                low, high = space.RANGES.get(name, (value, value))
                assert low <= value <= high
                assert name in space.RANGES or value in space.CHOICES[name]


def test_hard_data_is_never_allowed_more_than_easy_data() -> None:
    for classes, plain in itertools.product((2, 10, 30, 1000), (None, 0.0, 9.0, 40.0, 100.0)):
        limit = space.strongest(classes=classes, plain=plain)
        assert space.RANGES["pull"][0] < limit <= space.strongest(classes=2, plain=None)
    few, many = (
        space.coordinates(space.starts(epochs=50, classes=classes)[2], epochs=50)
        for classes in (10, 100)
    )
    assert many["pull"] < 0.2 * few["pull"]
    for seed in range(8):
        place = space.coordinates(next_loss(tried(), seed=seed, classes=100), epochs=EPOCHS)
        assert place.get("pull", 0) <= 0.3 * 1.01
    # Other losses have no place.
    sparse = ("clamp=1e-7", "smoothing=0.1", "tau_rho=0.9")
    for loss in ("ce", "mae", "nce+mae", *(f"ce+sr({option})" for option in sparse)):
        assert space.coordinates(loss, epochs=10) is None


EPOCHS = 20


def tried() -> list:
    losses = enumerate(space.starts(epochs=EPOCHS, classes=10))
    return [made(n, [[50.0 + 8 * ("+sr" in loss)] * EPOCHS], loss=loss) for n, loss in losses]


def next_loss(trials: list, *, seed: int = 1, classes: int = 10) -> str:
    return space.propose(trials, epochs=EPOCHS, classes=classes, seed=seed)


def test_a_proposal_is_new_and_follows_from_the_trials_and_the_seed() -> None:
    trials = tried()
    assert next_loss(trials) == next_loss(tried())
    assert len({next_loss(trials, seed=seed) for seed in range(5)}) > 1
    for _ in range(8):
        loss = next_loss(trials)
        assert loss not in [trial.loss for trial in trials]
        trials.append(made(len(trials), [[58.0] * EPOCHS], loss=loss))


def test_every_other_proposal_is_near_one_of_the_best() -> None:
    trials = tried()[:-1]
    assert len(trials) % 2
    places = [space.coordinates(trial.loss, epochs=EPOCHS) or {} for trial in trials]
    for seed in range(8):
        near = space.coordinates(next_loss(trials, seed=seed), epochs=EPOCHS)
        assert any(
            near["kind"] == place.get("kind")
            and all(0.49 < near[name] / place[name] < 2.05 for name in ("pull", "tau", "growth"))
            for place in places
            if "pull" in place
        )


ABOUT: dict[str, Any] = {"data": "digits", "epochs": 2, "rows": [10, 10], "labels": "abc"}


def test_an_accuracy_counts_folds_by_their_examples() -> None:
    trial = made(0, [[60.0], [30.0]], rows=[300, 100])
    assert trial.accuracy == pytest.approx(52.5)
    assert trial.standard_error == pytest.approx(100 * math.sqrt(0.525 * 0.475 / 400))
    for accuracy in (0.0, 100.0):  # a perfect score is not without error
        error = made(0, [[accuracy]]).standard_error
        assert 0 < error < 1
    # A fold that was begun begins anew unless the trial is over.
    for state, folds in (("waiting", [0]), ("collapsed", [0, 1])):
        trial = made(0, [[1.0, 2.0], [3.0]], rows=[10, 10], epochs=2, state=state)
        trial.forget_begun()
        assert list(trial.curves) == folds


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from(STATES)), min_size=1, max_size=9))
def test_the_choice_is_the_best_that_was_trained_to_the_end(drawn) -> None:
    trials = [made(n, [[accuracy]], state=state) for n, (accuracy, state) in enumerate(drawn)]
    chosen = choose_trial(trials)
    complete = [trial.accuracy or 0.0 for trial in trials if trial.state == "complete"]
    if complete:
        assert chosen.state == "complete"
        assert chosen.accuracy == max(complete)
        assert rank(trials)[0] is chosen
    elif not any(trial.state == "waiting" for trial in trials):
        assert chosen is None
    assert sorted(trial.number for trial in rank(trials)) == list(range(len(trials)))
    # All folds come before some, and of equals the earlier.
    whole = made(0, [[50.0], [50.0]], rows=[10, 10])
    part = made(1, [[90.0]], rows=[10, 10], state="waiting")
    equals = [made(number, [[50.0]]) for number in range(3)]
    for given_trials, best in (([part, whole], whole), ([part], part), (equals[::-1], equals[0])):
        assert choose_trial(given_trials) is best


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
