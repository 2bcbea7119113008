"""An audit in Python: suspects, the noise rate and the page without the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import labelproof
from labelproof.audit import Audit, audit_labels
from labelproof.training import Event
from labelproof.verbs.train import StoppedError

TINY: Any = {"epochs": 30, "device": "cpu", "folds": 2}


@pytest.fixture(scope="module")
def fruit() -> pd.DataFrame:
    """A table in which every tenth label is wrong."""
    generator = np.random.default_rng(0)
    true = np.arange(200) % 2
    given = np.where(np.arange(200) % 10 == 0, 1 - true, true)
    size = generator.normal(size=(200, 2)) * 0.5 + 2 * true[:, None]
    table = pd.DataFrame(size, columns=["width", "height"])
    return table.assign(kind=np.array(["fig", "pear"])[given])


def test_a_table_is_audited_by_networks_that_have_not_seen_its_labels(
    fruit: pd.DataFrame, tmp_path: Path
) -> None:
    found = labelproof.audit(fruit, "kind", **TINY)
    assert set(found.suspects.index) > set(range(0, 150, 10)) - {0, 50}
    assert found.suspects.columns.tolist()[:4] == ["sample", "given", "suggested", "score"]
    assert found.noise_rate.low < 0.1 < found.noise_rate.high
    assert found.matrix.index.tolist() == ["fig", "pear"]
    assert "flagged" in found._repr_html_()
    assert "pear" in found.report(tmp_path / "page.html").read_text()
    found.write(tmp_path / "audit")
    assert Audit.read(tmp_path / "audit").suspects.round(4).equals(found.suspects.round(4))


def test_predictions_of_any_model_are_audited(fruit: pd.DataFrame, tmp_path: Path) -> None:
    given = (fruit["kind"] == "pear").to_numpy().astype(int)
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


def test_an_audit_resumes(fruit: pd.DataFrame, tmp_path: Path) -> None:
    def stop(event: Event | str) -> None:
        if isinstance(event, Event) and event.kind == "finished":
            raise StoppedError("enough")

    with pytest.raises(KeyboardInterrupt):
        labelproof.audit(fruit, "kind", output=tmp_path / "audit", progress=stop, **TINY)
    events: list[Event | str] = []
    found = labelproof.audit(
        fruit, "kind", output=tmp_path / "audit", progress=events.append, **TINY
    )
    assert sum(isinstance(event, Event) and event.kind == "started" for event in events) == 1
    assert found.suspects.equals(labelproof.audit(fruit, "kind", **TINY).suspects)


def test_a_run_is_asked(fruit: pd.DataFrame, tmp_path: Path) -> None:
    fruit.to_csv(tmp_path / "fruit.csv", index=False)
    path = tmp_path / "run"
    run = labelproof.fit(
        tmp_path / "fruit.csv", "kind", epochs=3, device="cpu", output=path, audit=False
    )
    assert labelproof.audit(path).suspects.equals(labelproof.audit(run).suspects)
