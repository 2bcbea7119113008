"""A search for a loss and a review in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from audits import make_photos
from trained import things

import labelproof
from labelproof.audit.folder import REVIEW
from labelproof.review.decisions import Decisions
from labelproof.review.standing import Review
from labelproof.training import Event

TINY: Any = {"trials": 3, "folds": 1, "epochs": 2, "device": "cpu"}


def test_a_search_says_what_it_chose_and_is_of_its_data(tmp_path: Path) -> None:
    file, table = tmp_path / "search.json", things(120, kinds=2, label="kind")
    found = labelproof.tune(table, "kind", output=file, **TINY)
    assert found.best is not None
    assert found.best.loss == found.trials["loss"].iloc[0]
    assert found.trials["state"].tolist() == ["complete"] * 3
    assert found.best.loss.split("(")[0] in found._repr_html_()
    with pytest.raises(ValueError, match="labels"):
        labelproof.tune(table.iloc[:60], "kind", output=file, **TINY)


def test_decisions_of_a_review_are_written(tmp_path: Path) -> None:
    audit = make_photos(tmp_path / "photos", samples=60)
    audit.write(tmp_path / "audit")
    file = tmp_path / "reviewed.csv"
    with pytest.raises(FileNotFoundError, match="decided"):
        labelproof.review(tmp_path / "audit", export=file)
    with Decisions(tmp_path / "audit" / REVIEW) as decisions:
        Review(audit, decisions).decide(int(audit.findings.suspects[0]), "accept")
    lines: list[Event | str] = []
    labelproof.review(tmp_path / "audit", export=file, progress=lines.append)
    assert "1 changed" in str(lines[0])
    table = pd.read_csv(file)
    assert (table["given"] != table["label"]).sum() == 1
