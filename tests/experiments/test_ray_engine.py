"""Runs on the workers of a Ray that the tests start come to what they come to in this process."""

from __future__ import annotations

import builtins
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_records import write_tiny_mnist
from small_runs import kinds, load_small, small, small_digits
from trained import labelproof

from labelproof.experiments.engines import Engine, LocalEngine
from labelproof.experiments.ray_cluster import connected
from labelproof.experiments.ray_engine import RayEngine, WorkerLostError, share_of_gpu
from labelproof.experiments.ray_worker import Labels, Means, train_one
from labelproof.training import Configuration, Event, Job, StopRequest
from labelproof.training.execution import choose_execution
from labelproof.training.metrics import DivergedError
from labelproof.training.run_folder import FolderInUseError, owning

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="needs Ray: pip install 'labelproof[cluster]'",
)
LONG = 40
"""Epochs of a run that is still under way when its first epoch is heard of."""


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of two cores; what the engine finds connected, it uses."""
    handler = signal.getsignal(signal.SIGTERM)
    environment = variables()
    printing = builtins.print
    with connected(num_cpus=2, object_store_memory=100 << 20) as module:
        assert signal.getsignal(signal.SIGTERM) is handler
        yield module
    assert not module.is_initialized()
    assert variables() == environment
    assert builtins.print is printing


def variables() -> dict[str, str]:
    """What Ray sets in the environment of a program that imports it."""
    return {
        name: value for name, value in os.environ.items() if name.startswith(("RAY_", "PYTHON"))
    }


@pytest.fixture
def local(one_thread: None) -> Engine:
    return LocalEngine(choose_execution("cpu"))


def in_folder(folder: Path, *configurations: Configuration) -> list[Job]:
    return [Job(each, folder / each.name) for each in configurations]


def outcomes(events: list[Event]) -> dict[str, tuple[object, ...]]:
    """All of a record but how long it took."""
    return {
        event.job.configuration.name: tuple(
            value for name, value in vars(event.value).items() if name != "seconds"
        )
        for event in events
        if event.kind == "finished"
    }


def of(job: Job, events: list[Event]) -> list[Event]:
    return [event for event in events if event.job == job]


def follow(
    engine: Engine, jobs: list[Job], act: Callable[[Event], None], stop: StopRequest | None = None
) -> list[Event]:
    events = []
    for event in engine.train(jobs, load=load_small, stop=stop):
        events.append(event)
        act(event)
    return events


@needs_ray
@pytest.mark.slow
def test_a_grid_comes_to_the_same_and_what_diverges_fails_alone(
    ray: Any, local: Engine, tmp_path: Path
) -> None:
    grid = [small(loss=loss, seed=seed) for seed in (1, 2) for loss in ("ce", "ce+sr", "1e38*ce")]
    grid += [small(class_weight="balanced"), small(validation=0.2)]
    there = list(RayEngine().train(in_folder(tmp_path / "ray", *grid), load=load_small))
    here = list(local.train(in_folder(tmp_path / "local", *grid), load=load_small))
    assert outcomes(there) == outcomes(here)
    assert len(outcomes(there)) == 6
    for job in in_folder(tmp_path / "ray", *grid):
        failed = "*" in job.configuration.loss
        assert kinds(of(job, there)) == (
            ["started", "failed"] if failed else ["started", *["epoch"] * 3, "finished"]
        )
        if failed:
            assert isinstance(of(job, there)[-1].value, DivergedError)
        else:
            first, second = tmp_path.glob(f"*/{job.configuration.name}/metrics.jsonl")
            assert first.read_bytes() == second.read_bytes()


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_loses_its_worker_ends_with_the_same_record(
    number: int, ray: Any, local: Engine, tmp_path: Path
) -> None:
    jobs = in_folder(tmp_path, small(), small(seed=2, epochs=LONG), small(seed=3))
    killed: list[int] = []

    def act(event: Event) -> None:
        if event.job == jobs[1] and event.kind == "started":
            killed.append(kill_worker(jobs[1], number))

    there = follow(RayEngine(checkpoint_seconds=0), jobs, act)
    alone = [replace(job, folder=None) for job in jobs]
    assert outcomes(there) == outcomes(list(local.train(alone, load=load_small)))
    (notice,) = [event for event in there if event.kind == "notice"]
    assert notice.job == jobs[1]
    assert "its worker was lost" in notice.value
    # Whoever counts epochs counts each once, though two workers told of some; what the first did
    # last may be in its checkpoint without having been told.
    told = [event.value["epoch"] for event in of(jobs[1], there) if event.kind == "epoch"]
    assert told == sorted(set(told))
    assert len(told) >= LONG - 3
    assert kinds(there).count("started") == 3
    if number == signal.SIGKILL:
        assert pid(jobs[1]) not in killed


@needs_ray
@pytest.mark.slow
def test_a_run_that_loses_too_many_workers_fails_alone(ray: Any, tmp_path: Path) -> None:
    jobs = in_folder(tmp_path, small(epochs=LONG), small(seed=2))

    def act(event: Event) -> None:
        if event.job == jobs[0] and event.kind == "started":
            kill_worker(jobs[0], signal.SIGKILL)

    events = follow(RayEngine(retries=0, checkpoint_seconds=0), jobs, act)
    assert isinstance(of(jobs[0], events)[-1].value, WorkerLostError)
    assert kinds(of(jobs[0], events))[-1] == "failed"
    assert kinds(of(jobs[1], events))[-1] == "finished"


def pid(job: Job) -> int:
    """Of the process that trains, or trained last, in a run's folder."""
    assert job.folder is not None
    return int((job.folder / ".lock").read_text())


def kill_worker(job: Job, number: int) -> int:
    """End the worker of a run as soon as it has a checkpoint."""
    assert job.folder is not None
    deadline = time.monotonic() + 30
    while not list(job.folder.glob("checkpoint/*/*")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert not (job.folder / "record.json").exists()
    os.kill(pid(job), number)
    return pid(job)


class Wish(StopRequest):
    """A wish to stop that is there when someone sets it."""

    def want(self) -> None:
        self.signal = signal.SIGINT


@needs_ray
@pytest.mark.slow
def test_stopped_runs_are_saved_and_go_on_elsewhere(
    ray: Any, local: Engine, tmp_path: Path
) -> None:
    jobs = in_folder(tmp_path, *(small(seed=seed, epochs=LONG) for seed in (1, 2, 3, 4)))
    wish = Wish()

    def act(event: Event) -> None:
        if event.kind == "epoch":
            wish.want()

    # Only being stopped makes a checkpoint here: the time for one never comes.
    stopped = follow(RayEngine(checkpoint_seconds=1e9), jobs, act, wish)
    saved = [job for job in jobs if "stopped" in kinds(of(job, stopped))]
    assert 1 <= len(saved) <= 2
    for job in saved:
        assert job.folder is not None
        assert list(job.folder.glob("checkpoint/*/*"))
    assert not outcomes(stopped)
    went_on = list(local.train(saved, load=load_small))
    assert any(event.value > 0 for event in went_on if event.kind == "started")
    alone = [replace(job, folder=None) for job in saved]
    assert outcomes(went_on) == outcomes(list(local.train(alone, load=load_small)))


@needs_ray
@pytest.mark.slow
def test_what_a_worker_raises_is_raised_here_and_the_others_are_saved(
    ray: Any, tmp_path: Path
) -> None:
    jobs = in_folder(tmp_path, small(epochs=LONG), small(seed=2))
    assert jobs[0].folder is not None
    assert jobs[1].folder is not None
    with (
        owning(jobs[1].folder),
        pytest.raises(FolderInUseError, match=f"pid {os.getpid()}"),
    ):
        follow(RayEngine(checkpoint_seconds=1e9), jobs, lambda _: None)
    started = (jobs[0].folder / "metrics.jsonl").exists()
    assert bool(list(jobs[0].folder.glob("checkpoint/*/*"))) == started


@needs_ray
@pytest.mark.slow
def test_what_would_wait_for_ever_is_refused(ray: Any) -> None:
    with pytest.raises(ValueError, match="at most the 2 of the cluster's largest machine, got 3"):
        list(RayEngine(cpus_per_run=3).train([], load=load_small))
    if not ray.cluster_resources().get("GPU"):
        with pytest.raises(ValueError, match="expected a GPU in the cluster for cuda, got none"):
            list(RayEngine(device="cuda").train([], load=load_small))


@needs_ray
@pytest.mark.slow
def test_the_ray_of_our_own_is_reached_from_this_machine_alone(ray: Any) -> None:
    assert ray.get_runtime_context().gcs_address.startswith("127.0.0.1:")
    with connected() as again:  # what is there is used, and left as it is
        assert again is ray
    assert ray.is_initialized()


@needs_ray
def test_where_no_ray_is_it_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and no one listens
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        script = (
            "from labelproof.experiments.ray_cluster import connected\n"
            f"with connected({place!r}): pass"
        )
        # A process of its own, since what Ray is when it is imported depends on the address.
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"--address: no Ray cluster lets this program in at {place!r}" in done.stderr
    assert done.returncode == 1


@needs_ray
@pytest.mark.slow
def test_the_bench_starts_a_ray_stops_it_and_goes_on_without(tmp_path: Path) -> None:
    data = write_tiny_mnist(tmp_path / "data")
    mine = tmp_path / "mine.py"  # the workers have to find a loss of the user's own as well
    mine.write_text(
        "from labelproof import CrossEntropy\n"
        "class Mine(CrossEntropy):\n    pass\n"
        "LOSSES = {'mine': Mine}\n"
    )
    common = ["symmetric", "--dataset", "mnist", "--columns", "0.4", "--methods", "mine"]
    common += ["--epochs", "12", "--device", "cpu", "--data-root", str(data)]
    common += ["--loss-file", str(mine)]
    common += ["--records", str(tmp_path / "records"), "--runs", str(tmp_path / "runs")]
    command = [sys.executable, "-m", "labelproof", "bench", *common, "--engine", "ray"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size for path in tmp_path.glob("runs/*/metrics.jsonl")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, output
    assert "Stopped and saved; the same command goes on from here." in output
    assert "Traceback" not in output
    (lock,) = tmp_path.glob("runs/*/.lock")
    deadline = time.monotonic() + 10  # Ray ends its workers in its own time
    while Path(f"/proc/{lock.read_text().strip()}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(int(lock.read_text()), 0)
    again = labelproof("bench", *common)
    assert again.exit_code == 0, again.output
    assert "goes on after epoch" in again.output
    (record,) = (tmp_path / "records").glob("*/*.json")
    assert json.loads(record.read_text())["curve"]["epoch"] == list(range(12))


def test_without_ray_the_bench_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    common = ("bench", "symmetric", "--dataset", "mnist", "--records", tmp_path)
    result = labelproof(*common, "--engine", "ray")
    assert isinstance(result.exception, ImportError)
    assert "pip install 'labelproof[cluster]'" in str(result.exception)
    assert labelproof(*common, "--engine", "ray", "--dry-run").exit_code == 0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--engine", "rey"], "engine: expected one of local, ray, got 'rey'"),
        (["--address", "auto"], "--address: a Ray cluster is used with --engine ray alone"),
        (["--engine", "ray", "--address", "ray://head:10001"], "expected auto or HOST:PORT"),
        (["--engine", "ray", "--address", "head"], "expected auto or HOST:PORT"),
        (["--engine", "ray", "--device", "cuda:1"], "device of --engine ray: expected one of"),
    ],
)
def test_mistakes_are_one_line_that_helps(extra: list[str], message: str, tmp_path: Path) -> None:
    result = labelproof("bench", "symmetric", "--dataset", "mnist", "--records", tmp_path, *extra)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)


@pytest.mark.parametrize("at_once", range(1, 65))
def test_the_shares_of_a_gpu_fit_on_it(at_once: int) -> None:
    # Ray keeps whole numbers of ten-thousandths.
    assert at_once * round(share_of_gpu(at_once) * 10_000) <= 10_000
    assert (at_once + 1) * share_of_gpu(at_once) > 1


def work(job: Job, means: Means) -> Iterator[tuple[str, Any]]:
    labels = Labels.of(load_small(job.configuration))
    arrays = [value for value in labels.values.values() if isinstance(value, np.ndarray)]
    for array in (*arrays, small_digits().train.array):
        array.flags.writeable = False  # as in the object store
    try:
        yield from train_one(job, small_digits(), labels, means)
    finally:
        for array in (*arrays, small_digits().train.array):
            array.flags.writeable = True


@pytest.mark.parametrize("changes", [{}, {"class_weight": "balanced"}, {"validation": 0.2}])
def test_a_worker_trains_as_this_process_does(changes: dict[str, Any], local: Engine) -> None:
    job = Job(small(**changes))
    events = [Event(job, *told) for told in work(job, Means("cpu"))]
    assert outcomes(events) == outcomes(list(local.train([job], load=load_small)))


def test_a_worker_leaves_the_threads_of_its_process_alone(one_thread: None) -> None:
    run = work(Job(small()), Means("cpu", threads=2))
    next(run)
    assert torch.get_num_threads() == 2
    run.close()  # type: ignore[attr-defined]
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(
    ("number", "last"), [(signal.SIGINT, "epoch"), (signal.SIGTERM, "stopped")]
)
def test_an_interrupted_worker_saves_and_a_cancelled_one_says_nothing(
    number: int, last: str, tmp_path: Path
) -> None:
    told = []
    for kind, _ in work(Job(small(), tmp_path), Means("cpu", checkpoint_seconds=1e9)):
        told.append(kind)
        if kind == "epoch":
            signal.raise_signal(number)
    assert told == ["started", "epoch", last][: 3 if last == "stopped" else 2]
    assert list(tmp_path.glob("checkpoint/*/*"))


def test_labels_are_all_of_the_examples_and_known_by_what_they_are() -> None:
    examples = load_small(small(validation=0.2, class_weight="balanced"))
    labels = Labels.of(examples)
    again = labels.on(small_digits())
    for name, value in vars(examples).items():
        if name != "dataset":
            np.testing.assert_array_equal(getattr(again, name), value)
    assert (
        labels.digest
        == Labels.of(load_small(small(validation=0.2, class_weight="balanced", loss="ce"))).digest
    )
    for change in ({"validation": 0.3}, {"class_weight": "none"}, {"seed": 2}, {"noise": "none"}):
        other = small(**{"validation": 0.2, "class_weight": "balanced", **change})
        assert Labels.of(load_small(other)).digest != labels.digest


def test_a_worker_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"but 0\.0\.0 where the jobs come from"):
        next(work(Job(small()), Means("cpu", version="0.0.0")))
