import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import StopAfter, kinds, outcome, small, train
from torch import Tensor, nn

from labelproof.training import DeviceMemoryError, Job, read_record
from labelproof.training.checkpoint import newest_whole

SIX: list[dict[str, Any]] = [
    {"seed": 1, "epochs": 3, "l1": 1e-3},
    {"seed": 2, "epochs": 2, "loss": "ce", "algorithm": "elr(lambda=1)"},
    {"seed": 3, "epochs": 2, "loss": "nl", "augmentation": "crop:1,flip"},
    {"seed": 1, "epochs": 2, "network": "cnn4(width=4)", "noise": "pair:0.3", "l1": 0.01},
    {"seed": 5, "epochs": 1, "algorithm": "co-teaching", "batch_size": 64},
    {"seed": 6, "epochs": 2, "network": "small_runs:dropping", "average": 0.9},
]

DIVERGES: dict[str, Any] = {
    "loss": "ce+sr(lambda0=1,rho=1e15,r=1)",
    "network": "mlp(hidden=16,depth=3)",
    "clip_norm": 0,
}
"""Fails at the second step of its second epoch."""


def jobs_in(folder: Path) -> list[Job]:
    return [Job(small(**changes), folder / str(number)) for number, changes in enumerate(SIX)]


def test_runs_side_by_side_come_to_what_each_comes_to_alone(tmp_path: Path) -> None:
    together, alone = jobs_in(tmp_path / "together"), jobs_in(tmp_path / "alone")
    train(together, at_once=3, checkpoint_seconds=1000)
    for packed, single in zip(together, alone, strict=True):
        train(single)
        assert outcome(packed.folder) == outcome(single.folder)
        first, second = read_record(packed.folder), read_record(single.folder)
        assert first.curve == second.curve
        assert first.configuration == second.configuration


def test_without_a_folder_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    events = train(Job(small()))
    assert kinds(events) == ["started", "epoch", "epoch", "epoch", "finished"]
    assert list(tmp_path.iterdir()) == []
    record = events[-1].value
    assert record.curve["test_accuracy"] == [e.value["test_accuracy"] for e in events[1:-1]]


def test_a_run_that_fails_leaves_its_last_good_state_alone(tmp_path: Path) -> None:
    configurations = {"good": small(), "bad": small(**DIVERGES), "next": small(seed=2)}
    jobs = [Job(each, tmp_path / name) for name, each in configurations.items()]
    events = train(jobs, at_once=2)
    good, bad, following = ([event for event in events if event.job is job] for job in jobs)
    assert kinds(bad) == ["started", "epoch", "failed"]
    assert kinds(good)[-1] == kinds(following)[-1] == "finished"
    error = bad[-1].value
    assert isinstance(error, ArithmeticError)
    assert "since step 2 of epoch 2 (learning rate 0.075, lambda 1e+15, tau 0.5)" in str(error)
    # On the CPU it is float32 anyway.
    assert "what often helps: a lower learning rate, a smaller lambda0; the last" in str(error)
    assert str(tmp_path / "bad" / "checkpoint") in str(error)
    assert read_record(tmp_path / "bad") is None
    assert len((tmp_path / "bad" / "metrics.jsonl").read_text().splitlines()) == 1
    # The newest checkpoint is of an epoch's end, and all in it are numbers.
    checkpoint = newest_whole(tmp_path / "bad" / "checkpoint")[1]
    assert (checkpoint.values["epoch"], checkpoint.values["step"]) == (1, 0)
    for name, tensor in {**checkpoint.weights, **checkpoint.state}.items():
        assert torch.isfinite(tensor).all(), name
    # Alone it comes to the same end, and so it does when it is started again.
    again = train(jobs[1])
    assert kinds(again) == ["started", "failed"]
    assert again[0].value == 1
    assert str(again[-1].value) == str(error)
    train(Job(small(), tmp_path / "alone"))
    assert outcome(tmp_path / "alone") == outcome(tmp_path / "good")


def test_a_stop_saves_every_run_and_starts_no_other(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path)
    events = train(jobs, at_once=2, stop=StopAfter(5))  # it is asked for before the second run too
    assert kinds(events) == ["started", "started", "stopped", "stopped"]
    for number in range(2):
        checkpoint = newest_whole(tmp_path / str(number) / "checkpoint")[1]
        assert (checkpoint.values["epoch"], checkpoint.values["step"]) == (0, 4)
    assert not (tmp_path / "2").exists()


class Greedy(nn.Module):
    """Asks for more memory than there is, at its third call."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(64, 10)
        self.calls = 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == 3:
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 1 GiB free."
            )
        return self.head(images.flatten(1))


def test_too_little_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelproof.training.provenance.make_network", lambda *_, **__: Greedy())
    jobs = [Job(small(seed=seed), tmp_path / str(seed)) for seed in range(4)]
    with pytest.raises(DeviceMemoryError) as failure:
        train(jobs, at_once=3)
    for words in (
        *("with 3 runs", "CUDA out of memory", "the runs at a time (3)"),
        *("--batch-size", "--network", "--set precision=bf16"),
    ):
        assert words in str(failure.value)
    # The folders are free again, and what was saved is there.
    monkeypatch.undo()
    assert kinds(train(jobs[3]))[-1] == "finished"


def test_what_the_folder_holds_is_what_the_events_said(tmp_path: Path) -> None:
    events = train(Job(small(network="cnn4(width=4)"), tmp_path))
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    timing = [json.loads(line) for line in (tmp_path / "timing.jsonl").read_text().splitlines()]
    told = [event.value for event in events if event.kind == "epoch"]
    assert [line | times for line, times in zip(lines, timing, strict=True)] == told
    record = read_record(tmp_path)
    assert record.final_accuracy == pytest.approx(told[-1]["test_accuracy"], rel=1e-5)
    assert record.seconds == pytest.approx(sum(line["seconds"] for line in timing), abs=1e-3)
    with np.load(tmp_path / "predictions.npz") as predictions:
        right = predictions["logits"].argmax(1) == predictions["labels"]
    assert 100 * right.mean() == told[-1]["test_accuracy"]
