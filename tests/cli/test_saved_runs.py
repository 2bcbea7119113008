"""A run that is not as it should be can be used, and whoever uses it is told."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof, train_digits

from labelproof.data import load_digits
from labelproof.training import Configuration, Job, StopRequest, choose_execution, train_runs
from labelproof.training.examples import choose_examples

NETWORK = "mlp(hidden=8,depth=1)"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert train_digits(folder, "--network", NETWORK, epochs=1).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "stopped"
    job = Job(Configuration("digits", network=NETWORK, epochs=3), folder)
    stop = StopRequest()
    kinds = []
    for event in train_runs(
        [job],
        choose_execution("cpu"),
        load=lambda configuration: choose_examples(configuration, load_digits()),
        stop=stop,
    ):
        kinds.append(event.kind)
        if event.kind == "epoch":
            stop.signal = signal.SIGINT  # what Ctrl-C does
    assert kinds[-1] == "stopped"
    return folder


def commands(run: Path, output: Path) -> list[tuple[str | Path, ...]]:
    np.save(output / "new.npy", load_digits().test.array[:3])
    return [
        ("predict", run, output / "new.npy"),
        ("evaluate", run, "--format", "json"),
        ("export", run, "--format", "torch-export", "--output", output / "model.pt2"),
        ("audit", run, "--output", output / "audit"),
    ]


def test_every_command_warns_of_a_run_that_is_not_finished(stopped: Path, tmp_path: Path) -> None:
    warning = (
        f"warning: {stopped} is not finished: it has trained 1 of 3 epochs; the command that "
        "started it resumes it\n"
    )
    for command in commands(stopped, tmp_path):
        result = labelproof(*command)
        assert result.exit_code == 0, result.output
        assert result.stderr == warning, command
        assert "is not finished" not in result.stdout
