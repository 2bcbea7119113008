"""Folders that are not the program's own are left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from trained import labelproof

QUICK = ("--network", "mlp(hidden=8,depth=1)", "--epochs", "1", "--device", "cpu")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    rows = [f"{x:.3f},{'ab'[number % 2]}" for number, x in enumerate(generator.normal(size=80))]
    (tmp_path / "things.csv").write_text("\n".join(["size,label", *rows]) + "\n")
    return tmp_path / "things.csv"


@pytest.mark.parametrize("command", ["fit", "audit", "train"])
def test_nothing_is_written_among_other_files(table: Path, command: str) -> None:
    folder = table.parent / "photos"
    folder.mkdir()
    (folder / "holiday.jpg").write_bytes(b"")
    data = ("--data", table) if command == "train" else (table,)
    result = labelproof(command, *data, *QUICK, "--output", folder)
    assert "expected a new or empty folder" in str(result.exception)
    assert "which holds holiday.jpg" in str(result.exception)
    assert [path.name for path in folder.iterdir()] == ["holiday.jpg"]


def test_a_run_and_an_audit_do_not_share_a_folder(table: Path) -> None:
    run, audit = table.parent / "run", table.parent / "audit"
    assert labelproof("fit", table, *QUICK, "--output", run).exit_code == 0
    other = labelproof("audit", table, *QUICK, "--output", run)
    assert "which holds a run" in str(other.exception)
    assert labelproof("audit", table, *QUICK, "--folds", "2", "--output", audit).exit_code == 0
    other = labelproof("fit", table, *QUICK, "--output", audit)
    assert "which holds an audit" in str(other.exception)
    # Each goes on in its own.
    assert labelproof("fit", table, *QUICK, "--output", run).exit_code == 0
    assert labelproof("audit", table, *QUICK, "--folds", "2", "--output", audit).exit_code == 0
