"""What the estimator says of tables and labels that are not as they should be."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from labelproof import RobustClassifier
from labelproof.data.notices import DataWarning


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame({"plan": ["pro", "basic"] * 30, "age": np.arange(60.0) % 7 + 20})


@pytest.fixture(scope="module")
def fitted(table: pd.DataFrame) -> RobustClassifier:
    return RobustClassifier(epochs=1, random_state=0).fit(table, ["yes", "no"] * 30)


def test_advice_is_for_who_has_a_table(fitted: RobustClassifier, table: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="expected numbers, got 'x' in row 0") as caught:
        fitted.predict(table.head(2).assign(age="x"))
    assert "on_error" not in str(caught.value)
    assert "pandas.to_numeric" in str(caught.value)
    mixed = [*map(str, range(59)), "about 3"]
    with pytest.raises(ValueError, match=r"about 3.*pandas\.to_numeric"):
        RobustClassifier().fit(table.assign(age=mixed), ["yes", "no"] * 30)


def test_labels_that_differ_only_in_case_are_told(table: pd.DataFrame) -> None:
    labels = ["yes", "no", "YES "] * 20
    for given in (table, table[["age"]].to_numpy()):
        with pytest.warns(DataWarning, match="y: the classes 'YES ' and 'yes' differ only in case"):
            RobustClassifier(epochs=1).fit(given, labels)


@pytest.mark.parametrize("form", [pd.DataFrame.to_numpy, lambda table: table.to_numpy().tolist()])
def test_text_in_arrays_and_lists_is_pointed_to_a_table(form: Any, table: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"X: expected numbers .* 'pro'; .*pandas\.DataFrame\(X\)"):
        RobustClassifier().fit(form(table), ["yes", "no"] * 30)
    numbers = RobustClassifier(epochs=1).fit(table[["age", "age"]].to_numpy(), ["yes", "no"] * 30)
    with pytest.raises(ValueError, match="X: expected numbers"):
        numbers.predict(form(table))


def test_counts_of_words_are_pointed_to_fewer_numbers() -> None:
    texts = ["a good film", "a bad one", "great fun to watch", "an awful thing"] * 8
    labels = [1, 0, 1, 0] * 8
    counts = TfidfVectorizer().fit_transform(texts)
    with pytest.raises(TypeError, match=r"got sparse data; .*TruncatedSVD\(200\)"):
        RobustClassifier().fit(counts, labels)
    model = make_pipeline(TfidfVectorizer(), TruncatedSVD(4), RobustClassifier(epochs=20))
    assert model.fit(texts, labels).score(texts, labels) == 1
