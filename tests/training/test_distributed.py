"""Two processes with half of each batch come to what one process comes to with all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_runs import CPU, load_small, small, weights_of
from torch import nn
from training.distributed_run import train_one_after_the_other

from labelproof.training.distributed import (
    count_batches,
    launched,
    share_gradients,
    taking_part,
)
from labelproof.training.execution import choose_execution
from labelproof.training.provenance import describe
from labelproof.training.trainer import make_networks

SCRIPT = Path(__file__).with_name("distributed_run.py")


def start_two(network: str, *runs: str, here: Path) -> list[str]:
    """Train in each of the folders in two processes, and give the kinds of their events."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *launcher, str(SCRIPT), network, *runs],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=here,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def metrics(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_two_processes_match_one_and_resume_together(tmp_path: Path) -> None:
    network = "mlp(hidden=16)"
    train_one_after_the_other(network, [(tmp_path / "one", 0)])
    said = start_two(network, "two", "stopped:1", "stopped", here=tmp_path)
    whole, rest = ["epoch", "epoch", "epoch", "finished"], ["epoch", "epoch", "finished"]
    assert said == ["started", *whole, "started", "epoch", "stopped", "started", *rest]

    one, *others = (
        weights_of(tmp_path / name / "checkpoint") for name in ("one", "two", "stopped")
    )
    for found in others:
        assert found.keys() == one.keys()
        for name, weight in one.items():
            torch.testing.assert_close(found[name], weight, rtol=1e-4, atol=1e-4)
    for mine, theirs in zip(metrics(tmp_path / "one"), metrics(tmp_path / "two"), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-4)
    for mine, theirs in zip(metrics(tmp_path / "stopped"), metrics(tmp_path / "two"), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)  # sums are added in another order


def test_alone_nothing_is_joined_and_batch_norms_need_cuda() -> None:
    assert not launched()
    execution = choose_execution("cpu")
    with taking_part(execution) as mine:
        assert mine == execution
    with pytest.raises(ValueError, match="network"):
        share_gradients(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))


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
