from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from audit.noisy_logits import make, softmax, symmetric

from labelproof.audit import audit_labels, audit_logits, fit_noise_model
from labelproof.audit.given import audit_given, match_given
from labelproof.audit.named_tables import column_names

MADE = make(300, symmetric(3, 0.1), deviation=1)
TABLE = softmax(MADE.logits, 0.2)
NAMES = ["lo", "mid", "hi"]
DOORS: list[Callable[[Any, Any], Any]] = [audit_labels, audit_logits, fit_noise_model]


@pytest.fixture
def pandas() -> Any:
    return pytest.importorskip("pandas")


def test_columns_are_found_by_the_names_of_their_classes(pandas: Any) -> None:
    labels = np.array(NAMES)[MADE.given]
    audit = audit_given(pandas.DataFrame(TABLE, columns=NAMES), labels, data="x")
    assert audit.class_names == ("lo", "mid", "hi")
    assert np.array_equal(audit.findings.given, MADE.given)
    turned = pandas.DataFrame(TABLE, columns=NAMES)[["hi", "lo", "mid"]]
    again = audit_given(turned, pandas.Series(labels), data="x")
    assert np.array_equal(np.sort(again.findings.suspects), np.sort(audit.findings.suspects))


def test_columns_are_found_by_number(pandas: Any) -> None:
    turned = pandas.DataFrame(TABLE)[[2, 0, 1]]
    found = match_given(turned, MADE.given, data="x")
    np.testing.assert_array_equal(
        found.table[np.arange(300), found.labels], TABLE[np.arange(300), MADE.given]
    )
    with pytest.raises(ValueError, match="3"):
        match_given(pandas.DataFrame(TABLE, columns=[3, 4, 5]), MADE.given, data="x")


def test_columns_without_names_are_in_the_order_of_the_classes(pandas: Any) -> None:
    assert column_names(pandas.DataFrame(TABLE)) is None
    found = match_given(pandas.DataFrame(TABLE), np.array(["a", "b", "c"])[MADE.given], data="x")
    assert found.class_names == ("a", "b", "c")
    assert np.array_equal(found.labels, MADE.given)
    listed = match_given(TABLE.tolist(), MADE.given.tolist(), data="x")
    assert np.array_equal(listed.labels, MADE.given)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("names", [[2, 0, 1], [1, 2, 3], ["2", "0", "1"]], ids=str)
def test_columns_numbered_in_another_order_are_refused(
    door: Callable[[Any, Any], Any], names: list[Any], pandas: Any
) -> None:
    said = rf"expected columns 0 to 2 in that order, got {', '.join(map(str, names))}; "
    with pytest.raises(ValueError, match=said):
        door(pandas.DataFrame(TABLE, columns=names), MADE.given)


@pytest.mark.parametrize("names", [[0, 1, 2], ["0", "1", "2"], NAMES], ids=str)
def test_columns_in_order_or_called_by_words_are_taken(names: list[Any], pandas: Any) -> None:
    found = audit_labels(pandas.DataFrame(TABLE, columns=names), pandas.Series(MADE.given))
    assert np.array_equal(found.suspects, audit_labels(TABLE, MADE.given).suspects)


def test_labels_of_other_rows_are_refused(pandas: Any) -> None:
    frame = pandas.DataFrame(TABLE)
    shuffled = pandas.Series(MADE.given).sample(frac=1, random_state=0)
    said = r"^labels: expected the index of the {0}, got another; .* labels\.loc\[{0}\.index\]"
    with pytest.raises(ValueError, match=said.format("probabilities")):
        audit_labels(frame, shuffled)
    with pytest.raises(ValueError, match=said.format("probabilities")):
        audit_given(frame, shuffled, data="x")
    with pytest.raises(ValueError, match=said.format("logits")):
        fit_noise_model(frame, shuffled)
    aligned = audit_labels(frame, shuffled.loc[frame.index])
    assert np.array_equal(aligned.given, MADE.given)


def test_a_missing_name_of_a_row_is_that_name(pandas: Any) -> None:
    index = pandas.Index([None, *range(1, 300)], dtype=object)
    frame, labels = pandas.DataFrame(TABLE, index=index), pandas.Series(MADE.given, index=index)
    assert len(audit_labels(frame, labels)) == 300
