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
    SynchronizedBatchNorm,
    count_batches,
    launched,
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
    network = "cnn4(width=4,hidden=16)"
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


def test_alone_nothing_is_joined() -> None:
    assert not launched()
    execution = choose_execution("cpu")
    with taking_part(execution) as mine:
        assert mine == execution


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5, 5)])
def test_the_batch_norm_of_one_process_is_torchs(tmp_path: Path, shape: tuple[int, ...]) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1
    )
    try:
        generator = torch.Generator().manual_seed(0)
        inputs = torch.randn(shape, generator=generator, requires_grad=True)
        theirs: nn.Module = nn.BatchNorm1d(3) if len(shape) == 2 else nn.BatchNorm2d(3)
        mine = SynchronizedBatchNorm(3)
        for _ in range(3):
            expected, found = theirs(inputs), mine(inputs)
            torch.testing.assert_close(found, expected)
            upstream = torch.randn(shape, generator=generator)
            torch.testing.assert_close(
                torch.autograd.grad(found, inputs, upstream),
                torch.autograd.grad(expected, inputs, upstream),
                atol=1e-5,
                rtol=1e-5,
            )
        for name, buffer in theirs.named_buffers():
            torch.testing.assert_close(mine.get_buffer(name), buffer)
        torch.testing.assert_close(mine.eval()(inputs), theirs.eval()(inputs))
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_in_16_bits_the_batch_norm_counts_in_32(tmp_path: Path, kind: torch.dtype) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1
    )
    try:
        # More values of a channel than a number of 16 bits can count.
        inputs = torch.randn(100, 2, 30, 30, generator=torch.Generator().manual_seed(0)).to(kind)
        theirs, mine = nn.BatchNorm2d(2), SynchronizedBatchNorm(2)
        found, expected = mine(inputs), theirs(inputs.float())
        assert found.dtype == kind
        torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0.01)
        torch.testing.assert_close(mine.running_var, theirs.running_var)
    finally:
        torch.distributed.destroy_process_group()


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
