"""Two processes with half of each batch come to what one process comes to with all of it."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_runs import CPU, load_small, small, small_digits, weights_of
from torch import nn

from labelproof.training import Job, StopRequest, choose_examples, train_runs
from labelproof.training.execution import choose_execution, count_batches, launched, process_group
from labelproof.training.provenance import describe
from labelproof.training.trainer import make_networks

RUNS = [("two", 0), ("stopped", 1), ("stopped", 0)]


def train_in(runs: list[tuple[str, int]]) -> list[str]:
    """Train in each folder, and stop after so many epochs if any; the kinds of the events."""
    # The last batch has 3 examples, which two processes share unequally.
    configuration = small(network="mlp(hidden=16)", batch_size=16, epochs=2)
    examples = choose_examples(configuration, small_digits(131))
    told = []
    with process_group(choose_execution("cpu")) as execution:
        for folder, stop_after in runs:
            with StopRequest() as stop:
                for event in train_runs(
                    [Job(configuration, Path(folder))],
                    execution,
                    load=lambda _: examples,
                    checkpoint_seconds=1e9,
                    stop=stop,
                ):
                    told.append(event.kind)
                    last = event.kind == "epoch" and event.value["epoch"] + 1 == stop_after
                    if last and execution.rank:  # the other has to hear of it from this one
                        os.kill(os.getpid(), signal.SIGTERM)
    return told


def metrics(folder: str) -> list[dict[str, float]]:
    lines = Path(folder, "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_two_match_one_and_resume_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train_in([("one", 0)])
    with socket.socket() as port:  # kept, so that nobody else takes it; torch listens beside it
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port.getsockname()[1])}
        common = {**place, "WORLD_SIZE": "2", "RANK": "0", "OMP_NUM_THREADS": "1"}
        for name, value in common.items():
            monkeypatch.setenv(name, value)
        environment = {**os.environ, "RANK": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, __file__]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "here\n", "no one would ever join this process"
            said = train_in(RUNS)
    assert other.returncode == 0
    whole = ["started", "epoch", "epoch", "finished"]
    assert said == [*whole, "started", "epoch", "stopped", "started", "epoch", "finished"]
    one, *others = (weights_of(Path(name, "checkpoint")) for name in ("one", "two", "stopped"))
    for found in others:
        assert found.keys() == one.keys()
        for name, weight in one.items():
            torch.testing.assert_close(found[name], weight, rtol=1e-4, atol=1e-4)
    for mine, theirs in zip(metrics("one"), metrics("two"), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-4)
    for mine, theirs in zip(metrics("stopped"), metrics("two"), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)  # sums are added in another order


def test_alone_nothing_is_joined() -> None:
    assert not launched()
    execution = choose_execution("cpu")
    with process_group(execution) as mine:
        assert mine == execution


def test_torchs_synchronised_batch_norms_have_the_count_they_ask_for() -> None:
    configuration = small(network="cnn4(width=4,hidden=8)")
    description = describe(configuration, load_small(configuration).dataset)
    (network,) = make_networks(configuration, description, CPU, 1)
    names = list(network.state_dict())
    shared = nn.SyncBatchNorm.convert_sync_batchnorm(network)
    images = torch.zeros(2, *description.input_shape)
    with pytest.raises(AssertionError):
        shared.train()(images)
    count_batches(shared)
    assert shared.train()(images).shape == (2, len(description.class_names))
    assert list(shared.state_dict()) == names


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("here", flush=True)
    train_in(RUNS)
