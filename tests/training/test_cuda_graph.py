"""Steps that are recorded and replayed, which only CUDA can do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import StopAfter, kinds, outcome, small, small_run, train, train_epoch

from labelproof.training import Execution, Job
from labelproof.training.step import Recorder
from labelproof.training.trainer import Trainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")

CUDA = torch.device("cuda", 0)
EAGER = Execution(CUDA)
RECORDED = Execution(CUDA, record=True)


@pytest.fixture(autouse=True)
def deterministic_kernels() -> Iterator[None]:
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    yield
    torch.backends.cudnn.deterministic = before


CASES: list[dict[str, Any]] = [
    {"network": "cnn4(width=8)", "augmentation": "crop:1,flip,rotation:20", "precision": "bf16"},
    {"network": "cnn4(width=8)", "precision": "float32", "optimizer": "adamw"},
    {"precision": "fp16", "average": 0.9},
    {"loss": "nl", "precision": "float32"},
    {"algorithm": "elr", "loss": "ce", "precision": "float32"},
    {"algorithm": "co-teaching(rate=estimate,ramp=3)", "precision": "float32"},
    {"algorithm": "nlnl(negative=1,selective=1)", "loss": "ce", "precision": "float32"},
]


def prepared(execution: Execution, **changes: Any) -> Trainer:
    run = small_run(small(**changes), execution)
    run.prepare()
    return run


def tensors(run: Trainer) -> dict[str, torch.Tensor]:
    run.synchronize()
    return {name: tensor.cpu().clone() for name, tensor in run.tensors().items()}


def assert_same(first: Trainer, second: Trainer) -> None:
    expected, found = tensors(first), tensors(second)
    assert list(expected) == list(found)
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize("changes", CASES, ids=str)
def test_recording_leaves_a_run_as_it_was(changes: dict[str, Any]) -> None:
    run = small_run(small(**changes), RECORDED)
    before = tensors(run)
    run.prepare()
    for name, tensor in tensors(run).items():
        if not name.startswith("feed."):
            torch.testing.assert_close(tensor, before[name], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("changes", CASES, ids=str)
def test_a_recorded_run_is_the_plain_run(changes: dict[str, Any]) -> None:
    plain, recorded = prepared(EAGER, **changes), prepared(RECORDED, **changes)
    assert plain.recorder is None
    assert recorded.recorder is not None
    # Where labels are drawn, both need only learn alike: how a generator counts what was drawn
    # inside a graph is torch's affair.
    draws = plain.algorithm.draws
    for _ in range(3):
        expected, found = train_epoch(plain), train_epoch(recorded)
        if draws:
            assert found["train_loss"] == pytest.approx(expected["train_loss"], rel=0.1)
        else:
            assert found == expected
    if not draws:
        assert_same(plain, recorded)


@pytest.mark.parametrize("changes", CASES, ids=str)
def test_recorded_runs_in_turns_come_to_what_each_comes_to_alone(changes: dict[str, Any]) -> None:
    other: dict[str, Any] = {"network": "cnn4(width=16)", "seed": 2, "loss": "nl"}
    alone = [prepared(RECORDED, **changes), prepared(RECORDED, **other)]
    metrics = [[train_epoch(run) for _ in range(3)] for run in alone]
    together = [prepared(RECORDED, **changes), prepared(RECORDED, **other)]
    assert together[0].stream != together[1].stream
    for epoch in range(3):
        for run in together:
            run.begin()
        open_ = list(together)
        ended = {}
        while open_:  # no waiting in between: both streams are full
            for run in list(open_):
                if run.advance():
                    ended[id(run)] = run.end()
                    open_.remove(run)
        for run, expected in zip(together, metrics, strict=True):
            assert run.collect(ended[id(run)]) == expected[epoch]
    for first, second in zip(alone, together, strict=True):
        assert_same(first, second)


def test_a_pack_of_recorded_runs_writes_what_each_writes_alone(tmp_path: Path) -> None:
    configurations = [small(seed=seed, **changes) for seed, changes in enumerate(CASES)]
    jobs = [Job(each, tmp_path / str(n)) for n, each in enumerate(configurations)]
    assert kinds(train(jobs, execution=RECORDED, at_once=4)).count("finished") == len(jobs)
    for number, configuration in enumerate(configurations):
        train(Job(configuration, tmp_path / "alone" / str(number)), execution=RECORDED)
        assert outcome(tmp_path / str(number)) == outcome(tmp_path / "alone" / str(number))


def test_a_replayed_step_draws_anew_and_by_its_seed() -> None:
    value = torch.zeros(64, device=CUDA)
    generator = torch.Generator(CUDA)
    recorder = Recorder(torch.cuda.Stream(CUDA), lambda: {"value": value}, (generator,))
    recorder.record("draw", lambda: value.copy_(torch.rand(64, device=CUDA, generator=generator)))

    def drawn(seed: int, count: int = 3) -> list[torch.Tensor]:
        found = []
        with torch.cuda.stream(recorder.stream):
            generator.manual_seed(seed)
            for _ in range(count):
                recorder.replay("draw")
                found.append(value.clone())
        recorder.stream.synchronize()
        return found

    first, again, other = drawn(1), drawn(1), drawn(2)
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[1], first[2])
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])


def test_a_recorded_run_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    for number, changes in enumerate(CASES):
        whole, stopped = tmp_path / f"whole{number}", tmp_path / f"stopped{number}"
        train(Job(small(**changes), whole), execution=RECORDED)
        job = Job(small(**changes), stopped)
        train(job, execution=RECORDED, stop=StopAfter(10))
        train(job, execution=RECORDED)
        assert outcome(stopped) == outcome(whole), changes
