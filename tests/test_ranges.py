"""Numbers checked at the door."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from labelproof.ranges import finite, flag, suggest, within


@pytest.mark.parametrize(
    "value", [0, -3, 2.5, Fraction(1, 2), np.float32(0.5), np.float64(0.1), np.int64(4)]
)
def test_any_real_number_becomes_a_float(value: Any):
    number = finite("rate", value)
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize("value", ["1", None, True, np.True_, 1j, [1.0], np.array([1.0])], ids=repr)
def test_what_is_no_number_is_refused(value: Any):
    with pytest.raises(TypeError, match=r"^rate: expected a number, got "):
        finite("rate", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_what_is_not_finite_is_refused(value: Any):
    with pytest.raises(ValueError, match=r"^rate: expected a finite number, got "):
        finite("rate", value)


def test_a_number_past_the_floats_is_refused():
    with pytest.raises(ValueError, match=r"^rate: expected a finite number"):
        finite("rate", 10**400)


@pytest.mark.parametrize(
    ("value", "low", "high", "open_low", "message"),
    [
        (0, 0, 1, True, r"q: expected a number in (0, 1], got 0"),
        (1.5, 0, 1, False, r"q: expected a number in [0, 1], got 1.5"),
        (-1, 0, math.inf, False, r"q: expected a number in [0, ∞), got -1"),
        (1, 1, math.inf, True, r"q: expected a number in (1, ∞), got 1"),
    ],
)
def test_outside(value: float, low: float, high: float, open_low: bool, message: str):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole message is compared)
        within("q", value, low, high, open_low=open_low)
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [True, False])
def test_a_flag_is_returned(value: bool):
    assert flag("detach", value) is value


@pytest.mark.parametrize("value", [0, 1, None, "true", 1.0, np.True_])
def test_a_flag_is_nothing_else(value: Any):
    with pytest.raises(TypeError, match=r"^detach: expected true or false, got "):
        flag("detach", value)


@pytest.mark.parametrize(
    ("value", "known", "near"),
    [
        ("0.3", ["0.0", "0.2", "0.8"], None),
        ("12", ["1", "2", "120"], None),
        (".4", ["0.2", "0.4"], "0.4"),
        ("1.0", ["0.01", "1"], "1"),
        ("0.6", ["0.8", "sym-0.6"], "sym-0.6"),
        ("inf", ["info", "none"], "info"),
        ("0.4x", ["0.4", "0.8"], "0.4"),
    ],
)
def test_a_number_is_near_by_its_value_and_not_by_its_digits(
    value: str, known: list[str], near: str | None
):
    assert suggest(value, known) == ("" if near is None else f"; did you mean {near!r}?")
