"""Progress: silent, bars on a terminal, plain lines in a log, or a callback.

A verb tells a `Reporter`. It has one display for any number of runs: `show` takes the events of
`train_runs`; who trains in another way calls `start`, `advance` and `finish` for each run.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn
from typing_extensions import Self

from labelproof.data.notices import readable

if TYPE_CHECKING:  # who prints a line need not wait for torch
    from rich.status import Status

    from labelproof.training.runner import Event


_BETWEEN = 60.0
"""Seconds between two lines on where all runs stand: a log of a day stays one that can be read."""


def say(console: Console, text: str, *, style: str = "") -> None:
    """Print text as it is: nothing coloured, cut, folded, or taken for markup.

    >>> say(Console(), "runs/[a]: 12% of 3 labels")
    runs/[a]: 12% of 3 labels
    """
    # A name that is not UTF-8 must not end a command with an encoding error.
    console.print(readable(text), style=style, highlight=False, markup=False, soft_wrap=True)


Callback: TypeAlias = "Callable[[Event | str], None]"
"""Told what happens to a run as it happens, and each line that would be printed."""


class Reporter:
    """What a verb tells how it comes along.

    Args:
        console: Where it is shown: bars on a terminal, plain lines anywhere else. Without one,
            nowhere.
        aside: Where the many runs of a search are shown; by default the same.
        callback: Told each event and each line.
        reading: Opened where data are read, for what is warned of there.

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
        reading: Callable[[], AbstractContextManager[None]] = nullcontext,
    ):
        self.console = console or Console(file=io.StringIO(), quiet=True, force_jupyter=False)
        self.aside = aside or self.console
        self.callback, self.reading = callback, reading

    def say(self, text: str) -> None:
        """Tell a line, or a few."""
        say(self.console, text)
        if self.callback is not None:
            self.callback(text)

    def working(self, text: str) -> Status:
        """Inside, something takes its time; `update` tells how far it is."""
        return self.console.status(text)

    def display(self, *, runs: int, epochs: int, aside: bool = False) -> RunDisplay:
        """A display of runs, with as many epochs together."""
        console = self.aside if aside else self.console
        return RunDisplay(console, runs=runs, epochs=epochs, callback=self.callback)


def as_reporter(progress: Reporter | Callback | bool | None) -> Reporter:
    """The reporter that `progress=` asks for."""
    if isinstance(progress, Reporter):
        return progress
    if callable(progress):
        return Reporter(callback=progress)
    return Reporter(Console() if progress else None)


def describe_epoch(metrics: Mapping[str, float]) -> str:
    """What an epoch came to, in a few words; what is not known is left out.

    >>> describe_epoch({"test_accuracy": 91.52, "train_loss": 0.25, "images_per_second": 8123.4})
    'accuracy 91.52%  loss 0.2500  8,123 examples/s'
    """
    words = {
        "test_accuracy": "accuracy {:.2f}%",
        "validation_accuracy": "validation {:.2f}%",
        "train_loss": "loss {:.4f}",
        "sparse_rate": "sparse rate {:.3f}",
        "images_per_second": "{:,.0f} examples/s",
    }
    return "  ".join(word.format(metrics[name]) for name, word in words.items() if name in metrics)


class RunDisplay:
    """A line for each run under way, and a bar for all when there are several.

    Example:
        >>> with RunDisplay(Console(width=100), runs=1, epochs=2) as display:
        ...     display.start("run", "digits-ce", epochs=2)
        ...     display.advance("run", {"test_accuracy": 50.0, "train_loss": 1.5})
        epoch 1 of 2  accuracy 50.00%  loss 1.5000  0:00:00 left
    """

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
        self.finished, self._told = 0, clock()
        self._shown: dict[Hashable, Task] = {}
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

    def show(self, event: Event, name: str = "", outcome: str = "") -> None:
        """Take in what `train_runs` says; a run is called by its configuration by default."""
        job, configuration = event.job, event.job.configuration
        if self.callback is not None:
            self.callback(event)
        if event.kind == "started":
            name = name or configuration.name
            self.start(job, name, epochs=configuration.epochs, done=event.value)
        elif event.kind == "epoch":
            self.advance(job, event.value)
        elif event.kind == "notice":
            self.say(str(event.value))
        else:
            self.finish(job, outcome or _outcome(event))

    def start(self, run: Hashable, name: str, *, epochs: int, done: int = 0) -> None:
        """A run begins, or resumes after some epochs."""
        self._shown[run] = self._add(name if self.runs > 1 else "epoch", epochs, done)
        self._take_off(done)  # it took no time now, so it does not count in the estimate
        if done and self.runs == 1:
            self._line(f"resumes after epoch {done} of {epochs}")

    def advance(self, run: Hashable, metrics: Mapping[str, float]) -> None:
        """An epoch of a run is done."""
        task = self._shown[run]
        self._progress.update(task.id, advance=1)
        note = f"{describe_epoch(metrics)}  {self._left(task)} left"
        self._progress.update(task.id, note=note)
        self._progress.update(self._all.id, advance=1)
        all_note = f"{self.finished} of {self.runs} runs  {self._left(self._all)} left"
        self._progress.update(self._all.id, note=all_note)
        if self.runs == 1:
            width = len(str(task.total))
            self._line(f"epoch {task.completed:>{width}} of {task.total}  {note}")
        elif self.clock() - self._told >= _BETWEEN:
            self._told = self.clock()
            under_way = ", ".join(
                f"{each.description} (epoch {each.completed} of {each.total})"
                for each in self._shown.values()
            )
            left = self._left(self._all)
            done = f"{self.finished} of {self.runs} runs done"
            self._line(f"{done}, {left} left; under way: {under_way}")

    def finish(self, run: Hashable, said: str = "") -> None:
        """A run is over, in whatever way."""
        task = self._shown.pop(run)
        self._progress.remove_task(task.id)
        self.finished += 1
        self._take_off(task.remaining or 0)
        if self.runs > 1:
            self._line(f"{self.finished} of {self.runs}  {task.description}  {said}".rstrip())

    def say(self, text: str) -> None:
        """A line above the bars."""
        say(self.console, text)

    def _line(self, text: str) -> None:
        if not self.console.is_terminal:
            say(self.console, text)

    def _add(self, name: str, epochs: int, done: int = 0, *, visible: bool = True) -> Task:
        self._progress.add_task(
            name, total=epochs, completed=done, visible=visible, note="", begun=done
        )
        return self._progress.tasks[-1]

    def _left(self, task: Task) -> str:
        each = (task.elapsed or 0.0) / max(task.completed - task.fields["begun"], 1)
        return str(timedelta(seconds=round(each * (task.remaining or 0))))

    def _take_off(self, epochs: float) -> None:
        """Epochs that no run trains here take no time."""
        self._all.total = (self._all.total or 0) - epochs


def _outcome(event: Event) -> str:
    if event.kind == "finished":
        accuracies = event.value.curve.get("test_accuracy")
        return f"{accuracies[-1]:.2f}%" if accuracies else "finished"
    if event.kind == "abandoned":
        return f"abandoned after epoch {event.value}"
    return "stopped" if event.kind == "stopped" else str(event.value)
