"""Carrying a run out under a person's eyes: progress, what it came to, and the exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

import torch.distributed
import typer
from rich.console import Console

from labelproof.cli.exit_codes import DIVERGED, OUT_OF_MEMORY
from labelproof.cli.lines import say
from labelproof.cli.outcome import stopped
from labelproof.cli.output_folder import refuse_foreign
from labelproof.cli.progress import RunDisplay
from labelproof.cli.scalars import Scalars
from labelproof.training.execution import Execution
from labelproof.training.ownership import FolderInUseError, owning
from labelproof.training.pack import DeviceMemoryError, Event, Job
from labelproof.training.record import RunRecord
from labelproof.training.saved import check_removable, remove_run
from labelproof.training.stopping import StopRequest

__all__ = ["carry_out", "take_over"]


def take_over(folder: Path, execution: Execution, *, fresh: bool) -> None:
    """See that no one else trains in the folder, and remove what is there if that is asked for."""
    if execution.rank == 0:
        refuse_foreign(folder, kind="a run")
        if fresh:
            check_removable(folder)
        try:
            with owning(folder):
                if fresh:
                    remove_run(folder)
        except FolderInUseError as error:
            raise ValueError(str(error)) from None
    if execution.world_size > 1:
        # The others look for a checkpoint, and must not find one that is about to be removed.
        torch.distributed.barrier()


def carry_out(
    events: Iterable[Event],
    job: Job,
    execution: Execution,
    *,
    console: Console,
    stop: StopRequest,
    finish: Callable[[RunRecord], str],
    scalars: Scalars | None = None,
    fresh: bool = False,
) -> int:
    """Train, show how it comes along, and say what it came to; the exit code.

    Args:
        events: What happens to the run, as it happens.
        job: The run; its folder is one.
        execution: On which device, and how.
        console: Where it is shown.
        stop: Whether and how it was stopped.
        finish: What is said of a finished run.
        scalars: Where TensorBoard looks, or nothing.
        fresh: Whether the run was started anew.
    """
    last: Event | None = None
    try:
        with contextlib.ExitStack() as stack:
            display = stack.enter_context(
                RunDisplay(console, runs=1, epochs=job.configuration.epochs)
            )
            if scalars is not None:
                stack.callback(scalars.close)
            for event in events:
                display.show(event)
                if scalars is not None and event.kind == "started":
                    scalars.start(event.value)
                elif scalars is not None and event.kind == "epoch":
                    scalars.add(event.value)
                if event.kind != "notice":
                    last = event
    except DeviceMemoryError as error:
        return _fail(error, OUT_OF_MEMORY, execution)
    assert job.folder is not None  # noqa: S101
    if last is not None and last.kind == "finished":
        say(console, finish(last.value))
        return 0
    if last is not None and last.kind == "failed":
        return _fail(last.value, DIVERGED, execution)
    stood = last.value if last is not None and last.kind == "stopped" else None
    say(console, stopped(job.folder, stood, epochs=job.configuration.epochs, fresh=fresh))
    return stop.exit_code


def _fail(error: Exception, code: int, execution: Execution) -> int:
    if execution.rank == 0:
        typer.secho(f"error: {error}", fg="red", err=True)
    return code
