"""What the estimator takes, and what it says of tables, images and labels that it cannot take."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from labelproof import RobustClassifier
from labelproof.data.notices import DataWarning

YES_NO = ["yes", "no"] * 30


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame({"plan": ["pro", "basic"] * 30, "age": np.arange(60.0) % 7 + 20})


# Missing values of a table that lacked none when it was learned from.


def numbers() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "width": generator.normal(3, 1, 41),
            "count": generator.integers(0, 9, 41),
            "flag": np.arange(41) % 3 == 0,
        }
    )
    return table, np.arange(41) % 2


def fitted(**options: Any) -> Any:
    chosen: dict[str, Any] = {"network": "mlp(hidden=4,depth=1)", "epochs": 1, "random_state": 0}
    return RobustClassifier(**(chosen | options)).fit(*numbers())


def test_a_missing_number_is_the_median_of_the_training_rows() -> None:
    table, _ = numbers()
    classifier, row = fitted(), table.iloc[[4]]
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
    gaps: list[dict[str, Any]] = [
        {"width": None},
        {"width": np.nan, "count": np.nan},
        {"count": pd.array([None], dtype="Int64")},
        {"flag": pd.array([None], dtype="boolean")},
    ]
    for gap in gaps:
        lacking = row.assign(**gap)
        filled = row.assign(**{name: float(table[name].median()) for name in gap})
        expected = classifier.predict_proba(filled)
        np.testing.assert_array_equal(classifier.predict_proba(lacking), expected)
        np.testing.assert_array_equal(again.predict_proba(lacking), expected)


def test_only_tables_have_missing_values() -> None:
    table, labels = numbers()
    array = table.to_numpy(dtype=np.float64)
    classifier = fitted()
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match="NaN"),
    ):
        classifier.predict([[np.nan, 1.0, 0.0]])
    with pytest.raises(ValueError, match="infinity"):
        classifier.predict(table.assign(width=np.inf))
    expected = classifier.predict_proba(table)
    np.testing.assert_array_equal(classifier.fit(array, labels).predict_proba(array), expected)
    lacking = table.rename(columns=dict(zip(table, range(3), strict=True)))
    lacking[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        classifier.predict(lacking)


# Labels.


def test_missing_labels_are_refused_with_their_rows() -> None:
    for labels in (
        pd.Series(["a", "b", None], dtype="string"),
        pd.Series([True, False, None], dtype="boolean"),
        ["a", "b", pd.NA],
        [0, 1, None],
        [0, 1, np.nan],
        ["a", "b", "  "],
        np.array(["a", "b", "nan"]),
        np.array([["a"], ["b"], ["NaN "]]),
        pd.Categorical(["a", "b", "null"]),
    ):
        with pytest.raises(ValueError, match=r"^y: .* 2;"):
            fitted().fit(np.eye(3), labels)
    with pytest.raises(ValueError, match=r"^y: .*one kind"):
        fitted().fit(np.eye(3), np.array(["cat", 3, "cat"], dtype=object))
    for name in ("none", "NA", "-", "nano"):  # names that people give to classes
        fitted().fit(np.eye(3), ["a", name, "a"])


def test_labels_that_differ_only_in_case_are_told(table: pd.DataFrame) -> None:
    for given in (table, table[["age"]].to_numpy()):
        with pytest.warns(DataWarning, match="y .*'YES ' and 'yes'"):
            RobustClassifier(epochs=1).fit(given, ["yes", "no", "YES "] * 20)


def test_text_where_numbers_are_expected_is_refused(table: pd.DataFrame) -> None:
    classifier = RobustClassifier(epochs=1, random_state=0).fit(table, YES_NO)
    with pytest.raises(ValueError, match=r"^X: .*'x' in row 0"):
        classifier.predict(table.head(2).assign(age="x"))
    with pytest.raises(ValueError, match="about 3"):
        classifier.fit(table.assign(age=[*map(str, range(59)), "about 3"]), YES_NO)
    with pytest.raises(ValueError, match="pro"):
        classifier.fit(table.to_numpy(), YES_NO)
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        classifier.fit(csr_matrix(np.eye(3)), [0, 1, 0])
