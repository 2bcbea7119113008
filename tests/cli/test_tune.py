import json
import shlex
from pathlib import Path

import pandas as pd
import pytest
from made_losses import CODE
from trained import labelproof, succeed, write_things
from typer.testing import Result

QUICK = ("--network", "mlp(hidden=16,depth=1,batch_norm=true)", "--epochs", "2", "--folds", "1")
NOISY = ("--noise", "symmetric:0.4", "--learning-rate", "0.1")


def tune(folder: Path, *arguments: str, trials: int = 3) -> Result:
    table = write_things(folder / "my things.csv", label="sort")
    words = ("--label", "sort", "--device", "cpu", "--trials", str(trials), *QUICK, *NOISY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return labelproof("tune", table, *words, *arguments)


Printed = tuple[Path, Result]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    folder = tmp_path_factory.mktemp("tune")
    return folder, tune(folder)


def test_a_search_lists_its_trials_and_says_what_it_chose(finished: Printed) -> None:
    folder, result = finished
    kept = json.loads((folder / "my things-tuning.json").read_text())
    assert len(kept["trials"]) == 3
    for trial in kept["trials"]:
        shown = f"{trial['accuracy']:.2f}% ± {trial['standard_error']:.2f}  {trial['loss']}"
        assert shown in result.stdout
    assert f"Chosen: {kept['choice']}, which agrees with" in result.stdout
    labels = pd.read_csv(folder / "my things.csv")["sort"]
    assert f"most frequent class would agree with {labels.value_counts(True).max():.1%}" in (
        result.stdout
    )


def test_the_next_command_trains_what_was_chosen(finished: Printed, tmp_path: Path) -> None:
    words = shlex.split(finished[1].stdout.partition("\nNext: ")[2])
    assert words[:3] == ["labelproof", "fit", str(finished[0] / "my things.csv")]
    assert words[words.index("--label") + 1] == "sort"
    words[words.index("--output") + 1] = str(tmp_path / "run")
    succeed(*words[1:], "--device", "cpu", "--no-audit")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    kept = json.loads((finished[0] / "my things-tuning.json").read_text())
    assert record["configuration"]["loss"] == kept["choice"].partition(", l1=")[0]
    same = kept["about"]
    # The precision is resolved in a record, and a part is held out to validate on.
    for name in (same.keys() & record["configuration"].keys()) - {"precision", "validation"}:
        assert record["configuration"][name] == same[name], name


def test_progress_counts_the_runs_of_this_search_and_of_an_earlier_one(tmp_path: Path) -> None:
    alone = tune(tmp_path, trials=1).output
    assert "epoch 2 of 2" in alone
    assert "of 2  ce" not in alone
    (line,) = [line for line in tune(tmp_path, trials=2).output.splitlines() if " of 2  " in line]
    assert line.startswith("2 of 2  ")
    assert tune(tmp_path, trials=2).exit_code == 0


def test_the_next_command_loads_own_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(CODE)
    monkeypatch.setenv("LABELPROOF_LOSSES", "")
    found = tune(tmp_path, "--loss-file", str(mine), "--loss", "series", trials=1)
    assert found.exit_code == 0, found.output
    words = shlex.split(found.stdout.partition("\nNext: ")[2])
    assert words[words.index("--loss") + 1].startswith("series@")
    assert words[words.index("--loss-file") + 1] == str(mine)
    monkeypatch.setenv("LABELPROOF_LOSSES", "")
    succeed(*words[1:], "--dry-run")


def test_another_search_is_refused_and_fresh_starts_anew(finished: Printed, tmp_path: Path) -> None:
    refused = str(tune(finished[0], "--seed", "7").exception)
    assert "seed: 1 there, 7 here" in refused
    assert refused.endswith("choose another file (--output), or start over with --fresh")
    file = tmp_path / "my things-tuning.json"
    file.write_text("something else")
    for fresh in ((), ("--fresh",)):
        refused = tune(tmp_path, *fresh, trials=1)
        assert "is not the file of a search" in str(refused.exception)
        assert file.read_text() == "something else"
    file.write_text(json.dumps({"format": 0, "about": {}, "trials": []}))
    result = tune(tmp_path, "--fresh", trials=1)
    assert result.exit_code == 0, result.output
