import json
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof, train_digits

from labelproof.data import load_digits
from labelproof.training.record import read_record


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert train_digits(folder, epochs=2).exit_code == 0
    return folder


def test_the_accuracy_is_the_trainings_own(run: Path) -> None:
    result = labelproof("evaluate", run, "--format", "json", "--device", "cpu")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    record = read_record(run)
    assert record is not None
    assert found["accuracy"] == pytest.approx(record.final_accuracy, abs=1e-3)
    assert found["n"] == 450
    assert found["interval"][0] < found["accuracy"] < found["interval"][1]
    counted = sum(entry["n"] * entry["accuracy"] / 100 for entry in found["classes"])
    assert counted == pytest.approx(found["correct"])
    assert [pair["n"] for pair in found["confusions"]] == sorted(
        (pair["n"] for pair in found["confusions"]), reverse=True
    )
    assert all(pair["label"] != pair["predicted"] for pair in found["confusions"])


def test_another_split_is_measured(run: Path) -> None:
    found = json.loads(labelproof("evaluate", run, "--split", "train", "--format", "json").stdout)
    assert found["n"] == 1347
    assert found["learned_from"]
    assert "validated on most of these" in labelproof("evaluate", run, "--split", "train").stdout
    assert "learned from" not in labelproof("evaluate", run).stdout


def write_arrays(path: Path, names: list[str]) -> Path:
    test = load_digits().test
    np.savez(path, images=test.array[:50], labels=test.labels[:50], class_names=np.array(names))
    return path


def test_other_data_of_the_same_classes_is_measured(run: Path, tmp_path: Path) -> None:
    path = write_arrays(tmp_path / "own.npz", [str(digit) for digit in range(10)])
    result = labelproof("evaluate", run, "--data", path, "--split", "train", "--format", "json")
    assert json.loads(result.stdout)["n"] == 50
    # A class without images has no accuracy, which is not an accuracy of zero.
    subset = load_digits().test
    zeros = subset.labels == 0
    np.savez(
        tmp_path / "zeros.npz",
        images=subset.array[zeros],
        labels=subset.labels[zeros],
        class_names=np.array([str(digit) for digit in range(10)]),
    )
    arguments = ("--data", tmp_path / "zeros.npz", "--split", "train", "--format", "json")
    classes = json.loads(labelproof("evaluate", run, *arguments).stdout)["classes"]
    assert classes[0]["accuracy"] is not None
    assert classes[1]["accuracy"] is None


def test_classes_are_told_by_their_names(run: Path, tmp_path: Path) -> None:
    test = load_digits().test
    paths = []
    for names in ([*"0123456789"], [*"1023456789"]):
        path = tmp_path / f"{names[0]}.npz"
        labels = np.array([names.index(str(label)) for label in test.labels])
        np.savez(path, images=test.array, labels=labels, class_names=np.array(names))
        paths.append(path)
    found = [
        json.loads(labelproof("evaluate", run, "--data", path, "--format", "json").stdout)
        for path in paths
    ]
    assert found[0]["classes"] == found[1]["classes"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "tests"], "did you mean 'test'"),
        (["--format", "jso"], "did you mean 'json'"),
        (["--data", "digit"], "did you mean 'digits'"),
    ],
)
def test_mistakes_are_explained(run: Path, arguments: list[str], message: str) -> None:
    result = labelproof("evaluate", run, *arguments)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
