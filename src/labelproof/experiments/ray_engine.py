"""Runs over the machines of a Ray cluster, each of them a task of its own.

A task tells its events as a stream. When its worker is lost the run is given to another one, from
here and not by Ray: Ray repeats a stream and leaves out as many events as came before, but a run
that goes on from a checkpoint tells fewer the second time.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from labelproof.experiments.ray_cluster import connected, machines, require_ray, runs_at_once
from labelproof.experiments.ray_worker import Labels, Means, train_one
from labelproof.losses.names import LOSS_FILES
from labelproof.ranges import choose, whole, within
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.runner import Event, Job
from labelproof.training.stop_request import StopRequest

__all__ = ["RayEngine", "WorkerLostError", "share_of_gpu"]

_PATIENCE = 60.0
"""Seconds that a run may take to save itself, which may be in the middle of compiling."""

_SPARE = 2
"""Runs that wait for a place, so that one is taken again as soon as it is free."""

_ENDINGS = ("finished", "failed", "stopped")


class WorkerLostError(RuntimeError):
    """A run was taken from its workers, again and again."""


def share_of_gpu(at_once: int) -> float:
    """The part of a GPU that lets so many runs share it.

    Ray counts in steps of 1/10000, and six parts that were rounded up would not fit.

    >>> share_of_gpu(6), share_of_gpu(1)
    (0.1666, 1.0)
    """
    return math.floor(10_000 / whole("at_once", at_once, 1)) / 10_000


@dataclass(frozen=True)
class RayEngine:
    """Runs on the workers of a Ray cluster.

    Attributes:
        address: `auto` or `HOST:PORT` of a cluster that this machine is part of; `None` starts a
            Ray on this machine for as long as the training takes.
        gpus_per_run: Part of a GPU, where there is any.
        cpus_per_run: CPU cores, and as many threads.
        device: `auto` is `cuda` where a machine has a GPU and `cpu` otherwise.
        retries: How often a run may lose its worker.
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
    retries: int = 3
    checkpoint_seconds: float = 30.0

    def __post_init__(self) -> None:
        within("gpus_per_run", self.gpus_per_run, 0, 1, open_low=True)
        whole("cpus_per_run", self.cpus_per_run, 1)
        choose("device of --engine ray", self.device, ("auto", "cpu", "cuda"))
        whole("retries", self.retries, 0)
        if self.address is not None and self.address != "auto" and not _is_place(self.address):
            raise ValueError(f"--address: expected auto or HOST:PORT, got {self.address!r}")
        require_ray()

    @contextmanager
    def opened(self) -> Iterator[torch.device]:
        """Connected for the length of the block, in which `train` uses this connection.

        Yields:
            The kind of device that runs are given there.
        """
        with connected(self.address) as ray:
            yield torch.device("cuda" if _gpus(ray, self) else "cpu")

    def train(
        self,
        jobs: Iterable[Job],
        *,
        load: Callable[[Configuration], Examples],
        stop: StopRequest | None = None,
    ) -> Iterator[Event]:
        """See `Engine`. Jobs are asked for as others end, a few more than there is room for.

        Of a run that is stopped, only whole epochs are told.
        """
        with connected(self.address) as ray:
            yield from _Grid(ray, self, load).train(jobs, stop)


@dataclass
class _Task:
    """A job on its way, over all the workers it may see."""

    job: Job
    arguments: tuple[Any, ...]
    started: bool = False
    epochs: int = 0
    losses: int = 0
    over: bool = False


class _Grid:
    """The tasks under way, by their streams of events."""

    def __init__(self, ray: Any, engine: RayEngine, load: Callable[[Configuration], Examples]):
        self.ray = ray
        self.engine = engine
        self.load = load
        self.datasets: dict[str, Any] = {}
        self.labels: dict[str, Any] = {}
        self.streams: dict[Any, _Task] = {}
        self.stop: StopRequest | None = None
        self.gpus = _gpus(ray, engine)
        self.means = Means(
            "cuda" if self.gpus else "cpu", engine.cpus_per_run, engine.checkpoint_seconds
        )
        files = os.environ.get(LOSS_FILES)
        self.remote = ray.remote(
            num_returns="streaming",
            num_cpus=engine.cpus_per_run,
            num_gpus=self.gpus,
            max_retries=0,
            # A cluster's workers were started without this program's environment.
            runtime_env={"env_vars": {LOSS_FILES: files}} if files else None,
        )(train_one)

    def train(self, jobs: Iterable[Job], stop: StopRequest | None) -> Iterator[Event]:
        self.stop = stop
        waiting, more = iter(jobs), True
        try:
            while (more or self.streams) and not self.stopping:
                wanted = more and len(self.streams) < self._most()
                if wanted:
                    # Asked for one by one: what comes next may depend on what came out so far.
                    job = next(waiting, None)
                    more = job is not None
                    if job is not None:
                        self._begin(_Task(job, self._share(job.configuration)))
                if self.streams:
                    yield from self._look(0 if wanted else 0.2)
            yield from self._end()
        except (Exception, GeneratorExit):
            # Whatever went wrong with one run, or in the program, the others' work is kept.
            for _ in self._end():
                pass
            raise
        finally:
            for stream in self.streams:
                self.ray.cancel(stream, force=True)

    @property
    def stopping(self) -> bool:
        return self.stop is not None and self.stop.wanted

    def _share(self, configuration: Configuration) -> tuple[Any, Any]:
        """Where the dataset and the labels are in the object store, each put there once.

        Labels are known by what they are, not by the settings they come from, which only `load`
        knows.
        """
        data, examples = configuration.data, self.load(configuration)
        labels = Labels.of(examples)
        key = labels.digest
        if data not in self.datasets:
            self.datasets[data] = self.ray.put(examples.dataset)
        if key not in self.labels:
            self.labels[key] = self.ray.put(labels)
        return self.datasets[data], self.labels[key]

    def _most(self) -> int:
        """How many runs to have on the cluster, as large as it is now: machines come and go."""
        room = runs_at_once(machines(self.ray), cpus=self.engine.cpus_per_run, gpus=self.gpus)
        return room + _SPARE

    def _begin(self, task: _Task) -> None:
        folder = task.job.folder
        # A worker may be in another place.
        job = replace(task.job, folder=None if folder is None else folder.resolve())
        self.streams[self.remote.remote(job, *task.arguments, self.means)] = task

    def _look(self, seconds: float) -> Iterator[Event]:
        """Take one event of each task that has any, after waiting for the first."""
        streams = list(self.streams)
        ready, _ = self.ray.wait(streams, timeout=seconds, fetch_local=False)
        if ready:  # not of the first alone: it may always have more, and the others none
            ready, _ = self.ray.wait(
                streams, num_returns=len(streams), timeout=0, fetch_local=False
            )
        for stream in ready:
            yield from self._take(stream)

    def _take(self, stream: Any) -> Iterator[Event]:
        errors = self.ray.exceptions
        task = self.streams[stream]
        try:
            kind, value = self.ray.get(next(stream))
        except StopIteration:
            del self.streams[stream]
        except (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
        ) as error:
            del self.streams[stream]
            yield from self._lose(task, type(error).__name__)
        except errors.TaskCancelledError:  # not by us, so that someone does not want it
            del self.streams[stream]
            yield from self._fail(task, "it was cancelled in Ray")
        except errors.RayTaskError as error:
            del self.streams[stream]
            if not task.over:
                raise error.cause from error
        else:
            if kind == "stopped" and not self.stopping:
                del self.streams[stream]
                yield from self._lose(task, "it was told to end")
            else:
                yield from self._tell(task, kind, value)

    def _tell(self, task: _Task, kind: str, value: Any) -> Iterator[Event]:
        """Pass on what was not told before by a worker that is lost, and one ending at most."""
        if task.over:
            return
        task.over = kind in _ENDINGS
        if kind == "started":
            if task.started:
                return
            task.started, task.epochs = True, value
        elif kind == "epoch":
            if value["epoch"] < task.epochs:
                return
            task.epochs = value["epoch"] + 1
        yield Event(task.job, kind, value)

    def _lose(self, task: _Task, reason: str) -> Iterator[Event]:
        if task.over:  # who heard of its end may have removed its folder
            return
        task.losses += 1
        name = task.job.configuration.name
        if task.losses <= self.engine.retries:
            self._begin(task)
            yield Event(task.job, "notice", f"{name}: its worker was lost ({reason}), trying again")
        else:
            yield from self._fail(task, f"its worker was lost {task.losses} times, last: {reason}")

    def _fail(self, task: _Task, reason: str) -> Iterator[Event]:
        yield from self._tell(task, "started", 0)  # what ends has begun, for whoever counts
        yield from self._tell(task, "failed", WorkerLostError(reason))

    def _end(self) -> Iterator[Event]:
        """Have every run save where it stands, and wait until it has."""
        for stream in self.streams:
            self.ray.cancel(stream)
        patience = time.monotonic() + _PATIENCE
        while self.streams and time.monotonic() < patience:
            ready, _ = self.ray.wait(list(self.streams), timeout=0.2, fetch_local=False)
            for stream in ready:
                task = self.streams[stream]
                try:
                    kind, value = self.ray.get(next(stream))
                except (StopIteration, self.ray.exceptions.RayError):
                    del self.streams[stream]
                    if task.started:
                        yield from self._tell(task, "stopped", (task.epochs, 0))
                else:
                    yield from self._tell(task, kind, value)


def _gpus(ray: Any, engine: RayEngine) -> float:
    """The part of a GPU that each run takes; refuse what would wait for ever."""
    alive = machines(ray)
    with_gpu = [machine for machine in alive if machine.get("GPU")]
    if engine.device == "cuda" and not with_gpu:
        raise ValueError("device: expected a GPU in the cluster for cuda, got none")
    wanted = engine.gpus_per_run if with_gpu and engine.device != "cpu" else 0.0
    most = max((machine.get("CPU", 0) for machine in (with_gpu if wanted else alive)), default=0)
    if engine.cpus_per_run > most:
        raise ValueError(
            f"cpus_per_run: expected at most the {most:g} of the cluster's largest machine, got "
            f"{engine.cpus_per_run}"
        )
    return wanted


def _is_place(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return bool(host) and "/" not in host and port.isdecimal()
