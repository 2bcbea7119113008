from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.data.imbalance import (
    Imbalance,
    keep_counts,
    keep_long_tailed,
    keep_step,
    long_tailed_counts,
    parse_imbalance,
    step_counts,
)

CIFAR10 = np.arange(50_000) % 10


def test_the_published_long_tail_comes_out() -> None:
    published = [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    assert long_tailed_counts(5000, 10, 0.01) == published
    kept = keep_long_tailed(CIFAR10, 0.01, seed=1)
    assert np.bincount(CIFAR10[kept]).tolist() == published


@pytest.mark.parametrize("factor", [0.01, 0.02, 0.05, 0.1, 0.2, 1.0])
@pytest.mark.parametrize(("largest", "num_classes"), [(5000, 10), (500, 100)])
def test_counts_are_the_published_codes(largest: int, num_classes: int, factor: float) -> None:
    tail = [int(largest * factor ** (i / (num_classes - 1.0))) for i in range(num_classes)]
    assert long_tailed_counts(largest, num_classes, factor) == tail
    half = num_classes // 2
    assert (
        step_counts(largest, num_classes, factor)
        == [largest] * half + [int(largest * factor)] * half
    )


def test_a_step_of_an_odd_number_of_classes_keeps_the_middle() -> None:
    assert step_counts(100, 3, 0.5) == [100, 100, 50]


def test_the_step_comes_out() -> None:
    kept = keep_step(CIFAR10, 0.01, seed=1)
    assert np.bincount(CIFAR10[kept]).tolist() == [5000] * 5 + [50] * 5


def test_no_class_is_lost_altogether() -> None:
    assert long_tailed_counts(500, 3, 0.0001) == [500, 5, 1]
    assert step_counts(5, 2, 0.1) == [5, 1]


def test_factor_one_keeps_everything() -> None:
    for keep in (keep_long_tailed, keep_step):
        np.testing.assert_array_equal(keep(CIFAR10, 1, seed=1), np.arange(50_000))


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=12).filter(lambda sizes: sizes[-1] > 0),
    st.floats(0.01, 1),
    st.integers(0, 2**32),
)
def test_unequal_classes_give_what_they_have(sizes: list[int], factor: float, seed: int) -> None:
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    for keep, count in ((keep_long_tailed, long_tailed_counts), (keep_step, step_counts)):
        kept = keep(labels, factor, seed=seed)
        assert (np.diff(kept) > 0).all()
        wanted = np.minimum(sizes, count(max(sizes), len(sizes), factor))
        np.testing.assert_array_equal(np.bincount(labels[kept], minlength=len(sizes)), wanted)


def test_the_seed_decides_and_the_choice_is_pinned() -> None:
    labels = np.arange(20) % 2
    assert keep_step(labels, 0.3, seed=0).tolist() == [0, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 16, 18]
    assert keep_long_tailed(np.arange(12) % 3, 0.25, seed=5).tolist() == [0, 3, 4, 6, 7, 8, 9]
    first, again, other = (keep_step(CIFAR10, 0.1, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)


def test_a_larger_count_keeps_what_a_smaller_one_keeps() -> None:
    few, many = (keep_counts(CIFAR10, [count] * 10, seed=3) for count in (20, 200))
    assert set(few) <= set(many)


def test_the_choice_is_uniform() -> None:
    kept = np.concatenate([keep_counts(np.zeros(10, int), [3], seed=seed) for seed in range(2000)])
    # Five standard deviations of 2,000 draws with chance 0.3.
    assert np.abs(np.bincount(kept) - 600).max() < 5 * np.sqrt(2000 * 0.21)


@pytest.mark.parametrize(
    ("labels", "factor", "error", "message"),
    [
        ([0, 1], 0, ValueError, r"factor: expected a number in \(0, 1\], got 0"),
        ([0, 1], 1.5, ValueError, r"factor: expected a number in \(0, 1\], got 1.5"),
        ([0, 1], "0.1", TypeError, "factor: expected a number"),
        ([0, 0], 0.1, ValueError, "num_classes: expected at least 2, got 1"),
        (np.empty(0, int), 0.1, ValueError, "largest: expected a class of at least 1 sample"),
        ([0.0, 1.0], 0.1, TypeError, "labels: expected one integer per sample"),
        ([0, -1], 0.1, ValueError, "labels: expected class indices of at least 0, got -1"),
    ],
)
def test_bad_arguments_are_named(
    labels: list, factor: float, error: type[Exception], message: str
) -> None:
    for keep in (keep_long_tailed, keep_step):
        with pytest.raises(error, match=message):
            keep(labels, factor, seed=0)


def test_bad_counts_are_named() -> None:
    for counts in ([1, 1], [1, 1, -1]):
        with pytest.raises(ValueError, match=r"counts: expected .* 3 classes"):
            keep_counts([0, 1, 2], counts, seed=0)


@pytest.mark.parametrize(
    ("text", "keep"), [("long-tailed:0.02", keep_long_tailed), ("step:0.02", keep_step)]
)
def test_an_imbalance_in_words_keeps_what_its_function_keeps(text: str, keep: Callable) -> None:
    kept = parse_imbalance(text).keep(CIFAR10, seed=4)
    np.testing.assert_array_equal(kept, keep(CIFAR10, 0.02, seed=4))


def test_no_imbalance_keeps_everything_and_still_looks_at_the_labels() -> None:
    np.testing.assert_array_equal(parse_imbalance("none").keep([3, 0, 1], seed=1), [0, 1, 2])
    with pytest.raises(TypeError, match="labels: expected one integer per sample"):
        parse_imbalance("none").keep([0.5], seed=1)


@settings(derandomize=True, deadline=None)
@given(
    st.one_of(
        st.just(Imbalance("none")),
        st.builds(Imbalance, st.sampled_from(["long-tailed", "step"]), st.floats(1e-9, 1)),
    )
)
def test_an_imbalance_prints_as_the_text_it_is_read_from(imbalance: Imbalance) -> None:
    assert parse_imbalance(str(imbalance)) == imbalance


def test_imbalance_texts_have_one_form() -> None:
    for text, canonical in {" None ": "none", "STEP:.10": "step:0.1", "step:1.0": "step:1"}.items():
        assert str(parse_imbalance(text)) == canonical
    for text in (
        *("", "step", "none:0.1", "step:a", "step:0.1:0.2"),
        *("step:0", "step:1.5", "step:nan"),
    ):
        with pytest.raises(ValueError, match=f"imbalance: expected none, .* got '{text}'"):
            parse_imbalance(text)
    for text, meant in {"long_tailed:0.1": "long-tailed", "steps:0.1": "step"}.items():
        with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
            parse_imbalance(text)
