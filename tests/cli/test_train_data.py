"""A folder's run is on the data it was begun on, whatever is in the files by then."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from made_images import write_images
from small_runs import StopAfter, outcome
from trained import labelproof, train_digits
from typer.testing import Result

from labelproof.data import load_digits
from labelproof.verbs import train as command

NOTE = "fingerprint.json"


def write_table(path: Path, *, rows: int = 120) -> Path:
    """Two features, and two columns of labels that they decide."""
    points = np.random.default_rng(0).random((120, 2))[:rows]
    lines = [
        f"{x:.3f},{y:.3f},{'red' if x > 0.5 else 'blue'},{'round' if y > 0.5 else 'square'}"
        for x, y in points
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["x,y,colour,shape", *lines]) + "\n")
    return path


def command_line(label: str) -> list[str]:
    return [
        *("train", "--data", "table.csv", "--label", label, "--epochs", "3", "--device", "cpu"),
        *("--network", "mlp(hidden=4,depth=1)", "--batch-size", "32", "--validation", "0.2"),
        *("--output", "run"),
    ]


def train(*arguments: str | Path, label: str = "colour") -> Result:
    return labelproof(*command_line(label), *arguments)


def interrupt(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> Result:
    """As `train`, stopped in the middle of the second epoch."""
    with monkeypatch.context() as patch:
        patch.setattr(command, "StopRequest", lambda: StopAfter(5))
        result = train(*arguments)
    assert "Stopped after epoch 1 of 3, step 2" in result.stdout, result.output
    return result


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def assert_refused(result: Result) -> None:
    message = str(result.exception)
    assert isinstance(result.exception, ValueError), result.output
    assert "run holds a run of other data" in message
    assert "--fresh" in message
    assert "--output" in message
    assert "\n" not in message


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in, with the table."""
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "table.csv")
    return tmp_path


@pytest.fixture(params=[True, False], ids=["finished", "interrupted"])
def finished(request: pytest.FixtureRequest, here: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the run that is in the folder already came to its end."""
    if request.param:
        assert train().exit_code == 0
    else:
        interrupt(monkeypatch)
    return request.param


def test_another_column_of_labels_is_another_run(here: Path, finished: bool) -> None:
    before = contents(here / "run")
    assert_refused(train(label="shape"))
    assert_refused(train("--dry-run", label="shape"))
    assert contents(here / "run") == before
    told = train()
    assert told.exit_code == 0, told.output
    assert ("holds this run, finished" if finished else "resumes after epoch 1") in told.stdout
    anew = train("--fresh", label="shape")
    assert anew.exit_code == 0, anew.output
    assert json.loads((here / "run" / "model.json").read_text())["class_names"][0] == "round"
    assert "holds this run, finished" in train(label="shape").stdout
    assert_refused(train())


def test_the_same_data_in_another_place_go_on_to_the_same_bytes(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train("--output", "whole").exit_code == 0
    interrupt(monkeypatch)
    other = here / "elsewhere"
    other.mkdir()
    shutil.move("table.csv", other)
    shutil.move("run", other)
    monkeypatch.chdir(other)
    resumed = train()
    assert resumed.exit_code == 0, resumed.output
    assert "resumes after epoch 1 of 3" in resumed.stdout
    assert outcome(other / "run") == outcome(here / "whole")
    assert (other / "run" / NOTE).read_bytes() == (here / "whole" / NOTE).read_bytes()
    assert "holds this run, finished" in train().stdout


def test_another_file_of_human_labels_is_another_run(here: Path) -> None:
    clean = load_digits().train.labels
    for name, shift in (("one", 1), ("two", 2)):
        noisy = np.where(np.arange(len(clean)) % 3, clean, (clean + shift) % 10)
        np.savez(here / f"{name}.npz", clean_label=clean, worse_label=noisy)

    def train_human(file: str) -> Result:
        return train_digits(
            *(here / "run", "--noise", "human:worse", "--human-labels", here / file),
            *("--network", "mlp(hidden=4,depth=1)"),
            epochs=1,
        )

    assert train_human("one.npz").exit_code == 0
    shutil.copy("one.npz", "copy.npz")
    assert "holds this run, finished" in train_human("copy.npz").stdout
    assert_refused(train_human("two.npz"))


@pytest.mark.parametrize("network", [(), ("--network", "cnn8(width=32)")])
def test_photos_on_a_cpu_are_said_to_take_long(tmp_path: Path, network: tuple[str, ...]) -> None:
    write_images(tmp_path, [f"{name}/{n}.png" for name in "ab" for n in range(4)], size=(60, 40))
    shown = labelproof(
        *("train", "--data", tmp_path, "--device", "cpu", "--dry-run"),
        *(*network, "--augmentation", "resized-crop:48"),
    )
    assert shown.exit_code == 0, shown.output
    warned = "warning: on a CPU resnet18-imagenet may take hours" in shown.stderr
    assert warned == (not network)
