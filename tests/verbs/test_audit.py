"""An audit in Python: suspects, the noise rate and the page without the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from trained import things

import labelproof
from labelproof.audit import Audit, audit_labels

TINY: Any = {"epochs": 30, "device": "cpu", "folds": 2}


@pytest.fixture(scope="module")
def fruit() -> pd.DataFrame:
    """A table in which every tenth label is wrong."""
    table = things(200, kinds=2, label="kind")
    table.loc[::10, "kind"] = "kind 1"
    return table


def test_a_table_is_audited_by_networks_that_have_not_seen_its_labels(
    fruit: pd.DataFrame, tmp_path: Path
) -> None:
    found = labelproof.audit(fruit, "kind", **TINY)
    assert set(found.suspects.index) == set(range(0, 200, 10))
    assert found.suspects.columns.tolist()[:4] == ["sample", "given", "suggested", "score"]
    assert found.noise_rate.low < 0.1 < found.noise_rate.high
    assert found.matrix.index.tolist() == ["kind 0", "kind 1"]
    assert "flagged" in found._repr_html_()
    assert "kind 1" in found.report(tmp_path / "page.html").read_text()
    found.write(tmp_path / "audit")
    assert Audit.read(tmp_path / "audit").suspects.round(4).equals(found.suspects.round(4))


def test_predictions_of_any_model_are_audited(fruit: pd.DataFrame, tmp_path: Path) -> None:
    given = (fruit["kind"] == "kind 1").to_numpy().astype(int)
    probabilities = np.eye(2)[np.arange(200) % 2] * 0.9 + 0.05
    found = labelproof.audit(labels=given, probabilities=probabilities)
    expected = audit_labels(probabilities, given)
    np.testing.assert_array_equal(found.suspects.index, expected.suspects)
    kept = labelproof.audit(fruit, "kind", probabilities=probabilities, output=tmp_path / "audit")
    assert kept.suspects.index.equals(found.suspects.index)
    assert (tmp_path / "audit" / "report.html").exists()
    with pytest.raises(ValueError, match="labels"):
        labelproof.audit(probabilities=probabilities)
    with pytest.raises(ValueError, match="data"):
        labelproof.audit()
