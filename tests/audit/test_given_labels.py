from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelproof.audit.given_labels import admit_labels, read_given, read_names


def test_lines_are_names_or_indices(tmp_path: Path) -> None:
    file = tmp_path / "labels.txt"
    file.write_bytes("\ufeffcat\r\nsnow leopard \r\ncafé\r\n\r\n".encode())
    assert read_given(file).tolist() == ["cat", "snow leopard", "café"]
    file.write_text("0\n2\n1")
    found = read_given(file)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2, 1]
    file.write_text("0\ncat\n1")
    assert read_given(file).tolist() == ["0", "cat", "1"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"cat\n\ndog\n", "an empty line 2"),
        (b"cat\n\xff\xfe\n", "expected text in UTF-8"),
    ],
)
def test_lines_without_a_name_are_told(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "labels.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"labels\.txt: .*{said}"):
        read_names(file)


@pytest.mark.parametrize("kind", ["U7", "S7"])
def test_an_array_may_hold_names(kind: str, tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array(["cat ", "dog"], dtype=kind))
    assert read_given(tmp_path / "labels.npy").tolist() == ["cat", "dog"]


def test_names_that_are_objects_are_refused_with_advice(tmp_path: Path) -> None:
    file = tmp_path / "labels.npy"
    np.save(file, np.array(["cat", "dog"], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"Python objects, which are not read .*dtype=str"):
        read_given(file)
    np.save(file, np.array(["cat", " "]))
    with pytest.raises(ValueError, match="a label for each sample, got none for 1"):
        read_given(file)


def test_numbers_in_lines_may_be_floats_or_very_long(tmp_path: Path) -> None:
    file = tmp_path / "labels.txt"
    file.write_text("0.0\n10.0\n2\n")
    assert read_given(file).tolist() == [0, 10, 2]
    file.write_text("01\n02\n01\n")
    assert read_given(file).tolist() == [1, 2, 1]
    long = "9" * 5000
    file.write_text(f"{long}\n1\n")
    assert read_given(file).tolist() == [long, "1"]


def test_zeros_stay_where_they_tell_classes_apart(tmp_path: Path) -> None:
    assert admit_labels(["01", "1", "2.0"]).tolist() == ["01", "1", "2"]
    (tmp_path / "labels.txt").write_text("01\n1\n2\n")
    assert read_given(tmp_path / "labels.txt").tolist() == ["01", "1", "2"]


@pytest.mark.parametrize(
    "labels",
    [
        *(["cat", None], [0.0, np.nan], ["cat", "nan"], ["cat", " "], [b"cat", b"?"]),
        np.array([1, np.nan], dtype=object),
    ],
)
def test_a_label_that_is_missing_is_named(labels: Any) -> None:
    with pytest.raises(
        ValueError, match=r"x\.npy: expected a label for each sample, got none for 1"
    ):
        admit_labels(labels, place="x.npy")


@pytest.mark.parametrize(
    "labels",
    [
        *([0.5, 1.0], ["0.5", "1"], [True, False], [[1, 2]], 3, [1e300, 1.0], [np.inf, 1.0]),
        *([{"a": 1}, {"b": 2}], np.array(["2020-01-01"], dtype="datetime64[D]"), [1j, 2j]),
    ],
)
def test_what_is_no_label_is_refused(labels: Any) -> None:
    with pytest.raises(
        ValueError, match="labels: expected one class index or name per sample, got"
    ):
        admit_labels(labels)


@pytest.mark.parametrize("labels", [["cat", "dog"], [1, 0], [1.0, 0.0]])
def test_objects_are_what_they_hold(labels: list[Any]) -> None:
    found = admit_labels(np.array(labels, dtype=object))
    assert found.tolist() == labels
    assert found.dtype.kind in "Ui"
