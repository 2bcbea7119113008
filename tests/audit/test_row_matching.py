from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelproof.audit.row_matching import RowIds, SampleFiles, match_rows
from labelproof.data.notices import DataWarning


@given(st.permutations([f"s{number}" for number in range(6)]))
def test_rows_in_any_order_are_found_by_what_they_are_about(ids: list[str]) -> None:
    samples = sorted(ids)
    order = match_rows(RowIds(ids, "id", "p.csv"), samples, labels="t.csv")
    assert order is not None
    assert [ids[row] for row in order] == samples


def rows(
    ids: str, samples: str, *known: list[str], column: str = "id", files: SampleFiles | None = None
) -> list[int] | None:
    found = match_rows(
        RowIds(ids.split(), column, "p.csv"),
        samples.split(),
        labels="t.csv",
        known=known,
        files=files,
    )
    return None if found is None else found.tolist()


def test_numbers_are_places_only_if_they_are_all_of_them() -> None:
    assert rows("2 0 1", "line2 line3 line4") == [1, 2, 0]
    assert rows("1 2 3", "line2 line3 line4") is None
    assert rows("x y z", "line2 line3 line4") is None


def test_a_column_of_the_same_name_comes_first() -> None:
    assert rows("2 0 1", "line2 line3 line4", ["1", "2", "0"]) == [2, 0, 1]


def test_rows_that_lack_or_are_there_twice_are_told() -> None:
    with pytest.raises(ValueError, match=r"none for 1 by the column 'id' of p\.csv: c"):
        rows("a b", "a b c")
    with pytest.raises(ValueError, match=r"more than one for a in the column 'id'"):
        rows("a b a", "a b")


def test_rows_about_others_are_left_out_with_a_word() -> None:
    with pytest.warns(DataWarning, match=r"p\.csv: 1 row of samples that are not in t\.csv"):
        assert rows("c b a", "a b") == [2, 1]
    assert rows("b a", "a b") == [1, 0]


@pytest.mark.parametrize(
    ("ids", "names"),
    [("13.0 12.0 11.0", "11 12 13"), ("13 12 11", "11.0 12.0 13.0"), ("13 12 11", "0011 012 13")],
)
def test_numbers_are_the_same_however_they_are_written(ids: str, names: str) -> None:
    assert rows(ids, "line2 line3 line4", names.split()) == [2, 1, 0]
    assert rows(ids, names) == [2, 1, 0]


def test_zeros_that_tell_samples_apart_stay() -> None:
    assert rows("01 1 2", "1 01 2") == [1, 0, 2]
    with pytest.raises(ValueError, match=r"got none for 1 by .*: 1; add them, or remove"):
        rows("01 001 2", "1 2")


def test_two_samples_do_not_share_a_row() -> None:
    with pytest.raises(
        ValueError, match=r"got more than one called a by the column 'id' of p\.csv"
    ):
        rows("a b", "line2 line3 line4", ["a", "a", "b"])


def test_a_sample_without_a_name_has_no_row() -> None:
    with pytest.raises(ValueError, match=r"got none for 1 by .*: one without a name"):
        rows("a b c", "line2 line3 line4", ["a", "", "c"])


def test_rows_that_were_numbered_anew_are_not_those_of_before() -> None:
    shuffled = ["2", "0", "1"]
    with pytest.raises(
        ValueError, match=r"cannot tell whether the numbers 0, 1, 2, .* call both id"
    ):
        rows("0 1 2", "line2 line3 line4", shuffled, column="")
    assert rows("0 1 2", "line2 line3 line4", shuffled) == [2, 0, 1]
    assert rows("0 1 2", "line2 line3 line4", ["0", "1", "2"], column="") == [0, 1, 2]
    assert rows("2 0 1", "line2 line3 line4", ["0", "1", "2"], column="") == [1, 2, 0]


@pytest.mark.parametrize(
    "ids",
    [
        "b/1.png a/1.png",
        "photos/b/1.png photos/a/1.png",
        "/data/photos/b/1.png photos/./a/1.png",
        "photos\\b\\1.png photos\\a\\1.png",
        "../photos/b/1.png ../photos/a/1.png",
    ],
)
def test_files_are_found_by_any_path(ids: str) -> None:
    files = SampleFiles(
        ["/data/photos/a/1.png", "/data/photos/b/1.png"], ["/data/photos", "/data", "/data/other"]
    )
    assert rows(ids, "a/1.png b/1.png", files=files) == [1, 0]
    with pytest.raises(ValueError, match=r"none for 1 by .*: /data/photos/b/1\.png"):
        rows("photos/a/1.png", "a/1.png b/1.png", files=files)
    assert rows("c/1.png d/1.png", "a/1.png b/1.png", files=files) is None
