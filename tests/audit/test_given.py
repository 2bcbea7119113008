from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit.noisy_logits import make, softmax, symmetric
from planted import Planted

from labelproof.audit.given import audit_given, match_given
from labelproof.audit.given_labels import read_given
from labelproof.audit.given_predictions import GivenPredictions
from labelproof.audit.probabilities import read_probabilities
from labelproof.data.dataset import Dataset, Split
from labelproof.data.notices import DataWarning
from labelproof.report.audit_words import caution

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


NAMES = np.array(["ant", "bee", "cat"])


def test_names_are_as_good_as_numbers() -> None:
    by_number = audit_given(TABLE, MADE.given, data="labels.npy").findings
    audit = audit_given(TABLE, NAMES[MADE.given], data="labels.txt")
    assert audit.class_names == ("ant", "bee", "cat")
    assert audit.samples[0] == "line 1"
    assert np.array_equal(audit.findings.score, by_number.score)
    shuffled = GivenPredictions(TABLE[:, [2, 0, 1]], ("cat", "ant", "bee"))
    for labels in (NAMES[MADE.given], rows(MADE.given, ("ant", "bee", "cat"))):
        found = audit_given(shuffled, labels, data="x.npy")
        assert found.class_names == ("cat", "ant", "bee")
        np.testing.assert_allclose(found.findings.score, by_number.score, atol=0.01)
        names = np.array(found.class_names)
        assert np.array_equal(names[found.findings.given], NAMES[MADE.given])


def test_predictions_may_know_of_more_classes_than_the_labels() -> None:
    wide = np.concatenate([TABLE * 0.99, np.full((300, 1), 0.01)], axis=1)
    given = GivenPredictions(wide, ("ant", "bee", "cat", "dog"))
    assert audit_given(given, NAMES[MADE.given], data="x.txt").class_names[3] == "dog"
    with pytest.warns(DataWarning, match=r"x\.npy: the labels are taken for places of the columns"):
        assert audit_given(given, MADE.given, data="x.npy").class_names[3] == "dog"
    assert audit_given(wide, rows(MADE.given, ("0", "1", "2")), data="x.npy").class_names[3] == "3"
    with pytest.raises(ValueError, match="expected 3 columns"):
        audit_given(wide, NAMES[MADE.given], data="x.txt")


def test_rows_are_matched_by_id_or_called_by_it() -> None:
    order = np.random.default_rng(0).permutation(300)
    ids = tuple(str(number) for number in order)
    given = GivenPredictions(TABLE[order], None, ids, "id", "p.csv")
    plain = audit_given(TABLE, MADE.given, data="labels.npy").findings
    found = audit_given(given, MADE.given, data="labels.npy")
    assert np.array_equal(found.findings.score, plain.score)
    called = GivenPredictions(TABLE, None, tuple(f"s{n}" for n in range(300)), "id", "p.csv")
    with pytest.warns(DataWarning, match="matched by their order, and called by the column 'id'"):
        assert audit_given(called, MADE.given, data="labels.npy").samples[:2] == ["s0", "s1"]
    again = GivenPredictions(TABLE, None, ("x",) * 300, "id", "p.csv")
    with pytest.warns(DataWarning, match="by their order, and nothing is made of the column 'id'"):
        assert audit_given(again, MADE.given, data="labels.npy").samples[:2] == ["0", "1"]
    lines = tuple(f"line {number + 2}" for number in order)
    by_line = GivenPredictions(TABLE[order], None, lines, "row", "p.csv")
    found = audit_given(by_line, rows(MADE.given), data="made")
    assert np.array_equal(found.findings.score, plain.score)
    with pytest.warns(DataWarning, match=r"'id' of p\.csv names no sample of made; rows are"):
        audit_given(called, rows(MADE.given), data="made")
    unnamed = GivenPredictions(TABLE, None, tuple(f"{n + 7}" for n in range(300)), "", "p.csv")
    with pytest.warns(
        DataWarning, match=r"column without a name of p\.csv names no sample of made"
    ):
        assert audit_given(unnamed, rows(MADE.given), data="made").samples[0] == "line 2"


EVEN = np.full((4, 3), 1 / 3)


def columns(labels: Any, names: tuple[str, ...] | None, table: np.ndarray = EVEN) -> list[str]:
    """The name of each label's column."""
    matched = match_given(GivenPredictions(table, names), np.array(labels), data="labels.npy")
    return [matched.class_names[label] for label in matched.labels]


def test_whole_numbers_are_found_by_name_however_they_are_written() -> None:
    for labels in ([2, 1, 2, 1], [2.0, 1.0, 2.0, 1.0], ["02", "01", "02.0", "01"]):
        assert columns(labels, ("01", "02", "03")) == ["02", "01", "02", "01"]
    with pytest.raises(ValueError, match=r"1 class of .* without a column in probabilities: '3'"):
        columns([1, 2, 3, 1], ("1", "2", "4"))
    with pytest.raises(ValueError, match=r"1 class of .* without a column in probabilities: '-1'"):
        columns([1, 2, -1, 1], ("1", "2", "4"))


@pytest.mark.parametrize("labels", [[str(float(n)) for n in range(11)], np.arange(11.0)])
def test_floats_are_sorted_as_numbers(labels: Any) -> None:
    table = np.full((11, 11), 1 / 11)
    assert columns(labels, None, table) == [str(number) for number in range(11)]


def test_a_mapped_file_is_looked_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "p.npy", TABLE)
    mapped = read_probabilities(tmp_path / "p.npy")
    assert isinstance(match_given(mapped, MADE.given, data="labels.npy").table, np.memmap)
    times: list[int] = []

    def count(table: Any) -> Any:
        times.append(1)
        return table

    monkeypatch.setattr("labelproof.audit.given.admit_probabilities", count)
    monkeypatch.setattr("labelproof.audit.labels.admit_probabilities", count)
    audit_given(mapped, MADE.given, data="labels.npy")
    assert len(times) == 1


def test_samples_that_a_file_of_labels_left_out_are_named() -> None:
    dataset = replace(rows(MADE.given[1:]), left_out=("line 2",))
    with pytest.raises(ValueError, match=r"got 299; 1 sample of t\.csv left out .*: line 2; leave"):
        audit_given(TABLE, dataset, data="t.csv")
    audit_given(TABLE[1:], dataset, data="t.csv")


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
        np.save(file, np.array([0.5, 1.0]))
    elif name == "a matrix":
        np.save(file, np.eye(3, dtype=int))


@pytest.mark.parametrize(
    "name",
    [
        *("an archive", "an archive that is cut off", "objects", "cut off", "empty", "shares"),
        "a matrix",
    ],
)
def test_files_of_anything_else_are_refused_by_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / "labels.npy"
    write_labels(name, file)
    with pytest.raises(ValueError, match=r"labels\.npy: expected (class indices|one class index)"):
        read_given(file)


def test_what_is_pickled_in_a_file_of_labels_is_not_run(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    np.save(tmp_path / "labels.npy", np.array([Planted(planted)], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"labels\.npy: expected class indices"):
        read_given(tmp_path / "labels.npy")
    assert not planted.exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"labels\.npy"):
        read_given(tmp_path / "labels.npy")


def test_decisions_are_told_from_probabilities() -> None:
    labels = np.array([0, 1, 2] * 20)
    with pytest.warns(UserWarning, match="every number is 0 or 1"):
        audit_given(np.eye(3)[labels], labels, data="labels.npy")


def test_a_class_without_a_column_is_named_rather_than_sums_that_are_not_1() -> None:
    given = GivenPredictions(np.array([[0.9, 0.0], [0.1, 0.2]]), ("cat", "fox"))
    with pytest.raises(ValueError, match=r"1 class of labels.txt without a column .*'dog'"):
        match_given(given, np.array(["cat", "dog"]), data="labels.txt")


def test_few_labels_that_are_predicted_are_left_to_the_report_to_tell() -> None:
    # The command line says so of every audit: a warning beside it would be the same once more.
    audit = audit_given(TABLE[:, [1, 2, 0]], MADE.given, data="labels.npy")
    assert audit.agreement.value < 0.5
    assert "are predicted by the probabilities" in caution(audit)
