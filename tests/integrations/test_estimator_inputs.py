from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from labelproof import RobustClassifier
from labelproof.integrations.estimator_inputs import (
    admit_images,
    admit_label_kinds,
    learn_columns,
)

pandas = pytest.importorskip("pandas")


def refusal(images: np.ndarray[Any, Any]) -> str:
    with pytest.raises(ValueError, match="X: expected images of uint8") as caught:
        admit_images(images)
    return str(caught.value)


def levels(low: float, high: float, dtype: Any) -> np.ndarray[Any, Any]:
    return np.linspace(low, high, 64).reshape(1, 8, 8).astype(dtype)


@pytest.mark.parametrize(
    ("images", "way"),
    [
        (levels(0, 499, np.uint16), "X / 499,"),
        (levels(0, 4095, np.float32), "X / 4095,"),
        (levels(-3, 2, np.float64), "(X - -3) / (2 - -3),"),
        (levels(-3, 300, np.int32), "(X - -3) / (300 - -3),"),
    ],
)
def test_a_cast_that_would_wrap_around_is_not_advised(
    images: np.ndarray[Any, Any], way: str
) -> None:
    message = refusal(images)
    assert "astype" not in message
    assert way in message


def test_only_whole_bytes_are_advised_to_be_brought_back() -> None:
    assert "astype" in refusal(levels(0, 252, np.float32).round())
    assert "astype" not in refusal(levels(0, 252.5, np.float32))
    assert "divided by 255" in refusal(levels(0, 252.5, np.float32))


def test_windows_of_sensors_are_pointed_to_rows() -> None:
    way = "rows of moments are given as X.reshape(len(X), -1)"
    windows = np.linspace(-3, 2, 240).reshape(4, 20, 3)
    assert refusal(windows).endswith(way)
    assert way not in refusal(windows.reshape(4, 4, 5, 3))
    with pytest.raises(ValueError, match="rows of moments"):
        RobustClassifier().fit(windows, [0, 1, 0, 1])


# Missing values of a table that lacked none when it was learned from.


def numbers() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    table = pandas.DataFrame(
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


@pytest.mark.parametrize(
    "gaps",
    [
        {"width": None},
        {"width": np.nan, "count": np.nan},
        {"count": pandas.array([None], dtype="Int64")},
        {"flag": pandas.array([None], dtype="boolean")},
    ],
    ids=str,
)
def test_a_missing_number_is_the_median_of_the_training_rows(gaps: dict[str, Any]) -> None:
    table, _ = numbers()
    classifier, row = fitted(), table.iloc[[4]]
    lacking = row.assign(**gaps)
    filled = row.assign(**{name: float(table[name].median()) for name in gaps})
    expected = classifier.predict_proba(filled)
    np.testing.assert_array_equal(classifier.predict_proba(lacking), expected)
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(lacking), expected)


def test_what_lacks_nothing_is_predicted_as_the_array_of_it() -> None:
    table, labels = numbers()
    array = table.to_numpy(dtype=np.float64)
    plain = RobustClassifier("ce+sr", "mlp(hidden=4,depth=1)", epochs=1, random_state=0)
    expected = plain.fit(array, labels).predict_proba(array)
    np.testing.assert_array_equal(fitted().predict_proba(table), expected)


def test_only_tables_have_missing_values() -> None:
    table, labels = numbers()
    classifier = fitted()
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match="NaN"),
    ):
        classifier.predict([[np.nan, 1.0, 0.0]])
    with pytest.raises(ValueError, match="infinity"):
        classifier.predict(table.assign(width=np.inf))
    classifier.fit(table.to_numpy(dtype=np.float64), labels)
    lacking = table.rename(columns=dict(zip(table, range(3), strict=True)))
    lacking[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        classifier.predict(lacking)


def test_a_warm_start_fills_with_the_first_medians() -> None:
    table, labels = numbers()
    classifier = fitted(warm_start=True)
    lacking = table.assign(width=np.nan)
    classifier.fit(lacking, labels)
    assert classifier.n_iter_ == 2
    filled = table.assign(width=table["width"].median())
    np.testing.assert_array_equal(
        classifier.predict_proba(lacking), classifier.predict_proba(filled)
    )


def test_a_classifier_of_before_there_were_fills_still_predicts() -> None:
    table, _ = numbers()
    classifier = fitted()
    expected = classifier.predict_proba(table)
    del classifier._form.__dict__["fills"]
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(table), expected)


@pytest.mark.parametrize("kind", ["boolean", "Int64", "Float64"])
def test_columns_of_pandas_own_kinds_may_lack_values(kind: str) -> None:
    whole = pandas.Series([1, 0, 1] * 4, dtype=kind)
    lacking = pandas.Series([1, 0, None] * 4, dtype=kind)
    assert learn_columns(pandas.DataFrame({"a": whole})) is None
    columns = learn_columns(pandas.DataFrame({"a": lacking}))
    assert columns is not None
    assert columns.feature_names == ("a", "a: missing")


@pytest.mark.parametrize(
    "labels",
    [
        pandas.Series(["a", "b", None], dtype="string"),
        pandas.Series([True, False, None], dtype="boolean"),
        ["a", "b", pandas.NA],
        [0, 1, None],
        ["a", "b", ""],
        ["a", "b", "  "],
        np.array(["a", "b", "nan"]),
        np.array([["a"], ["b"], ["NaN "]]),
        pandas.Series(["a", "b", "<NA>"], dtype="string"),
        pandas.Categorical(["a", "b", "null"]),
    ],
    ids=str,
)
def test_missing_labels_are_told_by_their_rows(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"y: expected a label for each row, .* in 1 .* row 2"):
        admit_label_kinds(labels)


def test_missing_labels_that_are_written_are_not_learned_as_a_class() -> None:
    labels = np.array(["a", "b", "nan", ""] * 10 + ["a"])
    with pytest.raises(
        ValueError, match=r"got none \('', 'nan'\) in 20 of them: row 2, 3, 6 and 17"
    ):
        RobustClassifier().fit(numbers()[0], labels)
    admit_label_kinds(["none", "NA", "-", "nano"])  # names that people give to classes
