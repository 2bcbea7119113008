"""Progress: silent, bars on a terminal, plain lines in a log, or a callback.

A verb reports to a `Reporter`, which has one display for any number of runs.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn
from typing_extensions import Self

from labelproof.data.notices import readable

if TYPE_CHECKING:  # printing a line must not import torch
    from rich.status import Status

    from labelproof.training.runner import Event, Job


_BETWEEN = 60.0
"""Seconds between two status lines of several runs, so that the log of a day stays readable."""


def say(console: Console, text: str, *, style: str = "") -> None:
    """Print text as it is, without highlighting, wrapping or markup.

    >>> say(Console(), "runs/[a]: 12% of 3 labels")
    runs/[a]: 12% of 3 labels
    """
    # A name that is not UTF-8 must not end a command with an encoding error.
    console.print(readable(text), style=style, highlight=False, markup=False, soft_wrap=True)


Callback: TypeAlias = "Callable[[Event | str], None]"
"""Called with each event of a run, and each line that would be printed."""


class Reporter:
    """Shows the progress of a verb.

    Args:
        console: Shows bars on a terminal, plain lines elsewhere; `None` is silent.
        aside: Shows the many runs of a search; by default the same console.
        callback: Called with each event and each line.

    Example:
        >>> lines = []
        >>> Reporter(callback=lines.append).say("Data: 3 rows")
        >>> lines
        ['Data: 3 rows']
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        aside: Console | None = None,
        callback: Callback | None = None,
    ):
        self.console = console or Console(file=io.StringIO(), quiet=True, force_jupyter=False)
        self.aside = aside or self.console
        self.callback = callback

    def say(self, text: str) -> None:
        """Print text, and pass it to the callback."""
        say(self.console, text)
        if self.callback is not None:
            self.callback(text)

    def working(self, text: str) -> Status:
        """A status line for slow work; `update` changes its text."""
        return self.console.status(text)

    def display(self, *, runs: int, epochs: int, aside: bool = False) -> RunDisplay:
        """A display of a number of runs, with a number of epochs in all."""
        console = self.aside if aside else self.console
        return RunDisplay(console, runs=runs, epochs=epochs, callback=self.callback)


def as_reporter(progress: Reporter | Callback | bool | None) -> Reporter:
    """The reporter for the argument `progress` of a verb."""
    if isinstance(progress, Reporter):
        return progress
    if callable(progress):
        return Reporter(callback=progress)
    return Reporter(Console() if progress else None)


def describe_epoch(metrics: Mapping[str, float]) -> str:
    """The metrics of an epoch in words; missing ones are left out.

    >>> describe_epoch({"test_accuracy": 91.52, "train_loss": 0.25, "images_per_second": 8123.4})
    'accuracy 91.52%  loss 0.2500  8,123 examples/s'
    >>> describe_epoch({"train_loss": 131.5, "base": 0.367, "penalty": 3.31, "wrong_fitted": 0.021})
    'loss 0.3670  memorised 2.1%'
    """
    texts = {
        "test_accuracy": "accuracy {:.2f}%",
        "validation_accuracy": "validation {:.2f}%",
        # Where the weight of the penalty grows, the whole loss grows with it.
        "base" if "base" in metrics else "train_loss": "loss {:.4f}",
        "wrong_fitted": "memorised {:.1%}",
        "images_per_second": "{:,.0f} examples/s",
    }
    return "  ".join(text.format(metrics[name]) for name, text in texts.items() if name in metrics)


class RunDisplay:
    """A line for each active run, and a bar for all if there are several."""

    def __init__(
        self,
        console: Console,
        *,
        runs: int,
        epochs: int,
        clock: Callable[[], float] = time.perf_counter,
        callback: Callback | None = None,
    ):
        self.console, self.callback, self.runs, self.clock = console, callback, runs, clock
        self.finished, self._last_line = 0, clock()
        self._tasks: dict[Job, Task] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
            get_time=clock,
        )
        self._all = self._add("all runs", epochs, visible=runs > 1)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, event: Event, name: str = "") -> None:
        """Show an event of `train_runs`; by default, a run is named after its configuration."""
        job, configuration = event.job, event.job.configuration
        if self.callback is not None:
            self.callback(event)
        if event.kind == "notice":
            self.say(str(event.value))
        elif event.kind == "started":
            done, epochs = event.value, configuration.epochs
            name = (name or configuration.name) if self.runs > 1 else "epoch"
            self._tasks[job] = self._add(name, epochs, done)
            self._drop(done)  # epochs that were trained before do not count in the estimate
            if done and self.runs == 1:
                self._line(f"resumes after epoch {done} of {epochs}")
        elif event.kind == "epoch":
            self._advance(self._tasks[job], event.value)
        else:
            task = self._tasks.pop(job)
            self._progress.remove_task(task.id)
            self.finished += 1
            self._drop(task.remaining or 0)
            if self.runs > 1:
                ended = _outcome(event)
                self._line(f"{self.finished} of {self.runs}  {task.description}  {ended}")

    def skip(self, runs: int, epochs: int) -> None:
        """Count runs of some epochs each that need not be trained as finished."""
        self.finished += runs
        self._drop(runs * epochs)

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        say(self.console, text)

    def _advance(self, task: Task, metrics: Mapping[str, float]) -> None:
        for each in (task, self._all):
            self._progress.update(each.id, advance=1)
        note, left = f"{describe_epoch(metrics)}  {_left(task)} left", _left(self._all)
        self._progress.update(task.id, note=note)
        all_note = f"{self.finished} of {self.runs} runs  {left} left"
        self._progress.update(self._all.id, note=all_note)
        if self.runs == 1:
            width = len(str(task.total))
            self._line(f"epoch {task.completed:>{width}} of {task.total}  {note}")
        elif self.clock() - self._last_line >= _BETWEEN:
            self._last_line = self.clock()
            under_way = ", ".join(
                f"{each.description} (epoch {each.completed} of {each.total})"
                for each in self._tasks.values()
            )
            done = f"{self.finished} of {self.runs} runs done"
            self._line(f"{done}, {left} left; under way: {under_way}")

    def _line(self, text: str) -> None:
        if not self.console.is_terminal:
            say(self.console, text)

    def _add(self, name: str, epochs: int, done: int = 0, *, visible: bool = True) -> Task:
        self._progress.add_task(
            name, total=epochs, completed=done, visible=visible, note="", before=done
        )
        return self._progress.tasks[-1]

    def _drop(self, epochs: float) -> None:
        """Drop epochs that are not trained here from the total."""
        self._all.total = (self._all.total or 0) - epochs


def _left(task: Task) -> str:
    each = (task.elapsed or 0.0) / max(task.completed - task.fields["before"], 1)
    return str(timedelta(seconds=round(each * (task.remaining or 0))))


def _outcome(event: Event) -> str:
    if event.kind == "finished":
        return describe_epoch({name: values[-1] for name, values in event.value.curve.items()})
    if event.kind == "abandoned":
        return f"abandoned after epoch {event.value}"
    return "stopped" if event.kind == "stopped" else str(event.value)
