"""Labels that someone has gone through serve to train and to search, as they do to fit."""

import json
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof
from typer.testing import Result

NETWORK = ("--network", "mlp(hidden=4,depth=1)", "--batch-size", "32", "--device", "cpu")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, and a review that changes two of its labels and leaves one row out."""
    monkeypatch.chdir(tmp_path)
    points = np.random.default_rng(0).random((60, 2))
    colours = ["red" if x > 0.5 else "blue" for x, _ in points]
    lines = [f"{x:.3f},{y:.3f},{colour}" for (x, y), colour in zip(points, colours, strict=True)]
    Path("table.csv").write_text("\n".join(["x,y,colour", *lines]) + "\n")
    other = ["red" if colour == "blue" else "blue" for colour in colours]
    Path("reviewed.csv").write_text(
        f"sample,label\nline 2,{other[0]}\nline 3,{other[1]}\nline 4,\n"
    )
    return tmp_path


def train(*arguments: str) -> Result:
    return labelproof(
        *("train", "--data", "table.csv", "--label", "colour", "--epochs", "1", *NETWORK),
        *arguments,
    )


def test_a_run_learns_from_them_and_is_measured_by_them() -> None:
    result = train("--labels", "reviewed.csv", "--output", "run")
    assert result.exit_code == 0, result.output
    measure = ("evaluate", "run", "--split", "train", "--format", "json")
    found = json.loads(labelproof(*measure).stdout)
    assert found["n"] == 59
    plain = json.loads(labelproof(*measure, "--data", "table.csv").stdout)
    assert plain["n"] == 60
    Path("reviewed.csv").rename("elsewhere.csv")
    lost = labelproof(*measure)
    assert isinstance(lost.exception, FileNotFoundError)
    assert "--labels" in str(lost.exception)
    assert json.loads(labelproof(*measure, "--labels", "elsewhere.csv").stdout) == found


def test_they_are_other_data() -> None:
    assert train("--output", "run").exit_code == 0
    result = train("--labels", "reviewed.csv", "--output", "run")
    assert "run holds a run of other data" in str(result.exception)
    assert train("--labels", "reviewed.csv", "--output", "run", "--fresh").exit_code == 0
    assert "holds this run, finished" in train("--labels", "reviewed.csv", "--output", "run").stdout
    assert "other data" in str(train("--output", "run").exception)
    # What is trained anew on the data's own labels is measured by those again.
    assert train("--output", "run", "--fresh").exit_code == 0
    found = labelproof("evaluate", "run", "--split", "train", "--format", "json")
    assert json.loads(found.stdout)["n"] == 60


def search(*arguments: str) -> Result:
    return labelproof(
        *("tune", "table.csv", "--label", "colour", "--trials", "1", "--folds", "1"),
        *("--epochs", "2", *NETWORK, *arguments),
    )


def test_human_labels_beside_other_noise_are_refused() -> None:
    for noise in ("symmetric:0.4", "none"):
        result = train("--noise", noise, "--human-labels", "reviewed.csv")
        assert isinstance(result.exception, ValueError)
        assert "--human-labels: expected with --noise human:WHICH" in str(result.exception)
        assert f"--noise {noise}" in str(result.exception)
    assert not Path("labelproof-runs").exists()


def single_class() -> None:
    Path("single.csv").write_text(
        "sample,label\n" + "".join(f"line {line},red\n" for line in range(2, 62))
    )


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "table.csv"),
        ("fit", "table.csv", "--dry-run"),
        ("train", "--data", "table.csv"),
        ("tune", "table.csv"),
        ("audit", "table.csv"),
        ("audit", "table.csv", "--dry-run"),
    ],
    ids=" ".join,
)
def test_a_single_class_is_nothing_to_learn_from(command: tuple[str, ...]) -> None:
    single_class()
    before = set(Path.cwd().iterdir())
    result = labelproof(*command, "--label", "colour", "--labels", "single.csv")
    assert isinstance(result.exception, ValueError)
    assert "single.csv: expected to leave at least two classes, got only 'red'" in str(
        result.exception
    )
    assert set(Path.cwd().iterdir()) == before


def test_a_class_that_they_leave_empty_is_told() -> None:
    lines = Path("table.csv").read_text().splitlines()
    Path("table.csv").write_text("\n".join([*lines, "0.1,0.1,grey", "0.2,0.1,grey"]) + "\n")
    Path("reviewed.csv").write_text("sample,label\nline 62,blue\nline 63,\n")
    result = labelproof(
        *("fit", "table.csv", "--label", "colour", "--labels", "reviewed.csv", "--dry-run")
    )
    assert result.exit_code == 0, result.output
    said = " ".join(result.stderr.split())
    assert "reviewed.csv: 1 class left without any training sample: grey" in said
