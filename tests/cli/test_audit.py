import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_runs import StopAfter
from trained import labelproof, refusal, refused_in_one_line, succeed, things, write_things
from typer.testing import Result

from labelproof.audit import Audit, open_samples
from labelproof.audit.folder import AUDIT, PAGE, REVIEW, RUNS, SAMPLES, SETTINGS, SUSPECTS
from labelproof.data import load_digits
from labelproof.training.run_folder import owning

TRAINING = (
    *("digits", "--noise", "symmetric:0.2", "--epochs", "12", "--batch-size", "32"),
    *("--learning-rate", "0.05", "--network", "mlp(hidden=32,depth=1)", "--device", "cpu"),
)
DIGITS = ("audit", *TRAINING, "--folds", "2")
SMALL = ("--network", "mlp(hidden=8,depth=1)", "--epochs", "1", "--device", "cpu")
QUICK = (*SMALL, "--folds", "2")
FILES = {AUDIT, SAMPLES, SUSPECTS, PAGE}


Printed = tuple[Path, Result]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """The audit of the digits with noise on them, and what was printed."""
    folder = tmp_path_factory.mktemp("audit") / "digits-audit"
    return folder, succeed(*DIGITS, "--output", folder)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_a_rehearsal_finds_most_of_the_labels_that_were_made_wrong(digits: Printed) -> None:
    folder, result = digits
    assert names_in(folder) == FILES | {SETTINGS}
    audit = Audit.read(folder)
    true = load_digits().train.labels
    wrong = np.flatnonzero(audit.findings.given != true)
    assert len(wrong) == pytest.approx(0.2 * len(true), rel=0.2)
    assert audit.findings.noise_rate.value == pytest.approx(len(wrong) / len(true), abs=0.05)
    suspects = audit.findings.suspects
    assert np.isin(suspects, wrong).mean() > 0.8
    assert np.isin(wrong, suspects).mean() > 0.8
    assert pd.read_csv(folder / SUSPECTS)["sample"].tolist() == suspects.tolist()
    assert audit.method["predictions"] == "cross-validation"
    assert result.stderr == ""
    for said in (
        "Data: 1,347 images, 10 classes",
        "Cross-validation: 2 networks (mlp(depth=1,hidden=32)",
        "each for 12 epochs on 1 of 2 parts, gce(q=0.7)",
        audit.findings.noise_rate.as_percent(),
        f"Rehearsal: {len(wrong):,} labels were made wrong",
        f"Suspects: {folder / SUSPECTS}",
        f"Next: labelproof review {folder}",
    ):
        assert said in result.stdout


def test_noise_on_own_labels_is_a_rehearsal_too(tmp_path: Path) -> None:
    table = write_things(tmp_path / "t.csv", 200)
    command = ("audit", table, "--noise", "symmetric:0.2", "--output", tmp_path / "audit")
    result = succeed(*command)
    wrong = Audit.read(tmp_path / "audit").findings.given != np.arange(200) % 3
    assert 20 < wrong.sum() < 60
    assert f"Rehearsal: {wrong.sum()} labels were made wrong" in result.stdout
    assert "wrong before count as right" in result.stdout


def test_the_second_time_it_says_the_same_and_trains_nothing(digits: Printed) -> None:
    folder, first = digits
    written = (folder / AUDIT).read_bytes()
    again = succeed(*DIGITS, "--output", folder)
    assert "Finished before, and not trained again; --fresh starts over:" in again.stdout
    assert again.stdout.splitlines()[-5:] == first.stdout.splitlines()[-5:]
    assert "epoch 1" not in again.stdout
    for option, value, said in (("epochs", "5", "12"), ("folds", "3", "2"), ("loss", "ce", "'gce")):
        refused = refusal(*DIGITS, f"--{option}", value, "--output", folder)
        assert f"holds an audit with other settings ({option} {said}" in refused
    assert (folder / AUDIT).read_bytes() == written


def test_a_fresh_audit_keeps_what_was_decided(digits: Printed, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(digits[0], folder)
    (folder / REVIEW).write_bytes(b"decisions")
    result = succeed(*DIGITS, "--epochs", "1", "--fresh", "--output", folder)
    assert "Finished before" not in result.stdout
    assert Audit.read(folder).method["epochs"] == 1
    assert (folder / REVIEW).read_bytes() == b"decisions"
    assert names_in(folder) == FILES | {SETTINGS, REVIEW}


NAMES = ("cat", "dog", "fox", "snow leopard")
SIZE = 200
TRUE = np.arange(SIZE) % 4
WRONG = np.arange(0, SIZE, 10)
GIVEN = np.where(np.arange(SIZE) % 10 == 0, (TRUE + 1) % 4, TRUE)
TABLE = np.random.default_rng(0).dirichlet(np.ones(4), SIZE) * 0.2 + 0.8 * np.eye(4)[TRUE]
WORDS = [NAMES[label] for label in GIVEN]
TEXTS = [f"the {number}th, which is" for number in range(SIZE)]
BY_ID = ("--probabilities", "shuffled.csv", "--id", "key")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with labels and predictions in files of several kinds."""
    monkeypatch.chdir(tmp_path)
    keys = [f"k{number}" for number in range(SIZE)]
    frame = pd.DataFrame(TABLE, columns=NAMES)[list(NAMES[::-1])]
    np.save("p.npy", TABLE)
    frame.to_csv("p.csv", index=False)
    frame.assign(key=keys).sample(frac=1, random_state=0).to_csv("shuffled.csv", index=False)
    Path("labels.txt").write_text("\n".join(WORDS) + "\n")
    labels = pd.DataFrame({"key": keys, "text": TEXTS, "label": WORDS})
    labels.to_csv("labels.csv", index=False)


GIVEN_COMMAND = ("audit", "labels.txt", "--probabilities", "p.npy")


@pytest.mark.usefixtures("desk")
def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with owning(tmp_path / "audit"):
        for command in (DIGITS, GIVEN_COMMAND):
            assert f"pid {os.getpid()}" in refusal(*command, "--output", tmp_path / "audit")


def test_trained_and_other_audits_never_replace_each_other(digits: Printed, tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.eye(10, dtype=np.float32)[load_digits().train.labels])
    given = ("audit", "digits", "--probabilities", tmp_path / "p.npy", "--output")
    shutil.copytree(digits[0], tmp_path / "trained")
    assert "holds an audit that was trained" in refusal(*given, tmp_path / "trained")
    succeed(*given, tmp_path / "given")
    assert "nothing was trained for" in refusal(*DIGITS, "--output", tmp_path / "given")
    for name, predictions in (("trained", "cross-validation"), ("given", "given")):
        assert Audit.read(tmp_path / name).method["predictions"] == predictions
    succeed(*given, tmp_path / "trained", "--fresh")
    assert names_in(tmp_path / "trained") == FILES


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on the digits with noise on them."""
    folder = tmp_path_factory.mktemp("run") / "digits-fit"
    succeed("fit", *TRAINING, "--loss", "gce(q=0.7)", "--output", folder)
    return folder


def test_a_run_is_asked_about_what_it_was_trained_on(run: Path) -> None:
    result = succeed("audit", run, "--device", "cpu")
    assert names_in(run / "audit") == FILES
    audit = Audit.read(run / "audit")
    method = {"predictions": "run", "loss": "gce(q=0.7)", "epochs": 12, "noise": "symmetric:0.2"}
    assert method.items() <= audit.method.items()
    assert audit.data == "digits"
    true = load_digits().train.labels
    assert len(audit.findings) == len(true)
    wrong = np.flatnonzero(audit.findings.given != true)
    assert len(wrong) == pytest.approx(0.2 * len(true), rel=0.2)
    assert np.isin(audit.findings.suspects, wrong).mean() > 0.8
    assert "The run's network agrees with" in result.stdout
    succeed("evaluate", run, "--format", "json")


def test_a_run_on_a_table_remembers_its_label_and_the_labels_it_was_given(tmp_path: Path) -> None:
    table, file = write_things(tmp_path / "t.csv", label="group"), tmp_path / "reviewed.csv"
    table.write_text(table.read_text().replace("kind 1", "", 1))  # line 3 has no label
    file.write_text("sample,label\nline 4,\nline 5,kind 2\n")
    fitted = ("fit", table, "--label", "group", "--labels", file, "--output", tmp_path / "run")
    succeed(*fitted, *SMALL)
    succeed("audit", tmp_path / "run", "--device", "cpu", "--output", tmp_path / "out")
    audit = Audit.read(tmp_path / "out")
    assert list(audit.samples[:2]) == ["line 2", "line 5"]
    assert len(audit.findings) == 58
    assert audit.class_names[audit.findings.given[1]] == "kind 2"
    assert audit.options["labels"] == str(file)


@pytest.mark.usefixtures("desk")
def test_flags_of_a_training_are_refused_where_nothing_is_trained(run: Path) -> None:
    for option in (("--folds", "3"), ("--loss", "ce"), ("--epochs", "2"), ("--batch-size", "8")):
        for command, reason in ((("audit", run), "a run"), (GIVEN_COMMAND, "--probabilities")):
            said = refused_in_one_line(*command, *option)
            assert f"{option[0]}: expected without {reason}" in said


@pytest.mark.usefixtures("desk")
def test_what_cannot_be_audited_is_refused_in_one_line(run: Path, tmp_path: Path) -> None:
    command, labels, table = GIVEN_COMMAND, "labels.txt", Path("p.npy")
    np.save("few.npy", np.load(table)[:9])
    Path("broken.npy").write_bytes(table.read_bytes()[:300])
    (tmp_path / "r.csv").write_text("sample,label\n0,1\n")
    (tmp_path / "one.csv").write_text("a,label\n1,x\n2,x\n3,x\n")
    cases: dict[str, list[str | Path]] = {
        "there is no such file or folder": [tmp_path / "nowhere" / "photos"],
        "unknown dataset 'digitz'": ["digitz"],
        "nowhere.npy": [labels, "--probabilities", "nowhere.npy"],
        "one for each of 9 rows": [labels, "--probabilities", "few.npy"],
        "broken.npy: expected an array": [labels, "--probabilities", "broken.npy"],
        "--labels: ": [*command[1:], "--labels", "r.csv"],
        "--label: ": [*command[1:], "--label", "kind"],
        "--probabilities: expected without a run": [run, "--probabilities", table],
        "--labels: expected without a run": [run, "--labels", "r.csv"],
        "--label: expected without a run": [run, "--label", "kind"],
        "--class-names: expected with --prob": [labels, "--class-names", "a,b"],
        "id: expected a table of": [*command[1:], "--id", "key"],
        "column": ["one.csv", "--label", "colour"],
        "nothing.csv": ["digits", "--labels", "nothing.csv"],
    }
    before = set(tmp_path.iterdir())
    for said, arguments in cases.items():
        assert said in refused_in_one_line("audit", *arguments)
    assert {path for path in tmp_path.iterdir() if not path.name.endswith("-audit")} == before
    assert not any((path / AUDIT).exists() for path in tmp_path.iterdir())


class _Stop(StopAfter):
    """As after Ctrl-C."""

    @property
    def exit_code(self) -> int:
        return 128 + signal.SIGINT


def test_stopped_in_the_middle_it_goes_on_to_the_same_result(
    digits: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "audit"
    # 22 steps an epoch: within the second network.
    for steps in (10, 22 * 12 + 40):
        with monkeypatch.context() as patch:
            patch.setattr("labelproof.verbs.audit.StopRequest", lambda steps=steps: _Stop(steps))
            stopped = labelproof(*DIGITS, "--output", folder)
        assert stopped.exit_code == 130
        assert f"Stopped; the same command resumes from {folder}." in stopped.stdout
        assert names_in(folder) == {SETTINGS, RUNS}
    assert "Finished before" not in succeed(*DIGITS, "--output", folder).stdout
    mine, whole = (json.loads((each / AUDIT).read_text()) for each in (folder, digits[0]))
    assert mine["noise_rate"] == whole["noise_rate"]


def test_killed_before_its_page_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "audit"
    command = ("audit", write_things(tmp_path / "t.csv"), *QUICK, "--output", folder)
    with monkeypatch.context() as context:
        context.setattr("labelproof.verbs.audit.write_audit_page", killed)
        assert labelproof(*command).exit_code != 0
    kept = (folder / AUDIT).read_bytes()
    # The networks are gone by now, so that nothing may put at risk what came out of them.
    assert not (folder / RUNS).exists()
    with monkeypatch.context() as context:
        context.setattr(Audit, "write", killed)
        assert "Finished before" in succeed(*command).stdout
    assert (folder / AUDIT).read_bytes() == kept
    assert (folder / PAGE).exists()
    succeed(*command, "--id", "colour")  # a column for suspects.csv changes nothing else
    assert Audit.read(folder).ids
    assert (folder / AUDIT).read_bytes() == kept


def test_a_column_that_names_the_rows_is_suggested_as_id(tmp_path: Path) -> None:
    table = things().assign(ticket_id=[f"T-{1000 + 7 * row}" for row in range(60)])
    table.to_csv(tmp_path / "t.csv", index=False)
    command = ("audit", tmp_path / "t.csv", "--output", tmp_path / "audit")
    assert "suspects.csv (--id ticket_id adds that column)\n" in succeed(*command).stdout
    assert "suspects.csv\n" in succeed(*command, "--id", "ticket_id").stdout


def test_data_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_things(tmp_path / "work" / "t.csv")
    (tmp_path / "work" / "labels.csv").write_text("sample,label\nline 2,\n")
    monkeypatch.chdir(tmp_path / "work")
    succeed("audit", "t.csv", *QUICK, "--labels", "labels.csv", "--output", "audit")
    monkeypatch.chdir(tmp_path)
    samples = open_samples(Audit.read(Path("work") / "audit"))
    assert samples.audit.samples[0] == "line 3"
    assert samples.cells(0)[-1] == ("label", "kind 1")


def below(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_dry_run_only_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("audit", write_things(tmp_path / "things.csv"), *QUICK)
    before = below(tmp_path)
    data, plan, duration, folder, end = succeed(*command, "--dry-run").stdout.splitlines()
    assert data == "Data: 60 rows, 3 classes (kind 0 20, kind 1 20, kind 2 20)"
    assert plan == (
        "Cross-validation: 2 networks (mlp(depth=1,hidden=8)), each for 1 epoch on 1 of 2 parts, "
        "gce(q=0.7)"
    )
    assert duration == "Time: less than a minute on this CPU, by its first steps"
    assert folder == "Folder: things-audit"
    assert end == "A dry run; nothing was written."
    assert below(tmp_path) == before
    assert succeed(*command).stdout.splitlines()[:2] == [data, plan]
    before = below(tmp_path)
    assert "other settings" in refusal(*command, "--seed", "9", "--dry-run")
    assert below(tmp_path) == before


@pytest.mark.usefixtures("desk")
def test_labels_and_predictions_may_be_in_any_file_and_matched_by_id() -> None:
    for labels, predictions in (
        ("labels.txt", ("--probabilities", "p.npy")),
        ("labels.csv", ("--probabilities", "p.csv")),
        ("labels.csv", BY_ID),
    ):
        assert succeed("audit", labels, *predictions, "--output", "audit").stderr == ""
        found = Audit.read(Path("audit"))
        assert np.array_equal(np.sort(found.findings.suspects), WRONG)
        names = np.array(found.class_names)
        assert names[found.findings.given].tolist() == WORDS
        assert names[found.findings.suggested[WRONG]].tolist() == [NAMES[t] for t in TRUE[WRONG]]
    assert found.samples[:2] == ["line 2", "line 3"]
    samples = open_samples(found)
    assert samples.kind == "rows"
    assert (samples.audit.index >= 0).all()
    assert samples.cells(3) == [("key", "k3"), ("text", TEXTS[3]), ("label", WORDS[3])]
