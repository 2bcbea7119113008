"""A search for a loss and a review in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audits import make_photos

import labelproof
from labelproof.audit.folder import REVIEW
from labelproof.review.decisions import Decisions
from labelproof.review.standing import Review
from labelproof.training import Event
from labelproof.verbs.train import StoppedError

TINY: Any = {"trials": 3, "folds": 1, "epochs": 2, "device": "cpu"}


def fruit() -> pd.DataFrame:
    kinds = np.arange(120) % 2
    sizes = np.random.default_rng(0).normal(size=(120, 2)) + 2 * kinds[:, None]
    table = pd.DataFrame(sizes, columns=["width", "height"])
    return table.assign(kind=np.array(["fig", "pear"])[kinds])


def test_a_stopped_search_resumes_to_the_same_choice(tmp_path: Path) -> None:
    whole = labelproof.tune(fruit(), "kind", **TINY)
    assert whole.best is not None
    assert whole.best.loss == whole.trials["loss"].iloc[0]
    assert whole.trials["state"].tolist() == ["complete"] * 3
    assert whole.best.loss.split("(")[0] in whole._repr_html_()
    finished: list[Event] = []

    def stop(event: Event | str) -> None:
        if isinstance(event, Event) and event.kind == "finished":
            finished.append(event)
            if len(finished) == 2:
                raise StoppedError("enough")

    file = tmp_path / "search.json"
    with pytest.raises(KeyboardInterrupt):
        labelproof.tune(fruit(), "kind", output=file, progress=stop, **TINY)
    finished.clear()
    again = labelproof.tune(fruit(), "kind", output=file, progress=stop, **TINY)
    assert len(finished) == 1
    pd.testing.assert_frame_equal(again.trials, whole.trials)
    with pytest.raises(ValueError, match="labels"):
        labelproof.tune(fruit().iloc[:60], "kind", output=file, **TINY)


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
