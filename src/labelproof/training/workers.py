"""Many independent runs on the cores of one machine, with their progress in one place."""

from __future__ import annotations

import multiprocessing
import queue
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

import torch

Task = TypeVar("Task")
Work = Callable[[Task], Generator[Any, None, Any]]
"""Does a task: yields its progress, returns its result."""


@dataclass(frozen=True)
class Event(Generic[Task]):
    """Something that happened to a task.

    Attributes:
        task: The task.
        kind: `"progress"`, `"done"` or `"failed"`.
        value: What the task yielded or returned, or the text of its error.
    """

    task: Task
    kind: str
    value: Any


class WorkerError(RuntimeError):
    """A task failed in its worker, or the worker died."""


def run_tasks(
    tasks: Sequence[Task], work: Work[Task], *, processes: int
) -> Generator[Event[Task], None, None]:
    """Run all tasks in worker processes, and yield events as they happen.

    Each worker uses one torch thread, which suits small networks. Leaving the iterator early, by an
    exception or Ctrl-C, stops the workers first.

    Args:
        tasks: The tasks; each is pickled for its worker.
        work: A module-level generator function of one task: yields progress, returns the result.
        processes: Number of workers; with one, everything runs in this process.

    Raises:
        WorkerError: A task failed.
    """
    if processes <= 1 or len(tasks) <= 1:
        yield from _run_here(tasks, work)
        return
    context = multiprocessing.get_context("spawn")
    waiting: Any = context.Queue()
    events: Any = context.Queue()
    workers = [
        context.Process(target=_worker, args=(work, waiting, events), daemon=True)
        for _ in range(min(processes, len(tasks)))
    ]
    try:
        for index, task in enumerate(tasks):
            waiting.put((index, task))
        for _ in workers:
            waiting.put(None)
        with interrupts(signal.SIG_IGN):  # from the first instruction, imports included
            for worker in workers:
                worker.start()
        yield from _collect(tasks, events, workers)
    finally:
        _stop(workers)
        for channel in (waiting, events):
            channel.cancel_join_thread()
            channel.close()


def _run_here(tasks: Sequence[Task], work: Work[Task]) -> Iterator[Event[Task]]:
    for task in tasks:
        for kind, value in _steps(work(task)):
            yield Event(task, kind, value)


def _steps(progress: Generator[Any, None, Any]) -> Iterator[tuple[str, Any]]:
    while True:
        try:
            yield "progress", next(progress)
        except StopIteration as stop:
            yield "done", stop.value
            return


def _collect(
    tasks: Sequence[Task], events: Any, workers: Sequence[BaseProcess]
) -> Iterator[Event[Task]]:
    unfinished = len(tasks)
    while unfinished:
        try:
            index, kind, value = events.get(timeout=1.0)
        except queue.Empty:
            if not any(worker.is_alive() for worker in workers):
                codes = sorted({worker.exitcode for worker in workers if worker.exitcode})
                raise WorkerError(
                    f"the workers ended with {unfinished} runs to do (exit codes {codes}); if they "
                    "ran out of memory, use fewer processes"
                ) from None
            continue
        if kind == "failed":
            raise WorkerError(f"{tasks[index]} failed:\n{value}")
        unfinished -= kind == "done"
        yield Event(tasks[index], kind, value)


@contextmanager
def interrupts(handler: Any) -> Iterator[None]:
    """Inside, Ctrl-C is handled so; `signal.SIG_IGN` holds for what is started there, too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _worker(work: Work[Any], waiting: Any, events: Any) -> None:
    # Ctrl-C reaches every process of the terminal; the parent decides, and says what was kept.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    while (item := waiting.get()) is not None:
        index, task = item
        try:
            for kind, value in _steps(work(task)):
                events.put((index, kind, value))
        except Exception:
            events.put((index, "failed", traceback.format_exc()))
            return


def _stop(workers: Sequence[BaseProcess]) -> None:
    started = [worker for worker in workers if worker.pid is not None]
    for worker in started:
        worker.join(timeout=0.5)
        if worker.is_alive():
            worker.terminate()
    for worker in started:
        worker.join(timeout=10)
