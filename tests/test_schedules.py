"""Schedules: values, bounds, and what they refuse."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof import constant, cosine, exponential, linear
from labelproof.schedules import Schedule, as_schedule

steady = settings(deadline=None, derandomize=True, max_examples=100)

epochs = st.floats(0, 1000)
values = st.floats(-100, 100)
durations = st.floats(0.01, 500)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (constant(0.5), {0: 0.5, 3.7: 0.5, 1000: 0.5}),
        (exponential(4, growth=2, every=5), {0: 4, 4: 4, 4.99: 4, 5: 8, 9: 8, 10: 16, 49: 2048}),
        (exponential(1.2, growth=1.03), {0: 1.2, 0.9: 1.2, 1: 1.236, 119: 1.2 * 1.03**119}),
        (exponential(1, growth=0.5, minimum=0.2), {0: 1, 1: 0.5, 2: 0.25, 3: 0.2, 500: 0.2}),
        (exponential(1, growth=2, maximum=5), {0: 1, 2: 4, 3: 5, 5000: 5}),
        (exponential(0, growth=2), {0: 0, 10: 0}),
        (exponential(3, growth=2, every=0.25), {0: 3, 0.25: 6, 0.5: 12, 1: 48}),
        (linear(0, 10, epochs=5), {0: 0, 1: 2, 2.5: 5, 5: 10, 50: 10}),
        (linear(10, 0, epochs=4), {0: 10, 1: 7.5, 4: 0}),
        (cosine(1, 0, epochs=10), {0: 1, 5: 0.5, 10: 0, 11: 0}),
        (cosine(0, 4, epochs=6), {0: 0, 2: 1, 3: 2, 4: 3, 6: 4}),
    ],
    ids=str,
)
def test_values(schedule: Schedule, expected: dict[float, float]):
    computed = {epoch: schedule(epoch) for epoch in expected}
    assert computed == pytest.approx(expected, rel=1e-12, abs=1e-12)


@steady
@given(
    initial=st.floats(0, 100),
    growth=st.floats(0.5, 2),
    every=st.sampled_from([0.5, 1, 2, 5]),
    epoch=st.integers(0, 60),
)
def test_exponential_is_the_formula(initial: float, growth: float, every: float, epoch: int):
    schedule = exponential(initial, growth=growth, every=every)
    expected = min(reference.decayed(initial, growth, every, epoch), 1e30)
    assert schedule(epoch) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("epoch", [1_100, 100_000, 1e300])
def test_growth_past_the_floats_ends_at_the_ceiling(epoch: float):
    assert exponential(1, growth=2)(epoch) == 1e30
    assert exponential(1, growth=2, maximum=7)(epoch) == 7
    assert exponential(1, growth=0.5)(epoch) == 0


@pytest.mark.parametrize("steps", [3, 7, 10, 49, 391, 1000])
def test_an_update_every_step_misses_none(steps: int):
    schedule = exponential(1, growth=2, every=1 / steps)
    assert [schedule(step / steps) for step in range(99)] == [2.0**step for step in range(99)]


@steady
@given(start=values, end=values, duration=durations, epoch=epochs)
def test_ramps_stay_between_their_ends(start: float, end: float, duration: float, epoch: float):
    for ramp in (linear(start, end, epochs=duration), cosine(start, end, epochs=duration)):
        low, high = min(start, end), max(start, end)
        assert low - 1e-12 <= ramp(epoch) <= high + 1e-12
        assert ramp(0) == start
        assert ramp(-1) == start


@steady
@given(start=values, end=values, duration=durations, beyond=st.floats(1, 100))
def test_ramps_arrive(start: float, end: float, duration: float, beyond: float):
    assert linear(start, end, epochs=duration)(duration * beyond) == end
    assert cosine(start, end, epochs=duration)(duration * beyond) == end


@pytest.mark.parametrize(
    ("make", "arguments", "name"),
    [
        (constant, {"value": math.nan}, "value"),
        (constant, {"value": "1"}, "value"),
        (constant, {"value": True}, "value"),
        (exponential, {"initial": -1, "growth": 2}, "initial"),
        (exponential, {"initial": math.inf, "growth": 2}, "initial"),
        (exponential, {"initial": 1, "growth": 0}, "growth"),
        (exponential, {"initial": 1, "growth": -2}, "growth"),
        (exponential, {"initial": 1, "growth": None}, "growth"),
        (exponential, {"initial": 1, "growth": 2, "every": 0}, "every"),
        (exponential, {"initial": 1, "growth": 2, "every": -1}, "every"),
        (exponential, {"initial": 1, "growth": 2, "minimum": -1}, "minimum"),
        (exponential, {"initial": 1, "growth": 2, "minimum": 3, "maximum": 2}, "maximum"),
        (exponential, {"initial": 1, "growth": 2, "maximum": math.inf}, "maximum"),
        (linear, {"start": None, "end": 1, "epochs": 1}, "start"),
        (linear, {"start": 0, "end": math.nan, "epochs": 1}, "end"),
        (linear, {"start": 0, "end": 1, "epochs": 0}, "epochs"),
        (cosine, {"start": 0, "end": "1", "epochs": 1}, "end"),
        (cosine, {"start": 0, "end": 1, "epochs": -3}, "epochs"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    make: Callable[..., Schedule], arguments: dict[str, Any], name: str
):
    with pytest.raises((TypeError, ValueError), match=f"^{name}: expected"):
        make(**arguments)


SCHEDULES: list[Schedule] = [
    constant(2),
    exponential(1.2, growth=1.03, every=2, minimum=0.1, maximum=9),
    linear(0, 1, epochs=5),
    cosine(1, 0, epochs=5),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_schedules_are_values(schedule: Schedule):
    for twin in (pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):  # noqa: S301
        assert twin == schedule
        assert hash(twin) == hash(schedule)
        assert twin(3) == schedule(3)
    assert schedule != linear(0, 1, epochs=7)
    with pytest.raises(AttributeError):
        schedule.value = 3  # pyright: ignore[reportFunctionMemberAccess]


def test_a_number_is_a_constant_schedule():
    assert as_schedule("weight", 3) == constant(3)
    schedule = exponential(1, growth=2)
    assert as_schedule("weight", schedule) is schedule
    assert as_schedule("weight", math.sqrt)(16) == 4
    with pytest.raises(TypeError, match="weight: expected a number"):
        as_schedule("weight", None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="weight: expected a finite number"):
        as_schedule("weight", math.inf)
