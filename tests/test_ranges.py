"""Numbers checked at the door."""

import math
from fractions import Fraction

import numpy as np
import pytest

from labelproof.ranges import finite, flag, within


def test_a_finite_number_becomes_a_float_a_flag_stays_and_all_else_is_refused() -> None:
    for value in (0, -3, 2.5, Fraction(1, 2), np.float32(0.5), np.float64(0.1), np.int64(4)):
        number = finite("rate", value)
        assert type(number) is float
        assert number == value
    for value in ("1", None, True, np.True_, 1j, [1.0], np.array([1.0])):
        with pytest.raises(TypeError, match=r"^rate: expected a number, got "):
            finite("rate", value)
    for value in (math.nan, math.inf, -math.inf, np.float32("nan")):
        with pytest.raises(ValueError, match=r"^rate: expected a finite number, got "):
            finite("rate", value)
    assert (flag("detach", True), flag("detach", False)) == (True, False)
    for value in (0, 1, None, "true", 1.0, np.True_):
        with pytest.raises(TypeError, match=r"^detach: expected true or false, got "):
            flag("detach", value)


def test_a_number_outside_its_range_is_told_the_range() -> None:
    for value, low, high, open_low, message in (
        (0, 0, 1, True, "q: expected a number in (0, 1], got 0"),
        (1.5, 0, 1, False, "q: expected a number in [0, 1], got 1.5"),
        (-1, 0, math.inf, False, "q: expected a number in [0, ∞), got -1"),
        (1, 1, math.inf, True, "q: expected a number in (1, ∞), got 1"),
    ):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole message is compared)
            within("q", value, low, high, open_low=open_low)
        assert str(caught.value) == message
