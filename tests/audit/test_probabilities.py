from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import Planted

from labelproof.audit import probabilities as module
from labelproof.audit.probabilities import (
    LogProbabilities,
    admit_given,
    admit_probabilities,
    read_probabilities,
)

GOOD = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])


def with_entry(value: float, row: int = 1, column: int = 2) -> np.ndarray:
    table = GOOD.copy()
    table[row, column] = value
    return table


REFUSED: dict[str, tuple[Any, str]] = {
    "one number": (0.5, r"shape \(samples, classes\).*got shape \(\)"),
    "a list": ([0.5, 0.5], r"got shape \(2,\)"),
    "a cube": (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
    "one class": (np.ones((4, 1)), r"at least two classes, got shape \(4, 1\)"),
    "no class": (np.ones((4, 0)), r"got shape \(4, 0\)"),
    "no row": (np.zeros((0, 3)), "at least one row, got none"),
    "of several lengths": ([[0.5, 0.5], [1.0]], r"\(samples, classes\).* different lengths"),
    "text": (np.array([["a", "b"]]), "expected numbers, got <U1"),
    "objects": (np.array([[0.5, 0.5]], dtype=object), "expected numbers, got object"),
    "complex": (np.array([[0.5 + 0j, 0.5]]), "expected numbers, got complex128"),
    "yes and no": (np.array([[True, False]]), "expected numbers, got bool"),
    "records": (np.zeros((2, 2), dtype=[("a", "f4")]), "expected numbers, got"),
    "logits": (np.array([[3.0, 0.5]]), r"got 3\.5 in row 0 \(1 of 1 row\); if these are logits"),
    "percent": (GOOD * 100, r"got 100 in row 0 \(3 of 3 rows\)"),
    "counts": (np.array([[1, 0], [3, 4]]), r"got 7 in row 1 \(1 of 2 rows\)"),
    "nothing": (np.zeros((2, 3)), "got 0 in row 0"),
    "a row that is short": (with_entry(0.75), r"got 0\.95 in row 1 \(1 of 3 rows\)"),
    "NaN": (with_entry(np.nan), "from 0 to 1, got nan in row 1, column 2"),
    "negative": (with_entry(-0.2), r"from 0 to 1, got -0\.2 in row 1, column 2"),
    "minus one": (np.array([[2, -1]]), "from 0 to 1, got -1 in row 0, column 1"),
    "infinite": (with_entry(np.inf), r"got inf in row 1, column 2"),
    "minus infinity": (with_entry(-np.inf), "got -inf in row 1, column 2"),
    "too large for float32": (with_entry(1e300), "got inf in row 1"),
    "all NaN": (np.full((2, 2), np.nan, np.float16), "got nan in row 0, column 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_probabilities_is_refused_with_the_reason(name: str) -> None:
    given, said = REFUSED[name]
    with pytest.raises(ValueError, match=f"^probabilities: .*{said}") as caught:
        admit_probabilities(given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", ">f4", ">f8", "g"])
def test_any_precision_is_admitted_as_it_is(kind: str) -> None:
    table = GOOD.astype(kind)
    assert admit_probabilities(table) is table
    logarithms = LogProbabilities(table)[:]
    assert logarithms.dtype == np.float32
    np.testing.assert_allclose(np.exp(logarithms), GOOD, atol=1e-3)


def test_whole_numbers_are_admitted_where_they_are_one_hot() -> None:
    table = np.eye(3, dtype=np.uint8)
    assert admit_probabilities(table) is table
    assert LogProbabilities(admit_probabilities(table))[1].argmax() == 1


def test_half_precision_over_a_thousand_classes_sums_up_well_enough() -> None:
    drawn = np.random.default_rng(0).dirichlet(np.full(1000, 0.1), 50)
    admit_probabilities(drawn.astype(np.float16))


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_first_bad_row_is_named_wherever_a_part_ends(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", size)
    table = np.tile([0.5, 0.5], (7, 1))
    table[[4, 6], 0] = 0.9
    with pytest.raises(ValueError, match=r"1\.4 in row 4 \(2 of 7 rows\)"):
        admit_probabilities(table)
    table[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"nan in row 5, column 1"):
        admit_probabilities(table)


def test_a_probability_of_nothing_rules_no_class_out() -> None:
    logarithms = LogProbabilities(np.array([[1.0, 0.0], [1 - 1e-30, 1e-30]]))[:]
    assert np.isfinite(logarithms).all()
    assert logarithms[0, 1] == logarithms[1, 1] < -20


def test_logarithms_are_taken_of_the_part_that_is_asked_for() -> None:
    table = LogProbabilities(GOOD)
    assert table.shape == (3, 3)
    assert len(table) == 3
    np.testing.assert_allclose(table[1:], np.log(GOOD[1:]), rtol=1e-6)
    np.testing.assert_allclose(table[np.array([2, 0])], np.log(GOOD[[2, 0]]), rtol=1e-6)


LABELS: dict[str, tuple[Any, str]] = {
    "above": ([0, 1, 3], r"expected 0 to 2, one of the 3 columns .* got 3 for sample 2"),
    "below": ([0, -1, 2], "got -1 for sample 1"),
    "too few": ([0, 1], "one for each of 3 rows of the probabilities, got 2"),
    "too many": ([0, 1, 2, 0], "got 4"),
    "shares": ([0.0, 0.5, 2.0], r"one class index per sample, got 0\.5 for sample 1"),
    "a label that is missing": ([0.0, 1.0, np.nan], "got nan for sample 2"),
    "infinite": ([0.0, np.inf, 1.0], "got inf for sample 1"),
    "words": (
        ["cat", "dog", "cat"],
        r"got <U3 .*; .* numpy\.searchsorted\(model\.classes_, labels",
    ),
    "counted from 1": ([1, 2, 3], r"got 3 for sample 2; .* counted from 0: numpy\.searchsorted"),
    "of several lengths": ([[0], [1, 2], [0]], "got several of some"),
    "one-hot": (np.eye(3, dtype=int), r"got int64 of shape \(3, 3\)"),
    "nothing": ([], "one for each of 3 rows of the probabilities, got 0"),
    "objects": (np.array([0, None, "2"], dtype=object), "got object .* numpy.searchsorted"),
}


@pytest.mark.parametrize("name", LABELS)
def test_what_cannot_be_labels_is_refused_with_the_reason(name: str) -> None:
    given, said = LABELS[name]
    with pytest.raises(ValueError, match=f"^labels: .*{said}"):
        admit_given(given, samples=3, classes=3)


@pytest.mark.parametrize("kind", ["u1", "i2", ">i4", "u8"])
def test_class_indices_of_any_kind_become_one(kind: str) -> None:
    found = admit_given(np.array([0, 2, 1], dtype=kind), samples=3, classes=3)
    assert found.dtype == np.int64
    assert found.dtype.isnative
    assert found.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("given", "indices"),
    [
        ([False, True, True], [0, 1, 1]),
        ([0.0, 2.0, 1.0], [0, 2, 1]),
        (np.array([0, 2.0, True], dtype=object), [0, 2, 1]),
    ],
    ids=["yes and no", "floats", "objects"],
)
def test_whole_numbers_in_another_form_are_class_indices(given: Any, indices: list[int]) -> None:
    found = admit_given(given, samples=3, classes=3)
    assert found.dtype == np.int64
    assert found.tolist() == indices


def test_a_file_is_mapped_and_stays_so_when_it_is_admitted(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", GOOD)
    table = read_probabilities(tmp_path / "table.npy")
    assert isinstance(table, np.memmap)
    assert admit_probabilities(table) is table
    np.testing.assert_array_equal(table, GOOD)
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 0


def test_a_file_in_the_order_of_columns_is_read_as_well(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", np.asfortranarray(GOOD))
    np.testing.assert_array_equal(read_probabilities(tmp_path / "table.npy"), GOOD)


def test_what_is_pickled_is_refused_and_not_run(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    pickle.loads(pickle.dumps(Planted(planted)))  # noqa: S301
    assert planted.exists()
    planted.unlink()
    objects = np.array([[Planted(planted), 0.5]], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps(Planted(planted)))
    with pytest.raises(ValueError, match=r"objects\.npy: .*Python objects, which are not read"):
        read_probabilities(tmp_path / "objects.npy")
    with pytest.raises(ValueError, match=r"pickle\.npy: expected an array of numbers"):
        read_probabilities(tmp_path / "pickle.npy")
    assert not planted.exists()


def damaged(name: str, file: Path) -> None:
    np.save(file, GOOD)
    whole = file.read_bytes()
    if name == "cut off":
        file.write_bytes(whole[:-8])
    elif name == "cut off in its header":
        file.write_bytes(whole[:40])
    elif name == "empty":
        file.write_bytes(b"")
    elif name == "text":
        file.write_text("0.5,0.5\n")
    elif name == "an archive":
        with file.open("wb") as stream:
            np.savez(stream, GOOD)
    elif name == "a folder":
        file.unlink()
        file.mkdir()
    elif name == "a header of nonsense":
        file.write_bytes(whole[:10] + b"x" * 118 + whole[128:])


@pytest.mark.parametrize(
    "name",
    [
        *("cut off", "cut off in its header", "empty", "text", "an archive", "a folder"),
        "a header of nonsense",
    ],
)
def test_a_file_that_is_no_array_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / "table.npy"
    damaged(name, file)
    with pytest.raises(
        ValueError, match=r"table\.npy: expected an array of numbers as numpy\.save"
    ):
        read_probabilities(file)


def test_a_file_that_is_not_there_is_said_not_to_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"table\.npy: there is no such file"):
        read_probabilities(tmp_path / "table.npy")


MAPPED = """
import resource, sys
from labelproof.audit.probabilities import admit_probabilities, read_probabilities

anonymous = lambda: int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0])
table = read_probabilities(sys.argv[1])
before = anonymous()
admit_probabilities(table)
print((anonymous() - before) / 1024, table.nbytes / 2**20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads what the system says of memory")
def test_a_large_file_is_not_read_into_memory(tmp_path: Path) -> None:
    table = np.lib.format.open_memmap(
        tmp_path / "table.npy", mode="w+", dtype=np.float32, shape=(400_000, 50)
    )
    table[:] = 1 / 50
    del table
    done = subprocess.run(
        [sys.executable, "-c", MAPPED, tmp_path / "table.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    more, size = map(float, done.stdout.split())
    assert size > 70
    assert more < 25


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ([[91.5, 8.5], [20.0, 80.0]], "got 100 in row 0 .* these look like percentages: divide by"),
        ([[0.5, 0.5], [0.2, 0.3]], "got 0.5 in row 1 .*is there a class without a column"),
        ([[3.0, 1.5], [2.0, 4.0]], "got 4.5 in row 0 .*if these are logits"),
        ([[0.5, 0.5], [0.5, np.inf]], "from 0 to 1, got inf in row 1, column 1$"),
        ([[0.5, 0.5], [0.5, np.nan]], "from 0 to 1, got nan in row 1, column 1$"),
        ([[0.5, -0.5], [0.5, 0.5]], "got -0.5 in row 0, column 1; if these are logits"),
    ],
)
def test_advice_is_about_what_the_numbers_look_like(table: list[list[float]], advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        admit_probabilities(table)
