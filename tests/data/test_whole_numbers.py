from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from labelproof.data.classes import order_classes
from labelproof.data.whole_numbers import alike, plain_number


@given(st.integers(), st.integers(0, 3), st.sampled_from(["", ".", ".0", ".00"]))
def test_a_number_is_plain_however_it_is_written(value: int, zeros: int, end: str) -> None:
    sign = "-" if value < 0 else ""
    assert plain_number(f"{sign}{'0' * zeros}{abs(value)}{end}") == str(value)


@given(st.text())
def test_a_plain_number_is_the_plainest(text: str) -> None:
    assert plain_number(plain_number(text)) == plain_number(text)


@given(st.lists(st.sampled_from(["1", "01", "1.0", "2", "a"]), unique=True))
def test_two_names_never_become_one(names: list[str]) -> None:
    left, right = alike(names, ["1"])
    assert len(set(left)) == len(names)
    assert len(right) == 1


@given(st.lists(st.integers(0, 10**30), min_size=1, unique=True))
def test_numbers_are_ordered_by_value(values: list[int]) -> None:
    assert order_classes(map(str, values)) == tuple(map(str, sorted(values)))


def test_very_long_numbers_have_an_order() -> None:
    assert order_classes(["9" * 5000, "10", "9"]) == ("9", "10", "9" * 5000)
