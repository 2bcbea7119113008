"""A run is audited and measured on the data that it was trained on, or others are told of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trained import labelproof

from labelproof.audit import Audit

MLP = ("--network", "mlp(hidden=8,depth=1)", "--epochs", "1", "--device", "cpu")


def write_table(path: Path, *, seed: int = 0) -> None:
    """Two classes; a patient has two rows, and a cell and a label are missing."""
    generator = np.random.default_rng(seed)
    lines = ["patient,width,note,label"]
    for row in range(40):
        width = "" if row == 7 else f"{generator.normal(3 * (row % 2)):.4f}"
        label = "" if row == 11 else f"kind {row % 2}"
        lines.append(f"p{row // 2},{width},n{row % 5},{label}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def fit(*arguments: str | Path) -> None:
    result = labelproof("fit", *arguments, "--no-audit")
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a run on it, which was told of a relative path."""
    folder = tmp_path_factory.mktemp("data") / "work"
    write_table(folder / "data" / "cust.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        fit("data/cust.csv", *MLP)
    return folder


@pytest.fixture
def here(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another folder to work in, beside a copy of the first one with all that is in it."""
    shutil.copytree(work, tmp_path / "work")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


RUN = Path("..") / "work" / "cust-fit"


def measured(*arguments: str | Path) -> tuple[dict[str, Any], str]:
    result = labelproof("evaluate", *arguments, "--format", "json", "--device", "cpu")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def test_other_data_of_the_same_name_are_not_taken_for_a_runs_own(here: Path) -> None:
    write_table(here / "data" / "cust.csv", seed=1)
    result = labelproof("audit", RUN, "--device", "cpu", "--output", "out")
    assert result.exit_code == 0, result.output
    assert Audit.read(Path("out")).data == str(here.parent / "work" / "data" / "cust.csv")
    found, said = measured(RUN, "--split", "train")
    assert found["learned_from"] is True
    assert "trained on" not in said


def test_data_that_were_replaced_since_are_refused_or_warned_of(here: Path) -> None:
    write_table(here.parent / "work" / "data" / "cust.csv", seed=1)
    result = labelproof("audit", RUN, "--device", "cpu", "--output", "out")
    assert isinstance(result.exception, ValueError)
    assert f"not what {RUN} was trained on" in str(result.exception)
    assert "'labelproof audit " in str(result.exception)
    assert not Path("out").exists()
    found, said = measured(RUN, "--split", "train")
    assert found["learned_from"] is None
    assert f"not what {RUN} was trained on" in said
    assert "--data PATH" in said
    # Named, it is still not what the run has learned from, and nobody has to be warned.
    named = ("--data", here.parent / "work" / "data" / "cust.csv", "--skip-unreadable")
    found, said = measured(RUN, *named)
    assert found["learned_from"] is None
    assert "trained on" not in said


def test_data_that_are_gone_are_looked_for_and_the_places_named(here: Path) -> None:
    shutil.rmtree(here.parent / "work" / "data")
    values = json.loads((RUN / "fit.json").read_text())
    values["places"]["data"]["path"] = "/nowhere/cust.csv"
    (RUN / "fit.json").write_text(json.dumps(values))
    for command, advice in (("audit", "start this from where it is now"), ("evaluate", "--data ")):
        result = labelproof(command, RUN)
        assert isinstance(result.exception, FileNotFoundError)
        message = str(result.exception)
        assert advice in message
        assert "(looked for " in message
        for place in (here.parent / "work", Path("/nowhere"), here / "data"):
            assert str(place) in message
    # Last of all, where the command is started.
    write_table(here / "data" / "cust.csv")
    found, said = measured(RUN, "--split", "train")
    assert found["learned_from"] is True
    assert "trained on" not in said


def test_what_train_left_knows_its_data_too(tmp_path: Path) -> None:
    write_table(tmp_path / "cust.csv")
    trained = labelproof(
        *("train", "--data", tmp_path / "cust.csv", *MLP, "--output", tmp_path / "run"),
        *("--drop", "note", "--group", "patient", "--skip-unreadable"),
    )
    assert trained.exit_code == 0, trained.output
    assert labelproof("audit", tmp_path / "run", "--device", "cpu").exit_code == 0
    assert "trained on" not in measured(tmp_path / "run", "--split", "train")[1]
    write_table(tmp_path / "cust.csv", seed=1)
    refused = labelproof("audit", tmp_path / "run", "--device", "cpu")
    assert "was trained on" in str(refused.exception)
    assert "was trained on" in measured(tmp_path / "run", "--split", "train")[1]


def test_the_same_data_by_another_path_are_gone_on_with(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here.parent / "work")
    whole = here.parent / "work" / "data" / "cust.csv"
    again = labelproof("fit", whole, *MLP, "--output", "cust-fit")
    assert again.exit_code == 0, again.output
    assert "Finished before" in again.stdout
    moved = whole.rename(here / "moved.csv")
    again = labelproof("fit", moved, *MLP, "--output", "cust-fit")
    assert again.exit_code == 0, again.output
    # And where they are now is known from then on.
    assert measured("cust-fit", "--split", "train")[0]["learned_from"] is True
