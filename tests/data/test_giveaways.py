import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import datasets

from labelproof.data import load_dataset
from labelproof.data.column import Column
from labelproof.data.columns import Columns
from labelproof.data.giveaways import find_giveaways, rows_told_by_ranges
from labelproof.data.notices import DataWarning
from labelproof.data.other_labellings import kappa

NAMES = ("cat", "dog", "eel")


def found(
    table: dict[str, Any], labels: np.ndarray, names: tuple[str, ...] = NAMES
) -> dict[str, str]:
    columns = Columns.learn(list(table), list(table.values()))
    rows = columns.encode(list(table), list(table.values()))
    return find_giveaways(columns, rows, labels, names)


def words(values: np.ndarray, names: tuple[str, ...] = NAMES) -> list[str]:
    return np.array(names)[values].tolist()


def drawn(rows: int, classes: int = 3, seed: int = 0) -> tuple[np.random.Generator, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator, generator.integers(0, classes, rows)


def told(path: Path, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        load_dataset(path, **options)
    return [str(entry.message).removeprefix(f"{path}: ") for entry in caught]


def test_a_copy_of_the_label_is_told_once_with_what_to_do(tmp_path: Path) -> None:
    generator, labels = drawn(90)
    path = tmp_path / "t.csv"
    lines = [f"{generator.random():.6f},{'xyz'[label]},{NAMES[label]}" for label in labels]
    path.write_text("\n".join(["size,my code,label", *lines]))
    (message,) = told(path)
    assert message.startswith(
        "the column 'my code' seems to give the label away: its 3 values tell it in all rows. "
    )
    assert "Leave it out with --drop 'my code' (the argument drop), unless it will" in message
    assert told(path, on_error="skip") == [message]
    # What was told is not told again to who reads the same rows later.
    assert told(path, on_error="later") == []
    assert told(path, drop=["my code"]) == []


def test_several_columns_are_named_in_one_message(tmp_path: Path) -> None:
    generator, labels = drawn(180)
    path = tmp_path / "t.csv"
    lines = [
        f"{generator.random():.6f},{'xyz'[label]},{label + 0.9 * generator.random():.6f},"
        f"{NAMES[label].upper()},{NAMES[label]}"
        for label in labels
    ]
    path.write_text("\n".join(["size,code,score,second,label", *lines]))
    (message,) = told(path)
    assert message.startswith(
        "3 columns seem to give the label away: 'code' (its 3 values tell it in all rows), 'score' "
        "(a few ranges of it tell it in all rows), 'second' (it holds names of classes, in all "
        "rows the label). "
    )
    assert "with --drop code --drop score --drop second (the argument drop), unless they" in message


@pytest.mark.parametrize("rows", [240, 6000])
def test_values_and_ranges_may_have_a_few_exceptions(rows: int) -> None:
    generator, labels = drawn(rows)
    noise = generator.random(rows)
    almost = labels.copy()
    almost[: rows // 120] = (labels[: rows // 120] + 1) % 3
    often = labels.copy()
    often[: rows // 20] = (labels[: rows // 20] + 1) % 3
    table = {
        "code": words(almost, ("x", "y", "z")),
        "score": almost + 0.9 * noise,
        "good code": words(often, ("x", "y", "z")),
        "good score": often + 0.9 * noise,
        "noise": noise,
    }
    seen = found(table, labels)
    assert seen.keys() == {"code", "score"}
    assert seen["code"] == "its 3 values tell it in 99.1% of rows"


def test_where_cells_are_missing_may_tell() -> None:
    generator, labels = drawn(200, 2)
    dates = [f"20{day % 20 + 10}-0{day % 9 + 1}-11" for day in generator.integers(0, 999, 200)]
    left = [date if label else "" for date, label in zip(dates, labels, strict=True)]
    seldom = np.where(generator.random(200) < 0.3, np.nan, generator.random(200))
    seen = found({"left on": left, "since": dates, "seldom": seldom}, labels, ("stays", "leaves"))
    assert seen.keys() == {"left on"}


def test_numbers_that_are_codes_are_taken_as_values() -> None:
    _, codes = drawn(400, 10)
    assert found({"code": codes, "x": np.sin(np.arange(400.0))}, codes % 2, ("even", "odd")) == {
        "code": "its 10 values tell it in all rows"
    }


def test_ranges_never_end_between_rows_of_one_value() -> None:
    # Sorted by value and then by label, these would look as if one threshold told all.
    values = np.concatenate([np.zeros(50), np.arange(1.0, 11)])
    labels = np.concatenate([np.zeros(25, int), np.ones(35, int)])
    assert rows_told_by_ranges(values, labels, most=4, exceptions=60) == 35
    assert rows_told_by_ranges(values[50:], labels[50:], most=1, exceptions=0) == 10


def test_ranges_are_the_best_ones() -> None:
    generator = np.random.default_rng(0)
    for _ in range(5):
        labels = generator.integers(0, 2, 12)
        cuts = [(a, b) for a in range(13) for b in range(a, 13)]
        best = max(
            max(
                int(((labels == 1) == inside).sum()),
                int(((labels == 0) == inside).sum()),
            )
            for a, b in cuts
            for inside in [(np.arange(12) >= a) & (np.arange(12) < b)]
        )
        values = np.arange(12.0)[::-1].copy()
        assert rows_told_by_ranges(values, labels[::-1], most=3, exceptions=12) == best


@pytest.mark.parametrize("names", [NAMES, ("0", "1", "2"), ("no", "yes"), ("0", "1")])
def test_annotators_beside_their_majority_are_told(names: tuple[str, ...]) -> None:
    classes = len(names)
    generator, truth = drawn(500, classes)
    wrong = generator.random((5, 500)) < 0.3
    votes = np.where(wrong, (truth + generator.integers(1, classes, (5, 500))) % classes, truth)
    counts = np.stack([(votes == label).sum(axis=0) for label in range(classes)])
    table: dict[str, Any] = {f"rater {n}": words(vote, names) for n, vote in enumerate(votes)}
    table["flag"] = generator.integers(0, 2, 500)
    seen = found(table, counts.argmax(axis=0), names)
    assert list(seen) == [f"rater {number}" for number in range(5)]
    assert set(seen.values()) == {"one of 5 columns of class names whose majority is the label"}


@pytest.mark.parametrize("rows", [300, 9000])
def test_one_annotator_is_told_even_where_half_is_wrong(rows: int) -> None:
    generator, labels = drawn(rows)
    said = np.where(generator.random(rows) < 0.6, labels, generator.integers(0, 3, rows))
    written = [word.upper() for word in words(said)]
    written[::10] = [""] * len(written[::10])
    share = np.mean(np.delete(said == labels, np.s_[::10]))
    assert found({"rater": written}, labels) == {
        "rater": f"it holds names of classes, in {int(share * 1000) / 10}% of rows the label"
    }
    at_random = words(generator.integers(0, 3, rows))
    assert not found({"rater": at_random}, labels)


@pytest.mark.parametrize("names", [("no", "yes"), ("0", "1"), ("false", "true")])
def test_columns_that_share_answers_with_the_label_are_features(names: tuple[str, ...]) -> None:
    generator, _ = drawn(891)
    survived = (generator.random(891) < 0.38).astype(int)
    sex = np.where(generator.random(891) < 0.78, survived, 1 - survived)
    alone = np.where(generator.random(891) < 0.6, 1 - survived, survived)
    table = {
        "woman": words(sex, names),
        "sex": words(sex, ("male", "female")),
        "alone": words(alone, names),
        "age": generator.normal(30, 10, 891),
        "class": generator.integers(1, 4, 891),
    }
    assert not found(table, survived, names)


def test_marks_for_parts_are_no_labelling_of_the_whole() -> None:
    generator, _ = drawn(800)
    whole = generator.normal(size=800)
    bounds = [-0.84, -0.25, 0.25, 0.84]
    parts = 0.8 * whole + 0.6 * generator.normal(size=(3, 800))
    table = {f"part {n}": np.digitize(part, bounds) + 1 for n, part in enumerate(parts)}
    assert not found(table, np.digitize(whole, bounds), ("1", "2", "3", "4", "5"))


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_measurements_give_no_alarm(name: str) -> None:
    data: Any = getattr(datasets, f"load_{name}")()
    table = {str(feature): data.data[:, n] for n, feature in enumerate(data.feature_names)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of pixels that are always 0
        assert not found(table, data.target, tuple(map(str, data.target_names)))


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_chance_gives_no_alarm(share: float) -> None:
    for rows in (50, 200, 2000):
        generator = np.random.default_rng(rows)
        labels = (generator.random(rows) < share).astype(int)
        table: dict[str, Any] = {f"n{n}": generator.random(rows) for n in range(20)}
        table |= {f"few{n}": generator.integers(0, 2 + 5 * n, rows) for n in range(10)}
        table |= {f"text{n}": words(generator.integers(0, 3, rows)) for n in range(5)}
        assert not found(table, labels, ("0", "1"))


def test_what_is_too_little_to_tell_gives_no_alarm() -> None:
    labels = np.arange(40) % 2
    assert not found({"code": words(labels), "x": np.sqrt(np.arange(40))}, labels)
    # Two kinds of iris, which petals tell apart by nature.
    flowers: Any = datasets.load_iris()
    table = {str(name): flowers.data[:100, n] for n, name in enumerate(flowers.feature_names)}
    assert not found(table, flowers.target[:100], ("setosa", "versicolor"))
    # Nineteen of a class: one column of many has them side by side by chance.
    labels = (np.arange(900) < 19).astype(int)
    assert not found({"x": np.sqrt(np.arange(900)), "code": words(labels)}, labels, ("a", "b"))


def test_kappa_is_one_for_a_copy_and_nothing_for_chance() -> None:
    generator, labels = drawn(5000)
    assert kappa(labels, labels, 3)[0] == pytest.approx(1)
    assert kappa((labels + 1) % 3, labels, 3)[0] < 0
    value, sure = kappa(generator.integers(0, 3, 5000), labels, 3)
    assert abs(value) < 0.05
    assert abs(sure) < 4
    assert kappa(np.full(5000, -1), labels, 3) == (0.0, 0.0)


def test_many_rows_and_columns_take_little_time() -> None:
    generator, labels = drawn(100_000, 2)
    columns = Columns(tuple(Column(f"n{number}", "number") for number in range(100)))
    rows = generator.random((100_000, 100), dtype=np.float32)
    rows[:, 50:] = rows[:, 50:] > 0.5
    started = time.perf_counter()
    assert not find_giveaways(columns, rows, labels, ("0", "1"))
    # A tenth of it, where nothing else runs.
    assert time.perf_counter() - started < 2
