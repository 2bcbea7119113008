"""Accuracies by the run's own classes, columns and labels, and whether it had learned from them."""

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_images import make_image, write_images
from trained import refusal, succeed, write_things

from labelproof.data import load_digits
from labelproof.training.record import read_record

SMALL = ("--device", "cpu", "--network", "mlp(hidden=8,depth=1)", "--epochs", "8")


def measured(run: Path, *arguments: str | Path) -> dict[str, Any]:
    return json.loads(printed(run, *arguments, "--format", "json"))


def printed(run: Path, *arguments: str | Path) -> str:
    return succeed("evaluate", run, *arguments, "--device", "cpu", "--skip-unreadable").stdout


def test_the_accuracy_is_the_trainings_own(digits_run: Path) -> None:
    found, record = measured(digits_run), read_record(digits_run)
    assert found["accuracy"] == pytest.approx(record.final_accuracy, abs=1e-3)
    assert found["n"] == 450
    assert found["interval"][0] < found["accuracy"] < found["interval"][1]
    counted = sum(entry["n"] * entry["accuracy"] / 100 for entry in found["classes"])
    assert counted == pytest.approx(found["correct"])
    confused = [pair["n"] for pair in found["confusions"]]
    assert confused == sorted(confused, reverse=True)
    found = measured(digits_run, "--split", "train")
    assert (found["n"], found["learned_from_n"]) == (1347, 1347)
    assert "validated on 1,347 of these" in printed(digits_run, "--split", "train")


def test_other_images_are_measured_by_their_class_names(digits_run: Path, tmp_path: Path) -> None:
    test, path = load_digits().test, tmp_path / "own.npz"
    found = []
    for names in ([*"0123456789"], [*"1023456789"]):
        labels = np.array([names.index(str(label)) for label in test.labels])
        np.savez(path, images=test.array, labels=labels, class_names=np.array(names))
        found.append(measured(digits_run, "--data", path)["classes"])
    assert found[0] == found[1]
    # A class without images has no accuracy, which is not an accuracy of zero.
    zeros = test.labels == 0
    names = np.array([*"0123456789"])
    np.savez(path, images=test.array[zeros], labels=test.labels[zeros], class_names=names)
    classes = measured(digits_run, "--data", path, "--split", "train")["classes"]
    assert classes[0]["accuracy"] is not None
    assert classes[1]["accuracy"] is None


def embeddings(labels: np.ndarray, *, seed: int) -> np.ndarray:
    """Rows of five numbers around a place for each class."""
    centres = np.random.default_rng(7).normal(0, 3, (3, 5))
    noise = np.random.default_rng(seed).normal(0, 0.3, (len(labels), 5))
    return (centres[labels] + noise).astype(np.float32)


ROWS, KINDS = embeddings(np.arange(90) % 3, seed=0), np.arange(90) % 3
ROWS[4, 1] = np.nan


@pytest.fixture(scope="module")
def rows_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of rows, of which one lacks a number."""
    folder = tmp_path_factory.mktemp("arrays")
    np.savez(folder / "emb.npz", x=ROWS, y=KINDS)
    succeed("fit", folder / "emb.npz", *SMALL, "--no-audit", "--output", folder / "run")
    return folder / "run"


def test_new_rows_may_have_fewer_classes(rows_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.npz"
    for labels, counts in (
        (np.array([0, 1, 2] * 5), [5, 5, 5]),
        (np.array([2, 0, 2, 2]), [1, 0, 3]),
        (np.array(["2", "1"]), [0, 1, 1]),
    ):
        np.savez(path, x=embeddings(labels.astype(int), seed=1), y=labels)
        found = measured(rows_run, "--data", path)
        assert [entry["n"] for entry in found["classes"]] == counts
        predicted = succeed("predict", rows_run, path).stdout.splitlines()[1:]
        right = [line.split(",")[2] == str(y) for line, y in zip(predicted, labels, strict=True)]
        assert found["correct"] == sum(right) > 0
    for shape, label, said in (
        ((2, 4), 1, "rows of 5 numbers"),
        ((2, 5), 7, "expected classes of the run (0, 1, 2), new has 7"),
        ((2, 3, 5), 1, "(N, F)"),
    ):
        np.savez(path, x=np.ones(shape), y=[0, label])
        assert said in refusal("evaluate", rows_run, "--data", path)


def test_rows_it_learned_from_are_known_by_their_numbers(rows_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.npz"
    np.savez(path, x=ROWS[10:40], y=KINDS[10:40])
    assert measured(rows_run, "--data", path)["learned_from_n"] == 30
    assert "trained or validated on 30 of these rows" in printed(rows_run, "--data", path)
    np.savez(path, x=ROWS + 1, y=KINDS)
    assert measured(rows_run, "--data", path)["learned_from_n"] == 0
    # Some may be the same by chance.
    np.savez(path, x=np.where(KINDS[:, None] == 1, ROWS, ROWS + 1), y=KINDS)
    assert measured(rows_run, "--data", path)["learned_from_n"] == 30
    assert "30 of these rows" in printed(rows_run, "--data", path)


def test_copies_of_images_are_known_again(tmp_path: Path) -> None:
    photos, new, run = tmp_path / "photos", tmp_path / "new", tmp_path / "run"
    write_images(photos, [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(9)])
    crop = ("--network", "cnn4(width=4,hidden=8)", "--augmentation", "resized-crop:16")
    succeed("fit", photos, *SMALL, *crop, "--epochs", "1", "--no-audit", "--output", run)
    for seed, kind in enumerate(("cat", "dog"), start=99):
        (new / kind).mkdir(parents=True)
        shutil.copy(photos / kind / "1.png", new / kind / "copied.png")
        make_image(seed, size=(24, 16)).save(new / kind / "new.png")
    assert measured(run, "--data", new)["learned_from_n"] == 2
    assert "trained or validated on 2 of these images" in printed(run, "--data", new)
    for kind in ("cat", "dog"):
        (new / kind / "copied.png").unlink()
    assert measured(run, "--data", new)["learned_from_n"] == 0
    assert "validated on" not in printed(run, "--data", new)
    # Without those that it learned from there is nothing to compare with.
    photos.rename(tmp_path / "moved")
    assert measured(run, "--data", new)["learned_from_n"] is None


def test_images_are_evaluated_as_they_are_predicted(digits_run: Path, tmp_path: Path) -> None:
    """Coloured ones of other sizes, by a run on grey ones of 8 x 8 pixels."""
    names = [f"{digit}/{number}.png" for digit in "0123456789" for number in range(3)]
    write_images(tmp_path / "new", names, size=(30, 20))
    make_image(99, size=(8, 8), mode="L").save(tmp_path / "new" / names[0])
    predicted = pd.read_csv(StringIO(succeed("predict", digits_run, tmp_path / "new").stdout))
    right = predicted["label"].astype(str) == [name[0] for name in names]
    found = measured(digits_run, "--data", tmp_path / "new")
    assert (found["n"], found["correct"]) == (30, right.sum())
    assert 0 < right.sum() < 30


@pytest.mark.parametrize("command", [("fit", "--no-audit"), ("train", "--data")])
def test_labels_are_of_the_column_it_learned_from(command: tuple[str, str], tmp_path: Path) -> None:
    run, old, new = tmp_path / "run", write_things(tmp_path / "t.csv", 40, label="sort"), "new.csv"
    succeed(*command, old, *SMALL, "--label", "Sort", "--output", run)
    expected = measured(run, "--data", old)["classes"]
    table = pd.read_csv(old)
    table.assign(batch="kind 0").to_csv(tmp_path / new, index=False)
    result = succeed("evaluate", run, "--data", tmp_path / new, "--format", "json")
    assert json.loads(result.stdout)["classes"] == expected
    assert result.stderr == ""
    # Where it is not there, another has to be named.
    table.rename(columns={"sort": "kind"}).to_csv(tmp_path / new, index=False)
    assert "label: " in refusal("evaluate", run, "--data", tmp_path / new)
    named = succeed("evaluate", run, "--data", tmp_path / new, "--label", "kind")
    assert named.stderr == ""
