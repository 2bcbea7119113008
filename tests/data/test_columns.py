import datetime
import json
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.data.columns import Columns
from labelproof.data.notices import DataWarning


def learn(**columns: Any) -> Columns:
    return Columns.learn(pd.DataFrame(columns))


def test_each_kind_of_column_becomes_features() -> None:
    table = pd.DataFrame(
        {
            "whole": [3, 1, 2, 5],
            "part": [0.5, None, 1.5, 2.5],
            "nullable": pd.array([1, None, 2, 4], dtype="Int64"),
            "decimal": [Decimal("1.5"), Decimal(2), None, Decimal(3)],
            "flag": [True, False, True, False],
            "unsure": pd.array([True, None, False, True], dtype="boolean"),
            "colour": ["red", "blue", "red", "blue"],
            "grade": pd.Categorical(["1", "2", "1", "2"]),
            "text number": ["1", "2.5", "", "4"],
            "waited": pd.to_timedelta([1, 2, 3, 4], unit="D"),
        }
    )
    columns = Columns.learn(table)
    kinds = {column.name: column.kind for column in columns.columns}
    assert kinds == {
        **dict.fromkeys(
            ["whole", "part", "nullable", "decimal", "text number", "waited"], "number"
        ),
        **dict.fromkeys(["flag", "unsure"], "boolean"),
        **dict.fromkeys(["colour", "grade"], "category"),
    }
    features = dict(zip(columns.feature_names, columns.encode(table).T.tolist(), strict=True))
    known = {"part": [0.5, 1.5, 1.5, 2.5], "part: missing": [0, 1, 0, 0], "nullable": [1, 2, 2, 4]}
    known |= {"decimal": [1.5, 2, 2, 3], "unsure": [1, 1, 0, 1], "waited": [1, 2, 3, 4]}
    known |= {"colour=red": [1, 0, 1, 0], "grade=2": [0, 1, 0, 1], "text number": [1, 2.5, 2.5, 4]}
    assert features | known == features


def test_dates_become_days_and_cycles() -> None:
    text = ["2024-01-01", "2024-07-01", "2024-04-01", None]
    days = [datetime.date(2024, month, 1) for month in (1, 7, 4)]
    for dates in (text, pd.to_datetime(text), pd.to_datetime(text, utc=True), [*days, None]):
        table = pd.DataFrame({"when": dates})
        columns = Columns.learn(table)
        assert columns.feature_names == (
            *("when", "when: sine of year", "when: cosine of year"),
            *("when: sine of week", "when: cosine of week", "when: missing"),
        )
        rows = columns.encode(table)
        assert rows[:3, 0].tolist() == [-91, 91, 0]
        # January and July are at opposite ends of the year.
        np.testing.assert_allclose(rows[0, 1:3], -rows[1, 1:3], atol=0.05)
        assert rows[3].tolist()[-1] == 1
        later = columns.encode(pd.DataFrame({"when": ["2025-01-01T00:00:00Z"]}))
        np.testing.assert_allclose(later[0, 1:3], rows[0, 1:3], atol=0.02)


def test_dates_are_read_however_they_are_written() -> None:
    days = pd.date_range("2020-01-30", periods=90, freq="7D")
    expected = Columns.learn(pd.DataFrame({"when": days})).encode(pd.DataFrame({"when": days}))
    forms = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+00:00", "%Y/%m/%d", "%Y.%m.%d"]
    forms += ["%d %b %Y", "%b %d, %Y", "%d. %B %Y %H:%M"]
    # In some of these days the first or the second number is above 12, so the other is the month.
    for form in (*forms, "%d.%m.%Y", "%m/%d/%Y"):
        table = pd.DataFrame({"when": days.strftime(form)})
        columns = Columns.learn(table)
        assert columns.columns[0].kind == "date", form
        np.testing.assert_array_equal(columns.encode(table), expected)
        # New dates are read as those of training, whatever their order may be.
        np.testing.assert_array_equal(columns.encode(table.iloc[1:2]), expected[1:2])
        assert Columns.from_values(json.loads(json.dumps(columns.as_values()))) == columns
        with pytest.raises(ValueError, match=r"'when'.*dates such as.* got 'soon'"):
            columns.encode(pd.DataFrame({"when": ["soon"]}))
    mixed = [*days[:45].strftime("%d.%m.%Y"), *days[45:].strftime("%Y-%m-%d")]
    assert Columns.learn(pd.DataFrame({"when": mixed})).columns[0].kind == "date"


def test_a_few_cells_that_are_no_dates_are_unusable_and_many_mean_that_none_is_read() -> None:
    days = pd.Series(pd.date_range("2020-01-30", periods=90).strftime("%Y-%m-%d"))
    table = pd.DataFrame({"size": np.arange(90) % 7, "when": days})
    table.loc[[0, 5], "when"] = ["unknown", "0000-00-00"]
    columns = Columns.learn(table)
    assert columns.columns[1].kind == "date"
    with pytest.raises(ValueError, match="got 'unknown' in row 0, '0000-00-00' in row 5"):
        columns.encode(table)
    with pytest.warns(DataWarning, match="treated as missing"):
        assert columns.encode(table, on_error="skip")[:7, -1].tolist() == [1, 0, 0, 0, 0, 1, 0]
    table.loc[:29, "when"] = "unknown"
    with pytest.warns(DataWarning, match="when .dates written as '2020-02-29': write them"):
        assert Columns.learn(table).names == ("size",)
    # A year and a month, or a version, are no date.
    for codes in ("2020-01", "2020-02", "1.10.3"), ("2020", "2021", "n.v."):
        assert learn(code=[*codes] * 4).columns[0].kind == "category"


def test_frequent_values_have_features_and_unseen_ones_are_warned_of() -> None:
    values = [*(f"v{number:03}" for number in range(60) for _ in range(3)), "once", "again"]
    (column,) = learn(code=values).columns
    assert len(column.values) == 50
    assert column.other
    rows = learn(code=values).encode(pd.DataFrame({"code": ["v000", "once", "never", None]}))
    assert rows.sum(axis=1).tolist() == [1, 1, 1, 1]
    assert rows[1:, -1].tolist() == [1, 1, 1]
    columns = learn(plan=["basic", "pro"] * 10)
    new = pd.DataFrame({"plan": ["BASIC"] * 6 + ["pro"] * 6})
    with pytest.warns(DataWarning, match="'plan': 6 of 12 cells.*'BASIC'"):
        rows = columns.encode(new)
    assert rows[0].tolist() == [0, 0]
    columns.encode(pd.DataFrame({"plan": ["BASIC"] + ["pro"] * 11}))


def test_rare_values_are_warned_of_if_there_are_more_than_in_training() -> None:
    columns = learn(plan=["basic", "pro"] * 45 + [f"rare {number}" for number in range(10)])
    assert columns.columns[0].other == 0.1
    cases = ({"rare 1": 1, "pro": 5}, False), ({"Basic": 4}, True), ({"A": 4, "pro": 6}, True)
    for new, told in cases:
        cells = [plan for plan, times in new.items() for _ in range(times)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            columns.encode(pd.DataFrame({"plan": cells}))
        assert ["unseen or rare" in str(each.message) for each in caught] == [True] * told, new


def test_categories_are_the_same_however_numbers_and_truth_are_written() -> None:
    columns = learn(code=["01", "02", "A1"] * 4, flag=["TRUE", "FALSE", "unknown"] * 4)
    expected = columns.encode(pd.DataFrame({"code": ["01", "02"], "flag": ["TRUE", "FALSE"]}))
    assert expected[:, [0, 1, 3, 4]].tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
    for codes in ([1, 2], [1.0, 2.0], ["1", "2.0"], [1.0, "02"]):
        new = pd.DataFrame({"code": codes, "flag": [True, False]})
        assert (columns.encode(new) == expected).all()
    # Which of two spellings is meant cannot be known.
    twice = learn(code=["01", "1", "A1"] * 4)
    with pytest.warns(DataWarning, match=r"'1\.0'"):
        assert not twice.encode(pd.DataFrame({"code": ["1.0"]})).any()


def test_longer_texts_become_their_words_and_ids_of_terms() -> None:
    makes = ["Toyota", "Ford", "Fiat", "白车"]
    names = [f"{makes[row % 4]} model-{row}x of" for row in range(80)] + [None]
    columns = learn(car=names, size=np.arange(81) / 7, note=[*names[1:], "odd"])
    assert [column.kind for column in columns.columns] == ["text", "number", "text"]
    again = [f"{name} that runs well" for name in names[:80]] * 3
    assert learn(car=again).columns[0].kind == "text"
    text, _, note = columns.columns
    assert text.values == ("fiat", "ford", "toyota", "白", "车")
    assert "白 车" in text.terms
    assert (text.before, note.before) == (0, len(text.terms))
    more = ["FORD Fiesta, not Toyota", "nothing", None, "车白"]
    rows = columns.encode(pd.DataFrame({"car": more, "size": 1.0, "note": more[::-1]}))
    ids, others = np.split(rows[:, columns.ids], [text.ids], axis=1)
    for found, column in ((ids[0], text), (others[3], note)):
        known = [column.before + column.terms.index(word) + 1 for word in ("ford", "toyota")]
        assert found.tolist() == [*sorted(known, reverse=True), *[0] * (column.ids - 2)]
    flags = rows[:, columns.words[:5]]
    assert flags.tolist() == [[0, 1, 1, 0, 0], [0] * 5, [0] * 5, [0, 0, 0, 1, 1]]
    assert columns.feature_names[5 + text.ids] == "car: missing"
    assert rows[:, 5 + text.ids].tolist() == [0, 0, 1, 0]
    assert Columns.from_values(json.loads(json.dumps(columns.as_values()))) == columns


def test_values_have_features_as_rows_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"word{row % 240} {'left' if row % 3 else 'right'} {row}" for row in range(960)]
    size = np.arange(960) / 7
    assert len(learn(text=texts, size=size).columns[0].values) == 200
    cities = [f"city {row % 96}" for row in range(960)]
    assert len(learn(city=cities, size=size).columns[0].values) == 96
    with pytest.warns(DataWarning, match=r"50 values of 'city' are features; 48% of the rows"):
        learn(city=cities[:384], size=size[:384])  # four rows of each
    monkeypatch.setattr("labelproof.data.columns._MOST_CELLS", 960 * 60)
    with pytest.warns(DataWarning, match=r"60 values of 'city' are features; 38% of the rows"):
        assert len(learn(city=cities, size=size).columns[0].values) == 60


def test_columns_that_arrive_empty_are_told() -> None:
    columns = learn(size=np.arange(20.0), city=["here", "there"] * 10)
    empty = pd.DataFrame({"size": [np.nan] * 9 + [1.0], "city": [""] * 9 + ["here"]})
    with pytest.warns(DataWarning, match="9 of 10 cells are missing, and none was") as told:
        columns.encode(empty)
    assert len(told) == 2


def test_columns_without_information_are_left_out_with_a_reason() -> None:
    rows = 60
    table = {
        "ok": np.arange(rows) % 7 + 0.5,
        "empty": [None] * rows,
        "constant": [3] * rows,
        "same": ["x"] * rows,
        "note": [f"text {number}" for number in range(rows)],
        "price": [f"1.{number:03},50" for number in range(rows)],
        "joined": [f"{number % 12 + 1}.{number // 12 + 1}.2024" for number in range(rows)],
        "left": [f"{number % 28 + 1:02}/{number // 28 + 1:02}/24" for number in range(rows)],
        "seen": [f"{number % 28 + 1} Mai {1960 + number}" for number in range(rows)],
        "rate": [f"{number / 7:.1f} %" for number in range(rows)],
        "cost": [f"-${number},000" for number in range(rows)],
        "PassengerId": np.arange(rows) * 17 + 3,
        "counter": np.arange(rows)[::-1],
        "lists": [[1], [2]] * (rows // 2),
    }
    with pytest.warns(DataWarning, match="13 of 14 columns left out"):
        columns = learn(**table)
    reasons = dict(columns.left_out)
    assert columns.names == ("ok",)
    assert (reasons["empty"], reasons["constant"], reasons["same"]) == ("empty", *["constant"] * 2)
    assert reasons["PassengerId"] == reasons["counter"] == "numbers the rows"
    assert "--decimal" in reasons["price"]
    few_different = [f"{number % 15},{number % 5}5" if number % 4 else "0" for number in range(80)]
    with pytest.warns(DataWarning, match="part .*--decimal"):
        Columns.learn(pd.DataFrame({"size": np.arange(80) % 7, "part": few_different}))
    codes = [f"{number % 3},{number % 2}" for number in range(80)]
    assert Columns.learn(pd.DataFrame({"size": np.arange(80) % 7, "code": codes})).left_out == ()
    assert all("2024-12-31" in reasons[name] for name in ("joined", "left", "seen"))
    assert all("remove the % or currency sign" in reasons[name] for name in ("rate", "cost"))
    assert "text 0" in reasons["note"]
    assert columns.row_number == "PassengerId"
    with pytest.raises(ValueError, match="a column to learn from"):
        learn(same=["x"] * 5)


def test_identifiers_that_repeat_are_left_out_and_may_be_groups() -> None:
    rows = np.arange(90)
    names = ("customer_id", "CustomerID", "id", "paid", "Covid", "floor no")
    codes = pd.DataFrame({"type_id": rows % 3, "size": rows % 7 / 2})
    assert Columns.learn(codes).names == ("type_id", "size")
    table = pd.DataFrame({"size": rows % 7 / 2, **dict.fromkeys(names, rows // 3 * 10)})
    with pytest.warns(DataWarning, match="customer_id .*--group customer_id"):
        columns = Columns.learn(table)
    assert columns.names == ("size", "paid", "Covid", "floor no")
    assert columns.row_number == "customer_id"


def test_cells_of_another_kind_are_refused_or_missing() -> None:
    table = pd.DataFrame({"size": [*map(str, np.arange(100) * 1.5), "n.v.", "big"]})
    columns = Columns.learn(table)
    with pytest.raises(ValueError, match=r"'size'.*'n.v.' in row 100, 'big' in row 101"):
        columns.encode(table)
    with pytest.warns(DataWarning, match="treated as missing"):
        assert columns.encode(table, on_error="skip")[100].tolist() == [74.25, 1]
    codes = pd.DataFrame({"size": ["1", "2", "3", "XL"] * 50})
    assert Columns.learn(codes).columns[0].kind == "category"
    for value in (np.inf, -np.inf, 1e300):
        table = pd.DataFrame({"size": [1.0, 2.0, value]})
        with pytest.raises(ValueError, match="finite numbers"):
            Columns.learn(table).encode(table)
        with pytest.warns(DataWarning, match="treated as missing"):
            assert Columns.learn(table).encode(table, on_error="skip")[2].tolist() == [1.5, 1]
    columns = learn(
        size=[1.0, 2, 3], flag=[True, False, True], day=["2024-01-01", "2024-01-02", "2024-01-05"]
    )
    good = {"size": [1], "flag": [True], "day": ["2024-01-01"]}
    for name, wrong in {"size": "large", "flag": 7, "day": 12}.items():
        with pytest.raises(ValueError, match=name):
            columns.encode(pd.DataFrame(good | {name: [wrong]}))
    with pytest.raises(ValueError, match="'flag'"):
        columns.encode(pd.DataFrame({"size": [1], "day": ["2024-01-01"]}))
    assert len(columns.encode(pd.DataFrame(good | {"flag": ["false"], "more": [1]}))) == 1


def test_large_numbers_keep_their_differences() -> None:
    seconds = 1.7e9 + np.arange(0, 1000, 10)
    table = pd.DataFrame({"time": seconds + np.random.default_rng(0).random(100)})
    rows = Columns.learn(table).encode(table)
    np.testing.assert_allclose(np.diff(rows[:, 0]), np.diff(table["time"]), atol=1e-3)


def test_columns_are_plain_json() -> None:
    dates = ["2024-01-01", "2024-01-02", "2024-03-01"]
    columns = learn(a=[1.5, None, 2], b=["x", "y", "x"], c=dates)
    kept = json.loads(json.dumps(columns.as_values()))
    assert Columns.from_values(kept) == columns
    first = kept["columns"][0]
    odd = (3, [{"name": "a"}], [first | {"ids": 1 << 25}], [first | {"kind": "place"}])
    for broken in ({}, *({"columns": each, "left_out": []} for each in odd)):
        with pytest.raises(ValueError, match="columns"):
            Columns.from_values(broken)


@settings(max_examples=30)
@given(
    st.lists(st.none() | st.floats(-1e20, 1e20), min_size=3, max_size=30),
    st.lists(st.none() | st.text(max_size=3), min_size=3, max_size=30),
)
def test_features_are_finite_whatever_the_cells(numbers: list[Any], texts: list[Any]) -> None:
    size = min(len(numbers), len(texts))
    kinds = [0, 1, 1][:size] + [2] * (size - 3)
    table = pd.DataFrame({"n": numbers[:size], "t": texts[:size], "k": kinds})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        columns = Columns.learn(table)
        rows = columns.encode(table, on_error="skip")
    assert rows.shape == (size, len(columns.feature_names))
    assert np.isfinite(rows).all()
