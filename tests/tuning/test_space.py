"""The places of a search, the losses that stand there, and which is proposed next."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_trials import made

from labelproof.losses import SparseRegularized, format_loss, parse_loss
from labelproof.tuning.space import (
    CHOICES,
    KINDS,
    RANGES,
    Coordinates,
    coordinates,
    draw_coordinates,
    loss_at,
    propose,
    starts,
    strongest,
)

steady = settings(deadline=None, derandomize=True, max_examples=20)


@st.composite
def places(draw: st.DrawFn) -> Coordinates:
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    limit = draw(st.sampled_from([0.15, 0.3, 0.6]))
    return draw_coordinates(generator, draw(st.sampled_from(KINDS)), limit=limit)


@steady
@given(places(), st.integers(1, 300))
def test_every_place_is_a_loss_below_the_rule_that_is_found_there(
    place: Coordinates, epochs: int
) -> None:
    text = loss_at(place, epochs=epochs)
    loss = parse_loss(text)
    assert format_loss(loss) == text
    if isinstance(loss, SparseRegularized):
        assert loss.weight_schedule(0) * loss.p < 1
    if epochs < 5:
        return
    found = coordinates(text, epochs=epochs)
    for name, value in place.items():
        # The text has three digits; over a hundred epochs the fifth decimal of the growth counts.
        expected = pytest.approx(value, rel=0.02) if isinstance(value, float) else value
        assert found[name] == expected, name
    assert set(found) == set(place)


def test_the_first_trials_are_different_losses_within_the_ranges() -> None:
    for classes, epochs in itertools.product((2, 10, 100, 1000), (1, 10, 50, 200)):
        losses = starts(epochs=epochs, classes=classes)
        assert losses[:2] == ["ce", "gce(q=0.7)"]
        assert len(set(losses)) == len(losses) >= 6
        for loss in losses[1:]:
            place = coordinates(loss, epochs=epochs)
            assert place.pop("kind") in KINDS
            for name, value in place.items():
                low, high = RANGES.get(name, (value, value))
                assert low <= value <= high
                assert name in RANGES or value in CHOICES[name]


def test_hard_data_is_never_allowed_more_than_easy_data() -> None:
    for classes, plain in itertools.product((2, 10, 30, 1000), (None, 0.0, 9.0, 40.0, 100.0)):
        limit = strongest(classes=classes, plain=plain)
        assert RANGES["pull"][0] < limit <= strongest(classes=2, plain=None)
    few, many = (
        coordinates(starts(epochs=50, classes=classes)[2], epochs=50) for classes in (10, 100)
    )
    assert many["pull"] < 0.2 * few["pull"]
    for seed in range(8):
        place = coordinates(next_loss(tried(), seed=seed, classes=100), epochs=EPOCHS)
        assert place.get("pull", 0) <= 0.3 * 1.01


def test_other_losses_have_no_place() -> None:
    sparse = ("clamp=1e-7", "smoothing=0.1", "tau_rho=0.9")
    for loss in ("ce", "mae", "nce+mae", *(f"ce+sr({option})" for option in sparse)):
        assert coordinates(loss, epochs=10) is None


# What is proposed after the trials so far.

EPOCHS = 20


def tried(good: str = "+sr") -> list:
    losses = starts(epochs=EPOCHS, classes=10)
    return [
        made(number, [[50.0 + 8 * (good in loss)] * EPOCHS], loss=loss)
        for number, loss in enumerate(losses)
    ]


def next_loss(trials: list, *, seed: int = 1, classes: int = 10) -> str:
    return propose(trials, epochs=EPOCHS, classes=classes, seed=seed)


def test_a_proposal_is_new_and_follows_from_the_trials_and_the_seed() -> None:
    trials = tried()
    assert next_loss(trials) == next_loss(tried())
    assert len({next_loss(trials, seed=seed) for seed in range(5)}) > 1
    for _ in range(8):
        loss = next_loss(trials)
        assert loss not in [trial.loss for trial in trials]
        trials.append(made(len(trials), [[58.0] * EPOCHS], loss=loss))


def test_what_was_good_is_proposed_more_often() -> None:
    sparse, plain = (
        sum("+sr" in next_loss(tried(good), seed=seed) for seed in range(10))
        for good in ("+sr", "gce(q=0.7)")
    )
    assert sparse > plain


def test_every_other_proposal_is_near_one_of_the_best() -> None:
    trials = tried()[:-1]
    assert len(trials) % 2
    places = [coordinates(trial.loss, epochs=EPOCHS) or {} for trial in trials]
    for seed in range(8):
        near = coordinates(next_loss(trials, seed=seed), epochs=EPOCHS)
        assert any(
            near["kind"] == place.get("kind")
            and all(0.49 < near[name] / place[name] < 2.05 for name in ("pull", "tau", "growth"))
            for place in places
            if "pull" in place
        )
