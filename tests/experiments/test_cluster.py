"""Runs on the workers of a Ray that the tests start come to what they come to in this process."""

import importlib.util
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from made_losses import CODE
from made_records import write_tiny_mnist
from small_runs import kinds, load_small, small
from trained import labelproof

from labelproof.experiments.cluster import RayEngine, connected
from labelproof.training import Configuration, Event, Job, StopRequest, train_runs
from labelproof.training.execution import choose_execution
from labelproof.training.metrics import DivergedError
from labelproof.training.run_folder import FolderInUseError, owning

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'labelproof[cluster]'"
)
LONG = 40
"""Epochs of a run that is still under way when its first epoch is heard of."""


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of two cores; what the engine finds connected, it uses."""
    handler = signal.getsignal(signal.SIGTERM)
    with connected(num_cpus=2, object_store_memory=100 << 20) as module:
        assert signal.getsignal(signal.SIGTERM) is handler
        assert module.get_runtime_context().gcs_address.startswith("127.0.0.1:")
        yield module
    assert not module.is_initialized()
    assert not [name for name in os.environ if name.startswith("RAY_")]


@pytest.fixture
def local(one_thread: None) -> Callable[..., Iterator[Event]]:
    return partial(train_runs, execution=choose_execution("cpu"))


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
    engine: RayEngine,
    jobs: list[Job],
    act: Callable[[Event], None],
    stop: StopRequest | None = None,
) -> list[Event]:
    events = []
    for event in engine.train(jobs, load=load_small, stop=stop):
        events.append(event)
        act(event)
    return events


@needs_ray
@pytest.mark.slow
def test_a_grid_comes_to_the_same_and_what_diverges_fails_alone(
    ray: Any, local: Callable[..., Iterator[Event]], tmp_path: Path
) -> None:
    grid = [small(loss=loss) for loss in ("ce", "ce+sr", "1e38*ce")]
    grid += [small(class_weight="balanced"), small(validation=0.2, noise="none")]
    there = list(RayEngine().train(in_folder(tmp_path / "ray", *grid), load=load_small))
    here = list(local(in_folder(tmp_path / "local", *grid), load=load_small))
    assert outcomes(there) == outcomes(here)
    assert len(outcomes(there)) == 4
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


def kill_worker(job: Job, number: int) -> int:
    """End the worker of a run as soon as it has a checkpoint."""
    deadline = time.monotonic() + 120
    while not list(job.folder.glob("checkpoint/*.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert not (job.folder / "record.json").exists()
    pid = int((job.folder / ".lock").read_text())
    os.kill(pid, number)
    return pid


@needs_ray
@pytest.mark.slow
def test_a_run_that_loses_its_worker_ends_with_the_same_record(
    ray: Any, local: Callable[..., Iterator[Event]], tmp_path: Path
) -> None:
    jobs = in_folder(tmp_path, small(), small(seed=2, epochs=2 * LONG), small(seed=3))
    killed: list[int] = []

    def act(event: Event) -> None:
        if event.job == jobs[1] and event.kind == "started":
            killed.append(kill_worker(jobs[1], signal.SIGKILL))

    there = follow(RayEngine(checkpoint_seconds=0), jobs, act)
    assert len(killed) == 1
    alone = [replace(job, folder=None) for job in jobs]
    assert outcomes(there) == outcomes(list(local(alone, load=load_small)))
    # Each epoch is told once, though two workers trained some of them; what the first did last may
    # be in its checkpoint without having been told.
    told = [event.value["epoch"] for event in of(jobs[1], there) if event.kind == "epoch"]
    assert told == sorted(set(told))
    assert len(told) >= 2 * LONG - 3
    assert kinds(there).count("started") == 3


def lose_a_machine(folder: Path) -> None:
    """Train on a cluster of two machines, of which one is lost."""
    from ray.cluster_utils import Cluster

    memory = 100 << 20
    # A machine that is gone refuses every question, so ten of them a half second apart are enough.
    often = {"health_check_period_ms": 500, "health_check_failure_threshold": 10}
    head = {"num_cpus": 0, "object_store_memory": memory, "_system_config": often}
    cluster = Cluster(True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=memory) for _ in range(2)]
    cluster.wait_for_nodes(timeout=120)
    jobs = in_folder(folder, *(small(seed=seed, epochs=LONG) for seed in (1, 2)))
    begun: set[Job] = set()

    def lose(event: Event) -> None:
        begun.add(event.job)
        if event.kind == "epoch" and len(begun) == len(nodes) == 2:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    engine = RayEngine(cluster.address, checkpoint_seconds=0)
    with connected(cluster.address):
        events = follow(engine, jobs, lose)
        assert len(nodes) == 1
        torch.set_num_threads(1)  # as in the workers: sums depend on it in their last digit
        local = partial(train_runs, execution=choose_execution("cpu", workers=1))
        alone = [replace(job, folder=None) for job in jobs]
        assert outcomes(events) == outcomes(list(local(alone, load=load_small)))
    cluster.shutdown()


@needs_ray
@pytest.mark.slow
def test_runs_of_a_lost_machine_move_to_another(tmp_path: Path) -> None:
    # A process of its own, since this one is connected to another Ray.
    process = multiprocessing.get_context("spawn").Process(target=lose_a_machine, args=(tmp_path,))
    process.start()
    process.join(240)
    assert process.exitcode == 0


@needs_ray
@pytest.mark.slow
def test_stopped_runs_are_saved_and_go_on_elsewhere(
    ray: Any, local: Callable[..., Iterator[Event]], tmp_path: Path
) -> None:
    # Long, since Ray tells a run that is just starting to stop only after two seconds.
    jobs = in_folder(tmp_path, *(small(seed=seed, epochs=5 * LONG) for seed in (1, 2, 3, 4)))
    wish = StopRequest()

    def act(event: Event) -> None:
        if event.kind == "epoch":
            wish.signal = signal.SIGINT

    # Only being stopped makes a checkpoint here: the time for one never comes.
    stopped = follow(RayEngine(checkpoint_seconds=1e9), jobs, act, wish)
    saved = [job for job in jobs if "stopped" in kinds(of(job, stopped))]
    assert saved
    assert len(saved) + kinds(stopped).count("finished") == kinds(stopped).count("started")
    for job in saved:
        assert list(job.folder.glob("checkpoint/*.safetensors"))
    went_on = list(local(saved, load=load_small))
    assert any(event.value > 0 for event in went_on if event.kind == "started")
    alone = [replace(job, folder=None) for job in saved]
    assert outcomes(went_on) == outcomes(list(local(alone, load=load_small)))


@needs_ray
@pytest.mark.slow
def test_what_a_worker_raises_is_raised_here_and_others_are_saved(ray: Any, tmp_path: Path) -> None:
    jobs = in_folder(tmp_path, small(epochs=LONG), small(seed=2))
    with owning(jobs[1].folder), pytest.raises(FolderInUseError, match=f"pid {os.getpid()}"):
        follow(RayEngine(checkpoint_seconds=1e9), jobs, lambda _: None)
    started = (jobs[0].folder / "metrics.jsonl").exists()
    assert bool(list(jobs[0].folder.glob("checkpoint/*.safetensors"))) == started


@needs_ray
@pytest.mark.slow
def test_what_would_wait_for_ever_is_refused(ray: Any) -> None:
    with pytest.raises(ValueError, match="expected 3 CPU, the cluster has 2"):
        list(RayEngine(cpus_per_run=3).train([], load=load_small))
    if not ray.cluster_resources().get("GPU"):
        with pytest.raises(ValueError, match="expected 1 GPU"):
            list(RayEngine(device="cuda").train([], load=load_small))


@needs_ray
def test_where_no_ray_is_it_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and no one listens
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        code = f"from labelproof.experiments.cluster import connected as c\nwith c({place!r}): pass"
        # A process of its own, since what Ray is when it is imported depends on the address.
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"--address: cannot connect to a Ray cluster at {place!r}" in done.stderr


@needs_ray
@pytest.mark.slow
def test_the_bench_starts_a_ray_stops_it_and_goes_on_without(tmp_path: Path) -> None:
    data = write_tiny_mnist(tmp_path / "data")
    mine = tmp_path / "mine.py"  # the workers have to find a loss of the user's own as well
    mine.write_text(CODE)
    common = ["symmetric", "--dataset", "mnist", "--columns", "0.4", "--methods", "series"]
    common += ["--epochs", "100", "--device", "cpu", "--data-root", str(data)]
    common += ["--loss-file", str(mine)]
    common += ["--records", str(tmp_path / "records"), "--runs", str(tmp_path / "runs")]
    command = [sys.executable, "-m", "labelproof", "bench", *common, "--engine", "ray"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        deadline = time.monotonic() + 300
        while not any(path.stat().st_size for path in tmp_path.glob("runs/*/metrics.jsonl")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=180)
    assert process.returncode == 128 + signal.SIGTERM, output
    assert "Traceback" not in output
    (lock,) = tmp_path.glob("runs/*/.lock")
    deadline = time.monotonic() + 60  # Ray ends its workers in its own time
    while Path(f"/proc/{lock.read_text().strip()}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(int(lock.read_text()), 0)
    again = labelproof("bench", *common)
    assert again.exit_code == 0, again.output
    (record,) = (tmp_path / "records").glob("*/*.json")
    assert json.loads(record.read_text())["curve"]["epoch"] == list(range(100))


def test_mistakes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common = ("bench", "symmetric", "--dataset", "mnist", "--records", tmp_path)
    for extra, message in [
        (("--engine", "rey"), "engine: expected one of"),
        (("--address", "auto"), "--address:"),
        (("--engine", "ray", "--address", "ray://head:10001"), "--address:"),
        (("--engine", "ray", "--address", "head"), "--address:"),
        (("--engine", "ray", "--device", "cuda:1"), "device of --engine ray"),
    ]:
        result = labelproof(*common, *extra)
        assert isinstance(result.exception, ValueError)
        assert str(result.exception).startswith(message)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'labelproof\[cluster\]'"):
        RayEngine()
    assert labelproof(*common, "--engine", "ray", "--dry-run").exit_code == 0
