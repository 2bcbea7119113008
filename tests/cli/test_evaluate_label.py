"""A run is measured by the column of labels that it learned from, also where nobody named it."""

import json
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof

SMALL = ("--epochs", "2", "--device", "cpu", "--network", "mlp(hidden=8,depth=1)")


def write_table(path: Path, header: str, *, seed: int = 0, more: str = "") -> None:
    """The last column is what two others tell, and `more` are further ones, unlike it."""
    generator = np.random.default_rng(seed)
    lines = [header]
    for number in range(40):
        kind = number % 2
        width, height = generator.normal([3 * kind, -2 * kind], 0.3)
        lines.append(f"{width:.4f},{height:.4f},{'ab'[kind]}{more}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module", params=["fit", "train"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table whose labels are in a column that was named."""
    folder = tmp_path_factory.mktemp("label")
    write_table(folder / "t.csv", "width,height,sort")
    data = (
        (folder / "t.csv", "--no-audit") if request.param == "fit" else ("--data", folder / "t.csv")
    )
    named = ("--label", "Sort", "--output", folder / "run")
    result = labelproof(request.param, *data, *SMALL, *named)
    assert result.exit_code == 0, result.output
    return folder / "run"


def test_a_further_column_is_not_taken_for_the_labels(run: Path, tmp_path: Path) -> None:
    write_table(tmp_path / "old.csv", "width,height,sort", seed=1)
    write_table(tmp_path / "new.csv", "width,height,sort,batch", seed=1, more=",a")
    old, new = (
        labelproof("evaluate", run, "--data", tmp_path / f"{name}.csv", "--format", "json")
        for name in ("old", "new")
    )
    assert new.exit_code == 0, new.output
    assert json.loads(new.stdout)["classes"] == json.loads(old.stdout)["classes"]
    assert new.stderr == ""


def test_where_it_is_not_there_another_has_to_be_named(run: Path, tmp_path: Path) -> None:
    write_table(tmp_path / "new.csv", "width,height,kind")
    result = labelproof("evaluate", run, "--data", tmp_path / "new.csv")
    assert "label: " in str(result.exception)
    named = labelproof("evaluate", run, "--data", tmp_path / "new.csv", "--label", "kind")
    assert named.exit_code == 0, named.output
    assert named.stderr == ""
