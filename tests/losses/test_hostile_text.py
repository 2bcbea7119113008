"""Text from a stranger does nothing but raise."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labelproof import Loss, LossSyntaxError, parse_loss

steady = settings(deadline=None, derandomize=True, max_examples=300)

WORDS = ["ce", "gce", "fl", "nl", "sr", "normalized", "q", "tau", "samples", "detach"]
WORDS += ["true", "none", "0.5", "1e-7", "1e999"]
CODE = [
    *("__import__('os').system('true')", "eval(ce)", "ce if True else mae", "lambda: ce"),
    *("ce.__class__", "__class__", "ce(__init__=1)", "gce(q=__import__)", "gce(**{})"),
    *("sr.__init__", "{ce}", "f'{ce}'", "ce\x00mae", "ce # comment", "ce\\", "$(ce)", "`ce`"),
    *("%s", "0x10*ce", "1_000*ce", "inf*ce", "nan*ce", "gce(q=inf)", "1e*ce"),
]
UNICODE = [
    "𝒸ℯ",
    "се",  # Cyrillic
    "ｃｅ",  # full width
    "ce＋mae",
    "ce+𝗺ae",
    "½*ce",
    "²*ce",
    "١٠*ce",  # Arabic digits
    "１０*ce",  # full-width digits
    "gce(q=०)",  # a Devanagari digit
    "gce(q=0.๗)",  # a Thai digit
    "ce\u202e",
    "ce\ud800",
    "😀",
]


def test_code_and_look_alikes():
    for text in (*CODE, *UNICODE):
        with pytest.raises(LossSyntaxError):
            parse_loss(text)


TOO_MUCH = [
    "(" * 100_000,
    "(" * 100_000 + "ce" + ")" * 100_000,
    "normalized(" * 10_000 + "ce" + ")" * 10_000,
    "2*(" * 10_000 + "ce" + ")" * 10_000,
    "ce" * 100_000,
    "ce(" + "q=1," * 100_000 + ")",
    "9" * 100_000 + "*ce",
    " " * 1_000_000,
    "+" * 100_000,
    "ce" + "+sr" * 2_000,
    "+".join(["ce"] * 1_000),
    "+".join(["ce"] * 101),
    "(" * 40 + "ce" + "+ce+ce+ce)" * 40,
    "0." + "1" * 50 + "*ce",
    "gce(q=0." + "0" * 50 + ")",
    "1e" + "9" * 50 + "*ce",
]


def test_too_much_of_anything():
    for text in TOO_MUCH:
        with pytest.raises(LossSyntaxError):
            parse_loss(text)


def test_an_error_in_a_long_text_can_still_be_read():
    for text in ("ce+" * 5 + "cx" * 5_000, " " * 50_000 + "cx", "ce)" * 5_000):
        with pytest.raises(LossSyntaxError) as caught:
            parse_loss(text)
        assert len(str(caught.value)) < 1_000


def test_a_long_but_honest_sum_is_read():
    assert isinstance(parse_loss("+".join(["0.5*gce(q=0.7)"] * 20) + "+sr"), Loss)


@steady
@given(
    text=st.one_of(
        st.text(max_size=40),
        st.text(alphabet="cegmrsaluhnpbdoizt()+*=,-.019 ", max_size=40),
        st.lists(
            st.sampled_from([*WORDS, *"=()+*,- "]),
            max_size=12,
        ).map("".join),
    )
)
@example(text="gce(q=-0)")
@example(text="nl(samples=1e300)")
@example(text="ce+sr(r=1e-320)")
@example(text="ce+sr(rho=1e308)")
def test_any_text_is_a_loss_or_an_error_that_points(text: str):
    try:
        result = parse_loss(text)
    except LossSyntaxError as error:
        result = error
    if isinstance(result, LossSyntaxError):
        assert 0 <= result.position <= len(text)
        assert str(result).endswith("^")
    else:
        assert isinstance(result, Loss)
