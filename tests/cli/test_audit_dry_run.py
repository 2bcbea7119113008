"""What `labelproof audit --dry-run` says, and that it leaves no trace."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof

SMALL = ("--network", "mlp(hidden=8,depth=1)", "--epochs", "3", "--device", "cpu")


def below(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def write_table(folder: Path, rows: int = 120) -> Path:
    generator = np.random.default_rng(0)
    with (folder / "things.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["width", "height", "class"])
        for number in range(rows):
            width, height = generator.normal([3 * (number % 3), 0], 0.3).tolist()
            writer.writerow([width, height, f"kind {number % 3}"])
    return folder / "things.csv"


def test_it_says_what_would_be_done_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_table(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = below(tmp_path)
    result = labelproof("audit", path, *SMALL, "--dry-run")
    assert result.exit_code == 0, result.output
    data, plan, duration, folder, end = result.stdout.splitlines()
    assert data == "Data: 120 rows, 3 classes (kind 0 40, kind 1 40, kind 2 40)"
    assert plan == (
        "Cross-validation: 5 networks (mlp(depth=1,hidden=8)), each for 3 epochs on 4 of 5 parts, "
        "gce(q=0.7)"
    )
    assert duration == "Time: less than a minute on cpu, by its first steps"
    assert folder == "Folder: things-audit"
    assert end == "A dry run; nothing was written."
    assert below(tmp_path) == before
    real = labelproof("audit", path, *SMALL)
    assert real.stdout.splitlines()[:2] == [data, plan]


def test_an_audit_that_is_there_is_told_or_refused_as_it_would_be(tmp_path: Path) -> None:
    path, folder = write_table(tmp_path), tmp_path / "audit"
    command = ("audit", path, *SMALL, "--folds", "2", "--output", folder)
    assert labelproof(*command).exit_code == 0
    before = below(tmp_path)
    again = labelproof(*command, "--dry-run")
    assert "Time: what is left of an audit that was started or finished before" in again.stdout
    assert f"Folder: {folder} (an audit is there already)" in again.stdout
    fresh = labelproof(*command, "--dry-run", "--fresh")
    assert f"Folder: {folder} (an audit is removed first)" in fresh.stdout
    other = labelproof(*command, "--seed", "9", "--dry-run")
    assert "holds an audit with other settings" in str(other.exception)
    assert below(tmp_path) == before
