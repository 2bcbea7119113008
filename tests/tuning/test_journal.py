"""A search on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_trials import made

from labelproof.tuning.trial import OtherSearchError, read_journal, write_journal

ABOUT: dict[str, Any] = {"data": "digits", "epochs": 2, "rows": [10, 10], "labels": "abc"}


def test_trials_come_back(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "tuning.json"
    trials = [
        made(0, [[50.0, 51.0], [49.0, 52.0]], rows=[10, 10]),
        made(1, [[10.0]], rows=[10, 10], epochs=2, loss="ce+sr", state="collapsed"),
    ]
    write_journal(file, trials, ABOUT)
    assert read_journal(file, ABOUT) == trials
    assert json.loads(file.read_text())["choice"] == "ce"


def test_a_fold_that_was_begun_is_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "tuning.json"
    write_journal(
        file, [made(0, [[50.0, 51.0], [9.0]], rows=[10, 10], epochs=2, state="waiting")], ABOUT
    )
    (trial,) = read_journal(file, ABOUT)
    assert (list(trial.curves), trial.finished) == ([0], [0])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epochs": 3}, "epochs: 2 there, 3 here"),
        ({"rows": [20]}, r"rows: \[10, 10\] there, \[20\] here"),
    ],
)
def test_another_search_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    file = tmp_path / "tuning.json"
    write_journal(file, [], ABOUT)
    with pytest.raises(OtherSearchError, match=said):
        read_journal(file, ABOUT | changed)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a": 1}', '"text"', '{"format": 2, "about": {}}']
)
def test_another_file_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tuning.json"
    file.write_text(text)
    with pytest.raises(OtherSearchError, match=r"tuning\.json"):
        read_journal(file, ABOUT)
    assert file.read_text() == text
