"""Train on a Ray cluster: each run is a task that resumes from its folder.

If a worker or its machine is lost, Ray retries the task on another one, which resumes from the
checkpoint in the run's folder. Tasks report epochs through a queue on this machine and return their
final event. If Ray itself is lost, a ConnectionError is raised.
"""

from __future__ import annotations

import importlib.util
import math
import os
import platform
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import torch

from labelproof.losses.names import LOSS_FILES
from labelproof.ranges import choose, whole, within
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import StopRequest, choose_execution
from labelproof.training.runner import Event, Job, train_runs
from labelproof.version import __version__

PATIENCE = 60.0  # seconds that a run may take to save a checkpoint, perhaps while it compiles
RETRIES = 3  # how often a run may lose its worker
SPARE = 2  # runs that wait for a free machine, so that it is used at once

PRIVATE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""The environment of a local Ray, read when it is imported: it listens on 127.0.0.1 alone, which it
does only if clusters are disabled, and sends no usage statistics."""


class WorkerLostError(RuntimeError):
    """A run lost its worker: the process died or was terminated."""


def share_of_gpu(at_once: int) -> float:
    """The fraction of a GPU for each of `at_once` runs, in Ray's steps of 1/10000.

    >>> share_of_gpu(6), share_of_gpu(1)
    (0.1666, 1.0)
    """
    return math.floor(10_000 / whole("at_once", at_once, 1)) / 10_000


@dataclass(frozen=True)
class RayEngine:
    """Trains on the workers of a Ray cluster.

    Attributes:
        address: `auto` or `HOST:PORT` of a cluster that this machine is part of; `None` starts a
            temporary Ray on this machine.
        gpus_per_run: Fraction of a GPU, if there are any.
        cpus_per_run: CPU cores and threads.
        device: `auto` is `cuda` if a machine has a GPU, else `cpu`.
        checkpoint_seconds: Time between two checkpoints of a run.

    Example:
        >>> RayEngine(gpus_per_run=2)
        Traceback (most recent call last):
            ...
        ValueError: gpus_per_run: expected a number in (0, 1], got 2
    """

    address: str | None = None
    gpus_per_run: float = 1.0
    cpus_per_run: int = 1
    device: str = "auto"
    checkpoint_seconds: float = 30.0

    def __post_init__(self) -> None:
        within("gpus_per_run", self.gpus_per_run, 0, 1, open_low=True)
        whole("cpus_per_run", self.cpus_per_run, 1)
        choose("device of --engine ray", self.device, ("auto", "cpu", "cuda"))
        host, _, port = (self.address or "auto").rpartition(":")
        if port != "auto" and (not host or "/" in host or not port.isdecimal()):
            raise ValueError(f"--address: expected auto or HOST:PORT, got {self.address!r}")
        if importlib.util.find_spec("ray") is None:
            advice = "pip install 'labelproof[cluster]'"
            raise ImportError(f"--engine ray: expected the package ray: {advice}")

    def train(
        self,
        jobs: Iterable[Job],
        *,
        load: Callable[[Configuration], Examples],
        stop: StopRequest | None = None,
    ) -> Iterator[Event]:
        """As `train_runs`; takes jobs as others end, a few more than there is room for."""
        with connected(self.address) as ray:
            tasks, waiting, more = _Tasks(ray, self, self._needs(ray)), iter(jobs), True
            try:
                while (more or tasks.running) and not (stop is not None and stop.wanted):
                    room = tasks.room()
                    submits = more and 0 < room > len(tasks.running) - SPARE
                    if submits:
                        # One by one: the next job may depend on the results so far.
                        job = next(waiting, None)
                        more = job is not None
                        if job is not None:
                            tasks.submit(job, load(job.configuration))
                    yield from tasks.events(0.0 if submits else 0.2)
                yield from tasks.end()
            except (Exception, GeneratorExit) as error:
                # Whatever failed, in one run or in the program, the other runs are saved.
                with suppress(ray.exceptions.RayError):
                    list(tasks.end())
                if isinstance(error, ray.exceptions.RayError):
                    reason = str(error).partition("\n")[0]
                    raise ConnectionError(
                        f"--engine ray: {reason}. Finished runs are kept, and the same command "
                        "resumes the others from their folders"
                    ) from error
                raise
            finally:
                with suppress(ray.exceptions.RayError):
                    tasks.queue.shutdown()

    def _needs(self, ray: Any) -> dict[str, float]:
        """The resources of each run; refuse more than there are, which would wait for ever."""
        total = ray.cluster_resources()
        needs: dict[str, float] = {"CPU": self.cpus_per_run}
        if self.device == "cuda" or (self.device == "auto" and total.get("GPU")):
            needs["GPU"] = self.gpus_per_run
        for name, needed in needs.items():
            if needed > (has := total.get(name, 0)):
                raise ValueError(
                    f"--engine ray: expected {needed:g} {name}, the cluster has {has:g}"
                )
        return needs


@dataclass
class _Run:
    job: Job
    epochs: int = -1  # reported so far; -1 before its start

    def report(self, kind: str, value: Any) -> Iterator[Event]:
        """An event, unless a worker that was lost has already reported it."""
        reached = value["epoch"] + 1 if kind == "epoch" else 0
        if kind in ("started", "epoch") and reached <= self.epochs:
            return
        if self.epochs < 0 and kind != "started":
            yield Event(self.job, "started", 0)  # every run that ends has started
        self.epochs = max(self.epochs, value if kind == "started" else reached)
        yield Event(self.job, kind, value)


class _Tasks:
    def __init__(self, ray: Any, engine: RayEngine, needs: dict[str, float]):
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.ray, self.engine, self.needs = ray, engine, needs
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self.queue: Any = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
        self.runs: list[_Run] = []
        self.running: dict[Any, _Run] = {}
        self.datasets: dict[str, Any] = {}
        files = os.environ.get(LOSS_FILES)
        self.remote = ray.remote(
            num_cpus=needs["CPU"],
            num_gpus=needs.get("GPU", 0),
            max_retries=RETRIES,
            retry_exceptions=[WorkerLostError],
            # A cluster's workers were started without this program's environment.
            runtime_env={"env_vars": {LOSS_FILES: files}} if files else None,
        )(_train)

    def room(self) -> float:
        """How many runs the machines can train at a time."""
        total = self.ray.cluster_resources()
        return min(total.get(name, 0) // need for name, need in self.needs.items())

    def submit(self, job: Job, examples: Examples) -> None:
        data = job.configuration.data
        if data not in self.datasets:
            self.datasets[data] = self.ray.put(examples.dataset)
        labels: Any = replace(examples, dataset=None)  # pyright: ignore[reportArgumentType]
        # A worker may have another working directory.
        placed = replace(job, folder=None if job.folder is None else job.folder.resolve())
        report = self.queue, len(self.runs)
        setup = "cuda" if "GPU" in self.needs else "cpu", self.engine, __version__
        self.runs.append(_Run(job))
        reference = self.remote.remote(placed, self.datasets[data], labels, report, setup)
        self.running[reference] = self.runs[-1]

    def events(self, seconds: float, *, ending: bool = False) -> Iterator[Event]:
        """The events that tasks have reported, and the last one of those that have ended."""
        ended, _ = self.ray.wait([*self.running], timeout=seconds) if self.running else ([], [])
        for number, kind, value in self.queue.get_nowait_batch(self.queue.qsize()):
            yield from self.runs[number].report(kind, value)
        for reference in ended:
            run = self.running.pop(reference)
            try:
                kind, value = self.ray.get(reference)
            except self.ray.exceptions.RayError as error:
                reason = str(error).partition("\n")[0]
                cause = getattr(error, "cause", None) or WorkerLostError(f"worker lost: {reason}")
                if not ending and not isinstance(cause, WorkerLostError):
                    raise cause from error
                kind, value = ("stopped", (run.epochs, 0)) if ending else ("failed", cause)
            if run.epochs >= 0 or kind != "stopped":
                yield from run.report(kind, value)

    def end(self) -> Iterator[Event]:
        """Have every run save a checkpoint, and wait until it has."""
        # The last first, so that no waiting run starts in a place that becomes free.
        for reference in reversed(self.running):
            self.ray.cancel(reference)  # an interrupt in the worker
        until = time.monotonic() + PATIENCE
        while self.running and time.monotonic() < until:
            yield from self.events(0.2, ending=True)
        for reference in self.running:
            self.ray.cancel(reference, force=True)


def _train(
    job: Job, dataset: Any, labels: Examples, report: tuple[Any, int], setup: tuple[Any, ...]
) -> tuple[str, Any]:
    """Train a run in a worker; its arrays are read-only, as they are in Ray's object store."""
    (queue, number), (device, engine, version) = report, setup
    if version != __version__:
        raise ValueError(
            f"labelproof: expected version {version}, as where the bench runs, got {__version__} "
            f"on {platform.node()}; results of two versions may differ"
        )
    examples = replace(labels, dataset=dataset)
    # Sums may depend on the number of threads in their last digit.
    torch.set_num_threads(engine.cpus_per_run)
    kind, value = "stopped", (0, 0)
    with warnings.catch_warnings(), StopRequest() as stop:
        # All workers of a machine share the arrays in memory, and none writes to them.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        execution = choose_execution(device, workers=engine.cpus_per_run)
        seconds = engine.checkpoint_seconds
        for event in train_runs(
            [job], execution, load=lambda _: examples, checkpoint_seconds=seconds, stop=stop
        ):
            kind, value = event.kind, event.value
            if kind in ("started", "epoch", "notice") and not stop.wanted:
                queue.put((number, kind, value))
    if kind == "stopped" and stop.signal == signal.SIGTERM:
        raise WorkerLostError("the worker received SIGTERM")  # Ray retries the task on another one
    return kind, value


@contextmanager
def connected(address: str | None = None, **options: Any) -> Iterator[Any]:
    """The module `ray`, connected for the length of the block unless it already is.

    Raises ConnectionError if no cluster answers. Options are those of `ray.init`.
    """
    with patch.dict(os.environ, {} if address else PRIVATE):
        import ray

        ours = not ray.is_initialized()
        main = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGTERM) if main else None
        options |= {"log_to_driver": False, "logging_level": "error"}
        if ours and address is None:
            # "local" ignores a cluster that RAY_ADDRESS names.
            ray.init("local", include_dashboard=False, **options)
        elif ours and address is not None:
            try:
                host, colon, port = address.rpartition(":")
                if colon:  # Ray itself would retry for minutes
                    socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
                ray.init(address, **options)
            except (RuntimeError, OSError) as error:
                raise ConnectionError(
                    f"--address: cannot connect to a Ray cluster at {address!r} ({error}); start "
                    "one with 'ray start --head', and run this on one of its machines. If it "
                    "requires a token, HOST:PORT also needs RAY_AUTH_MODE=token"
                ) from error
        if handler is not None:
            # Ray's own handler exits at once; it must not replace that of a `StopRequest`.
            signal.signal(signal.SIGTERM, handler)
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()
