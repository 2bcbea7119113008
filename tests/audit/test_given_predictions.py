from __future__ import annotations

import io
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from planted import Planted

from labelproof.audit.given_predictions import GivenPredictions, read_predictions

GOOD = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])


def write(folder: Path, text: str, name: str = "p.csv") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


TABLES: dict[str, tuple[str, str, tuple[str, ...] | None]] = {
    "only classes": ("p.csv", "cat,dog,fox\n.7,.2,.1\n.1,.1,.8\n", None),
    "an id": ("p.csv", "id,cat,dog,fox\n7,.7,.2,.1\n3,.1,.1,.8\n", ("7", "3")),
    "an id at the end": ("p.csv", "cat,dog,fox,ID\n.7,.2,.1,7\n.1,.1,.8,3\n", ("7", "3")),
    "names of samples": ("p.csv", "who,cat,dog,fox\na,.7,.2,.1\nb,.1,.1,.8\n", ("a", "b")),
    "numbers of pandas": ("p.csv", ",cat,dog,fox\n0,.7,.2,.1\n1,.1,.1,.8\n", ("0", "1")),
    "numbers and names": ("p.csv", ",who,cat,dog,fox\n0,a,.7,.2,.1\n1,b,.1,.1,.8\n", ("a", "b")),
    "of another country": ("p.csv", "id;cat;dog;fox\n7;0,7;0,2;0,1\n3;0,1;0,1;0,8\n", ("7", "3")),
    "tabs": ("p.tsv", "cat\tdog\tfox\n.7\t.2\t.1\n.1\t.1\t.8\n", None),
    "lines": (
        "p.jsonl",
        '{"cat": 0.7, "dog": 0.2, "fox": 0.1, "id": "x"}\n'
        '{"cat": 0.1, "dog": 0.1, "fox": 0.8, "id": "y"}\n',
        ("x", "y"),
    ),
    "as predict writes it": (
        "p.csv",
        "path,row,label,probability,p(cat),p(dog),p(fox)\n"
        "t.csv,line 2,cat,.7,.7,.2,.1\nt.csv,line 3,fox,.8,.1,.1,.8\n",
        ("line 2", "line 3"),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_says_what_its_columns_and_rows_are(name: str, tmp_path: Path) -> None:
    file, text, ids = TABLES[name]
    found = read_predictions(write(tmp_path, text, file))
    assert found.class_names == ("cat", "dog", "fox")
    assert found.ids == ids
    np.testing.assert_allclose(found.probabilities, GOOD)


def test_a_class_may_be_called_as_an_id_is(tmp_path: Path) -> None:
    found = read_predictions(write(tmp_path, "file,folder\n.5,.5\n1,0\n"))
    assert found.class_names == ("file", "folder")
    assert found.ids is None


def test_parquet_is_read(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(("cat", "dog", "fox"), GOOD.T.tolist(), strict=True))
    parquet.write_table(arrow.table({"id": ["a", "b"], **columns}), tmp_path / "p.parquet")
    found = read_predictions(tmp_path / "p.parquet")
    assert found.ids == ("a", "b")
    np.testing.assert_array_equal(found.probabilities, GOOD)


def test_numbers_in_parquet_do_not_go_through_text(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    half = arrow.array(GOOD[:, 1].astype(np.float16))
    columns = {"cat": GOOD[:, 0], "dog": half, "fox": GOOD[:, 2].astype(np.float32)}
    long = [2**53 + 1, 2**53 + 2]
    parquet.write_table(arrow.table({"id": long, **columns}), tmp_path / "p.parquet")
    found = read_predictions(tmp_path / "p.parquet")
    assert found.ids == tuple(map(str, long))
    np.testing.assert_allclose(found.probabilities, GOOD, atol=1e-3)
    columns["fox"] = arrow.array([0.1, None])
    parquet.write_table(arrow.table(columns), tmp_path / "p.parquet")
    with pytest.raises(ValueError, match="a probability in row 1, column 'fox', got nothing"):
        read_predictions(tmp_path / "p.parquet")


def test_a_long_table_is_read_in_parts(tmp_path: Path) -> None:
    size = 9000
    table = np.random.default_rng(0).dirichlet(np.ones(3), size).round(6)
    lines = [f"s{row},{a},{b},{c}" for row, (a, b, c) in enumerate(table.tolist())]
    found = read_predictions(write(tmp_path, "\n".join(["who,cat,dog,fox", *lines])))
    np.testing.assert_array_equal(found.probabilities, table)
    assert found.ids == tuple(f"s{row}" for row in range(size))
    lines[8500] = "s8500,0.5,most,0.1"
    with pytest.raises(ValueError, match="in line 8502, column 'dog', got 'most'"):
        read_predictions(write(tmp_path, "\n".join(["who,cat,dog,fox", *lines])))


REFUSED = {
    "": "expected a row for each sample",
    "cat,dog\n": "expected a row for each sample, got none",
    "cat\n1\n": "expected a column for each of two classes or more, got 'cat'",
    "cat,dog\n.5,.5\n.5,\n": "expected a probability in line 3, column 'dog', got nothing",
    "cat,dog\n.5,.5\n.5,x\n.5,.5\n": "expected a probability in line 3, column 'dog', got 'x'",
    "cat,cat\n.5,.5\n": "more than one called 'cat'",
    "0.5,0.5\n0.1,0.9\n0.2,0.8\n": "add a line of names",
    "a,b,cat,dog\nx,y,.5,.5\n": "text in 2 columns: 'a', 'b'; remove them",
    "id,said,cat,dog\nx,cat,.5,.5\n": "text in 1 column: 'said'; remove it",
    "said,cat,dog\ncat,.5,.5\ncat,.9,.1\n": "got 'cat' more than once; remove the column",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_table_of_predictions_is_refused_with_the_place(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"p\.csv: ") as caught:
        read_predictions(write(tmp_path, text))
    assert REFUSED[text] in str(caught.value)


def test_an_archive_may_name_its_classes(tmp_path: Path) -> None:
    file = tmp_path / "p.npz"
    np.savez(file, pred_probs=GOOD, classes=np.array(["cat", "dog", "fox"]), features=np.eye(2))
    found = read_predictions(file)
    assert found.class_names == ("cat", "dog", "fox")
    np.testing.assert_array_equal(found.probabilities, GOOD)
    np.savez_compressed(file, anything=GOOD)
    assert read_predictions(file).class_names is None
    np.savez(file, a=GOOD, b=GOOD)
    with pytest.raises(ValueError, match=r"expected an array called probabilities, found a, b"):
        read_predictions(file)
    np.savez(file, probabilities=GOOD, classes=np.array([["cat"]]))
    with pytest.raises(ValueError, match=r"'classes' to name each class, got <U3 of shape"):
        read_predictions(file)
    file.write_bytes(file.read_bytes()[:90])
    with pytest.raises(ValueError, match=r"p\.npz: cannot be read as predictions"):
        read_predictions(file)


def test_nothing_in_an_archive_is_run(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    names = np.array([Planted(planted)], dtype=object)
    np.savez(tmp_path / "p.npz", probabilities=GOOD, class_names=names, allow_pickle=True)
    with pytest.raises(
        ValueError, match=r"Python objects, which are not read .*; save plain.*dtype"
    ):
        read_predictions(tmp_path / "p.npz")
    (tmp_path / "q.npz").write_bytes(pickle.dumps(Planted(planted)))
    with pytest.raises(ValueError, match=r"q\.npz: cannot be read"):
        read_predictions(tmp_path / "q.npz")
    assert not planted.exists()


@pytest.mark.parametrize("trouble", ["encrypted", "method"])
def test_an_archive_that_cannot_be_unpacked_is_told(trouble: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.savez(stream, probabilities=GOOD)
    content = bytearray(stream.getvalue())
    listed = content.find(b"PK\x01\x02")
    if trouble == "encrypted":
        content[6] |= 1
        content[listed + 8] |= 1
    else:
        content[8] = content[listed + 10] = 99
    (tmp_path / "p.npz").write_bytes(content)
    with pytest.raises(ValueError, match=rf"p\.npz: cannot be read as predictions: .*{trouble}"):
        read_predictions(tmp_path / "p.npz")


def test_many_names_are_counted_at_once() -> None:
    names = tuple(f"class {number}" for number in range(50_000))
    begin = time.perf_counter()
    GivenPredictions(np.zeros((1, 50_000)), names)
    assert time.perf_counter() - begin < 2


def test_names_are_those_of_the_columns() -> None:
    with pytest.raises(ValueError, match=r"one for each of 3 columns of probabilities, got 2: a"):
        GivenPredictions(GOOD, ("a", "b"))
    with pytest.raises(ValueError, match="expected each once, got a again"):
        GivenPredictions(GOOD, ("a", "b", "a"))


def test_a_file_that_is_not_there_is_said_not_to_be(tmp_path: Path) -> None:
    for name in ("p.csv", "p.npz", "p.npy"):
        with pytest.raises(FileNotFoundError, match="there is no such file"):
            read_predictions(tmp_path / name)


def test_percent_signs_are_read(tmp_path: Path) -> None:
    file = tmp_path / "predictions.csv"
    file.write_text("id,cat,dog\na,91.5%,8.5%\nb,20 %,80%\n")
    found = read_predictions(file)
    np.testing.assert_allclose(found.probabilities, [[0.915, 0.085], [0.2, 0.8]])
