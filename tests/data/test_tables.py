from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelproof.data.tables import read_table


def write(folder: Path, content: str, name: str = "t.csv") -> Path:
    file = folder / name
    file.write_bytes(content.encode())
    return file


def test_a_table_can_be_read_again_and_in_part(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, 'a,b\r\n1,2\r\n\r\n3,"4\n5"\r\n6,7'))
    for _ in range(2):
        rows = list(table.read(["b"]))
        assert [(row.place, row.cells) for row in rows] == [
            ("line 2", ["2"]),
            ("line 5", ["4\n5"]),
            ("line 6", ["7"]),
        ]
    begun = table.read(["a"])
    assert next(begun).cells == ["1"]
    assert next(table.read(["a"])).cells == ["1"]
    assert next(begun).cells == ["3"]


def test_what_is_wrong_with_a_row_is_said_when_it_is_reached(tmp_path: Path) -> None:
    rows = read_table(write(tmp_path, "a,b\n1,2\n3\n")).read(["a"])
    assert next(rows).cells == ["1"]
    with pytest.raises(ValueError, match=r"t\.csv: expected 2 cells in line 3, got 1"):
        next(rows)
    rows = read_table(write(tmp_path, 'a,b\n1,2\n3,"4\n')).read(["a"])
    with pytest.raises(ValueError, match=r"t\.csv: line \d: "):
        list(rows)


@pytest.mark.parametrize("content", ["", "\n\n", "a,b\n", " \n a;b \n"])
def test_a_table_may_have_no_rows(content: str, tmp_path: Path) -> None:
    table = read_table(write(tmp_path, content))
    assert list(table.read(table.columns)) == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_separator_is_that_of_the_first_line(end: str, tmp_path: Path) -> None:
    table = read_table(write(tmp_path, f"\ufeff{end}a;b{end}1,5;2,5{end}1,5,5;2{end}"))
    assert list(table.columns) == ["a", "b"]
    assert [row.cells for row in table.read(["a"])] == [["1,5"], ["1,5,5"]]


def test_text_is_no_array(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "a,b\n1,2\n")).numbers("a") is None
    assert read_table(write(tmp_path, '{"a": 1}\n', "t.jsonl")).numbers("a") is None


def test_numbers_of_parquet_are_arrays(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"f": [0.5, None], "i": [1, None], "t": ["1", "2"], "b": [True, False]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    np.testing.assert_array_equal(table.numbers("f"), [0.5, np.nan])
    np.testing.assert_array_equal(table.numbers("i"), [1, np.nan])
    assert table.numbers("t") is None
    assert table.numbers("b") is None
    assert [row.cells for row in table.read(["f", "i"])] == [["0.5", "1"], ["", ""]]
