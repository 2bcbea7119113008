"""What the estimator takes, and what it says of tables, images and labels that it cannot take."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.model_selection import GroupKFold, cross_validate

from labelproof import RobustClassifier
from labelproof.data.notices import DataWarning
from labelproof.integrations import scikit_learn
from labelproof.integrations.estimator import admit_examples, make_examples

YES_NO = ["yes", "no"] * 30


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame({"plan": ["pro", "basic"] * 30, "age": np.arange(60.0) % 7 + 20})


def numbers() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"width": generator.normal(3, 1, 41), "flag": np.arange(41) % 3 == 0})
    return table.assign(count=generator.integers(0, 9, 41)), np.arange(41) % 2


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
        pd.Categorical(["a", "b", "NULL"]),
    ):
        with pytest.raises(ValueError, match=r"^y: .* 2$"):
            fitted().fit(np.eye(3), labels)
    with pytest.raises(ValueError, match=r"^y: .*one kind"):
        fitted().fit(np.eye(3), np.array(["cat", 3, "cat"], dtype=object))
    for name in ("none", "NA", "-", "nano", "null"):  # names that people give to classes
        fitted().fit(np.eye(3), ["a", name, "a"])


def test_text_in_place_of_numbers_is_refused_and_near_labels_are_told(table: pd.DataFrame) -> None:
    for given in (table, table[["age"]].to_numpy()):
        with pytest.warns(DataWarning, match="y: .*'YES ' and 'yes'"):
            RobustClassifier(epochs=1).fit(given, ["yes", "no", "YES "] * 20)
    classifier = RobustClassifier(epochs=1, random_state=0).fit(table, YES_NO)
    with pytest.raises(ValueError, match=r"^X: .*'x' in row 0.* set them to NaN"):
        classifier.predict(table.head(2).assign(age="x"))
    with pytest.raises(ValueError, match="about 3"):
        classifier.fit(table.assign(age=[*map(str, np.arange(59) / 2), "about 3"]), YES_NO)
    with pytest.raises(ValueError, match="pro"):
        classifier.fit(table.to_numpy(), YES_NO)
    for no_numbers in ([["a"], ["b"]], np.array([[np.nan], [1.0]]), pd.Series(["a b", "c"])):
        with pytest.raises(ValueError, match=r"pandas\.DataFrame\(X\)$"):
            RobustClassifier().fit(no_numbers, [0, 1])
    with pytest.raises(TypeError, match=r"toarray.*\n.*column of text"):
        classifier.fit(csr_matrix(np.eye(3)), [0, 1, 0])


CUSTOMERS = np.repeat(np.arange(60), 8)


def visits(spread: float = 0.01) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of customers that are nearly the same, with labels by chance."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(60, 12))[CUSTOMERS]
    labels = generator.permutation(np.arange(60) % 2)[CUSTOMERS]
    return rows + spread * generator.normal(size=rows.shape), labels


def quick(**options: Any) -> Any:
    chosen: dict[str, Any] = {"loss": "ce", "epochs": 20, "learning_rate": 0.1, "random_state": 0}
    chosen |= {"early_stopping": True, "validation_fraction": 0.25}
    return RobustClassifier(**(chosen | options))


def cut(features: Any, labels: Any, groups: Any = None, weight: Any = None) -> Any:
    admitted = admit_examples(
        RobustClassifier(), features, labels, weight, None, known=None, groups=groups
    )
    return make_examples(admitted, statistics=None, validation=0.25, seed=0)[0]


def test_rows_of_a_customer_do_not_validate_what_was_learned_of_the_others() -> None:
    features, labels = visits()
    assert quick().fit(features, labels).best_validation_score_ > 0.9
    honest = quick().fit(features, labels, groups=CUSTOMERS)
    assert honest.best_validation_score_ < 0.75


def test_groups_of_any_kind_are_kept_whole() -> None:
    mixed = np.array([number if number % 2 else str(number) for number in CUSTOMERS], dtype=object)
    texts = [f"customer {number}" for number in CUSTOMERS]
    for groups in (CUSTOMERS, texts, pd.Series(CUSTOMERS, index=CUSTOMERS[::-1]), mixed):
        examples = cut(*visits(), groups)
        assert len(examples.held) > 80
        assert not set(CUSTOMERS[examples.used]) & set(CUSTOMERS[examples.held])


def test_the_loss_is_chosen_between_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def stop(dataset: Any, *_: Any, **__: Any) -> None:
        given.append(dataset.train.groups)
        raise KeyboardInterrupt

    monkeypatch.setattr(scikit_learn, "tune", stop)
    for groups in (None, CUSTOMERS):
        with pytest.raises(KeyboardInterrupt):
            quick(loss=" Auto", early_stopping=False).fit(*visits(), groups=groups)
    assert given[0] is None
    assert len(np.unique(given[1])) == 60
    assert len(np.unique(np.column_stack([given[1], CUSTOMERS]), axis=0)) == 60


def test_copies_stay_together_whatever_their_labels() -> None:
    for rows in (60, 400):
        once = np.random.default_rng(0).normal(size=(rows, 3))
        twice = np.concatenate([once, once[: rows // 2]])
        labels = np.concatenate([np.arange(rows) % 2, np.arange(rows // 2) % 2 == 0]).astype(int)
        examples = cut(twice, labels)
        inputs = examples.dataset.train.array
        held = {row.tobytes() for row in inputs[examples.held]}
        assert len(held) > rows / 5
        assert not held & {row.tobytes() for row in inputs[examples.used]}
    images = np.random.default_rng(0).integers(0, 256, (30, 4, 4), dtype=np.uint8)
    examples = cut(np.concatenate([images, images]), np.arange(60) % 2)
    assert not set(examples.used % 30) & set(examples.held % 30)


def test_groups_that_cannot_be_used_are_refused() -> None:
    features, labels = visits()
    with pytest.raises(ValueError, match="groups: expected one for each of 480 samples, got shape"):
        quick().fit(features, labels, groups=CUSTOMERS[:9])
    missing = np.where(CUSTOMERS == 3, np.nan, CUSTOMERS)
    for groups in (missing, missing.astype(object).tolist()):
        with pytest.raises(ValueError, match=r"groups: .* 24, 25, 26"):
            quick().fit(features, labels, groups=groups)
    with pytest.raises(ValueError, match="group"):
        quick().fit(features, labels, groups=np.zeros(480))


@pytest.mark.parametrize("routing", [False, True])
def test_groups_of_a_splitter_come_to_fit(routing: bool) -> None:
    named: dict[str, Any] = {} if routing else {"groups": CUSTOMERS}
    with sklearn.config_context(enable_metadata_routing=routing):
        options = {"cv": GroupKFold(2), "params": {"groups": CUSTOMERS}, "return_estimator": True}
        found = cross_validate(quick(), *visits(), **options, **named)
    # Each is 1 where customers are torn apart.
    assert np.mean([fitted.best_validation_score_ for fitted in found["estimator"]]) < 0.8
