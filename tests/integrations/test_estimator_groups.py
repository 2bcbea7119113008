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
from labelproof.tabular.rows import keep_together

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


@pytest.mark.parametrize(
    "groups",
    [
        CUSTOMERS,
        [f"customer {number}" for number in CUSTOMERS],
        pandas.Series(CUSTOMERS, index=CUSTOMERS[::-1]),
        np.array([number if number % 2 else str(number) for number in CUSTOMERS], dtype=object),
    ],
    ids=["numbers", "texts", "series", "mixed"],
)
def test_groups_of_any_kind_are_kept_whole(groups: Any) -> None:
    examples = cut(*visits(), groups)
    assert len(examples.held) > 80
    assert not set(CUSTOMERS[examples.used]) & set(CUSTOMERS[examples.held])


def test_rows_that_count_nothing_lose_their_group() -> None:
    features, labels = visits()
    weight = np.arange(480) % 3 != 0
    examples = cut(features, labels, CUSTOMERS, weight)
    left = CUSTOMERS[weight]
    assert len(examples.used) + len(examples.held) == len(left)
    assert not set(left[examples.used]) & set(left[examples.held])


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


def test_without_a_cut_groups_change_nothing() -> None:
    features, labels = visits(spread=0)
    few, few_labels, customers = features[::8], labels[::8], np.arange(60) // 2
    twice = (np.tile(few, (2, 1)), np.tile(few_labels, 2))
    plain = quick(early_stopping=False, epochs=2).fit(*twice)
    grouped = clone(plain).fit(*twice, groups=np.append(customers, customers + 60))
    np.testing.assert_array_equal(grouped.predict_proba(few), plain.predict_proba(few))


# Copies, which nobody has to name.


@pytest.mark.parametrize("rows", [60, 400])
def test_copies_stay_together_whatever_their_labels(rows: int) -> None:
    generator = np.random.default_rng(0)
    once = generator.normal(size=(rows, 3))
    twice = np.concatenate([once, once[: rows // 2]])
    labels = np.concatenate([np.arange(rows) % 2, np.arange(rows // 2) % 2 == 0]).astype(int)
    examples = cut(twice, labels)
    inputs = examples.dataset.train.array
    held = {row.tobytes() for row in inputs[examples.held]}
    assert len(held) > rows / 5
    assert not held & {row.tobytes() for row in inputs[examples.used]}


def test_copies_of_images_stay_together() -> None:
    images = np.random.default_rng(0).integers(0, 256, (30, 4, 4), dtype=np.uint8)
    examples = cut(np.concatenate([images, images]), np.arange(60) % 2)
    assert not set(examples.used % 30) & set(examples.held % 30)


def test_rows_that_are_alike_by_chance_are_no_copies() -> None:
    answers = np.random.default_rng(0).integers(0, 2, (300, 4))
    assert keep_together(answers, None) is None
    common = np.arange(300.0)
    common[:40] = -1
    common[-1], common[-2], common[-3] = 50, 0.0, -0.0
    together = keep_together(common[:, np.newaxis], None)
    assert together is not None
    assert together[[299, 298]].tolist() == [50, 297]
    assert len(set(together)) == 298


def test_equal_rows_of_different_groups_join_them_unless_all_would_be_one() -> None:
    rows = np.arange(40.0)[:, np.newaxis]
    groups = np.arange(40) // 4
    rows[39] = rows[0]
    joined = keep_together(rows, groups)
    assert joined is not None
    assert joined[39] == joined[36] == joined[0]
    assert len(np.unique(joined)) == 9
    rows[4::4] = rows[3:-1:4]  # each group has a copy in the next
    apart = keep_together(rows, groups)
    assert apart is not None
    assert len(np.unique(apart)) == 10


def test_small_data_keep_their_groups_where_equal_rows_are_taken_for_one() -> None:
    rows = np.random.default_rng(0).permutation(np.arange(48.0) % 2)[:, np.newaxis]
    groups = np.repeat(np.arange(12), 4)
    labels = np.arange(48) % 2
    examples = cut(rows, labels, groups)
    # As many as differ in row, label or group: those of two groups are not one, which would chain
    # all groups together.
    different = len(np.unique(np.column_stack([rows[:, 0], labels, groups]), axis=0))
    assert len(examples.given) == different < 48
    assert len(np.unique(examples.dataset.train.groups)) == 12
    assert len(examples.held) > 0


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
