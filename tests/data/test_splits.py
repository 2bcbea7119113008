import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_images import write_images
from notices import told
from numpy.typing import NDArray

from labelproof.data import load_dataset, splits
from labelproof.training.configuration import Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.provenance import fingerprint
from labelproof.tuning.search import choose_validation

CIFAR10 = np.arange(50_000) % 10
KINDS = ("long-tailed", "step")
sizes = st.lists(st.integers(0, 30), min_size=1, max_size=12).filter(lambda found: sum(found) > 1)
seeds = st.integers(0, 2**32)


def labels_of(found: list[int], seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(found)), found))


@settings(derandomize=True, max_examples=40)
@given(sizes, st.floats(0.01, 0.99), seeds)
def test_classes_give_their_share_and_keep_one(found: list[int], share: float, seed: int) -> None:
    labels = labels_of(found, seed)
    train, validation = splits.hold_out(labels, share, seed=seed)
    assert sorted([*train, *validation]) == list(range(len(labels)))
    held = np.bincount(labels[validation], minlength=len(found))
    most = np.maximum(np.array(found) - 1, 0)
    assert (held <= most).all()
    assert (np.abs(held - np.minimum(share * np.array(found), most)) < 1 + 1e-6).all()
    wanted = round(share * len(labels))
    if len(validation) != wanted:
        assert len(validation) < wanted
        assert (held == most).any()


@settings(derandomize=True, max_examples=40)
@given(sizes, st.integers(2, 7), seeds)
def test_folds_hold_all_out_once_and_are_alike(found: list[int], count: int, seed: int) -> None:
    labels = labels_of(found, seed)
    count = min(count, len(labels))
    cut = splits.folds(labels, count, seed=seed)
    assert len(cut) == count
    together = np.concatenate([fold.validation for fold in cut])
    assert sorted(together) == list(range(len(labels)))
    assert np.ptp([len(fold.validation) for fold in cut]) <= 1
    classes = [np.bincount(labels[fold.validation], minlength=len(found)) for fold in cut]
    assert np.ptp(classes, axis=0).max() <= 1
    for train, validation in cut:
        assert sorted([*train, *validation]) == list(range(len(labels)))


def test_indices_in_indices_out_and_a_single_sample_stays_to_be_learned_from() -> None:
    labels = np.arange(100) % 4
    kept = np.arange(20, 60)
    train, validation = splits.hold_out(labels, 0.25, seed=1, indices=kept)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, validation])), kept)
    # A quarter of ten is 2.5, so two classes give one more than the other two.
    assert sorted(np.bincount(labels[validation])) == [2, 2, 3, 3]
    backwards = splits.hold_out(labels, 0.25, seed=1, indices=kept[::-1])
    np.testing.assert_array_equal(backwards.validation, validation)
    for fold in splits.folds(labels, 4, seed=1, indices=kept):
        assert set(fold.train) | set(fold.validation) == set(kept)
        assert len(fold.validation) == 10
    labels = np.array([0] * 10 + [1] + [2] * 10)
    for seed in range(20):
        train, validation = splits.hold_out(labels, 0.5, seed=seed)
        assert 10 in train
        assert len(validation) == 10


def test_what_is_left_goes_to_the_classes_that_lack_most() -> None:
    labels = np.repeat([0, 1], [10, 13])  # a quarter of them is 2.5 and 3.25, 6 together
    for seed in range(5):
        held = splits.hold_out(labels, 0.25, seed=seed).validation
        assert np.bincount(labels[held]).tolist() == [3, 3]
    # Every class keeps a sample to learn from, however large the share.
    assert splits.hold_out([0, 0, 1], 0.9, seed=0).validation.tolist() in ([0], [1])


def test_fewer_groups_than_folds_are_spread() -> None:
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7])
    parts = splits.folds(np.arange(12) % 2, 3, seed=1, groups=groups)
    held = [set(groups[part.validation]) for part in parts]
    assert sum(0 in part for part in held) == sum(1 in part for part in held) == 1
    assert not any({0, 1} <= part for part in held)


def test_the_seed_decides_and_the_choice_is_pinned() -> None:
    labels = np.arange(16) % 2
    assert splits.hold_out(labels, 0.25, seed=0).validation.tolist() == [2, 3, 8, 11]
    pinned = [[1, 2, 11, 14], [3, 4, 7, 8], [5, 6, 10, 13], [0, 9, 12, 15]]
    assert [fold.validation.tolist() for fold in splits.folds(labels, 4, seed=0)] == pinned
    first, again, other = (splits.hold_out(labels, 0.5, seed=seed).train for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)
    generator = np.random.Generator(np.random.PCG64(1))
    np.testing.assert_array_equal(splits.hold_out(labels, 0.5, seed=generator).train, first)
    assert set(splits.hold_out(labels, 0.5, seed=generator).train) != set(first)


def test_bad_arguments_are_named() -> None:
    wrong: list[tuple[str, Any]] = [
        *(("labels", labels) for labels in ([0.5, 1], [[0], [1]], [0, -1])),
        *(("indices", indices) for indices in ([0, 4], [0, -1], [1, 1], [0.5])),
        *(("seed", seed) for seed in (-1, None, True)),
    ]
    for name, value in wrong:
        given: Any = {"labels": [0, 1, 0, 1], "seed": 0, name: value}
        with pytest.raises((TypeError, ValueError), match=f"^{name}: expected"):
            splits.hold_out(share=0.5, **given)
        with pytest.raises((TypeError, ValueError), match=f"^{name}: expected"):
            splits.folds(count=2, **given)
    for share in (0, 1, -0.1, 1.5):
        with pytest.raises(ValueError, match="share: expected a number between 0 and 1, got"):
            splits.hold_out([0, 1], share, seed=0)
    for count in (1, 5, 2.5, True):
        with pytest.raises((TypeError, ValueError), match=r"^count: expected"):
            splits.folds([0, 1, 0, 1], count, seed=0)  # pyright: ignore[reportArgumentType]
    wrong = [
        *(("imbalance factor", {"factor": factor}) for factor in (0, 1.5, "0.1")),
        *(("labels", {"labels": each}) for each in ([0, 0], np.empty(0, int), [0.5, 1], [0, -1])),
    ]
    for (name, value), kind in itertools.product(wrong, KINDS):
        given = {"labels": [0, 1], "factor": 0.1} | value
        with pytest.raises((TypeError, ValueError), match=f"^{name}: expected"):
            splits.Imbalance(kind, given["factor"]).keep(given["labels"], seed=0)


CUT = settings(max_examples=25)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Labels and groups of up to a few dozen samples."""
    size = draw(st.integers(8, 60))
    labels = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    groups = draw(st.lists(st.integers(0, 40), min_size=size, max_size=size))
    return np.array(labels), np.array(groups)


@CUT
@given(grouped(), st.integers(2, 4), st.integers(0, 5))
def test_folds_are_whole_groups(made: tuple[np.ndarray, np.ndarray], count: int, seed: int) -> None:
    labels, groups = made
    if len(np.unique(groups)) < count:
        with pytest.raises(ValueError, match=f"groups: expected at least {count}"):
            splits.folds(labels, count, seed=seed, groups=groups)
        return
    parts = splits.folds(labels, count, seed=seed, groups=groups)
    assert sorted(np.concatenate([part.validation for part in parts])) == list(range(len(labels)))
    for part in parts:
        assert not set(groups[part.train]) & set(groups[part.validation])
        assert len(part.train) + len(part.validation) == len(labels)


@CUT
@given(grouped(), st.floats(0.1, 0.5), st.integers(0, 5))
def test_what_is_held_out_is_whole_groups_and_leaves_every_class(
    made: tuple[np.ndarray, np.ndarray], share: float, seed: int
) -> None:
    labels, groups = made
    assume(len(np.unique(groups)) > 1)
    train, validation = splits.hold_out(labels, share, seed=seed, groups=groups)
    assert sorted([*train, *validation]) == list(range(len(labels)))
    assert not set(groups[train]) & set(groups[validation])
    assert set(labels[train]) == set(labels)


def test_parts_are_as_equal_as_groups_allow() -> None:
    generator = np.random.default_rng(0)
    groups = np.concatenate([np.repeat(np.arange(40), 5), np.arange(100, 500)])
    labels = generator.integers(3, size=600)
    for part in splits.folds(labels, 5, seed=1, groups=groups):
        assert abs(len(part.validation) - 120) <= 3
        assert (np.abs(np.bincount(labels[part.validation]) - np.bincount(labels) / 5) <= 3).all()
    held = splits.hold_out(labels, 0.2, seed=1, groups=groups).validation
    assert (np.abs(np.bincount(labels[held]) - np.bincount(labels) / 5) <= 3).all()
    labels, groups = np.arange(40) % 2, np.repeat(np.arange(4), 10)
    assert len(splits.hold_out(labels, 0.05, seed=1, groups=groups).validation) == 10
    # One that has all of a class cannot go.
    labels = (groups == 0).astype(int)
    assert 0 not in groups[splits.hold_out(labels, 0.2, seed=1, groups=groups).validation]
    labels = np.array([*[0] * 54, 1, 2, 0, 0])
    assert 55 not in splits.hold_out(labels, 0.5, seed=0, groups=np.arange(58) // 56).validation
    with pytest.raises(ValueError, match="groups: expected at least 2"):
        splits.hold_out(np.arange(8) % 2, 0.25, seed=1, groups=np.zeros(8))


def test_samples_without_a_group_are_by_themselves() -> None:
    cases: list[Any] = [
        [None, None, "a", "a", "b", "b"],
        [float("nan"), float("nan"), 1.0, 1.0, 2.0, 2.0],
        pd.Series(["a", "a", "b", "b"]).reindex([9, 8, 0, 1, 2, 3]),
        pd.Series([None, None, "a", "a", "b", "b"], dtype="string"),
    ]
    for groups in cases:
        admitted = splits.admit_groups(groups, 6)
        assert admitted is not None
        assert admitted.tolist() == [0, 1, 2, 2, 4, 4]


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=4), max_size=6))
def test_groups_that_share_a_sample_are_one(groups: list[list[int]]) -> None:
    columns = [
        [number if sample in group else -1 for sample in range(12)]
        for number, group in enumerate(groups)
    ]
    joined = splits.joined_groups(*columns)
    if joined is None:
        assert all(len(set(group)) == 1 for group in groups)
        return
    # The slow way: spread the smallest number until nothing changes.
    slow = list(range(12))
    for _ in range(12):
        for group in groups:
            least = min(slow[index] for index in group)
            for index in group:
                slow[index] = least
    assert joined.tolist() == slow


def table(folder: Path, rows: list[str], header: str = "size,patient,kind,split") -> Path:
    path = folder / "t.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_rows_of_a_patient_stay_together_and_teach_nothing_about_her(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=90)
    rows = [f"{n:.4f},P{i // 3},{'ab'[i % 2]},train" for i, n in enumerate(numbers)]
    path = table(tmp_path, [*rows, "1.5,P3,a,test", "1.7,,b,test"])
    dataset, said = told(load_dataset, path, label="kind", group="Patient")
    assert said == [
        f"{path}: 1 value of 'patient' both in train and test: P3; accuracy says little"
    ]
    assert dataset.columns is not None
    assert dataset.columns.feature_names == ("size",)
    assert (dataset.train.groups == np.arange(90) // 3 * 3).all()
    for part in choose_validation(dataset, Configuration("t"), parts=3):
        assert not set(part.used // 3) & set(part.held // 3)
    examples = choose_examples(Configuration("t", validation=0.2), dataset)
    assert len(examples.held) == 18
    assert not set(examples.used // 3) & set(examples.held // 3)
    assert fingerprint(dataset) != fingerprint(told(load_dataset, path, label="kind")[0])


def test_copies_of_images_stay_together_also_where_some_cannot_be_read(tmp_path: Path) -> None:
    names = [f"{name}/{n}.png" for name in ("cat", "horse") for n in range(6)]
    write_images(tmp_path / "photos", names)
    shutil.copy(tmp_path / "photos/cat/2.png", tmp_path / "photos/horse/9.png")
    (tmp_path / "photos/cat/0.png").write_bytes(b"no image")
    dataset, _ = told(load_dataset, tmp_path / "photos", on_error="skip")
    assert len(dataset.train) == 12
    assert dataset.train.groups is not None
    assert dataset.train.groups[1] == dataset.train.groups[11]
    assert len(set(dataset.train.groups)) == 11


def test_images_of_a_patient_stay_together(tmp_path: Path) -> None:
    write_images(tmp_path / "scans", [f"{n}.png" for n in range(12)])
    rows = [f"scans/{i}.png,{'ab'[i % 2]},P{i // 4}" for i in range(12)]
    path = table(tmp_path, rows, header="scan,finding,patient")
    dataset, said = told(load_dataset, path, label="finding", group="patient")
    assert dataset.class_names == ("a", "b")
    assert dataset.train.groups is not None
    assert dataset.train.groups.tolist() == [0] * 4 + [4] * 4 + [8] * 4
    assert not said, said


def test_imbalances_keep_the_published_counts_and_the_seed_decides_which() -> None:
    published = [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    tail = splits.Imbalance("long-tailed", 0.01)
    assert np.bincount(CIFAR10[tail.keep(CIFAR10, seed=1)]).tolist() == published
    step = splits.Imbalance("step", 0.01).keep(CIFAR10, seed=1)
    assert np.bincount(CIFAR10[step]).tolist() == [5000] * 5 + [50] * 5
    assert splits.Imbalance("step", 0.5).counts(100, 3) == [100, 100, 50]
    step, tail = splits.Imbalance("step", 0.3), splits.Imbalance("long-tailed", 0.25)
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
    labels = labels_of(sizes, seed)
    for kind in KINDS:
        kept = splits.Imbalance(kind, factor).keep(labels, seed=seed)
        assert (np.diff(kept) > 0).all()
        wanted = np.minimum(sizes, splits.Imbalance(kind, factor).counts(max(sizes), len(sizes)))
        np.testing.assert_array_equal(np.bincount(labels[kept], minlength=len(sizes)), wanted)


def test_imbalance_texts_have_one_form() -> None:
    for text, canonical in {" None ": "none", "STEP:.10": "step:0.1", "step:1.0": "step:1"}.items():
        assert str(splits.parse_imbalance(text)) == canonical
        assert splits.parse_imbalance(canonical) == splits.parse_imbalance(text)
    factors = ["step:a", "step:0.1:0.2", "step:0", "step:1.5", "step:nan"]
    for text in ("", "step", "none:0.1", *factors):
        with pytest.raises(ValueError, match=r"^imbalance(: expected none, | factor: )"):
            splits.parse_imbalance(text)
