"""New rows are read in the form that training rows had, and what may mean another is told."""

import json
import warnings
from typing import Any

import numpy as np
import pytest

from labelproof.data.columns import Columns
from labelproof.data.notices import DataWarning


def told(columns: Columns, *cells: list[Any]) -> tuple[list[float], list[str]]:
    """The first feature of new rows, and what is said about them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = columns.encode(columns.names, cells, place="new.csv")
    assert all(issubclass(entry.category, DataWarning) for entry in caught)
    return rows[:, 0].tolist(), [str(entry.message) for entry in caught]


AGES = np.arange(20, 71).repeat(2)
GERMAN = ["1.008,10", "982,75", *(f"{number},5" for number in range(40))]


@pytest.mark.parametrize(
    "cells",
    [
        ["1037,107", "1074,114", "937,250"],
        ["0,125", "3,250", "12,500"],
        ["-1037,107", "+937,250", ""],
        ["1,500e3", "2,250", "7"],
    ],
)
def test_three_decimals_are_decimals_where_one_cell_can_mean_nothing_else(cells: list[str]) -> None:
    columns = Columns.learn(["w"], [cells])
    wanted = [float(cell.replace(",", ".")) for cell in cells if cell]
    np.testing.assert_allclose(columns.encode(["w"], [cells])[: len(wanted), 0], wanted, rtol=1e-6)


def test_commas_of_three_decimals_mean_what_other_columns_tell() -> None:
    table = {"w": ["10,371", "7,804", "9,250"], "u": ["1,5", "2,5", "0,5"]}
    with pytest.warns(DataWarning, match="'10,371' taken for 10.371, as other columns have decim"):
        columns = Columns.learn(list(table), list(table.values()))
    assert columns.names == ("w", "u")
    rows = columns.encode(list(table), list(table.values()))
    np.testing.assert_allclose(rows[:, 0], [10.371, 7.804, 9.25], rtol=1e-6)
    # Decimal points beside them, and nobody can tell.
    with pytest.warns(DataWarning, match=r"numbers written as '10,371'; write 10371, or 10\.371"):
        Columns.learn(["w", "u"], [table["w"], ["1.5", "2.5", "0.5"]])


def test_a_dot_that_may_be_a_decimal_point_is_told() -> None:
    columns = Columns.learn(["spend"], [GERMAN])
    columns = Columns.from_values(json.loads(json.dumps(columns.as_values())))
    values, messages = told(columns, ["1.234", "7"])
    assert values == [1234, 7]
    assert messages == [
        "new.csv: column 'spend': '1.234' taken for 1234, as training rows have decimal commas; "
        "nothing in these rows tells"
    ]
    # A cell that tells, in the one way or in the other, and nothing has to be said.
    assert told(columns, ["1.234", "0,5"]) == ([1234, 0.5], [])
    assert told(columns, ["1.25", "0.125", "1.234"])[1] == []
    assert told(columns, ["12", ""])[1] == []


def test_another_column_may_tell_what_dots_mean() -> None:
    columns = Columns.learn(["spend", "share"], [GERMAN, ["0,5", "0,7"] * 21])
    assert told(columns, ["1.234"], ["0,7"]) == ([1234], [])
    assert "'1.234' taken for 1234" in told(columns, ["1.234"], ["1"])[1][0]


def test_a_comma_that_may_be_a_decimal_one_is_told() -> None:
    columns = Columns.learn(["spend"], [["1,008.10", "982.75", "7,804.00"]])
    values, messages = told(columns, ["1,608"])
    assert values == [1608]
    assert "'1,608' taken for 1608, as training rows have commas between thousands" in messages[0]
    assert told(columns, ["1,608", "3.5"]) == ([1608, 3.5], [])


def test_numbers_far_outside_of_the_training_range_are_told_once() -> None:
    columns = Columns.learn(["age"], [AGES])
    values, messages = told(columns, [25, 31, 47e6, 52e6, -9e6])
    assert values[2] == 47e6
    assert messages == [
        "new.csv: column 'age': 3 numbers far outside of 20 to 70, what training rows had: "
        "47000000 in row 2, 52000000 in row 3, -9000000 in row 4; are they written in another way, "
        "or in another unit?"
    ]
    # A hundred times the range lies in between, and missing numbers lie nowhere.
    assert not told(columns, [70 + 50 * 100, 20 - 50 * 100, None])[1]


def test_a_column_that_was_always_the_same_is_judged_by_its_size() -> None:
    columns = Columns.learn(["age"], [[5.0] * 30 + [None]])
    assert not told(columns, [500.0])[1]
    assert told(columns, [5000.0])[1]


def test_columns_that_were_kept_without_a_range_are_read_as_before() -> None:
    values = Columns.learn(["age"], [AGES]).as_values()
    for name in ("low", "high"):
        del values["columns"][0][name]
    assert told(Columns.from_values(values), [1e9]) == ([1e9], [])
    # Nor do a handful of rows tell what is far.
    assert told(Columns.learn(["age"], [[1.0, 2.0, 3.0]]), [1e9]) == ([1e9], [])


def test_a_long_example_is_cut_within_its_quotes() -> None:
    texts = [f"customer complained on {number} about the price of it" for number in range(9)]
    with pytest.warns(DataWarning, match="'customer complained on 0 about the pric…'") as caught:
        Columns.learn(["comment", "size"], [texts, range(0, 18, 2)])
    assert str(caught[0].message).endswith("…')")


def test_commas_of_a_file_with_decimal_points_are_told() -> None:
    learned = Columns.learn(
        ["share", "income"],
        [[f"0,{number}" for number in range(25, 50)], [f"{n}970,64" for n in range(1, 26)]],
    )
    with pytest.warns(DataWarning, match=r"'4,970' taken for 4.97, as training rows have decimal"):
        learned.encode(["share", "income"], [["0.295"], ["4,970"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned.encode(["share", "income"], [["0,295"], ["4.970"]])
