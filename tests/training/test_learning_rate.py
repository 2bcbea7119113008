from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.training.configuration import Configuration, LearningRate, parse_learning_rate

steady = settings(deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("cosine", lambda t: 0.1 * (1 + math.cos(math.pi * t / 40)) / 2),
        ("cosine:0.02", lambda t: 0.02 + 0.08 * (1 + math.cos(math.pi * t / 40)) / 2),
        ("constant", lambda t: 0.1),
        ("exponential:0.97", lambda t: 0.1 * 0.97**t),
        ("step:15:0.1", lambda t: 0.1 * 0.1 ** (t // 15)),
    ],
)
def test_every_epochs_rate_is_the_formulas(text: str, formula) -> None:
    schedule = parse_learning_rate(text).over(0.1, epochs=40)
    rates = [schedule(epoch) for epoch in range(40)]
    assert rates == pytest.approx([formula(epoch) for epoch in range(40)], rel=1e-12)


factors = st.floats(1e-6, 10)


@steady
@given(
    st.one_of(
        st.sampled_from(["cosine", "constant"]).map(LearningRate),
        st.floats(0, 10).map(lambda floor: LearningRate("cosine", floor=floor)),
        factors.map(lambda factor: LearningRate("exponential", factor)),
        st.builds(LearningRate, st.just("step"), factors, st.integers(1, 10**9)),
    )
)
def test_what_is_printed_is_read_as_the_same(rate: LearningRate) -> None:
    assert parse_learning_rate(str(rate)) == rate


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" Cosine ", "cosine"),
        ("cosine:0", "cosine"),
        ("cosine:-0.0", "cosine"),
        ("Cosine:1e-3", "cosine:0.001"),
        ("cosine:2.0", "cosine:2"),
        ("EXPONENTIAL:.97", "exponential:0.97"),
        ("step:30:1e-1", "step:30:0.1"),
        ("step:30.0:1", "step:30:1"),
        ("exponential:0.97654321", "exponential:0.97654321"),
    ],
)
def test_texts_are_brought_to_one_form(text: str, canonical: str) -> None:
    assert str(parse_learning_rate(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "linear", "cosine:", "cosine:a", "cosine:0.1:2", "constant:0.1"),
        *("exponential", "exponential:", "exponential:a", "exponential:0.9:1"),
        *("step:3", "step:3:0.1:2", "step::0.1"),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^schedule: expected cosine, cosine:FLOOR, constant"):
        parse_learning_rate(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cosin", "did you mean 'cosine'"),
        ("exponental:0.9", "did you mean 'exponential'"),
        ("stp:3:0.1", "did you mean 'step'"),
        ("cosine:-0.1", r"schedule floor: expected a number in \[0"),
        ("cosine:inf", "schedule floor: expected a finite number"),
        ("exponential:0", r"schedule factor: expected a number in \(0"),
        ("exponential:-1", r"schedule factor: expected a number in \(0"),
        ("exponential:nan", "schedule factor: expected a finite number"),
        ("step:0:0.1", "schedule epochs: expected a whole number of at least 1"),
        ("step:2.5:0.1", "schedule epochs: expected a whole number of at least 1"),
        ("step:inf:0.1", "schedule epochs: expected a finite number"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_learning_rate(text)


def test_a_known_kind_gets_no_suggestion() -> None:
    with pytest.raises(ValueError, match=r"got 'cosine:3:4'$"):
        parse_learning_rate("cosine:3:4")


@steady
@given(st.floats(1e-6, 10), st.floats(0, 1), st.integers(1, 300))
def test_a_cosine_falls_from_the_initial_rate_to_its_floor(
    initial: float, share: float, epochs: int
) -> None:
    floor = share * initial
    schedule = LearningRate("cosine", floor=floor).over(initial, epochs=epochs)
    rates = [schedule(epoch) for epoch in range(epochs + 1)]
    assert rates[0] == pytest.approx(initial)
    assert rates[-1] == floor
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(rates))


def test_a_floor_above_the_rate_is_refused_where_both_are_known() -> None:
    message = r"^schedule: expected a floor of at most the learning rate, 0\.01, got 'cosine:0\.1'$"
    with pytest.raises(ValueError, match=message):
        parse_learning_rate("cosine:0.1").over(0.01, epochs=3)
    with pytest.raises(ValueError, match=message):
        Configuration("digits", learning_rate=0.01, schedule="cosine:.1")
    level = Configuration("digits", learning_rate=0.1, schedule="cosine:.1")
    assert level.schedule == "cosine:0.1"


def test_a_floor_of_zero_is_the_same_run_as_none() -> None:
    without, given = (Configuration("digits", schedule=text) for text in ("cosine", "cosine:0"))
    assert given == without
    assert given.name == without.name
