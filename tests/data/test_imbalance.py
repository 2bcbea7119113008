from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.data.splits import Imbalance, parse_imbalance

CIFAR10 = np.arange(50_000) % 10
KINDS = ("long-tailed", "step")


def test_imbalances_keep_the_published_counts_and_the_seed_decides_which() -> None:
    published = [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    tail = Imbalance("long-tailed", 0.01)
    assert tail.counts(5000, 10) == published
    assert np.bincount(CIFAR10[tail.keep(CIFAR10, seed=1)]).tolist() == published
    step = Imbalance("step", 0.01).keep(CIFAR10, seed=1)
    assert np.bincount(CIFAR10[step]).tolist() == [5000] * 5 + [50] * 5
    assert Imbalance("step", 0.5).counts(100, 3) == [100, 100, 50]
    step, tail = Imbalance("step", 0.3), Imbalance("long-tailed", 0.25)
    kept = step.keep(np.arange(20) % 2, seed=0)
    assert kept.tolist() == [0, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 16, 18]
    assert tail.keep(np.arange(12) % 3, seed=5).tolist() == [0, 3, 4, 6, 7, 8, 9]
    first, again, other = (step.keep(CIFAR10, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=12).filter(lambda sizes: sizes[-1] > 0),
    st.floats(0.01, 1),
    st.integers(0, 2**32),
)
def test_unequal_classes_give_what_they_have(sizes: list[int], factor: float, seed: int) -> None:
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    for kind in KINDS:
        kept = Imbalance(kind, factor).keep(labels, seed=seed)
        assert (np.diff(kept) > 0).all()
        wanted = np.minimum(sizes, Imbalance(kind, factor).counts(max(sizes), len(sizes)))
        np.testing.assert_array_equal(np.bincount(labels[kept], minlength=len(sizes)), wanted)


def test_bad_arguments_are_named() -> None:
    cases: list[tuple[str, Any, Any]] = [
        *(("factor", [0, 1], factor) for factor in (0, 1.5, "0.1")),
        *(("labels", labels, 0.1) for labels in ([0, 0], np.empty(0, int), [0.0, 1.0], [0, -1])),
    ]
    for name, labels, factor in cases:
        for kind in KINDS:
            with pytest.raises((TypeError, ValueError), match=f"^{name}: expected"):
                Imbalance(kind, factor).keep(labels, seed=0)


def test_imbalance_texts_have_one_form() -> None:
    for text, canonical in {" None ": "none", "STEP:.10": "step:0.1", "step:1.0": "step:1"}.items():
        assert str(parse_imbalance(text)) == canonical
        assert parse_imbalance(canonical) == parse_imbalance(text)
    for text in (
        "",
        "step",
        "none:0.1",
        "step:a",
        "step:0.1:0.2",
        "step:0",
        "step:1.5",
        "step:nan",
    ):
        with pytest.raises(ValueError, match=r"^imbalance(: expected none, | factor: )"):
            parse_imbalance(text)
    for text, meant in {"long_tailed:0.1": "long-tailed", "steps:0.1": "step"}.items():
        with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
            parse_imbalance(text)
