"""Train runs on one device, one at a time or several at once.

A small network leaves a GPU mostly idle. Several runs in one process share the resident images and
the compiled code. Each has its own stream, graphs and random numbers, and the runs take turns step
by step, so each computes the same as it would alone.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.batches import DeviceInputs, ResidentInputs
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution, StopRequest, any_process
from labelproof.training.metrics import DivergedError, predict_logits
from labelproof.training.provenance import mark_data, note_data, refuse_other_data
from labelproof.training.record import RunRecord, sizes, versions
from labelproof.training.run_folder import History, RunFolder, owning
from labelproof.training.streaming import StreamedSet
from labelproof.training.trainer import Trainer


@dataclass(frozen=True)
class Job:
    """A run to train.

    Attributes:
        configuration: What to train.
        folder: The run's folder; `None` writes nothing.
    """

    configuration: Configuration
    folder: Path | None = None


@dataclass(frozen=True)
class Event:
    """An event of a run.

    Attributes:
        job: The run.
        kind: `"started"`, `"epoch"`, `"finished"`, `"stopped"`, `"failed"`, `"abandoned"` or
            `"notice"`.
        value: For these kinds, in order: the number of finished epochs; the epoch's metrics and
            timing; the record; the finished epochs and the steps into the next; the error;
            the number of finished epochs; a message.
    """

    job: Job
    kind: str
    value: Any


_LARGEST_COPY = 8 << 30
"""Bytes of images that the CPU may hold as a channels-last copy."""


class _Stop(Exception):  # noqa: N818
    """Thrown into a run between two steps, to save and stop it."""


@dataclass(eq=False)
class ActiveRun:
    """A job being trained: its run, its folder, and epochs whose sums are still on the device.

    `turns` yields the events, and `None` after each step. An error in a step or in saving, after
    which tensors may be inconsistent, ends it and leaves the run at its last checkpoint.
    """

    job: Job
    execution: Execution
    load: Callable[[Configuration], Examples]
    resident: dict[str, DeviceInputs]
    checkpoint_seconds: float

    def __post_init__(self) -> None:
        self.wait = self.checkpoint_seconds
        self.folder = None if self.job.folder is None else RunFolder(self.job.folder)
        self.writer = self.folder if self.execution.rank == 0 else None
        self.history = History()
        self.pending: deque[Any] = deque()
        self.over = False
        self.turns = self._train()

    def advance(self) -> Iterator[Event]:
        """The events of the next turn: of the start at first, then of one step each."""
        return iter(self.turns.__next__, None)

    def stop(self) -> Iterator[Event]:
        """Save and stop the run."""
        yield self.turns.throw(_Stop())
        yield from self.turns

    def _train(self) -> Generator[Any]:
        with ExitStack() as held:
            held.callback(setattr, self, "over", True)
            for notice in self._prepare(held):
                yield Event(self.job, "notice", notice)
            yield Event(self.job, "started", self.run.epoch)
            self.saved = time.perf_counter()
            self.clock = self.saved - self.history.current_seconds
            try:
                try:
                    yield from self._steps()
                    last = Event(self.job, "finished", self._finish())
                except _Stop:
                    events = list(self._collect(all=True))
                    self._save()
                    yield from events
                    last = Event(self.job, "stopped", (self.run.epoch, self.run.step))
            except DivergedError as error:
                kept = ""
                if self.folder is not None and self.folder.checkpoints.is_dir():
                    kept = f"; the last good state is kept in {self.folder.checkpoints}"
                last = Event(self.job, "failed", DivergedError(f"{error}{kept}"))
        yield last

    def _prepare(self, held: ExitStack) -> list[str]:
        """Load the examples, restore the last checkpoint and return notices of corrupted ones.

        Raises:
            OtherDataError: The folder holds a run on other data.
        """
        if self.writer is not None:
            held.enter_context(owning(self.writer.path))
        self.examples = examples = self.load(self.job.configuration)
        if self.folder is not None:
            refuse_other_data(self.folder.path, lambda: self.fingerprint)
        data = self.job.configuration.data
        images = self.resident.get(data) or self._make_inputs(examples.dataset)
        if images.resident:
            self.resident[data] = images
        else:
            held.callback(images.close)
        self.run = Trainer(self.job.configuration, examples, images, self.execution)
        held.callback(self.run.release)
        self.run.prepare()
        notices: list[str] = []
        if self.folder is not None:
            self.history, notices = self.folder.resume(self.run, writes=self.writer is not None)
        if self.writer is not None:
            if not self.history.metrics and self.run.step == 0:
                self.writer.start(self.run.description)
            # Not earlier: a run that cannot start must not block the folder. Not later: from here
            # on there may be a checkpoint.
            note_data(self.writer.path, self.fingerprint)
        return notices

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the training data."""
        return mark_data(self.job.configuration, self.examples)

    def _steps(self) -> Iterator[Event | None]:
        run = self.run
        while not run.finished:
            run.begin()
            yield None
            while not run.advance():
                yield None
            self.pending.append(run.end())
            # On CUDA an epoch's sums are read while the next one runs, so the device never idles.
            yield from self._collect(all=run.stream is None or run.finished)
            if not run.finished and time.perf_counter() - self.saved >= self.wait:
                yield from self._collect(all=True)
                self._save()

    def _make_inputs(self, dataset: Dataset) -> DeviceInputs:
        """The images, on the device if they fit, else streamed from their files."""
        device = self.execution.device
        if dataset.tabular or fits(dataset, device):
            return ResidentInputs(dataset, device)
        augmentation = parse_augmentation(self.job.configuration.augmentation)
        return StreamedSet(dataset, device, augmentation, workers=self.execution.workers)

    def _collect(self, *, all: bool) -> Iterator[Event]:
        while len(self.pending) > (0 if all else 1):
            epoch = self.pending.popleft()
            metrics = self.run.collect(epoch)
            now = time.perf_counter()
            seconds, self.clock = now - self.clock, now
            timing = {
                "epoch": epoch.number,
                "seconds": round(seconds, 6),
                "images_per_second": round(epoch.examples / max(seconds, 1e-9), 1),
            }
            self.history.metrics.append(metrics)
            self.history.timing.append(timing)
            if self.writer is not None:
                self.writer.add(metrics, timing)
            yield Event(self.job, "epoch", metrics | timing)

    def _save(self) -> None:
        started = time.perf_counter()
        self.history.current_seconds = started - self.clock if self.run.step else 0.0
        # In the middle of an epoch all processes contribute to a checkpoint.
        if self.writer is not None or (self.folder is not None and self.run.step):
            checkpoint = self.run.checkpoint()
            self.run.refuse_unsound()
            if self.writer is not None:
                self.writer.save(checkpoint, self.history)
        self.saved = time.perf_counter()
        # Saving a large network from a GPU takes more than half a second, and all runs wait. It may
        # take one hundredth of the time; 0 saves after every epoch.
        if self.checkpoint_seconds:
            self.wait = max(self.checkpoint_seconds, 100 * (self.saved - started))

    def _finish(self) -> RunRecord:
        run = self.run
        run.refuse_unsound()
        record = RunRecord(
            name=run.configuration.name,
            configuration=run.configuration.as_values(),
            noise_rate=run.examples.noise_rate,
            curve=self.history.curve,
            seconds=round(self.history.seconds, 3),
            versions=versions(self.execution.device),
            data=sizes(run.examples.dataset) | {"fingerprint": self.fingerprint},
        )
        if self.writer is not None:
            self._save()
            self.writer.finish(record, self._predictions())
        return record

    def _predictions(self) -> dict[str, NDArray[np.generic]]:
        run, examples = self.run, self.run.examples
        predict = partial(predict_logits, run.evaluated, precision=run.configuration.precision)
        crop = run.description.crop
        arrays: dict[str, NDArray[np.generic]] = {}
        if "test" in examples.dataset.splits:
            arrays["logits"] = predict(run.images.evaluated(crop=crop))
            arrays["labels"] = examples.dataset.test.labels.astype(np.int32)
        if len(examples.held):
            arrays["held_logits"] = predict(run.images.evaluated(run.held, crop=crop))
            arrays["held_labels"] = examples.given[examples.held].astype(np.int32)
            arrays["held"] = examples.held
        return arrays


def fits(dataset: Dataset, device: torch.device) -> bool:
    """Whether a dataset's images are arrays, and small enough to be resident on the device."""
    size = 0
    for name, split in dataset.splits.items():
        if name in ("train", "test"):
            if not isinstance(split.images, np.ndarray):
                return False
            size += split.images.nbytes
    if device.type != "cuda":
        return size <= _LARGEST_COPY
    return 2 * size <= torch.cuda.mem_get_info(device)[0]


_TURNS_BETWEEN_CHECKS = 8


class DeviceMemoryError(RuntimeError):
    """The device is out of memory."""


def train_runs(
    jobs: Iterable[Job],
    execution: Execution,
    *,
    load: Callable[[Configuration], Examples],
    at_once: int = 1,
    checkpoint_seconds: float = 30.0,
    stop: StopRequest | None = None,
    give_up: Callable[[Event], bool] | None = None,
) -> Iterator[Event]:
    """Train all jobs, and yield events as they happen.

    Args:
        jobs: The runs, in order; each is requested when it can start.
        execution: Device and options.
        load: Returns the examples of a configuration.
        at_once: Number of runs at a time.
        checkpoint_seconds: Time between two checkpoints of a run; 0 writes one after every epoch.
        stop: Checked between steps; when set, every run is saved.
        give_up: Called with each epoch's event; if it returns true, the run is abandoned and
            the next one starts.

    Raises:
        DeviceMemoryError: The device is out of memory.
    """
    waiting, more = iter(jobs), True
    resident: dict[str, DeviceInputs] = {}
    active: list[ActiveRun] = []
    # Several processes must agree to stop, and do so only between steps.
    alone = stop if execution.world_size == 1 else None
    stopping = alone is not None and alone.wanted
    turns = itertools.count()
    try:
        while (more or active) and not stopping:
            while more and len(active) < at_once:
                # Loading and compiling may take longer than a user who stops will wait.
                if active and alone is not None and alone.wanted:
                    stopping = True
                    break
                # Requested one by one: the next job may depend on the results so far.
                job = next(waiting, None)
                more = job is not None
                if job is not None:
                    run = ActiveRun(job, execution, load, resident, checkpoint_seconds)
                    active.append(run)
                    yield from run.advance()
            for run in [] if stopping else active:
                abandoned = False
                for event in run.advance():
                    yield event
                    if give_up is not None and event.kind == "epoch":
                        abandoned |= give_up(event)
                if abandoned and not run.over:
                    run.turns.close()
                    yield Event(run.job, "abandoned", run.run.epoch)
            active = [run for run in active if not run.over]
            if alone is not None:
                stopping = stopping or alone.wanted
            elif stop is not None and next(turns) % _TURNS_BETWEEN_CHECKS == 0:
                # All must stop at the same step, or one waits forever for the others' gradients.
                # The check costs a round trip, so it is not done at every step.
                stopping = any_process(stop.wanted, execution.device)
        for run in active:
            yield from run.stop()
    except torch.OutOfMemoryError as error:
        first = str(error).split(". ")[0]
        fewer = f"the runs at a time ({at_once}), " if at_once > 1 else ""
        raise DeviceMemoryError(
            f"the device is out of memory with {len(active)} runs on it: {first}. Lower {fewer}"
            "--batch-size, or choose a smaller --network or --set precision=bf16"
        ) from error
    finally:
        # After any error, in one run or in the program, the other runs are saved.
        for run in active:
            try:
                with contextlib.suppress(Exception):
                    if execution.world_size == 1:
                        list(run.stop())
            finally:
                run.turns.close()
