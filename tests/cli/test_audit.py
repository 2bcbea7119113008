from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_runs import StopAfter
from trained import labelproof
from typer.testing import Result

from labelproof.audit import Audit, open_samples
from labelproof.audit.folder import AUDIT, PAGE, REVIEW, RUNS, SAMPLES, SETTINGS, SUSPECTS
from labelproof.cli.main import run as program
from labelproof.data import load_digits
from labelproof.training.run_folder import owning

DIGITS = (
    *("audit", "digits", "--noise", "symmetric:0.2", "--epochs", "12", "--batch-size", "32"),
    *("--learning-rate", "0.05", "--folds", "2", "--network", "mlp(hidden=32,depth=1)"),
    *("--device", "cpu"),
)
FILES = {AUDIT, SAMPLES, SUSPECTS, PAGE}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The audit of the digits with noise on them, and what was printed."""
    folder = tmp_path_factory.mktemp("audit") / "digits-audit"
    result = labelproof(*DIGITS, "--output", folder)
    assert result.exit_code == 0, result.output
    return folder, result


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def suspects_in(folder: Path) -> list[dict[str, str]]:
    with (folder / SUSPECTS).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_rehearsal_finds_most_of_the_labels_that_were_made_wrong(
    digits: tuple[Path, Result],
) -> None:
    folder, _ = digits
    assert names_in(folder) == FILES | {SETTINGS}
    audit = Audit.read(folder)
    true = load_digits().train.labels
    wrong = np.flatnonzero(audit.findings.given != true)
    assert len(wrong) == pytest.approx(0.2 * len(true), rel=0.2)
    rate = audit.findings.noise_rate
    assert rate.value == pytest.approx(len(wrong) / len(true), abs=0.05)
    suspects = audit.findings.suspects
    assert np.isin(suspects, wrong).mean() > 0.8
    assert np.isin(wrong, suspects).mean() > 0.8
    assert [row["sample"] for row in suspects_in(folder)] == [str(place) for place in suspects]
    assert audit.method["predictions"] == "cross-validation"
    assert (audit.method["folds"], audit.method["epochs"]) == (2, 12)
    assert audit.method["loss"] == "gce(q=0.7)"
    assert len(audit.curves) == 2


def test_what_was_found_is_said_in_a_few_lines(digits: tuple[Path, Result]) -> None:
    folder, result = digits
    audit = Audit.read(folder)
    said = result.stdout
    assert "Data: 1,347 images, 10 classes" in said
    assert "Cross-validation: 2 networks (mlp(depth=1,hidden=32)" in said
    assert "each for 12 epochs on 1 of 2 parts, gce(q=0.7)" in said
    assert audit.findings.noise_rate.as_percent() in said
    assert f"Suspects: {folder / SUSPECTS}" in said
    assert f"Next: labelproof review {folder}" in said
    wrong = int(np.count_nonzero(audit.findings.given != load_digits().train.labels))
    assert f"Rehearsal: {wrong:,} labels were made wrong" in said
    assert result.stderr == ""


def test_the_second_time_it_says_the_same_and_trains_nothing(digits: tuple[Path, Result]) -> None:
    folder, first = digits
    written = (folder / AUDIT).read_bytes()
    again = labelproof(*DIGITS, "--output", folder)
    assert again.exit_code == 0
    assert "Finished before, and not trained again; --fresh trains it anew:" in again.stdout
    assert again.stdout.splitlines()[-5:] == first.stdout.splitlines()[-5:]
    assert "epoch 1" not in again.stdout
    assert (folder / AUDIT).read_bytes() == written


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("--epochs", "5"), "epochs 12"),
        (("--folds", "3"), "folds 2"),
        (("--noise", "symmetric:0.3"), "noise 'symmetric:0.2"),
        (("--loss", "ce"), "loss 'gce"),
        (("--seed", "7"), "seed"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(
    digits: tuple[Path, Result], changes: tuple[str, str], said: str
) -> None:
    folder, _ = digits
    before = (folder / AUDIT).read_bytes()
    result = labelproof(*DIGITS, *changes, "--output", folder)
    assert isinstance(result.exception, ValueError)
    assert "holds an audit with other settings" in str(result.exception)
    assert said in str(result.exception)
    assert (folder / AUDIT).read_bytes() == before


def test_a_fresh_audit_keeps_what_was_decided(digits: tuple[Path, Result], tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(digits[0], folder)
    (folder / REVIEW).write_bytes(b"decisions")
    result = labelproof(*DIGITS, "--epochs", "1", "--fresh", "--output", folder)
    assert result.exit_code == 0, result.output
    assert "Finished before" not in result.stdout
    assert Audit.read(folder).method["epochs"] == 1
    assert (folder / REVIEW).read_bytes() == b"decisions"
    assert names_in(folder) == FILES | {SETTINGS, REVIEW}


def test_a_folder_in_use_is_refused(digits: tuple[Path, Result], tmp_path: Path) -> None:
    with owning(tmp_path / "audit"):
        for command in (DIGITS, given_command(tmp_path)):
            result = labelproof(*command, "--output", tmp_path / "audit")
            assert isinstance(result.exception, ValueError)
            assert f"pid {os.getpid()}" in str(result.exception)


def given_command(folder: Path, samples: int = 200) -> tuple[str | Path, ...]:
    """Labels and probabilities in files, every tenth label wrong, and the command."""
    generator = np.random.default_rng(0)
    true = np.arange(samples) % 4
    table = generator.dirichlet(np.ones(4), samples) * 0.2 + 0.8 * np.eye(4)[true]
    np.save(folder / "table.npy", table.astype(np.float32))
    np.save(folder / "labels.npy", np.where(np.arange(samples) % 10 == 0, (true + 1) % 4, true))
    return ("audit", folder / "labels.npy", "--probabilities", folder / "table.npy")


def test_labels_and_probabilities_from_files_need_no_data(tmp_path: Path) -> None:
    result = labelproof(*given_command(tmp_path), "--output", tmp_path / "audit")
    assert result.exit_code == 0, result.output
    assert names_in(tmp_path / "audit") == FILES
    audit = Audit.read(tmp_path / "audit")
    assert np.array_equal(np.sort(audit.findings.suspects), np.arange(0, 200, 10))
    assert audit.kind == "unknown"
    assert audit.class_names == ("0", "1", "2", "3")
    assert audit.findings.noise_rate.low < 0.1 < audit.findings.noise_rate.high
    # Made anew each time: it takes no time, and nothing is lost by it.
    again = labelproof(*given_command(tmp_path, 100), "--output", tmp_path / "audit")
    assert again.exit_code == 0, again.output
    assert len(Audit.read(tmp_path / "audit").findings) == 100


def test_an_audit_that_was_trained_and_one_that_was_not_do_not_replace_each_other(
    digits: tuple[Path, Result], tmp_path: Path
) -> None:
    np.save(tmp_path / "p.npy", np.eye(10, dtype=np.float32)[load_digits().train.labels])
    given = ("audit", "digits", "--probabilities", tmp_path / "p.npy")
    shutil.copytree(digits[0], tmp_path / "trained")
    over = labelproof(*given, "--output", tmp_path / "trained")
    assert "holds an audit for which networks were trained" in str(over.exception)
    assert Audit.read(tmp_path / "trained").method["predictions"] == "cross-validation"
    assert labelproof(*given, "--output", tmp_path / "given").exit_code == 0
    under = labelproof(*DIGITS, "--output", tmp_path / "given")
    assert "holds an audit that is not of this call" in str(under.exception)
    assert Audit.read(tmp_path / "given").method["predictions"] == "given"
    replaced = labelproof(*given, "--output", tmp_path / "trained", "--fresh")
    assert replaced.exit_code == 0, replaced.output
    assert names_in(tmp_path / "trained") == FILES


COLOURS = {"blue": (20, 30, 220), "green": (20, 200, 30), "red": (220, 30, 20)}


def make_squares(folder: Path, *, each: int = 20, planted: int = 2) -> list[str]:
    """Squares sorted by colour, the last few of each among the next colour, and which those are."""
    generator = np.random.default_rng(0)
    names = list(COLOURS)
    wrong = []
    for label, (name, colour) in enumerate(COLOURS.items()):
        for number in range(each):
            noise = generator.normal(0, 12, (12, 12, 3))
            pixels = np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)
            place = names[(label + 1) % 3] if number >= each - planted else name
            path = folder / place / f"{name}-{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(path)
            if place != name:
                wrong.append(f"{place}/{path.name}")
    return sorted(wrong)


SQUARES = (
    *("--epochs", "25", "--folds", "3", "--batch-size", "8", "--learning-rate", "0.05"),
    *("--network", "cnn4(width=4,hidden=16)", "--augmentation", "resized-crop:16"),
    *("--device", "cpu", "--seed", "1"),
)


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with the squares and their audit, and those that are wrong."""
    folder = tmp_path_factory.mktemp("squares")
    wrong = make_squares(folder / "squares")
    result = labelproof(
        *("audit", folder / "squares", *SQUARES, "--output", folder / "audit"),
    )
    assert result.exit_code == 0, result.output
    return folder, wrong


def test_images_in_the_wrong_folder_are_the_suspects(squares: tuple[Path, list[str]]) -> None:
    folder, wrong = squares
    rows = suspects_in(folder / "audit")
    assert sorted(row["sample"] for row in rows) == wrong
    for row in rows:
        assert row["given"] == row["sample"].split("/")[0]
        assert row["suggested"] == row["sample"].split("/")[1].split("-")[0]
    audit = Audit.read(folder / "audit")
    assert audit.data == str(folder / "squares")
    picture, kind = open_samples(audit).picture(int(audit.findings.suspects[0]), side=96)
    assert kind == "image/png"
    assert picture
    page = (folder / "audit" / PAGE).read_text()
    assert all(name.split("/")[1] in page for name in wrong)


def test_labels_of_a_review_stand_in_place_of_the_datas(
    squares: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder, wrong = squares
    file = tmp_path / "reviewed.csv"
    right = [f"{name},{name.split('/')[1].split('-')[0]}" for name in wrong[1:]]
    file.write_text("\n".join(["sample,label", f"{wrong[0]},", *right]) + "\n")
    table = tmp_path / "p.npy"
    given = tmp_path / "given"
    # Nothing is trained, so that it takes no time: the truth as probabilities.
    names = sorted(str(p.relative_to(folder / "squares")) for p in folder.glob("squares/*/*.png"))
    names.remove(wrong[0])
    colours = [list(COLOURS).index(name.split("/")[1].split("-")[0]) for name in names]
    np.save(table, np.eye(3)[colours])
    command = ("audit", folder / "squares", "--probabilities", table, "--output", given)
    without = labelproof(*command)
    assert "one for each of 59 rows of the probabilities, got 60" in str(without.exception)
    result = labelproof(*command, "--labels", file)
    assert result.exit_code == 0, result.output
    audit = Audit.read(given)
    assert list(audit.samples) == names
    assert len(audit.findings.suspects) == 0
    assert audit.options["labels"] == str(file)
    samples = open_samples(audit)
    assert samples.dataset is not None
    assert len(samples.dataset.train) == 59


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A table of 120 rows and the lines whose label is wrong; one row has no label."""
    folder = tmp_path_factory.mktemp("table")
    generator = np.random.default_rng(0)
    wrong = []
    with (folder / "things.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["width", "height", "colour", "group"])
        for number in range(120):
            label = number % 3
            width, height = generator.normal([3 * label, -2 * label], 0.3)
            given = (label + 1) % 3 if number % 15 == 4 else label
            if given != label:
                wrong.append(f"line {number + 2}")
            kind = "" if number == 7 else f"kind {given}"
            writer.writerow([f"{width:.4f}", f"{height:.4f}", ["red", "blue"][label % 2], kind])
    return folder / "things.csv", wrong


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on the digits with noise on them."""
    folder = tmp_path_factory.mktemp("run") / "digits-fit"
    result = labelproof(
        *("fit", "digits", "--noise", "symmetric:0.2", "--epochs", "12", "--batch-size", "32"),
        *("--learning-rate", "0.05", "--network", "mlp(hidden=32,depth=1)", "--device", "cpu"),
        *("--loss", "gce(q=0.7)", "--output", folder),
    )
    assert result.exit_code == 0, result.output
    return folder


def test_a_run_is_asked_about_what_it_was_trained_on(run: Path) -> None:
    result = labelproof("audit", run, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert names_in(run / "audit") == FILES
    audit = Audit.read(run / "audit")
    assert audit.method == {
        "predictions": "run",
        "network": audit.method["network"],
        "loss": "gce(q=0.7)",
        "epochs": 12,
        "noise": "symmetric:0.2",
    }
    assert audit.data == "digits"
    true = load_digits().train.labels
    assert len(audit.findings) == len(true)
    wrong = np.flatnonzero(audit.findings.given != true)
    assert len(wrong) == pytest.approx(0.2 * len(true), rel=0.2)
    assert np.isin(audit.findings.suspects, wrong).mean() > 0.8
    assert "of the labels are predicted by the run's network" in result.stdout
    evaluated = labelproof("evaluate", run, "--format", "json")
    assert evaluated.exit_code == 0, evaluated.output


def test_a_run_on_a_table_remembers_its_label_and_the_labels_it_was_given(
    table: tuple[Path, list[str]], tmp_path: Path
) -> None:
    path, wrong = table
    file = tmp_path / "reviewed.csv"
    file.write_text(f"sample,label\n{wrong[0]},\n{wrong[1]},kind 0\n")
    fitted = labelproof(
        *("fit", path, "--label", "group", "--labels", file, "--epochs", "3", "--device", "cpu"),
        *("--network", "mlp(hidden=8,depth=1)", "--output", tmp_path / "run"),
    )
    assert fitted.exit_code == 0, fitted.output
    result = labelproof("audit", tmp_path / "run", "--device", "cpu", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.output
    audit = Audit.read(tmp_path / "out")
    assert len(audit.findings) == 118
    assert wrong[0] not in audit.samples
    place = list(audit.samples).index(wrong[1])
    assert audit.class_names[audit.findings.given[place]] == "kind 0"
    assert audit.options["labels"] == str(file)


def refuse(
    arguments: list[str | Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Run the program as it is installed; it has to end with 2 and one line, which is given."""
    monkeypatch.setattr(sys, "argv", ["labelproof", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        program()
    assert ended.value.code == 2
    line, *more = [line for line in capsys.readouterr().err.splitlines() if line]
    assert more == []
    assert line.startswith("error: ")
    return line


TRAINS = {
    "--folds": "3",
    "--loss": "ce",
    "--network": "cnn4",
    "--epochs": "2",
    "--batch-size": "8",
    "--learning-rate": "0.1",
    "--augmentation": "flip",
    "--noise": "symmetric:0.2",
    "--seed": "3",
}


@pytest.mark.parametrize("flag", TRAINS)
def test_flags_of_a_training_are_refused_where_nothing_is_trained(
    flag: str,
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = refuse(["audit", run, flag, TRAINS[flag]], capsys, monkeypatch)
    assert f"{flag}: nothing is trained for an audit of a run" in said
    command = [*given_command(tmp_path), flag, TRAINS[flag]]
    said = refuse(command, capsys, monkeypatch)
    assert f"{flag}: nothing is trained for an audit with --probabilities" in said


def test_what_cannot_be_audited_is_refused_in_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = given_command(tmp_path)
    labels, table = tmp_path / "labels.npy", tmp_path / "table.npy"
    np.save(tmp_path / "logits.npy", np.full((200, 4), 3.0))
    np.save(tmp_path / "few.npy", np.load(table)[:9])
    np.save(tmp_path / "wide.npy", np.eye(300)[:200])
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    np.save(tmp_path / "names.npy", np.array(["cat"] * 200))
    (tmp_path / "broken.npy").write_bytes(table.read_bytes()[:300])
    (tmp_path / "r.csv").write_text("sample,label\n0,1\n")
    (tmp_path / "one.csv").write_text("a,label\n1,x\n2,x\n3,x\n")
    cases: dict[str, list[str | Path]] = {
        "there is no such file or folder": [tmp_path / "nowhere" / "photos"],
        "unknown dataset 'digitz'": ["digitz"],
        "nowhere.npy": [labels, "--probabilities", "nowhere.npy"],
        "take the softmax first": [labels, "--probabilities", "logits.npy"],
        "one for each of 9 rows": [labels, "--probabilities", "few.npy"],
        "expected 10 columns": ["digits", "--probabilities", "wide.npy"],
        "objects.npy: expected an array": [labels, "--probabilities", "objects.npy"],
        "broken.npy: expected an array": [labels, "--probabilities", "broken.npy"],
        "one for each class": ["names.npy", "--probabilities", table],
        "--labels: ": [*command[1:], "--labels", "r.csv"],
        "--label: ": [*command[1:], "--label", "kind"],
        f"--probabilities: {run} is a run": [run, "--probabilities", table],
        f"--labels: {run} is a run": [run, "--labels", "r.csv"],
        f"--label: {run} is a run": [run, "--label", "kind"],
        "column": ["one.csv", "--label", "colour"],
        "nothing.csv": ["digits", "--labels", "nothing.csv"],
    }
    before = set(tmp_path.iterdir())
    for said, arguments in cases.items():
        line = refuse(["audit", *arguments], capsys, monkeypatch)
        assert said in line
    assert {path for path in tmp_path.iterdir() if not path.name.endswith("-audit")} == before
    assert not any((path / AUDIT).exists() for path in tmp_path.iterdir())


class _Stop(StopAfter):
    """As after Ctrl-C."""

    @property
    def exit_code(self) -> int:
        return 128 + signal.SIGINT


def test_stopped_in_the_middle_it_goes_on_to_the_same_result(
    digits: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "audit"
    # 22 steps an epoch: within the second network.
    for steps in (10, 22 * 12 + 40):
        with monkeypatch.context() as patch:
            patch.setattr(
                "labelproof.verbs.cross_validation.StopRequest", lambda steps=steps: _Stop(steps)
            )
            stopped = labelproof(*DIGITS, "--output", folder)
        assert stopped.exit_code == 130
        assert f"Stopped; the same command resumes from {folder}." in stopped.stdout
        assert names_in(folder) == {SETTINGS, RUNS}
    again = labelproof(*DIGITS, "--output", folder)
    assert again.exit_code == 0, again.output
    assert "Finished before" not in again.stdout
    mine, whole = (
        json.loads((each / AUDIT).read_text()) for each in (tmp_path / "audit", digits[0])
    )
    assert mine["curves"] == whole["curves"]
    assert mine["noise_rate"] == whole["noise_rate"]
