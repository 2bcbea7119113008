"""A column by which samples belong together, by every command that cuts data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof

from labelproof.audit.folder import Audit

QUICK = ("--epochs", "2", "--network", "mlp(hidden=4,depth=1)", "--device", "cpu")
TABLE = ("visits.csv", "--label", "ill", "--group", "patient")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of patients who came four times each."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    rows = [
        f"{generator.normal(visit % 2):.4f},{generator.normal():.4f},P{visit // 4},{visit % 2}"
        for visit in range(120)
    ]
    (tmp_path / "visits.csv").write_text("\n".join(["pulse,weight,patient,ill", *rows]) + "\n")
    return tmp_path


def test_a_fit_holds_out_whole_patients_and_its_audit_knows(here: Path) -> None:
    result = labelproof("fit", *TABLE, *QUICK, "--output", "run")
    assert result.exit_code == 0, result.output
    assert "Kept together: 30 groups by patient" in result.output
    with np.load(here / "run" / "predictions.npz") as predictions:
        held = predictions["held"]
    assert sorted(held) == sorted(
        index for patient in set(held // 4) for index in patient * 4 + np.arange(4)
    )
    assert json.loads((here / "run" / "fit.json").read_text())["asked"]["group"] == "patient"
    # The audit of the run asks about the same samples that were held out.
    assert Audit.read(here / "run" / "audit").options["group"] == "patient"
    result = labelproof("audit", "run", "--output", "again")
    assert result.exit_code == 0, result.output
    assert Audit.read(here / "again").options["group"] == "patient"
    # Cut in another way, it is another run.
    result = labelproof("fit", *TABLE[:3], *QUICK, "--output", "run")
    assert "holds a run of other data" in str(result.exception)


def test_an_audit_cuts_between_patients(here: Path) -> None:
    result = labelproof("audit", *TABLE, *QUICK, "--folds", "3")
    assert result.exit_code == 0, result.output
    assert "Kept together: 30 groups by patient" in result.output
    assert Audit.read(here / "visits-audit").options["group"] == "patient"
    assert "--group patient" in (here / "visits-audit" / "report.html").read_text()
    result = labelproof("audit", *TABLE, "--folds", "31", *QUICK, "--output", "finer")
    assert "--folds: expected 2 to 30, the number of groups, got 31" in str(result.exception)
    assert not (here / "finer").exists()
    (here / "one.csv").write_text(
        "pulse,who,ill\n" + "".join(f"{i},ann,{i % 2}\n" for i in range(9))
    )
    result = labelproof("audit", "one.csv", "--label", "ill", "--group", "who", *QUICK)
    assert "--group: expected at least two groups" in str(result.exception)
    result = labelproof("fit", "one.csv", "--label", "ill", "--group", "who", *QUICK)
    assert "groups: expected at least two" in str(result.exception)
