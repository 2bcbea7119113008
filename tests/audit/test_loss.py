"""The loss of an audit learns rare classes, and so finds their wrong labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labelproof
from labelproof.audit import audit_loss
from labelproof.fitting.recipe import Inputs
from labelproof.losses.text import parse_loss


def q_of(counts: list[int]) -> float:
    inputs = Inputs("rows", (8,), sum(counts), len(counts))
    text = audit_loss(inputs, np.repeat(np.arange(len(counts)), counts))
    parse_loss(text)
    return float(text.removeprefix("gce(q=").removesuffix(")"))


def test_the_loss_keeps_enough_weight_for_labels_of_the_rarest_class_that_can_be_learned() -> None:
    for share in (20, 30, 80):
        counts = [1000 - share, share]
        assert (share / 1000) ** q_of(counts) == pytest.approx(0.18, rel=0.02)
    assert q_of([100] * 10) == q_of([100, 900]) == q_of([500, 500]) == 0.7
    assert q_of([100] * 40) == 0.15
    assert q_of([500, 490, 9]) == 0.7
    assert q_of([500, 9]) == 0.7


def write_rare(path: Path) -> set[str]:
    """A table in which 3% of the rows are of the second class; the samples with wrong labels."""
    generator = np.random.default_rng(3)
    true = (generator.random(1500) < 0.03).astype(int)
    values = generator.normal(size=(1500, 4))
    values[:, :3] += 4 * true[:, None]
    wrong = np.zeros(1500, dtype=bool)
    for label, share in ((0, 0.01), (1, 0.15)):
        places = np.flatnonzero(true == label)
        wrong[generator.choice(places, round(share * len(places)), replace=False)] = True
    given = np.where(wrong, 1 - true, true)
    rows = [
        ",".join(f"{number:.3f}" for number in row) + f",{label}"
        for row, label in zip(values, given, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,d,fraud", *rows]) + "\n")
    return {f"line {place + 2}" for place in np.flatnonzero(wrong)}


def test_of_a_rare_class_the_wrong_labels_are_found_and_not_all(tmp_path: Path) -> None:
    wrong, said = write_rare(tmp_path / "table.csv"), []
    options: Any = {"folds": 2, "epochs": 15, "device": "cpu", "progress": said.append}
    findings = labelproof.audit(tmp_path / "table.csv", "fraud", **options).findings
    assert "hardly ever" not in str(said)
    suspects = {f"line {place + 2}" for place in findings.suspects.tolist()}
    assert len(suspects & wrong) >= 0.6 * len(wrong)
    assert len(suspects & wrong) >= 0.9 * len(suspects)
    assert findings.noise_rate.low <= len(wrong) / 1500 <= findings.noise_rate.high
