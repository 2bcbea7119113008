"""New rows in files of arrays are measured by the run's own columns, whatever they hold."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trained import labelproof
from typer.testing import Result

SMALL = ("--device", "cpu", "--network", "mlp(hidden=8,depth=1)", "--epochs", "8", "--no-audit")


def embeddings(labels: np.ndarray, *, seed: int, features: int = 5) -> np.ndarray:
    """Rows of numbers around a place for each class."""
    centres = np.random.default_rng(7).normal(0, 3, (3, features))
    noise = np.random.default_rng(seed).normal(0, 0.3, (len(labels), features))
    return (centres[labels] + noise).astype(np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of rows, of which one lacks a number."""
    folder = tmp_path_factory.mktemp("arrays")
    labels = np.arange(90) % 3
    rows = embeddings(labels, seed=0)
    rows[4, 1] = np.nan
    np.savez(folder / "emb.npz", x=rows, y=labels)
    result = labelproof("fit", folder / "emb.npz", *SMALL, "--output", folder / "run")
    assert result.exit_code == 0, result.output
    return folder / "run"


def evaluate(run: Path, path: Path, *arguments: str, **arrays: Any) -> Result:
    np.savez(path, **arrays)
    return labelproof("evaluate", run, "--data", path, "--device", "cpu", *arguments)


@pytest.mark.parametrize(
    ("labels", "counts"),
    [
        (np.array([0, 1, 2] * 5), [5, 5, 5]),
        (np.array([2, 0, 2, 2]), [1, 0, 3]),
        (np.array([1]), [0, 1, 0]),
        (np.array(["2", "1"]), [0, 1, 1]),
    ],
)
def test_other_numbers_and_fewer_classes_are_measured(
    run: Path, tmp_path: Path, labels: np.ndarray, counts: list[int]
) -> None:
    rows = embeddings(labels.astype(int), seed=1)
    result = evaluate(run, tmp_path / "new.npz", "--format", "json", x=rows, y=labels)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [entry["n"] for entry in found["classes"]] == counts
    predicted = labelproof("predict", run, tmp_path / "new.npz").stdout.splitlines()[1:]
    right = [
        line.split(",")[2] == str(label) for line, label in zip(predicted, labels, strict=True)
    ]
    assert found["correct"] == sum(right) > 0


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones((2, 4)), "y": [0, 1]}, "rows of 5 numbers"),
        ({"x": np.ones((2, 6)), "y": [0, 1]}, "rows of 5 numbers"),
        ({"x": np.ones((2, 5)), "y": [0, 7]}, "expected classes of the run (0, 1, 2), new has 7"),
        ({"x": np.ones((2, 3, 5)), "y": [0, 1]}, "(N, F)"),
    ],
)
def test_other_rows_are_refused(
    run: Path, tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    result = evaluate(run, tmp_path / "new.npz", **arrays)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
