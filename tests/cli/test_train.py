import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from trained import refusal, succeed, train_digits

from labelproof.data import load_digits
from labelproof.training.execution import StopRequest
from labelproof.verbs import train as command

NOISY = ("--noise", "symmetric:0.4", "--loss", "ce+sr")
Printed = tuple[Path, str]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """A finished run and what was printed."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    result = train_digits(folder, *NOISY, epochs=3)
    assert result.exit_code == 0, result.output
    return folder, result.stdout


def test_a_run_shows_every_epoch_and_sums_up(finished: Printed) -> None:
    folder, printed = finished
    record = json.loads((folder / "record.json").read_text())
    for epoch in (1, 2, 3):
        assert f"epoch {epoch} of 3  accuracy " in printed
    for word in ("loss ", "memorised ", "examples/s", "left"):
        assert word in printed
    memorised = 100 * record["curve"]["wrong_fitted"][-1]
    assert f"are wrong; {memorised:.1f}% of these are memorised" in printed
    assert f"{record['curve']['test_accuracy'][-1]:.2f}% of 450 test images" in printed
    assert f"{100 * record['noise_rate']:.1f}% of the training labels are wrong" in printed
    assert f"Next: labelproof evaluate {folder}" in printed


def test_fresh_starts_anew_and_leaves_other_files(finished: Printed, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    (folder / "notes.txt").write_text("mine")
    before = sorted(folder.iterdir())
    mistaken = ("train", "--data", "digits", "--network", "no.module:net", "--output", str(folder))
    refusal(*mistaken, "--fresh")
    assert sorted(folder.iterdir()) == before
    result = train_digits(folder, "--fresh", epochs=1)
    assert result.exit_code == 0, result.output
    assert "epoch 1 of 1" in result.stdout
    assert (folder / "notes.txt").read_text() == "mine"
    assert json.loads((folder / "record.json").read_text())["configuration"]["loss"] == "ce"


def signalled_after_steps(number: signal.Signals) -> type[StopRequest]:
    """Gets the signal when it was asked some times."""

    class Signalled(StopRequest):
        asked = 0

        @property
        def wanted(self) -> bool:
            self.asked += 1
            if self.asked == 16:  # once before the first step
                signal.raise_signal(number)
            return super().wanted

    return Signalled


def test_a_stopped_run_goes_on_to_the_same_result(
    finished: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, code, fresh in ((signal.SIGINT, 130, []), (signal.SIGTERM, 143, ["--fresh"])):
        with monkeypatch.context() as patch:
            patch.setattr(command, "StopRequest", signalled_after_steps(number))
            stopped = train_digits(tmp_path, *NOISY, *fresh, epochs=3)
        assert stopped.exit_code == code, stopped.output
        told = "the same command without --fresh" if fresh else "the same command"
        said = f"Stopped and saved in {tmp_path}; {told} resumes from there"
        assert said in stopped.stdout
    output = tmp_path / "out"
    output.mkdir()
    np.save(output / "new.npy", load_digits().test.array[:3])
    for verb, *more in (
        ("predict", output / "new.npy"),
        ("evaluate", "--format", "json"),
        ("export", "--format", "torch-export", "--output", output / "model.pt2"),
        ("audit", "--output", output / "audit"),
    ):
        result = succeed(verb, tmp_path, *more)
        assert f"{tmp_path} is not finished: it has trained 1 of 3 epochs" in result.stderr
        assert "is not finished" not in result.stdout
    preview = train_digits(tmp_path, *NOISY, "--dry-run", epochs=3)
    assert "resumes after epoch 1, step 4" in preview.stdout
    resumed = train_digits(tmp_path, *NOISY, epochs=3)
    assert "resumes after epoch 1 of 3" in resumed.stdout
    metrics = (tmp_path / "metrics.jsonl").read_bytes()
    assert metrics == (finished[0] / "metrics.jsonl").read_bytes()


@pytest.mark.slow
def test_two_processes_are_one_run(tmp_path: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = ["train", "--data", "digits", "--epochs", "2", "--device", "cpu", "--fresh"]
    arguments += ["--network", "mlp(hidden=8,depth=1)", "--output", "run"]
    result = subprocess.run(
        [sys.executable, *launcher, "-m", "labelproof", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("epoch 2 of 2") == 1
    assert result.stdout.count("Next: labelproof evaluate run") == 1
    assert (tmp_path / "run" / "record.json").exists()
    assert (tmp_path / "run" / "fingerprint.json").exists()


def test_a_loss_that_explodes_is_one_line_and_its_own_code(tmp_path: Path) -> None:
    result = train_digits(tmp_path, "--learning-rate", "1e30", "--set", "clip_norm=0", epochs=1)
    assert result.exit_code == 3, result.output
    assert result.stderr.startswith("error: training diverged")
    assert result.stderr.count("\n") == 1


def test_dry_run_prints_a_file_that_config_reads_back(tmp_path: Path) -> None:
    settings = ("--set", "nesterov=true", "--set", "average=0.5")
    arguments = (*settings, "--augmentation", "crop:1", "--seed", "3")
    first = train_digits(tmp_path / "run", *NOISY, *arguments, "--dry-run", epochs=5)
    (tmp_path / "run.toml").write_text(first.stdout)
    again = succeed(
        *("train", "--config", tmp_path / "run.toml", "--output", tmp_path / "run"),
        *("--device", "cpu", "--dry-run"),
    )
    assert again.stdout == first.stdout
    assert not (tmp_path / "run").exists()
    for told in (
        "# device: cpu, float32",
        "# examples: 1,347 of 10 classes",
        "of the training labels are wrong",
        "# steps: 11 in each of 5 epochs",
        f"# output: {tmp_path / 'run'} (new)",
    ):
        assert told in first.stdout


def test_tensorboard_gets_every_metric_of_every_epoch(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    result = train_digits(tmp_path, "--tensorboard", epochs=2)
    assert result.exit_code == 0, result.output
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    record = json.loads((tmp_path / "record.json").read_text())
    written = [scalar.value for scalar in events.Scalars("test_accuracy")]
    assert written == pytest.approx(record["curve"]["test_accuracy"], abs=1e-3)
    assert [scalar.step for scalar in events.Scalars("train_loss")] == [0, 1]
