"""Samples that belong together are never cut apart, whoever cuts."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from notices import told
from PIL import Image

from labelproof.data import load_dataset
from labelproof.data.splits import admit_groups, folds, hold_out, joined_groups
from labelproof.training.configuration import Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.provenance import fingerprint
from labelproof.tuning.validation import choose_validation

CUT = settings(max_examples=60, deadline=None)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Labels and groups of up to a few dozen samples."""
    size = draw(st.integers(8, 60))
    labels = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    groups = draw(st.lists(st.integers(0, 40), min_size=size, max_size=size))
    return np.array(labels), np.array(groups)


@CUT
@given(grouped(), st.integers(2, 4), st.integers(0, 5))
def test_every_fold_has_whole_groups(
    made: tuple[np.ndarray, np.ndarray], count: int, seed: int
) -> None:
    labels, groups = made
    if len(np.unique(groups)) < count:
        with pytest.raises(ValueError, match=f"groups: expected at least {count}"):
            folds(labels, count, seed=seed, groups=groups)
        return
    parts = folds(labels, count, seed=seed, groups=groups)
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
    train, validation = hold_out(labels, share, seed=seed, groups=groups)
    assert sorted([*train, *validation]) == list(range(len(labels)))
    assert not set(groups[train]) & set(groups[validation])
    assert set(labels[train]) == set(labels)


def test_parts_are_as_equal_as_groups_allow() -> None:
    generator = np.random.default_rng(0)
    groups = np.concatenate([np.repeat(np.arange(40), 5), np.arange(100, 500)])
    labels = generator.integers(3, size=600)
    for part in folds(labels, 5, seed=1, groups=groups):
        assert abs(len(part.validation) - 120) <= 3
        assert (np.abs(np.bincount(labels[part.validation]) - np.bincount(labels) / 5) <= 3).all()
    held = hold_out(labels, 0.2, seed=1, groups=groups).validation
    assert (np.abs(np.bincount(labels[held]) - np.bincount(labels) / 5) <= 3).all()
    labels, groups = np.arange(40) % 2, np.repeat(np.arange(4), 10)
    assert len(hold_out(labels, 0.05, seed=1, groups=groups).validation) == 10
    # One that has all of a class cannot go.
    labels = (groups == 0).astype(int)
    assert 0 not in groups[hold_out(labels, 0.2, seed=1, groups=groups).validation]
    with pytest.raises(ValueError, match="groups: expected at least two to hold out one"):
        hold_out(np.arange(8) % 2, 0.25, seed=1, groups=np.zeros(8))


def test_samples_without_a_group_are_by_themselves() -> None:
    cases: list[Any] = [
        [None, None, "a", "a", "b", "b"],
        [float("nan"), float("nan"), 1.0, 1.0, 2.0, 2.0],
        pd.Series(["a", "a", "b", "b"]).reindex([9, 8, 0, 1, 2, 3]),
        pd.Series([None, None, "a", "a", "b", "b"], dtype="string"),
    ]
    for groups in cases:
        admitted = admit_groups(groups, 6)
        assert admitted is not None
        assert admitted.tolist() == [0, 1, 2, 2, 4, 4]


@given(st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=4), max_size=6))
def test_groups_that_share_a_sample_are_one(groups: list[list[int]]) -> None:
    columns = [
        [number if sample in group else -1 for sample in range(12)]
        for number, group in enumerate(groups)
    ]
    joined = joined_groups(*columns)
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
        f"{path}: 1 value of 'patient' is both in train and in test: P3; accuracy on them says "
        "little"
    ]
    assert dataset.columns is not None
    assert dataset.columns.feature_names == ("size",)
    assert (dataset.train.groups == np.arange(90) // 3 * 3).all()
    for part in choose_validation(dataset, Configuration("t"), parts=3).parts:
        assert not set(part.train // 3) & set(part.validation // 3)
    examples = choose_examples(Configuration("t", validation=0.2), dataset)
    assert len(examples.held) == 18
    assert not set(examples.used // 3) & set(examples.held // 3)
    assert fingerprint(dataset) != fingerprint(told(load_dataset, path, label="kind")[0])


def images(folder: Path, number: int) -> None:
    folder.mkdir(parents=True)
    generator = np.random.default_rng(len(folder.name))
    for index in range(number):
        pixels = generator.integers(0, 255, (6, 6, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{index}.png")


def test_copies_of_images_stay_together_also_where_some_cannot_be_read(tmp_path: Path) -> None:
    for name in ("cat", "horse"):
        images(tmp_path / "photos" / name, 6)
    shutil.copy(tmp_path / "photos/cat/2.png", tmp_path / "photos/horse/9.png")
    (tmp_path / "photos/cat/0.png").write_bytes(b"no image")
    dataset, _ = told(load_dataset, tmp_path / "photos", on_error="skip")
    assert len(dataset.train) == 12
    assert dataset.train.groups is not None
    assert dataset.train.groups[1] == dataset.train.groups[11]
    assert len(set(dataset.train.groups)) == 11


def test_images_of_a_patient_stay_together(tmp_path: Path) -> None:
    images(tmp_path / "scans", 12)
    rows = [f"scans/{i}.png,{'ab'[i % 2]},P{i // 4}" for i in range(12)]
    path = table(tmp_path, rows, header="scan,finding,patient")
    dataset, said = told(load_dataset, path, label="finding", group="patient")
    assert dataset.class_names == ("a", "b")
    assert dataset.train.groups is not None
    assert dataset.train.groups.tolist() == [0] * 4 + [4] * 4 + [8] * 4
    assert not said, said
    with pytest.raises(ValueError, match="group: expected a column beside"):
        load_dataset(path, group="finding", label="finding")
