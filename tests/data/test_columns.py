import datetime
import json
import math
import time
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.data.columns import Columns
from labelproof.data.notices import DataWarning


def told(table: dict[str, Any], **options: Any) -> tuple[Columns, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        columns = Columns.learn(list(table), list(table.values()), **options)
    assert all(issubclass(entry.category, DataWarning) for entry in caught)
    return columns, [str(entry.message) for entry in caught]


def features(cells: Any, new: Any = None) -> dict[str, list[float]]:
    """The features of one column, by name."""
    columns = Columns.learn(["c"], [cells])
    rows = columns.encode(["c"], [cells if new is None else new])
    return dict(zip(columns.feature_names, rows.T.tolist(), strict=True))


# Columns that have something to learn from, as text of a file or as values of pandas.
NUMBERS = st.one_of(st.none(), st.integers(-1000, 1000), st.floats(-1e20, 1e20))
TEXTS = st.sampled_from(["", "red", "blue", "green", "NA", "other", "3 cm", "été"])
CELLS = st.one_of(
    st.lists(NUMBERS, min_size=12, max_size=12),
    st.lists(NUMBERS, min_size=12, max_size=12).map(
        lambda cells: ["" if cell is None else repr(cell) for cell in cells]
    ),
    st.lists(TEXTS, min_size=12, max_size=12),
    st.lists(st.sampled_from([True, False, None]), min_size=12, max_size=12),
    st.lists(st.dates().map(str), min_size=12, max_size=12),
    st.lists(st.datetimes(), min_size=12, max_size=12),
    st.lists(NUMBERS, min_size=12, max_size=12).map(lambda cells: np.array(cells, float)),
)
TABLES = st.dictionaries(st.text(min_size=1).map(str.strip).filter(bool), CELLS, max_size=5).map(
    # One column that is never left out, so that there always is something to learn.
    lambda table: {**table, "always": np.arange(12.0)}
)


@settings(deadline=None, max_examples=60)
@given(TABLES)
def test_any_table_is_encoded_kept_and_found_in_any_order(table: dict[str, Any]) -> None:
    columns, _ = told(table)
    rows = columns.encode(list(table), list(table.values()))
    assert rows.dtype == np.float32
    assert rows.shape == (12, len(columns.feature_names))
    assert np.isfinite(rows).all()
    kept = Columns.from_values(json.loads(json.dumps(columns.as_values())))
    assert kept == columns
    assert hash(kept) == hash(columns)
    turned = dict(reversed([*table.items(), ("another", ["x"] * 12)]))
    np.testing.assert_array_equal(rows, kept.encode(list(turned), list(turned.values())))
    # A row alone becomes what it became among others.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of a value that no other row has
        alone = kept.encode(list(table), [cells[3:4] for cells in table.values()])
    np.testing.assert_array_equal(rows[3:4], alone)
    used = {column.name for column in columns.columns}
    assert used | {name for name, _ in columns.left_out} == set(table)


@settings(deadline=None, max_examples=60)
@given(st.lists(NUMBERS, min_size=3, max_size=20).filter(lambda cells: len(set(cells)) > 1))
def test_text_and_values_say_the_same(cells: list[float | None]) -> None:
    texts = ["" if cell is None else repr(cell) for cell in cells]
    by_value, by_text = (
        told({"a": cells, "b": [*range(len(cells))]}),
        told({"a": texts, "b": [*range(len(cells))]}),
    )
    assert by_value == by_text
    names = ["a", "b"]
    np.testing.assert_array_equal(
        by_value[0].encode(names, [texts, range(len(cells))]),
        by_text[0].encode(names, [cells, range(len(cells))]),
    )


def test_numbers_are_filled_with_the_median_of_the_training_rows() -> None:
    assert features(["1", "2", "9"]) == {"c": [1, 2, 9]}
    assert features(["1", "2", "9"], ["", "5", "NaN"]) == {"c": [2, 5, 2]}
    assert features(["1", "", "9", "3"]) == {"c": [1, 3, 9, 3], "c: missing": [0, 1, 0, 0]}
    for word in ("NA", "n/a", "?", "-", ".", "null", "None", "NaN", "#N/A"):
        assert features(["1", word, "9"]) == {"c": [1, 5, 9], "c: missing": [0, 1, 0]}


def test_categories_have_a_feature_each_and_the_rare_share_one() -> None:
    colours = ["red", "blue", "red", "blue", "green"]
    assert features(colours, ["blue", "green", "pink", ""]) == {
        "c=blue": [1, 0, 0, 0],
        "c=red": [0, 0, 0, 0],
        "c: other": [0, 1, 1, 1],
    }
    # Nothing can be learned about a feature that is 0 in all training rows: there is none.
    assert features(colours[:4], ["blue", "pink", ""]) == {"c=blue": [1, 0, 0], "c=red": [0, 0, 0]}
    assert features([*colours[:4], ""], ["red", "pink", "NA"]) == {
        "c=blue": [0, 0, 0],
        "c=red": [1, 0, 0],
        "c: missing": [0, 0, 1],
    }


def test_of_many_values_the_most_frequent_are_kept() -> None:
    values = [f"v{number:02}" for number in range(60) for _ in range(2 + (number >= 20))]
    columns = Columns.learn(["c"], [values])
    names = columns.feature_names
    assert len(names) == 51
    assert {f"c=v{number:02}" for number in range(20, 60)} <= set(names)
    assert names[-1] == "c: other"
    assert columns.encode(["c"], [values]).sum(axis=1).tolist() == [1] * len(values)


def test_true_and_false() -> None:
    assert features(["True", "false", "TRUE", ""]) == {
        "c": [1, 0, 1, 1],
        "c: missing": [0, 0, 0, 1],
    }
    assert features([True, False, None]) == {"c": [1, 0, 0.5], "c: missing": [0, 0, 1]}
    assert features(np.array([True, False]), ["false", "true"]) == {"c": [0, 1]}
    assert features(np.array([True, False]), [0, 1.0]) == {"c": [0, 1]}
    with pytest.raises(ValueError, match="'c': expected true or false, got '2' in row 1"):
        features(np.array([True, False]), [0, 2])


def test_dates_become_days() -> None:
    texts = ["1970-01-02", "1970-01-11T12:00:00Z", ""]
    moments = [datetime.datetime(1970, 1, 2), datetime.datetime(1970, 1, 11, 12), None]
    wanted = {"c": [1, 10.5, 5.75], "c: missing": [0, 0, 1]}
    assert features(texts) == features(moments) == features(texts, moments) == wanted
    assert features(np.array([*texts[:1], "1970-01-11T12:00", "NaT"], "datetime64[s]")) == wanted
    assert features([datetime.date(1970, 1, 2), datetime.date(1970, 1, 5)]) == {"c": [1, 4]}
    with pytest.raises(ValueError, match=r"dates such as 2024-12-31, got '02/01/1970' in row 0"):
        features(texts, ["02/01/1970", "", ""])
    with pytest.raises(ValueError, match="got '5' in row 0"):
        features(texts, [5, None, None])
    with pytest.raises(ValueError, match="expected numbers, got '1' in row 0"):
        features([1, 2, 3], moments)


def test_moments_that_float32_cannot_tell_apart_stay_apart() -> None:
    seconds = 1_700_000_000.0 + np.arange(5)
    columns = Columns.learn(["time"], [seconds])
    rows = columns.encode(["time"], [seconds])
    assert np.diff(rows[:, 0]).tolist() == [1] * 4
    texts = [f"2024-05-01 12:00:{second:02}" for second in range(5)]
    rows = Columns.learn(["time"], [texts]).encode(["time"], [texts])
    np.testing.assert_allclose(np.diff(rows[:, 0]) * 86400, 1, rtol=1e-3)


def test_decimal_commas_are_read_and_remembered() -> None:
    columns = Columns.learn(["c"], [["1,5", "2", "", "-0,25"]])
    assert columns.encode(["c"], [["3,5", "1.5", "1,500", None]])[:, 0].tolist() == [
        3.5,
        1.5,
        1.5,
        1.5,
    ]
    with pytest.raises(ValueError, match=r"expected numbers, got '1,5' in row 1"):
        Columns.learn(["c"], [["1.5", "2.5"]]).encode(["c"], [["1.5", "1,5"]])
    with pytest.raises(ValueError, match=r"expected numbers, got '1,500' in row 1"):
        Columns.learn(["c"], [["1", "1,500", "3", "4"]])


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["", "NA", "", ""], "empty"),
        (np.full(4, np.nan), "empty"),
        (["3", "3.0", "3", "3"], "always 3"),
        (["x", "x", "x", "x"], "always 'x'"),
        ([True] * 4, "always 1"),
        (["2024-01-01"] * 4, "always the same"),
        (["A1", "A2", "A3", "A4"], "different in every row, such as 'A1'"),
        (["A1", "A2", "", "A4"], "different in every row, such as 'A1'"),
        (["1/2/24", "1/2/24", "3/2/24", "3/2/24"], "dates such as '1/2/24', whose year has two"),
        (["03/04/2024 10:00"] * 2 + ["05/04/2024 11:30"] * 2, "dates such as '03/04/2024 10:00'"),
        (
            ["18/4/2024", "4/18/2024", "1/2/2024", "3/3/2024"],
            "dates such as '18/4/2024', where day and",
        ),
        (["$2.70", "$11.07", "$3", "$1,200.50"], "numbers written as '$2.70'; write 2.70"),
        (["81%", "94%", "7 %", "12%"], "numbers written as '81%'; write 81"),
        (["7,804", "1,132", "950", "2,001"], "numbers written as '7,804'; write 7804, or 7.804"),
    ],
)
def test_columns_that_say_nothing_are_left_out_and_named(cells: Any, reason: str) -> None:
    columns, messages = told({"c": cells, "size": [1, 2, 3, 4]}, place="table.csv")
    assert columns.names == ("size",)
    assert len(messages) == 1
    assert messages[0].startswith(f"table.csv: 1 of 2 columns left out: c ({reason}")
    # What is left out need not be there later.
    assert columns.encode(["size"], [[5]]).tolist() == [[5]]
    with pytest.raises(ValueError, match="expected a column to learn from in 4 rows, got none: c"):
        Columns.learn(["c"], [cells])


@pytest.mark.parametrize(
    "name",
    [
        *("id", "ID", "Index", "PassengerId", "customer id", "Unnamed: 0", "Kundennr", "KUNDENNR"),
        *("Kundennummer", "CustomerNumber", "nummer", "patient_no", "patientNo", "lfd_nr"),
        *("lfd. Nr.", "customer-id", "row_id"),
    ],
)
def test_row_numbers_are_left_out_by_name(name: str) -> None:
    columns, messages = told({name: [5, 3, 9], "size": [1, 2, 3]})
    assert columns.names == ("size",)
    assert "(a number for each row)" in messages[0]
    columns, messages = told({name: [5, 3, 3], "size": [1, 2, 3]})
    assert columns.names == (name, "size")
    assert not messages


@settings(deadline=None, max_examples=30)
@given(st.permutations(range(60)), st.integers(-(10**6), 10**6), st.booleans())
def test_running_numbers_are_left_out_whatever_they_are_called(
    order: list[int], first: int, as_text: bool
) -> None:
    # Some customers have left: 60 numbers of 118.
    running = [first + 2 * place - place % 2 for place in order]
    cells = [str(number) for number in running] if as_text else running
    columns, messages = told({"Kunde": cells, "size": [0.5, 1.5] * 30})
    assert columns.names == ("size",)
    assert "Kunde (a number for each row, from" in messages[0]


@pytest.mark.parametrize(
    "cells",
    [
        [*range(49), 48],  # one occurs twice
        [*range(49)],  # a few can all differ by chance
        [number * 3 for number in range(60)],  # far apart, as measured numbers are
        [number / 2 for number in range(60)],  # no whole numbers
    ],
)
def test_numbers_that_may_be_measured_stay(cells: list[float]) -> None:
    columns, messages = told({"weight": cells})
    assert columns.names == ("weight",)
    assert not messages


@pytest.mark.parametrize("name", ["num_rooms", "acid", "paid", "price_index", "piano", "casino"])
def test_names_that_only_look_like_counters_stay(name: str) -> None:
    assert Columns.learn([name], [[5, 3, 9]]).names == (name,)


def test_free_text_is_left_out() -> None:
    texts = [f"sentence {number}" for number in range(90)] + ["sentence 1"] * 10
    _, messages = told({"text": texts, "size": [1, 2] * 50})
    assert "text (90 values in 100 rows, such as 'sentence 0')" in messages[0]


def test_stray_text_between_numbers_is_named_or_taken_for_missing() -> None:
    cells = ["1", "2", "about 3", "4", "5", "many"]
    places = [f"line {number}" for number in range(2, 8)]
    wanted = "t.csv: column 'c': expected numbers, got 'about 3' in line 4, 'many' in line 7"
    with pytest.raises(ValueError, match=wanted):
        Columns.learn(["c"], [cells], place="t.csv", places=places)
    columns, messages = told({"c": cells}, place="t.csv", places=places, on_error="skip")
    assert messages == [f"{wanted}; taken for missing"]
    assert columns.feature_names == ("c", "c: missing")
    with pytest.warns(DataWarning, match="'9 or so' in row 0; taken for missing"):
        rows = columns.encode(["c"], [["9 or so", "9"]], on_error="skip")
    assert rows.tolist() == [[3, 1], [9, 0]]
    with pytest.raises(ValueError, match="expected numbers, got '9 or so' in row 0; mend them"):
        columns.encode(["c"], [["9 or so", "9"]])


def test_numbers_and_text_in_few_values_are_categories() -> None:
    children = ["0", "1", "2", "3+"] * 10
    columns, messages = told({"children": children})
    assert columns.feature_names == ("children=0", "children=1", "children=2", "children=3+")
    assert "'3+' in row 3, in 4 values; taken for categories" in messages[0]
    rows = columns.encode(["children"], [[0, 2.0, "3+"]])
    assert rows.argmax(axis=1).tolist() == [0, 2, 3]
    assert told({"children": [0, 1, 2.0, "3+"] * 10})[0] == columns


@pytest.mark.parametrize(
    "cells",
    [
        np.array([1.0, np.inf, 2.0]),
        [1.0, math.inf, 2.0],
        ["1", "inf", "2"],
        ["1", "1e999", "2"],
        np.array([1.0, 1e200, 2.0]),
    ],
)
def test_infinite_values_are_named(cells: Any) -> None:
    with pytest.raises(ValueError, match=r"'c': expected numbers of up to 1e\+30, got .* in row 1"):
        Columns.learn(["c"], [cells])
    with pytest.raises(ValueError, match=r"'c': expected numbers of up to 1e\+30, got .* in row 1"):
        Columns.learn(["c"], [[1, 2, 3]]).encode(["c"], [cells])
    columns, messages = told({"c": cells}, on_error="skip")
    assert columns.feature_names == ("c", "c: missing")
    assert messages[0].endswith("; taken for missing")


def test_columns_are_found_by_name() -> None:
    columns = Columns.learn(["size", "colour"], [[1, 2, 3], ["a", "a", "b"]])
    with pytest.raises(
        ValueError, match=r"new\.csv: expected the column 'colour', found 'size', 'col"
    ):
        columns.encode(["size", "color"], [[1], ["a"]], place="new.csv")
    with pytest.raises(ValueError, match="did you mean 'color'"):
        columns.encode(["size", "color"], [[1], ["a"]])
    wanted = (
        r"expected the columns 'size', 'colour', found 'SIZE', 'Col our'; rename 'SIZE' to 'size', "
        r"'Col our' to 'colour': they differ only in case or spaces$"
    )
    with pytest.raises(ValueError, match=wanted):
        columns.encode(["SIZE", "Col our"], [[1], ["a"]])
    # Names that are wanted as they are stand for nothing else.
    with pytest.raises(ValueError, match=r"expected the column 'Size', found 'size'; did you mean"):
        Columns.learn(["size", "Size"], [[1, 2], [1, 2]]).encode(["size"], [[1]])
    with pytest.raises(ValueError, match="expected the columns 'size', 'colour', found none"):
        columns.encode([], [])
    with pytest.raises(ValueError, match="more than one called 'size'"):
        columns.encode(["size", "colour", " size"], [[1], ["a"], [1]])
    with pytest.raises(ValueError, match="more than one called 'size'"):
        Columns.learn(["size", "size"], [[1, 2], [1, 2]])
    # What is not used may be anything.
    assert len(columns.encode(["x", "x", "size", "colour"], [[[]], [{}], [1], ["a"]])) == 1
    with pytest.raises(ValueError, match="columns of one length, got 2 in 'size', 1 in 'colour'"):
        columns.encode(["size", "colour"], [[1, 2], ["a"]])
    with pytest.raises(ValueError, match="expected a name for each of 2 columns, got 1"):
        columns.encode(["size"], [[1], ["a"]])


def test_no_rows_become_no_rows() -> None:
    columns = Columns.learn(["size", "colour"], [[1, 2, 3], ["a", "a", "b"]])
    assert columns.encode(["size", "colour"], [[], []]).shape == (0, 3)


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, (1,), np.zeros(2)])
def test_cells_that_hold_more_than_a_value_are_refused(cell: object) -> None:
    with pytest.raises(TypeError, match="expected numbers or text in 'c', got"):
        Columns.learn(["c"], [[cell, cell]])
    with pytest.raises(TypeError, match="expected numbers or text in 'c', got complex"):
        Columns.learn(["c"], [np.zeros(3, complex)])
    with pytest.raises(ValueError, match=r"expected one cell a row in 'c', got \(3, 2\)"):
        Columns.learn(["c"], [np.zeros((3, 2))])


def test_other_numbers_and_bytes() -> None:
    assert features([Decimal("1.5"), np.float32(2), 3]) == {"c": [1.5, 2, 3]}
    assert features(np.array([b"1", b"2"])) == {"c": [1, 2]}
    assert features(np.array([1, 3], "timedelta64[D]")) == {"c": [1, 3]}
    # 12_3 is a code, though Python reads it as a number.
    assert set(features(["12_3", "12_4"] * 2)) == {"c=12_3", "c=12_4"}


def test_columns_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "size": pandas.array([1, None, 3, 4], dtype="Int64"),
            "colour": pandas.Series(["red", None, "blue", "red"], dtype="string"),
            "kind": pandas.Categorical(["a", "b", "a", "b"]),
            "when": pandas.to_datetime(["1970-01-02", "1970-01-03", None, "1970-01-05"]),
            "zone": pandas.to_datetime(["1970-01-02", "1970-01-03"] * 2, utc=True),
            "good": pandas.array([True, None, False, True], dtype="boolean"),
            7: [0.5, 1.5, 2.5, np.nan],
        }
    )
    columns = Columns.learn(frame.columns, [frame[name] for name in frame.columns])
    kinds = {column.name: (column.kind, column.missing) for column in columns.columns}
    assert kinds == {
        "size": ("number", 1),
        "colour": ("category", 1),
        "kind": ("category", 0),
        "when": ("date", 1),
        "zone": ("date", 0),
        "good": ("boolean", 1),
        "7": ("number", 1),
    }
    rows = columns.encode(frame.columns, [frame[name] for name in frame.columns])
    assert rows[:, columns.feature_names.index("zone")].tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "values",
    [{}, {"columns": 3}, {"columns": [{"name": "a"}]}, {"columns": [{"name": "a", "kind": "b"}]}],
)
def test_values_that_are_none_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="columns: expected what as_values gives"):
        Columns.from_values(values)


def test_large_tables_of_numbers_are_quick() -> None:
    values = np.random.default_rng(0).normal(size=(50, 100_000))
    names = [f"c{number}" for number in range(50)]
    start = time.process_time()
    rows = Columns.learn(names, values).encode(names, values)
    # Columns are handled whole: a loop over five million cells does not end in this time.
    assert time.process_time() - start < 2.5
    np.testing.assert_array_equal(rows, values.T.astype(np.float32))


@pytest.mark.parametrize(
    "cells",
    [
        ["3.1.1970", "18.01.1970", "", "2.2.1970"],
        ["3/1/1970", "18/01/1970", "", "2/2/1970"],
        ["1-3-1970", "01-18-1970", "", "2-2-1970"],
        ["1970-01-03", "1970-01-18", "", "1970-02-02"],
    ],
)
def test_dates_are_read_in_the_order_that_their_column_tells(cells: list[str]) -> None:
    columns, messages = told({"c": cells})
    # What stands with dots has the day first wherever it is usual; else it was concluded.
    assert len(messages) == ("/" in cells[0] or "-" in cells[0][:3])
    kept = Columns.from_values(json.loads(json.dumps(columns.as_values())))
    assert kept == columns
    assert kept.encode(["c"], [cells])[:, 0].tolist() == [2, 17, 17, 32]
    with pytest.raises(ValueError, match=r"expected dates .* got '31\.31\.1970' in row 0"):
        kept.encode(["c"], [["31.31.1970"]])


def test_a_time_of_day_goes_with_a_date_of_any_order() -> None:
    assert features(["2.1.1970 12:00", "18.1.1970 6:00"])["c"] == [1.5, 17.25]


def test_dates_of_a_column_that_was_kept_without_an_order_are_read_as_before() -> None:
    values = Columns.learn(["c"], [["1970-01-03", "1970-01-18"]]).as_values()
    del values["columns"][0]["order"]
    columns = Columns.from_values(values)
    assert columns.encode(["c"], [["1970-01-05"]]).tolist() == [[4]]
    with pytest.raises(ValueError, match=r"got '5\.1\.1970'"):
        columns.encode(["c"], [["5.1.1970"]])


def test_numbers_with_marks_that_are_taken_for_categories_are_named() -> None:
    columns, messages = told({"c": ["5%", "7%", "5%", "7%"]}, place="table.csv")
    assert columns.feature_names == ("c=5%", "c=7%")
    assert messages == [
        "table.csv: column 'c': numbers written as '5%'; write 5; taken for categories"
    ]


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["3.237,14", "987,50", "1.234.567,89", "-1.000"], [3237.14, 987.5, 1234567.89, -1000]),
        (["3,237.14", "987.50", "1,234,567.89", "-1,000"], [3237.14, 987.5, 1234567.89, -1000]),
        (["1,234,567", "7,804", "950", "0.5"], [1234567, 7804, 950, 0.5]),
        (["3.237,140", "12.500", "7", ""], [3237.14, 12500, 7, 3237.14]),
    ],
)
def test_thousands_that_can_mean_nothing_else_are_read(
    cells: list[str], wanted: list[float]
) -> None:
    columns, messages = told({"c": cells})
    assert not messages
    kept = Columns.from_values(json.loads(json.dumps(columns.as_values())))
    np.testing.assert_allclose(kept.encode(["c"], [cells])[:, 0], wanted, rtol=1e-6)
    # A row alone becomes what it became among others; where nothing in it tells, that is said.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        alone = [kept.encode(["c"], [[cell]])[0, 0] for cell in cells]
    np.testing.assert_allclose(alone, wanted, rtol=1e-6)


def test_new_rows_may_have_dots_between_thousands_or_decimal_points() -> None:
    columns = Columns.learn(["c"], [["3237,14", "987,5", "12"]])
    rows = columns.encode(["c"], [["3.983,5", "3.983", "8,5"]])
    assert rows[:, 0].tolist() == [3983.5, 3983, 8.5]
    # A file that was written elsewhere: a cell tells that its dots are decimal points.
    assert columns.encode(["c"], [["1.125", "8.5", "2"]])[:, 0].tolist() == [1.125, 8.5, 2]
    with pytest.raises(ValueError, match=r"expected numbers, got '1\.125\.000' in row 0"):
        columns.encode(["c"], [["1.125.000", "8.5"]])


def test_decimal_commas_of_another_column_tell_what_dots_mean() -> None:
    table = {"Umsatz": ["987", "3.237", "12.500", ""], "Rabatt": ["0,5", "1,5", "0,2", "1"]}
    columns, messages = told(table, place="t.csv")
    assert messages == [
        "t.csv: column 'Umsatz': '3.237' taken for 3237, as other columns have decimal commas"
    ]
    kept = Columns.from_values(json.loads(json.dumps(columns.as_values())))
    rows = kept.encode(list(table), list(table.values()))
    assert rows[:, 0].tolist() == [987, 3237, 12500, 3237]
    assert kept.encode(list(table), [["4.000"], ["2,5"]])[0, 0] == 4000


@pytest.mark.parametrize(
    "other",
    [
        ["7", "1", "3", "5"],  # no decimal commas
        ["1,500", "2,250", "1,500", "2,250"],  # commas that may stand between thousands
        ["red", "red", "blue", "blue"],
    ],
)
def test_dots_stay_decimal_points_where_nothing_tells(other: list[str]) -> None:
    columns, _ = told({"c": ["987", "3.237", "12.500", "7"], "other": other})
    assert columns.encode(["c", "other"], [["3.237"], other[:1]])[0, 0] == np.float32(3.237)


@pytest.mark.parametrize("cells", [["987", "3.237", "1.5"], ["0.125", "3.237", "2.250"]])
def test_a_decimal_point_tells_that_dots_are_such(cells: list[str]) -> None:
    table = {"c": cells, "pair": ["1,2", "2,5", "1,2"], "d": ["3.237", "12.500", "7"]}
    columns, messages = told(table)
    assert not messages
    rows = columns.encode(list(table), list(table.values()))
    np.testing.assert_allclose(rows[:, 0], [float(cell) for cell in cells])
    np.testing.assert_allclose(rows[:, 2], [3.237, 12.5, 7])


def encoded(columns: Columns, cells: list[Any], **options: Any) -> list[str]:
    """What is said about new rows of a single column."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        columns.encode(columns.names, [cells], place="new.csv", **options)
    assert all(issubclass(entry.category, DataWarning) for entry in caught)
    return [str(entry.message) for entry in caught]


def test_values_that_training_rows_did_not_have_are_named_where_they_are_many() -> None:
    columns = Columns.learn(["Tarif"], [["basic", "plus", "pro", ""] * 5])
    messages = encoded(columns, ["BASIC", "PLUS", "x", "y", ""] * 60)
    assert messages == [
        "new.csv: column 'Tarif': 240 of 240 cells have values that were not seen in training "
        "('BASIC', 'PLUS', 'x' and 1 more); 'BASIC' differs from 'basic' only in case or spaces"
    ]
    assert "1 of 1 cells have values that were not" in encoded(columns, ["gold"])[0]
    assert "6 of 100 cells" in encoded(columns, ["pro"] * 94 + ["gold"] * 6)[0]
    # New values now and then are normal, and what is said of training rows is said once.
    assert not encoded(columns, ["pro"] * 95 + ["gold"] * 5)
    assert not encoded(columns, ["pro"] * 10 + ["gold"] * 4)
    assert not encoded(columns, ["gold"] * 100, on_error="quiet")
    assert not encoded(columns, [""] * 100)
    assert not encoded(columns, [])


def test_values_that_are_as_rare_as_in_training_are_normal() -> None:
    training = [f"v{number}" for number in range(400) for _ in range(3)]
    columns = Columns.learn(["c"], [training])
    assert not encoded(columns, training)
    assert not encoded(columns, training[-1:])
    assert not encoded(columns, [f"v{number}" for number in range(0, 400, 2)])
    (message,) = encoded(columns, [text.upper() for text in training])
    assert "1,200 of 1,200 cells have values that were seldom or not seen in training" in message
    # Kept before the share of others was: nothing is known of it.
    values = columns.as_values()
    del values["columns"][0]["rare"]
    assert not encoded(Columns.from_values(values), ["new"] * 100)
