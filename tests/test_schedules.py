"""Schedules: values, bounds, and what they refuse."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from labelproof import constant, cosine, exponential, linear
from labelproof.schedules import Schedule, as_schedule


def test_values() -> None:
    for schedule, expected in (
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
    ):
        computed = {epoch: schedule(epoch) for epoch in expected}
        assert computed == pytest.approx(expected, rel=1e-12, abs=1e-12), schedule
    for epoch in (1_100, 100_000, 1e300):
        assert exponential(1, growth=2)(epoch) == 1e30
        assert exponential(1, growth=2, maximum=7)(epoch) == 7
        assert exponential(1, growth=0.5)(epoch) == 0


def test_ramps_stay_between_their_ends_and_arrive() -> None:
    for start, end, duration in ((-100, 100, 0.01), (3, -2.5, 7), (0.1, 0.1, 500)):
        for ramp in (linear(start, end, epochs=duration), cosine(start, end, epochs=duration)):
            for epoch in (0.004, 1, 3.3, 499, 1000):
                assert min(start, end) - 1e-12 <= ramp(epoch) <= max(start, end) + 1e-12
            assert ramp(0) == ramp(-1) == start
            assert ramp(duration) == ramp(9 * duration) == end


def test_what_cannot_be_meant_is_refused() -> None:
    grown, ramp = {"initial": 1, "growth": 2}, {"start": 0, "end": 1, "epochs": 1}
    refused: list[tuple[Callable[..., Schedule], dict[str, Any], dict[str, Any]]] = [
        *((constant, {}, {"value": value}) for value in (math.nan, "1", True)),
        *((exponential, grown, {"initial": value}) for value in (-1, math.inf)),
        *((exponential, grown, {"growth": value}) for value in (0, -2, None)),
        *((exponential, grown, {"every": value}) for value in (0, -1)),
        (exponential, grown, {"minimum": -1}),
        (exponential, grown | {"minimum": 3}, {"maximum": 2}),
        (exponential, grown, {"maximum": math.inf}),
        *((linear, ramp, wrong) for wrong in ({"start": None}, {"end": math.nan}, {"epochs": 0})),
        *((cosine, ramp, wrong) for wrong in ({"end": "1"}, {"epochs": -3})),
    ]
    for make, arguments, wrong in refused:
        with pytest.raises((TypeError, ValueError), match=f"^{next(iter(wrong))}: expected"):
            make(**arguments | wrong)


def test_schedules_are_values() -> None:
    bounded = exponential(1.2, growth=1.03, every=2, minimum=0.1, maximum=9)
    for schedule in (constant(2), bounded, linear(0, 1, epochs=5), cosine(1, 0, epochs=5)):
        for twin in (pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):  # noqa: S301
            assert twin == schedule
            assert hash(twin) == hash(schedule)
            assert twin(3) == schedule(3)
        assert schedule != linear(0, 1, epochs=7)
        with pytest.raises(AttributeError):
            schedule.value = 3


def test_a_number_is_a_constant_schedule():
    assert as_schedule("weight", 3) == constant(3)
    schedule = exponential(1, growth=2)
    assert as_schedule("weight", schedule) is schedule
    assert as_schedule("weight", math.sqrt)(16) == 4
