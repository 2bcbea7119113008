"""Two processes with half of each batch come to what one process comes to with all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from labelproof.training.checkpoint import load_weights
from labelproof.training.distributed import SynchronizedBatchNorm, launched, taking_part
from labelproof.training.execution import choose_execution

SCRIPT = Path(__file__).with_name("distributed_run.py")


def start(folder: Path, network: str, *, processes: int, stop_after: int = 0) -> str:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, *(launcher if processes > 1 else []), str(SCRIPT)]
    done = subprocess.run(
        [*command, str(folder), network, str(stop_after)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def metrics(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_two_processes_match_one_and_resume_together(tmp_path: Path) -> None:
    network = "cnn4(width=4,hidden=16)"
    start(tmp_path / "one", network, processes=1)
    start(tmp_path / "two", network, processes=2)
    said = start(tmp_path / "stopped", network, processes=2, stop_after=1)
    assert "stopped" in said
    assert not (tmp_path / "stopped" / "record.json").exists()
    start(tmp_path / "stopped", network, processes=2)

    one = load_weights(tmp_path / "one" / "checkpoint")
    for other in ("two", "stopped"):
        found = load_weights(tmp_path / other / "checkpoint")
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
