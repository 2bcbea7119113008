"""What belongs together stays on one side wherever the estimator holds something out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone as _clone
from sklearn.model_selection import GroupKFold, cross_validate

from labelproof import RobustClassifier
from labelproof.integrations import scikit_learn
from labelproof.integrations.estimator_inputs import admit_examples
from labelproof.integrations.estimator_network import make_examples

pandas = pytest.importorskip("pandas")
clone: Any = _clone

CUSTOMERS = np.repeat(np.arange(60), 8)


def visits(spread: float = 0.01) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of customers that are nearly the same, with labels by chance."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(60, 12))[CUSTOMERS]
    labels = generator.permutation(np.arange(60) % 2)[CUSTOMERS]
    return rows + spread * generator.normal(size=rows.shape), labels


def quick(**options: Any) -> Any:
    chosen: dict[str, Any] = {
        "loss": "ce",
        "epochs": 20,
        "learning_rate": 0.1,
        "early_stopping": True,
        "validation_fraction": 0.25,
        "random_state": 0,
    }
    return RobustClassifier(**(chosen | options))


def cut(features: Any, labels: Any, groups: Any = None, weight: Any = None) -> Any:
    admitted = admit_examples(
        RobustClassifier(), features, labels, weight, None, known=None, groups=groups
    )
    return make_examples(admitted, standard=None, validation=0.25, seed=0)[0]


def test_rows_of_a_customer_do_not_validate_what_was_learned_of_the_others() -> None:
    features, labels = visits()
    assert quick().fit(features, labels).best_validation_score_ > 0.9
    honest = quick().fit(features, labels, groups=CUSTOMERS)
    assert honest.best_validation_score_ < 0.75


def test_groups_of_any_kind_are_kept_whole() -> None:
    mixed = np.array([number if number % 2 else str(number) for number in CUSTOMERS], dtype=object)
    texts = [f"customer {number}" for number in CUSTOMERS]
    for groups in (CUSTOMERS, texts, pandas.Series(CUSTOMERS, index=CUSTOMERS[::-1]), mixed):
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


# Copies, which nobody has to name.


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


# Asked of scikit-learn.


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
        found = cross_validate(
            quick(),
            *visits(),
            cv=GroupKFold(2),
            params={"groups": CUSTOMERS},
            return_estimator=True,
            **named,
        )
    assert all(fitted.best_validation_score_ < 0.8 for fitted in found["estimator"])
