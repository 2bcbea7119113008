from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit.noisy_logits import make, softmax, symmetric

from labelproof.audit.given import audit_given, read_given
from labelproof.data.dataset import Dataset, Split

MADE = make(300, symmetric(3, 0.2), deviation=1)
TABLE = softmax(MADE.logits, 0.2)


def rows(labels: np.ndarray, names: tuple[str, ...] = ("a", "b", "c")) -> Dataset:
    split = Split(
        np.zeros((len(labels), 2), np.float32),
        labels,
        [f"line {n + 2}" for n in range(len(labels))],
    )
    return Dataset("made", {"train": split}, names, (0.0, 0.0), (1.0, 1.0), clean=False)


def test_labels_alone_are_audited_by_number() -> None:
    audit = audit_given(TABLE, MADE.given, data="folder/labels.npy")
    assert (audit.name, audit.data, audit.kind) == ("labels", "folder/labels.npy", "unknown")
    assert audit.class_names == ("0", "1", "2")
    assert audit.samples == [str(number) for number in range(300)]
    assert audit.method == {"predictions": "given"}
    assert audit.options == {}
    assert np.array_equal(audit.index, np.arange(300))
    wrong = np.flatnonzero(MADE.given != MADE.true)
    assert np.isin(audit.findings.suspects, wrong).mean() > 0.95


def test_a_dataset_gives_its_names() -> None:
    audit = audit_given(TABLE, rows(MADE.given), data="t.csv", options={"label": "kind"})
    assert (audit.name, audit.kind) == ("made", "rows")
    assert audit.class_names == ("a", "b", "c")
    assert audit.samples[:2] == ["line 2", "line 3"]
    assert audit.options == {"label": "kind"}


def test_images_are_called_images() -> None:
    split = Split(np.zeros((300, 1, 2, 2), np.uint8), MADE.given)
    dataset = Dataset("made", {"train": split}, ("a", "b", "c"), (0.0,), (1.0,))
    assert audit_given(TABLE, dataset, data="x.npz").kind == "images"


def test_the_agreement_is_counted() -> None:
    audit = audit_given(TABLE, MADE.given, data="labels.npy")
    assert audit.agreement.value == np.mean(TABLE.argmax(axis=1) == MADE.given)
    assert audit.agreement.low < audit.agreement.value < audit.agreement.high


def test_columns_that_are_not_the_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected 4 columns.* t\.csv in this order: a, b, c and"):
        audit_given(TABLE, rows(MADE.given, ("a", "b", "c", "d")), data="t.csv")


def test_rows_that_are_not_the_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="one for each of 300 rows of the probabilities, got 299"):
        audit_given(TABLE, rows(MADE.given[:-1]), data="t.csv")
    with pytest.raises(ValueError, match="one for each of 299 rows of the probabilities, got 300"):
        audit_given(TABLE[:-1], MADE.given, data="labels.npy")


def test_labels_outside_the_columns_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels: expected 0 to 2.* got 3 for sample 0"):
        audit_given(TABLE, np.where(np.arange(300) == 0, 3, MADE.given), data="labels.npy")


def test_class_indices_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([2, 0], np.uint8))
    assert read_given(tmp_path / "labels.npy").tolist() == [2, 0]


def write_labels(name: str, file: Path) -> None:
    if name == "an archive":
        with file.open("wb") as stream:
            np.savez(stream, np.arange(3))
    elif name == "an archive that is cut off":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a.npy", b"0" * 100)
        file.write_bytes(file.read_bytes()[:60])
    elif name == "objects":
        np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    elif name == "cut off":
        np.save(file, np.arange(30))
        file.write_bytes(file.read_bytes()[:-20])
    elif name == "empty":
        file.touch()
    elif name == "shares":
        np.save(file, np.array([0.0, 1.0]))
    elif name == "a matrix":
        np.save(file, np.eye(3, dtype=int))
    elif name == "words":
        np.save(file, np.array(["cat", "dog"]))


@pytest.mark.parametrize(
    "name",
    [
        *("an archive", "an archive that is cut off", "objects", "cut off", "empty", "shares"),
        *("a matrix", "words"),
    ],
)
def test_files_of_anything_else_are_refused_by_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / "labels.npy"
    write_labels(name, file)
    with pytest.raises(ValueError, match=r"labels\.npy: expected (class indices|one class index)"):
        read_given(file)


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.file,)


def test_what_is_pickled_in_a_file_of_labels_is_not_run(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    np.save(tmp_path / "labels.npy", np.array([Planted(planted)], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"labels\.npy: expected class indices"):
        read_given(tmp_path / "labels.npy")
    assert not planted.exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"labels\.npy"):
        read_given(tmp_path / "labels.npy")
