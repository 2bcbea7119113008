"""Losses written as text, and read back."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.catalogue import PLAIN, batch
from torch import nn

import labelproof as lp
from labelproof.losses import LOSSES

steady = settings(deadline=None, derandomize=True, max_examples=50)

REGULARIZERS = [
    *("sr", "sr(tau=0.01,lambda0=3e20,rho=0.9,r=0.5)", "sr(p=1,normalize=false,clamp=1e-7)"),
    *("sr(tau=0.3,tau_rho=0.9,tau_min=0.05,r=5)", "sr(rho=2,lambda_max=2.5,smoothing=0.1)"),
]
CLIPS = ["clip", "clip(delta=0.125)"]
# The catalogue's, and some with other arguments.
ELEMENTARY = [case.name for case in PLAIN if "+" not in case.name]
ELEMENTARY += ["nrce(A=-0.001,clamp=0.5)", "gce(q=0.123456789,clamp=none)", "nl(samples=200)"]
ELEMENTARY += ["nsce(alpha=1e-7,beta=3e5,clamp=0.01)", "epsfl(m=12345.6,gamma=5,clamp=0.5)"]


def grouped(text: str) -> str:
    """In parentheses where it brings an `sr` or a `clip` along: a sum takes one of each."""
    return f"({text})" if "+sr" in text or "+clip" in text else text


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner.map(grouped), min_size=2, max_size=3).map("+".join),
        st.tuples(st.floats(0, 1e6), inner).map(lambda pair: f"{pair[0]}*({pair[1]})"),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"normalized({text})"),
        st.tuples(inner.map(grouped), st.sampled_from([*REGULARIZERS, *CLIPS])).map("+".join),
    )


expressions = st.recursive(st.sampled_from(ELEMENTARY), larger, max_leaves=5)


def values(loss: lp.Loss) -> list[float]:
    """The loss for every label at two epochs, where negative learning is its expectation."""
    logits, label = batch(3, 4)
    share = torch.softmax(batch(3, 4, seed=1)[0], dim=1)
    for part in loss.modules():
        if hasattr(part, "expected"):
            part.expected = True
    results = []
    for epoch in (0, 6):
        loss.set_epoch(epoch)
        results += [float(loss(logits, target)) for target in (label, share)]
    return results


@steady
@given(text=expressions)
def test_what_is_written_is_what_was_read(text: str):
    loss = lp.parse_loss(text)
    written = lp.format_loss(loss)
    again = lp.parse_loss(written)
    assert lp.format_loss(again) == written
    assert " " not in written
    assert values(again) == pytest.approx(values(loss), rel=1e-9, nan_ok=True)


FULL = "sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1,normalize=true"
SAME = f"""
ce mae rce rce(A=-4) rce(A=-4,clamp=1e-7) fl(gamma=0.5) fl(gamma=0.5,detach=true) gce(q=0.7)
gce(q=0.01,clamp=1e-7) sce(alpha=0.1,beta=1) sce(alpha=6,beta=0.1,A=-4,clamp=1e-7) phuber(tau=10)
nl(samples=1) nl(samples=110,expected=true,clamp=1e-5) nce nfl(gamma=0.5,detach=true) ngce(q=0.7)
normalized(nce) normalized(ce+mae) 10*nce+0.1*mae 0*ce+mae 1e20*ce+1e-5*mae ce+{FULL})
ce+sr(tau=0.1,p=0.01,lambda0=4,rho=2,r=5,normalize=false,clamp=1e-7)
ce+sr(tau=1,p=0.1,lambda0=1.2,rho=1.03,r=2,normalize=true,tau_rho=0.9,tau_min=0.2)
ce+{FULL},smoothing=0.1) ce+{FULL},lambda_max=4)
"""
SHORT = f"{FULL})"
SHORTEST = {
    "nfl": "nfl(gamma=0.5)",
    "2*(ce+3*mae)": "2*ce+6*mae",
    "(ce+mae)+rce": "ce+mae+rce",
    **dict.fromkeys(("normalized(ce)", "normalized(1*ce)", "normalized((ce))"), "nce"),
    "1*ce": "ce",
    "epsce(m=1e5)": "epsce(m=100000)",
    "gce(clamp=none)": "gce(q=0.7)",
    "ce+mae+sr": f"ce+mae+{SHORT}",
    "ce+sr+mae": f"ce+{SHORT}+mae",
    "mae+(ce+sr)": f"mae+(ce+{SHORT})",
    "2*(ce+sr)": f"2*(ce+{SHORT})",
    "(ce+sr)+(ce+sr)": f"ce+{SHORT}+(ce+{SHORT})",
    "normalized(ce+sr)": f"normalized(ce+{SHORT})",
    "(ce+sr)+sr": f"(ce+{SHORT})+{SHORT}",
    "((ce+sr)+mae)+sr": f"(ce+{SHORT}+mae)+{SHORT}",
    "2*(ce+sr)+sr": f"2*(ce+{SHORT})+{SHORT}",
    "ce+clip+sr": f"ce+clip(delta=1)+{SHORT}",
    "(ce+clip+sr)+clip": f"(ce+clip(delta=1)+{SHORT})+clip(delta=1)",
    "mae+(ce+clip)": "mae+(ce+clip(delta=1))",
}


def test_the_shortest_form_that_says_everything_begins_with_the_losss_own_name():
    for text in SAME.split():
        assert lp.format_loss(lp.parse_loss(text)) == text
    for text, written in SHORTEST.items():
        assert lp.format_loss(lp.parse_loss(text)) == written
        assert lp.format_loss(lp.parse_loss(written)) == written
    for name, family in LOSSES.items():
        assert lp.format_loss(family()).split("(")[0] == name
        assert lp.format_loss(lp.Normalized(family())).split("(")[0] == f"n{name}"


sparse = partial(lp.SparseRegularized, lp.CrossEntropy())


def test_what_has_no_text_is_refused_rather_than_bent():
    for loss in (
        sparse(weight=lp.cosine(1, 2, epochs=10)),
        sparse(weight=lambda epoch: 1.0),
        sparse(temperature=lp.cosine(1, 0.5, epochs=10)),
        sparse(weight=lp.exponential(1, growth=0.5, minimum=0.1)),
        sparse(temperature=lp.exponential(1, growth=0.5, minimum=0.1, maximum=0.9)),
        sparse(temperature=lp.exponential(1, growth=0.5, every=3)),
        sparse(vector=torch.tensor([0.5, 0.3, 0.2])),
        lp.SparseRegularized(nn.CrossEntropyLoss()),
        lp.as_loss(nn.CrossEntropyLoss()),
        lp.Focal() + lp.as_loss(nn.MultiMarginLoss()),
    ):
        with pytest.raises(ValueError, match=r"loss: .* text form"):
            lp.format_loss(loss)


def test_what_does_not_grow_is_a_constant():
    for options, written in (
        ({"weight": 3}, "tau=0.5,p=0.1,lambda0=3,rho=1"),
        ({"weight": lp.constant(3)}, "tau=0.5,p=0.1,lambda0=3,rho=1"),
        ({"temperature": lp.constant(0.8)}, "tau=0.8,p=0.1,lambda0=1.2,rho=1.03"),
    ):
        text = f"ce+sr({written},r=1,normalize=true)"
        assert lp.format_loss(sparse(**options)) == lp.format_loss(lp.parse_loss(text)) == text
