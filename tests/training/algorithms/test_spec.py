"""Algorithms as text."""

from __future__ import annotations

import pytest

from labelproof import parse_loss
from labelproof.training.algorithms import (
    ALGORITHMS,
    Algorithm,
    CoTeaching,
    NegativeToPositive,
    Supervised,
    format_algorithm,
    make_algorithm,
)


def made(text: str, noise_rate: float | None = None, epochs: int | None = 8) -> Algorithm:
    return make_algorithm(
        text,
        parse_loss("ce"),
        num_classes=10,
        num_examples=20,
        noise_rate=noise_rate,
        epochs=epochs,
    )


def test_texts_have_one_form():
    for text, canonical in {
        " Supervised() ": "supervised",
        "co-teaching": "co-teaching",
        "co-teaching(ramp=5, rate=.40)": "co-teaching(rate=0.4,ramp=5)",
        "co-teaching(rate=estimate)": "co-teaching(rate=estimate)",
        "CO-TEACHING(exponent=1e0)": "co-teaching(exponent=1)",
        "nlnl(selective=0.25,negative=0.5)": "nlnl(negative=0.5,selective=0.25)",
        "ELR(lambda=3.0, beta=.7)": "elr(beta=0.7,lambda=3)",
        "nlnl(negative=720, samples=110)": "nlnl(negative=720,samples=110)",
    }.items():
        assert format_algorithm(text) == format_algorithm(canonical) == canonical
        assert type(made(text)) is ALGORITHMS[canonical.partition("(")[0]]


def test_arguments_arrive():
    peers = made("co-teaching(rate=0.25,ramp=5,exponent=2)")
    assert isinstance(peers, CoTeaching)
    assert (float(peers.noise_rate), peers.ramp_epochs, peers.exponent) == (0.25, 5, 2)
    stages = made("nlnl(negative=0.25,selective=3,samples=4)")
    assert isinstance(stages, NegativeToPositive)
    assert (stages.first_selective, stages.first_positive, stages.samples) == (2, 5, 4)
    assert isinstance(made("supervised", noise_rate=0.3), Supervised)


def test_the_runs_noise_rate_serves_where_the_text_gives_none():
    for text, known, expected in (
        ("co-teaching", 0.5, 0.5),
        ("co-teaching(rate=0.25)", 0.5, 0.25),
        ("co-teaching(ramp=3)", 0.0, 0.0),
        ("co-teaching(rate=estimate)", 0.5, None),
        ("co-teaching", None, None),
    ):
        algorithm = made(text, noise_rate=known)
        assert isinstance(algorithm, CoTeaching)
        assert algorithm.estimates == (expected is None)
        assert float(algorithm.noise_rate) == (expected or 0)


def test_mistakes_are_named():
    for text, named in {
        "co-teching": "did you mean 'co-teaching'",
        "zzz": "supervised, co-teaching, nlnl, elr, got 'zzz'",
        "": "expected a name",
        "nlnl(": "expected an argument",
        "co-teaching(rat=0.4)": "rate, ramp, exponent, got 'rat'; did you mean 'rate'",
        "supervised(rate=1)": "supervised takes no arguments, got 'rate'",
        "co-teaching(0.4)": "expected an argument",
        "co-teaching(rate=0.4,)": "expected an argument",
        "co-teaching(rate=0.4,rate=0.5)": "'rate' is given twice",
        "co-teaching(rate=estimat)": "did you mean 'estimate'",
        "co-teaching(ramp=estimate)": "ramp in co-teaching, got 'estimate'",
    }.items():
        with pytest.raises(ValueError, match=f"^algorithm: .*{named}"):
            format_algorithm(text)
    for text, named in {
        "co-teaching(rate=1.5)": "noise_rate",
        "nlnl(samples=0)": "samples",
    }.items():
        with pytest.raises(ValueError, match=rf"^algorithm [\w-]+\(.*\): {named}: expected"):
            made(text)
    with pytest.raises(TypeError, match="algorithm: expected a string"):
        format_algorithm(3)  # pyright: ignore[reportArgumentType]


def test_shares_need_the_length_of_the_run():
    with pytest.raises(ValueError, match=r"^algorithm nlnl: negative_epochs: expected whole"):
        made("nlnl", epochs=None)
    assert isinstance(made("nlnl(negative=5,selective=2)", epochs=None), NegativeToPositive)
