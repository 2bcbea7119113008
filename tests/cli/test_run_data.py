"""A run belongs to the data and the labels that it was trained on, wherever they are by now."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_records import write_tiny_mnist
from small_runs import StopAfter, outcome
from trained import labelproof, refusal, succeed, train_digits
from typer.testing import Result

from labelproof.audit import Audit
from labelproof.data import load_digits
from labelproof.verbs import train as command

MLP = ("--network", "mlp(hidden=4,depth=1)", "--device", "cpu")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, and a review that changes two labels and leaves one row out."""
    monkeypatch.chdir(tmp_path)
    # Two features, and two columns of labels that they decide.
    lines = [
        f"{x:.3f},{y:.3f},{'red' if x > 0.5 else 'blue'},{'round' if y > 0.5 else 'square'}"
        for x, y in np.random.default_rng(0).random((120, 2))
    ]
    (tmp_path / "table.csv").write_text("\n".join(["x,y,colour,shape", *lines]) + "\n")
    (tmp_path / "reviewed.csv").write_text("sample,label\nline 2,blue\nline 3,red\nline 4,\n")
    return tmp_path


def train(*arguments: str | Path) -> Result:
    return labelproof(
        *("train", "--data", "table.csv", "--label", "colour", "--epochs", "3", *MLP),
        *("--batch-size", "32", "--validation", "0.2", "--output", "run", *arguments),
    )


def interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `train`, stopped in the middle of the second epoch."""
    with monkeypatch.context() as patch:
        patch.setattr(command, "StopRequest", lambda: StopAfter(5))
        result = train()
    assert "Stopped and saved in" in result.stdout, result.output


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path): path.read_bytes() for path in files}


def assert_refused(result: Result) -> None:
    message = str(result.exception)
    assert isinstance(result.exception, ValueError), result.output
    for part in ("run holds a run of other data", "--fresh", "--output"):
        assert part in message


def measured(*arguments: str | Path) -> tuple[dict[str, Any], str]:
    result = succeed("evaluate", *arguments, "--format", "json", "--device", "cpu")
    return json.loads(result.stdout), result.stderr


def test_other_labels_are_another_run(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(monkeypatch)
    others = {("--label", "shape"): 120, ("--labels", "reviewed.csv"): 119}
    split = ("run", "--split", "train")
    for goes_on in ("resumes after epoch 1", "holds this run, finished"):
        before = contents(desk / "run")
        for other in others:
            assert_refused(train(*other))
            assert_refused(train(*other, "--dry-run"))
        assert contents(desk / "run") == before
        assert goes_on in train().stdout
    unmeasured = train("--validation", "0", "--output", "other", "--dry-run").stdout
    assert "No accuracy will be measured" in unmeasured
    assert "No accuracy will be measured" not in train("--output", "other", "--dry-run").stdout
    for other, samples in others.items():
        assert "% of held-out labels after the last epoch" in train(*other, "--fresh").stdout
        assert "holds this run, finished" in train(*other).stdout
        assert measured(*split)[0]["n"] == samples
        assert_refused(train())
    # What is reviewed is measured by the reviewed labels, wherever they are by now.
    found, _ = measured(*split)
    assert measured(*split, "--data", "table.csv")[0]["n"] == 120
    Path("reviewed.csv").rename("elsewhere.csv")
    assert "--labels" in refusal("evaluate", *split)
    assert measured(*split, "--labels", "elsewhere.csv")[0] == found
    # What is trained anew on the data's own labels is measured by those again.
    assert train("--fresh").exit_code == 0
    assert measured(*split)[0]["n"] == 120


def test_the_same_data_in_another_place_go_on(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train("--output", "whole").exit_code == 0
    interrupt(monkeypatch)
    other = desk / "elsewhere"
    other.mkdir()
    shutil.move("table.csv", other)
    shutil.move("run", other)
    monkeypatch.chdir(other)
    assert "resumes after epoch 1 of 3" in train().stdout
    assert outcome(other / "run") == outcome(desk / "whole")
    whole, moved = (folder / "fingerprint.json" for folder in (desk / "whole", other / "run"))
    assert moved.read_bytes() == whole.read_bytes()
    assert "holds this run, finished" in train().stdout


def test_another_file_of_human_labels_is_another_run(desk: Path) -> None:
    clean = load_digits().train.labels
    for name, shift in (("one", 1), ("two", 2)):
        noisy = np.where(np.arange(len(clean)) % 3, clean, (clean + shift) % 10)
        np.savez(desk / f"{name}.npz", clean_label=clean, worse_label=noisy)

    def train_human(file: str) -> Result:
        labels = ("--noise", "human:worse", "--human-labels", desk / file)
        return train_digits(desk / "run", *labels, *MLP[:2], epochs=1)

    assert train_human("one.npz").exit_code == 0
    shutil.copy("one.npz", "copy.npz")
    assert "holds this run, finished" in train_human("copy.npz").stdout
    assert_refused(train_human("two.npz"))
    # What lies beside the data is not what was asked for.
    (desk / "cifar-n").mkdir()
    (desk / "cifar-n" / "cifar10n.npz").touch()
    cifar = ("train", "--data", "cifar10", "--noise", "symmetric:0.4", "--data-root", desk)
    assert "data download cifar10" in refusal(*cifar)
    for noise in ("symmetric:0.4", "none"):
        said = str(train("--noise", noise, "--human-labels", "one.npz").exception)
        assert "--human-labels: expected with --noise human:WHICH" in said
        assert f"--noise {noise}" in said


def test_a_published_dataset_is_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, run = write_tiny_mnist(tmp_path / "sets"), tmp_path / "run"
    started = ("train", "--data", "mnist", "--data-root", root, "--epochs", "1", *MLP)
    with monkeypatch.context() as patch:
        patch.setattr(command, "StopRequest", lambda: StopAfter(0))
        assert "before there was anything to save" in labelproof(*started, "--output", run).stdout
    succeed(*started, "--output", run)
    assert measured(run)[0]["split"] == "test"
    assert "suspects" in succeed("audit", run, "--output", tmp_path / "audit").stdout


@pytest.mark.usefixtures("desk")
def test_labels_that_leave_a_class_empty_are_refused_or_told() -> None:
    red = "".join(f"line {line},red\n" for line in range(2, 122))
    Path("single.csv").write_text(f"sample,label\n{red}")
    before = set(Path.cwd().iterdir())
    for words in ("fit", "fit --dry-run", "train --data", "tune", "audit", "audit --dry-run"):
        labels = ("--label", "colour", "--labels", "single.csv")
        said = refusal(*words.split(), "table.csv", *labels)
        assert "table: expected at least two classes, got only 'red'" in said
    assert set(Path.cwd().iterdir()) == before
    with Path("table.csv").open("a") as table:
        table.write("0.1,0.1,grey,round\n0.2,0.1,grey,round\n")
    Path("reviewed.csv").write_text("sample,label\nline 122,blue\nline 123,\n")
    labels = ("--label", "colour", "--labels", "reviewed.csv")
    said = " ".join(succeed("fit", "table.csv", *labels, "--dry-run").stderr.split())
    assert "reviewed.csv: 1 class left without any training sample: grey" in said


def write_patients(path: Path, *, seed: int = 0) -> None:
    """Two classes; a patient has two rows, and a cell and a label are missing."""
    generator = np.random.default_rng(seed)
    lines = ["patient,width,note,label"]
    for row in range(40):
        width = "" if row == 7 else f"{generator.normal(3 * (row % 2)):.4f}"
        label = "" if row == 11 else f"kind {row % 2}"
        lines.append(f"p{row // 2},{width},n{row % 5},{label}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


QUICK = (*MLP, "--epochs", "1")
RUN = Path("..") / "work" / "cust-fit"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a run on it, which was told of a relative path."""
    folder = tmp_path_factory.mktemp("data") / "work"
    write_patients(folder / "data" / "cust.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        succeed("fit", "data/cust.csv", *QUICK, "--no-audit")
    return folder


@pytest.fixture
def here(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another folder to work in, beside a copy of the first one with all that is in it."""
    shutil.copytree(work, tmp_path / "work")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_other_data_of_the_same_name_are_not_taken_for_a_runs_own(here: Path) -> None:
    write_patients(here / "data" / "cust.csv", seed=1)
    succeed("audit", RUN, "--device", "cpu", "--output", "out")
    assert Audit.read(Path("out")).data == str(here.parent / "work" / "data" / "cust.csv")
    found, said = measured(RUN, "--split", "train")
    assert found["learned_from_n"] > 0
    assert "trained on" not in said


def test_data_that_were_replaced_since_are_refused_or_warned_of(here: Path) -> None:
    data = here.parent / "work" / "data" / "cust.csv"
    write_patients(data, seed=1)
    refused = refusal("audit", RUN, "--device", "cpu", "--output", "out")
    assert f"not what {RUN} was trained on" in refused
    assert "'labelproof audit " in refused
    assert not Path("out").exists()
    found, said = measured(RUN, "--split", "train")
    assert found["learned_from_n"] is None
    assert f"not what {RUN} was trained on" in said
    assert "--data PATH" in said
    # Named, it is still not what the run has learned from, and nobody has to be warned.
    found, said = measured(RUN, "--data", data, "--skip-unreadable")
    assert found["learned_from_n"] is None
    assert "trained on" not in said


def test_data_that_are_gone_are_looked_for_and_the_places_named(here: Path) -> None:
    shutil.rmtree(here.parent / "work" / "data")
    values = json.loads((RUN / "fit.json").read_text())
    values["places"]["data"]["path"] = "/nowhere/cust.csv"
    (RUN / "fit.json").write_text(json.dumps(values))
    for verb, advice in (
        ("audit", "run this from the folder where it is now"),
        ("evaluate", "--data "),
    ):
        message = refusal(verb, RUN)
        for part in (advice, "(looked for ", here.parent / "work", "/nowhere", here / "data"):
            assert str(part) in message
    # Last of all, where the command is started.
    write_patients(here / "data" / "cust.csv")
    found, said = measured(RUN, "--split", "train")
    assert found["learned_from_n"] > 0
    assert "trained on" not in said


def test_the_same_data_by_another_path_go_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here.parent / "work")
    whole = here.parent / "work" / "data" / "cust.csv"
    again = succeed("fit", whole, *QUICK, "--output", "cust-fit")
    assert "Finished before" in again.stdout
    moved = whole.rename(here / "moved.csv")
    succeed("fit", moved, *QUICK, "--output", "cust-fit")
    # And where they are now is known from then on.
    assert measured("cust-fit", "--split", "train")[0]["learned_from_n"] > 0
