import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trained import labelproof_to_its_end
from typer.testing import CliRunner

from labelproof import __version__
from labelproof.cli.commands import app

runner = CliRunner()


def test_version_and_help() -> None:
    assert runner.invoke(app, ["--version"]).output.strip() == f"labelproof {__version__}"
    text = runner.invoke(app, ["--help"]).output
    assert "demo" in text
    assert "losses" in text


def test_losses_are_listed_with_their_defaults() -> None:
    text = runner.invoke(app, ["losses"], env={"COLUMNS": "200"}).output
    for name in ("ce", "gce", "q=0.7", "+sr", "lambda0=1.2"):
        assert name in text


def test_a_loss_is_written_out() -> None:
    text = runner.invoke(app, ["losses", "nce+mae+sr"]).output
    assert "nce+mae+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1,normalize=true)" in text


def test_a_mistake_is_one_message_with_a_caret_and_exit_code_two() -> None:
    result = labelproof_to_its_end("losses", "10*nce+may")
    assert result.returncode == 2
    assert "unknown loss 'may'; did you mean 'mae'?" in result.stderr
    assert "         ^" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_flag_suggests_the_nearest() -> None:
    result = labelproof_to_its_end("demo", "--noisee", "none")
    assert result.returncode == 2
    assert "--noise" in result.stderr


def test_the_demo_trains_prints_writes_and_does_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def page(path: Path, _: object) -> Path:
        written.append(path)  # it has its own tests, and takes longer than the training
        return path

    def demo(*extra: str) -> str:
        arguments = ["demo", "--epochs", "1", "--seeds", "1", "--no-open", "--processes", "1"]
        done = runner.invoke(
            app, [*arguments, "--output", str(tmp_path), *extra], env={"COLUMNS": "200"}
        )
        assert done.exit_code == 0, done.output
        return done.output

    monkeypatch.setattr("labelproof.cli.demo.write_demo_page", page)
    first = demo()
    assert "GCE+SR" in first
    assert "6 of 6" in first
    assert written == [tmp_path / "report.html"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("record.json")}
    assert len(before) == 6
    assert "6 of 6 runs are finished already" in demo()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    again = demo("--fresh", "--loss", "1e38*ce")
    assert "finished already" not in again
    assert "1e38*ce seed 1  training diverged" in again
    assert "GCE+SR" in again
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("record.json")}
    assert after.keys() == before.keys()
    assert all(after[path] > before[path] for path in before)


def test_ctrl_c_keeps_what_is_finished_and_says_so(tmp_path: Path) -> None:
    arguments = ["demo", "--epochs", "8", "--seeds", "1", "--no-open", "--processes", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "labelproof", *arguments, "--output", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A shell's background jobs ignore Ctrl-C and pass that on; a person's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        runs = tmp_path / "runs"
        deadline = time.monotonic() + 90
        while not list(runs.glob("*/record.json")) and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    kept = list(runs.glob("*/record.json"))
    assert process.returncode == 130, output
    assert "runs are finished and kept in" in output
    assert f"Stopped. {len(kept)} of 6" in output
    assert "Traceback" not in output
    assert not list(runs.glob(".*"))
    assert not (tmp_path / "report.html").exists()
