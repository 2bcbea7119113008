from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelproof.audit.matching import match_classes
from labelproof.data.notices import DataWarning


@given(st.permutations(["ant", "bee", "cat", "dog", "eel"]), st.integers(2, 5))
def test_columns_in_any_order_are_found_by_name(names: list[str], known: int) -> None:
    vocabulary = sorted(names)[:known]
    found = match_classes(vocabulary, columns=5, names=names, labels="t.csv")
    assert [found.names[column] for column in found.columns] == vocabulary
    assert found.names == tuple(names)


def test_without_names_the_order_is_that_of_the_classes() -> None:
    found = match_classes(["ant", "bee"], columns=2, names=None, labels="t.csv")
    assert (found.columns.tolist(), found.names) == ([0, 1], ("ant", "bee"))


def test_whole_numbers_are_places_of_columns() -> None:
    found = match_classes(["0", "3"], columns=4, names=None, labels="t.csv")
    assert (found.columns.tolist(), found.names) == ([0, 3], ("0", "1", "2", "3"))


def test_that_numbers_are_taken_for_places_is_said_where_it_is_a_guess() -> None:
    names = ["ant", "bee", "cat", "dog"]
    with pytest.warns(DataWarning, match=r"places of the columns .* from 0, and not .* 'ant'$"):
        found = match_classes(["0", "3"], columns=4, names=names, labels="t.csv")
    assert (found.columns.tolist(), found.names) == ([0, 3], ("0", "1", "2", "3"))
    with pytest.warns(DataWarning, match=r"t\.csv: .*counted from 0$"):
        found = match_classes(["1", "2", "3"], columns=4, names=None, labels="t.csv")
    assert found.columns.tolist() == [1, 2, 3]


def test_numbers_that_are_all_known_are_not_places() -> None:
    with pytest.raises(ValueError, match="expected 2 columns"):
        match_classes(["0", "3"], columns=4, names=None, labels="photos", numbered=False)


def test_numbers_that_are_names_are_names() -> None:
    found = match_classes(["1", "2"], columns=2, names=["2", "1"], labels="t.csv")
    assert found.columns.tolist() == [1, 0]


def test_a_class_without_a_column_is_named_with_what_is_there() -> None:
    with pytest.raises(ValueError, match=r"1 class of t\.csv without a column in p\.csv: 'dgo'; "):
        match_classes(
            ["cat", "dgo"], columns=2, names=["cat", "dog"], labels="t.csv", predictions="p.csv"
        )
    with pytest.raises(ValueError, match=r"columns are 'cat', 'dog'; did you mean 'dog'\?"):
        match_classes(["cat", "dgo"], columns=2, names=["cat", "dog"], labels="t.csv")
    with pytest.raises(ValueError, match=r"expected 3 columns.*: a, b, c; got 4; .*--class-names"):
        match_classes(["a", "b", "c"], columns=4, names=None, labels="t.csv")


@pytest.mark.parametrize(
    ("vocabulary", "names"),
    [
        (["1", "2"], ["03", "02", "01"]),
        (["01", "02"], ["3", "2", "1"]),
        (["1", "2"], ["3.0", "2.0", "1.0"]),
        (["1", "01"], ["x", "01", "1"]),
    ],
)
def test_numbers_are_found_however_they_are_written(
    vocabulary: list[str], names: list[str]
) -> None:
    found = match_classes(vocabulary, columns=3, names=names, labels="t.csv")
    assert found.columns.tolist() == [2, 1]
    assert [found.names[column] for column in found.columns] == vocabulary


def test_columns_that_are_called_by_numbers_are_not_counted() -> None:
    with pytest.raises(
        ValueError, match=r"1 class of t\.csv without a column .*: '3'; its columns"
    ):
        match_classes(["1", "2", "3"], columns=4, names=["1", "2", "4", "5"], labels="t.csv")
    with pytest.raises(ValueError, match="2 classes of t"):
        match_classes(["1", "2"], columns=3, names=["cat", "dog", "7"], labels="t.csv")


def test_a_number_that_two_columns_are_called_by_is_refused() -> None:
    with pytest.raises(ValueError, match=r"for the class '1' of t\.csv, got '01' and '1'"):
        match_classes(["1", "2"], columns=3, names=["01", "1", "2"], labels="t.csv")


@pytest.mark.parametrize("names", [["cat", "dog"], None])
def test_two_classes_do_not_share_a_column(names: list[str] | None) -> None:
    vocabulary = [" cat", "cat"] if names else ["1", "01", "0"]
    with pytest.raises(ValueError, match=r"got one, '(cat|1)', for '.*' and '.*'; rename or merge"):
        match_classes(vocabulary, columns=2, names=names, labels="photos")


def test_a_number_that_is_too_long_for_a_place_is_no_place() -> None:
    with pytest.raises(ValueError, match="expected 2 columns"):
        match_classes(["0", "9" * 5000], columns=4, names=None, labels="t.csv")
