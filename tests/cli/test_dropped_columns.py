"""Columns that nothing is to be learned from, by every command that learns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof

from labelproof.audit.folder import Audit

QUICK = ("--epochs", "2", "--network", "mlp(hidden=4,depth=1)", "--device", "cpu")
LONGER = ("--epochs", "40", "--learning-rate", "0.05")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, one column of which gives the label away."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    labels = generator.integers(2, size=120)
    numbers = generator.normal(size=120)
    rows = [f"{number:.3f},{label},{label}" for number, label in zip(numbers, labels, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["size,leak,kind", *rows]) + "\n")
    return tmp_path


def test_an_audit_does_not_look_at_them_and_names_them_again(here: Path) -> None:
    told = labelproof("audit", "table.csv", "--label", "kind", "--folds", "2", *QUICK, *LONGER)
    blind = labelproof(
        *("audit", "table.csv", "--label", "kind", "--folds", "2", *QUICK, *LONGER),
        *("--drop", "LEAK", "--output", "blind"),
    )
    assert told.exit_code == blind.exit_code == 0, blind.output
    seen, unseen = (Audit.read(here / name) for name in ("table-audit", "blind"))
    assert unseen.options["drop"] == ["leak"]
    assert "drop" not in seen.options
    assert unseen.agreement.value < seen.agreement.value
    assert "--drop leak" in (here / "blind" / "report.html").read_text()
    result = labelproof("audit", "table.csv", "--label", "kind", "--drop", "leek")
    assert "leak" in str(result.exception)


def test_a_run_is_audited_as_it_was_trained(here: Path) -> None:
    result = labelproof(
        *("train", "--data", "table.csv", "--label", "kind", "--drop", "leak", *QUICK),
        *("--output", "run"),
    )
    assert result.exit_code == 0, result.output
    columns = json.loads((here / "run" / "model.json").read_text())["columns"]
    assert [column["name"] for column in columns["columns"]] == ["size"]
    assert labelproof("evaluate", "run", "--split", "train").exit_code == 0
    result = labelproof("audit", "run")
    assert result.exit_code == 0, result.output
    assert Audit.read(here / "run" / "audit").options["drop"] == ["leak"]
    result = labelproof("audit", "run", "--drop", "size")
    assert "--drop: nothing is trained for an audit of a run" in str(result.exception)
