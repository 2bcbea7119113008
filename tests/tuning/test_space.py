"""The search's places and the losses that stand there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.losses import SparseRegularized, format_loss, parse_loss
from labelproof.tuning.space import (
    CHOICES,
    KINDS,
    RANGES,
    Coordinates,
    coordinates,
    draw_coordinates,
    loss_at,
    starts,
    strongest,
)

steady = settings(deadline=None, derandomize=True, max_examples=100)
epochs = st.integers(1, 300)


@st.composite
def places(draw: st.DrawFn) -> Coordinates:
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    limit = draw(st.sampled_from([0.15, 0.3, 0.6]))
    return draw_coordinates(generator, draw(st.sampled_from(KINDS)), limit=limit)


@steady
@given(places(), epochs)
def test_every_place_is_a_loss_that_begins_below_the_rule(place: Coordinates, epochs: int) -> None:
    text = loss_at(place, epochs=epochs)
    loss = parse_loss(text)
    assert format_loss(loss) == text
    if isinstance(loss, SparseRegularized):
        assert loss.weight_schedule(0) * loss.p < 1


@steady
@given(places(), st.integers(5, 300))
def test_a_loss_is_found_where_it_stands(place: Coordinates, epochs: int) -> None:
    found = coordinates(loss_at(place, epochs=epochs), epochs=epochs)
    assert found is not None
    for name, value in place.items():
        # The text has three digits; over a hundred epochs the fifth decimal of the growth counts.
        expected = pytest.approx(value, rel=0.02) if isinstance(value, float) else value
        assert found[name] == expected, name
    assert set(found) == set(place)


@pytest.mark.parametrize("classes", [2, 10, 100, 1000])
@pytest.mark.parametrize("epochs", [1, 10, 50, 200])
def test_the_first_trials_are_different_losses_within_the_ranges(classes: int, epochs: int) -> None:
    losses = starts(epochs=epochs, classes=classes)
    assert losses[:2] == ["ce", "gce(q=0.7)"]
    assert len(set(losses)) == len(losses) >= 6
    for loss in losses[1:]:
        place = coordinates(loss, epochs=epochs)
        assert place is not None
        assert place.pop("kind") in KINDS
        for name, value in place.items():
            if name in RANGES:
                assert RANGES[name][0] <= value <= RANGES[name][1]
            else:
                assert value in CHOICES[name]


def test_many_classes_begin_with_weak_regularizers() -> None:
    def first_pull(classes: int) -> float:
        place = coordinates(starts(epochs=50, classes=classes)[2], epochs=50)
        assert place is not None
        return place["pull"]

    assert first_pull(100) < 0.2 * first_pull(10)


@steady
@given(st.integers(2, 1000), st.none() | st.floats(0, 100))
def test_hard_data_is_never_allowed_more_than_easy_data(classes: int, plain: float | None) -> None:
    limit = strongest(classes=classes, plain=plain)
    assert RANGES["pull"][0] < limit <= strongest(classes=2, plain=None)


@pytest.mark.parametrize(
    "loss",
    ["ce", "mae", "nce+mae", "ce+sr(clamp=1e-7)", "ce+sr(smoothing=0.1)", "ce+sr(tau_rho=0.9)"],
)
def test_other_losses_have_no_place(loss: str) -> None:
    assert coordinates(loss, epochs=10) is None
