"""Losses read from text."""

import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from losses.catalogue import batch, value_and_gradient

import labelproof as lp
from labelproof.losses import LOSSES, EpsilonFocal, LogitClip, PointwiseLoss

ce, mae, sr = lp.CrossEntropy, lp.MeanAbsoluteError, lp.SparseRegularized
SPELLINGS: dict[str, Callable[[], lp.Loss]] = {
    "sce(alpha=6,beta=0.1,A=-4,clamp=1e-7)": lambda: lp.SymmetricCrossEntropy(
        6, 0.1, log_zero=-4, clamp=1e-7
    ),
    "epsfl(m=9,gamma=2,clamp=1e-8)": lambda: EpsilonFocal(9, 2, clamp=1e-8),
    "nce+mae+clip(delta=0.5)+sr": lambda: sr(LogitClip(lp.Normalized(ce()) + mae(), 0.5)),
    "ce+sr+clip(delta=2)+mae": lambda: LogitClip(sr(ce()), 2) + mae(),
    "gce+sr(tau=0.1,p=0.01,lambda0=4,rho=2,r=5,normalize=false,clamp=1e-7)": lambda: sr(
        *(lp.GeneralizedCrossEntropy(0.7), 0.1, 0.01, lp.exponential(4, growth=2, every=5)),
        normalize=False,
        clamp=1e-7,
    ),
    "ce+sr(tau=1,tau_rho=0.9,tau_min=0.2,r=2)": lambda: sr(
        ce(),
        lp.exponential(1, growth=0.9, every=2, minimum=0.2),
        weight=lp.exponential(1.2, growth=1.03, every=2),
    ),
    "ce+sr(lambda0=1,rho=2,lambda_max=3)": lambda: sr(
        ce(), weight=lp.exponential(1, growth=2, maximum=3)
    ),
    "ce+sr(smoothing=0.1)": lambda: sr(ce(), vector=0.1),
    "mae+(ce+sr)": lambda: mae() + sr(ce()),
    "0.5*(ce+sr)": lambda: sr(ce()) / 2,
    "(ce+sr)+sr(p=0.5)": lambda: sr(sr(ce()), p=0.5),
    "normalized(ce+sr)": lambda: lp.Normalized(sr(ce())),
}
"""What the catalogue's texts leave open: the names of arguments, and what binds to what."""


def same(left: lp.Loss, right: lp.Loss) -> bool:
    logits, label = batch(20, 5)
    for epoch in (0, 7):
        left.set_epoch(epoch)
        right.set_epoch(epoch)
        results = (value_and_gradient(loss, logits, label) for loss in (left, right))
        if not all(torch.equal(*pair) for pair in zip(*results, strict=True)):
            return False
    return True


def test_every_spelling_with_other_spaces_case_and_numbers():
    for text, make in SPELLINGS.items():
        assert same(lp.parse_loss(text), make()), text
    plain = lp.parse_loss("10*nce+0.1*gce(q=0.7,clamp=1e-7)+sr(normalize=true)")
    for text in (
        " 10 * nce + 0.1 * gce ( q = 0.7 , clamp = 1e-7 ) + sr ( normalize = true ) ",
        "10*NCE+0.1*GCE(q=0.7,clamp=1e-7)+SR(normalize=True)",
        "1e1*nce+.1*gce(q=.7,clamp=1.0E-07)+sr",
        "10.*nce\n\t+0.10*gce(q=7e-1,clamp=0.0000001)+sr()",
        "(((10*nce+(0.1*gce(q=0.7,clamp=1e-7)))))+sr",
    ):
        assert same(lp.parse_loss(text), plain)


def test_settings_reach_every_part():
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    loss = lp.parse_loss("2*nce+mae+sr", reduction="sum", weight=weight, ignore_index=3, check=True)
    for part in loss.modules():
        if isinstance(part, lp.Loss):
            assert (part.reduction, part.ignore_index, part.check) == ("sum", 3, True)
            assert part.class_weight is weight


def test_a_loss_of_the_users_own_has_a_name():
    class Quadratic(PointwiseLoss):
        def __init__(self, power: float = 2, **settings):
            super().__init__(**settings)
            self.power = power

        def pointwise(self, log_probability):
            return (1 - log_probability.exp()) ** self.power

    known = {**LOSSES, "quadratic": Quadratic}
    loss = lp.parse_loss("nquadratic(power=3)+0.5*quadratic+sr", losses=known)
    by_hand = lp.SparseRegularized(lp.Normalized(Quadratic(3)) + 0.5 * Quadratic())
    assert same(loss, by_hand)
    with pytest.raises(lp.LossSyntaxError, match="'quadratik'; did you mean 'quadratic'"):
        lp.parse_loss("quadratik", losses=known)


MISTAKES: dict[str, list[tuple[str, int]]] = {
    "expected a loss, got the end": [("", 0), ("ce+", 3)],
    "unknown loss 'may'; did you mean 'mae'?": [("10*nce+0.1*may", 11)],
    "did you mean 'ce'?": [("ce+cross_entropy", 3), ("CrossEntropyLoss", 0)],
    "did you mean 'fl'?": [("focal_loss", 0)],
    "unknown loss 'zzzzzz'": [("zzzzzz", 0)],
    "write nce+amse(a=30)": [("JAL-CE", 0)],
    "write ce and --algorithm elr": [("ELR", 0)],
    "'auto'; 'labelproof fit' takes it, and 'labelproof tune' searches": [("auto", 0)],
    "expected a loss, got": [("+ce", 0), ("-1*ce", 0), ("2*3*ce", 2), ("()", 1)],
    "expected '+' or the end, got": [("ce mae", 3), ("ce-mae", 2), ("ce*2", 2), ("ce)", 2)],
    "expected '*' between a number and the loss": [("2 ce", 2)],
    "coefficient: expected a finite number, got inf": [("1e999*ce", 0)],
    "expected ')' to close the parenthesis": [("(ce", 3)],
    "expected '(' after 'normalized'": [("normalized", 10)],
    "expected ')' to close the arguments": [("gce(q=0.7", 9)],
    "expected '=' after 'q'": [("gce(q)", 5)],
    "expected an argument such as name=value": [("gce(0.7)", 4), ("gce(q=0.7,)", 10)],
    "expected a number, true, false or none": [("gce(q=)", 6), ("gce(q=big)", 6)],
    "argument 'q' is given twice": [("ce+gce(q=0.7,q=0.8)", 13)],
    "gce takes q, clamp, got 'qq'; did you mean 'q'?": [("ce+gce(qq=1)", 7)],
    "ce takes no arguments, got 'q'": [("ce(q=1)", 3)],
    "takes": [("rce(log_zero=-4)", 4), ("nl(generator=1)", 3), ("ce+clip(tau=1)", 8)],
    "q: expected a number": [("ce+gce(q=2)", 3), ("ce+gce(q=none)", 3)],
    "detach: expected true or false, got 1.0": [("ce+fl(detach=1)", 3)],
    "A: expected a number below 0": [("ce+rce(A=4)", 3)],
    "tau:": [("ce+sr(tau=0)", 3)],
    "rho:": [("ce+sr(rho=0)", 3), ("ce+sr(tau=0.5,tau_rho=0)", 3)],
    "r:": [("ce+sr(r=0)", 3)],
    "lambda0:": [("ce+sr(lambda0=-1)", 3)],
    "lambda_max:": [("ce+sr(lambda_max=-1)", 3)],
    "smoothing:": [("ce+sr(smoothing=2)", 3)],
    "delta:": [("ce+clip(delta=0)", 3)],
    "'sr' comes once": [("sr", 0), ("ce+(sr)", 4), ("ce+2*sr", 3), ("ce+sr+sr", 6)],
    "'clip' comes once": [("ce+2*clip", 3), ("ce+clip+sr+clip", 11)],
    "unexpected character ';'": [("ce;mae", 2)],
}


def test_an_error_points_at_its_place():
    for problem, mistakes in MISTAKES.items():
        for text, position in mistakes:
            with pytest.raises(lp.LossSyntaxError) as caught:
                lp.parse_loss(text)
            message, shown, caret = str(caught.value).splitlines()
            assert problem in message, text
            assert shown == f"  {text}"
            assert caret == " " * (2 + position) + "^", text
            assert (caught.value.position, caught.value.text) == (position, text)


def test_an_error_is_a_value_error_that_travels_and_only_text_is_read():
    with pytest.raises(ValueError, match="unknown loss") as caught:
        lp.parse_loss("cx")
    twin = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert str(twin) == str(caught.value)
    assert twin.position == 0
    for text in (None, 3, b"ce", ["ce"], lp.CrossEntropy()):
        with pytest.raises(TypeError, match="text: expected a string"):
            lp.parse_loss(text)


steady = settings(deadline=None, derandomize=True, max_examples=80)

WORDS = ["ce", "gce", "fl", "nl", "sr", "normalized", "q", "tau", "samples", "detach"]
WORDS += ["true", "none", "0.5", "1e-7", "1e999"]
CODE = [
    *("__import__('os').system('true')", "eval(ce)", "ce if True else mae", "lambda: ce"),
    *("ce.__class__", "__class__", "ce(__init__=1)", "gce(q=__import__)", "gce(**{})"),
    *("sr.__init__", "{ce}", "f'{ce}'", "ce\x00mae", "ce # comment", "ce\\", "$(ce)", "`ce`"),
    *("%s", "0x10*ce", "1_000*ce", "inf*ce", "nan*ce", "gce(q=inf)", "1e*ce"),
]
# Letters of other alphabets, other widths and other digits; a lone surrogate.
UNICODE = ["𝒸ℯ", "се", "ｃｅ", "ce＋mae", "ce+𝗺ae", "½*ce", "²*ce", "١٠*ce", "１０*ce", "gce(q=०)"]
UNICODE += ["gce(q=0.๗)", "ce\u202e", "ce\ud800", "😀"]
TOO_MUCH = [
    *("(" * 100_000, "(" * 100_000 + "ce" + ")" * 100_000, "ce" * 100_000, " " * 1_000_000),
    *(f"{open_}{'ce'}{')' * 10_000}" for open_ in ("normalized(" * 10_000, "2*(" * 10_000)),
    *("ce(" + "q=1," * 100_000 + ")", "9" * 100_000 + "*ce", "+" * 100_000, "ce" + "+sr" * 2_000),
    *("gce(q=0." + "0" * 50 + ")", "1e" + "9" * 50 + "*ce"),
    *("ce+" * 5 + "cx" * 5_000, " " * 50_000 + "cx", "ce)" * 5_000),
]


def test_code_look_alikes_and_too_much_of_anything():
    for text in (*CODE, *UNICODE, *TOO_MUCH):
        with pytest.raises(lp.LossSyntaxError) as caught:
            lp.parse_loss(text)
        assert len(str(caught.value)) < 1_000
    assert isinstance(lp.parse_loss("+".join(["0.5*gce(q=0.7)"] * 20) + "+sr"), lp.Loss)


@steady
@given(
    text=st.one_of(
        st.text(max_size=40),
        st.text(alphabet="cegmrsaluhnpbdoizt()+*=,-.019 ", max_size=40),
        st.lists(st.sampled_from([*WORDS, *"=()+*,- "]), max_size=12).map("".join),
    )
)
@example(text="gce(q=-0)")
@example(text="nl(samples=1e300)")
@example(text="ce+sr(r=1e-320)")
@example(text="ce+sr(rho=1e308)")
def test_any_text_is_a_loss_or_an_error_that_points(text: str):
    try:
        result = lp.parse_loss(text)
    except lp.LossSyntaxError as error:
        result = error
    if isinstance(result, lp.LossSyntaxError):
        assert 0 <= result.position <= len(text)
        assert str(result).endswith("^")
    else:
        assert isinstance(result, lp.Loss)
