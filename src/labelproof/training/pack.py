"""Train runs, one or many at once on one device; those that finish make room for the next.

A small network leaves a GPU mostly idle. Several runs in one process share the resident images and
the compiled code; each has its own stream, graphs and random numbers, and takes its steps in turn
with the others, so each comes to what it would have come to alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import nn

from labelproof.training.active import ActiveRun, fits
from labelproof.training.configuration import Configuration
from labelproof.training.distributed import anyone
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution
from labelproof.training.feed import DeviceInputs
from labelproof.training.job import Event, Job
from labelproof.training.stopping import StopRequest

__all__ = ["DeviceMemoryError", "Event", "Job", "fits", "train_runs"]


_TURNS_BETWEEN_QUESTIONS = 8


class DeviceMemoryError(RuntimeError):
    """The device has too little memory for what was asked."""


def train_runs(
    jobs: Iterable[Job],
    execution: Execution,
    *,
    load: Callable[[Configuration], Examples],
    at_once: int = 1,
    checkpoint_seconds: float = 30.0,
    stop: StopRequest | None = None,
    give_up: Callable[[Event], bool] | None = None,
    wrap: Callable[[nn.Module], nn.Module] | None = None,
) -> Iterator[Event]:
    """Do all jobs, and yield what happens to each as it happens.

    Args:
        jobs: What is to be done, in this order; each is asked for when there is room for it.
        execution: On which device, and how.
        load: Gives the examples of a configuration.
        at_once: Runs at a time.
        checkpoint_seconds: Time between two checkpoints of a run; 0 writes one after every epoch.
        stop: Asked between steps; when it is wanted, every run is saved where it stands.
        give_up: Asked after each epoch of a run, with its event; where it says so, the run is let
            go and another takes its place.
        wrap: See `Run`.

    Raises:
        DeviceMemoryError: The device's memory is too small.
    """
    waiting, more = iter(jobs), True
    resident: dict[str, DeviceInputs] = {}
    active: list[ActiveRun] = []
    stopping = _wants_alone(stop, execution)
    turns = itertools.count()
    try:
        while (more or active) and not stopping:
            while more and len(active) < at_once:
                # To load and to compile may take longer than whoever wants to stop will wait.
                if active and _wants_alone(stop, execution):
                    stopping = True
                    break
                # Asked for one by one: what comes next may depend on what came out so far.
                job = next(waiting, None)
                more = job is not None
                if job is not None:
                    run = ActiveRun(job, execution, checkpoint_seconds)
                    active.append(run)
                    yield from run.start(load, resident, wrap)
            for run in [] if stopping else active:
                hopeless = False
                for event in () if run.over else run.advance():
                    yield event
                    if give_up is not None and event.kind == "epoch":
                        hopeless |= give_up(event)
                if hopeless and not run.over:
                    yield from run.abandon()
            active = [run for run in active if not run.over]
            stopping = stopping or _agree_to_stop(stop, execution, next(turns))
        for run in active:
            yield from run.stop()
    except torch.OutOfMemoryError as error:
        raise DeviceMemoryError(_memory_advice(error, at_once, active)) from error
    finally:
        # Whatever went wrong with one run, or in the program, the others' work is kept.
        for run in active:
            run.rescue()


def _wants_alone(stop: StopRequest | None, execution: Execution) -> bool:
    """Whether a process that has not to agree with others is to stop."""
    return execution.world_size == 1 and stop is not None and stop.wanted


def _agree_to_stop(stop: StopRequest | None, execution: Execution, turn: int) -> bool:
    if stop is None:
        return False
    if execution.world_size == 1:
        return stop.wanted
    # All processes must stop at the same step, or one waits for ever for the others' gradients.
    # Asking costs a round trip, so it is not done at every step.
    return turn % _TURNS_BETWEEN_QUESTIONS == 0 and anyone(stop.wanted, execution.device)


def _memory_advice(error: Exception, at_once: int, active: Sequence[ActiveRun]) -> str:
    lower = ["--batch-size"]
    if at_once > 1:
        lower.insert(0, f"the runs at a time ({at_once})")
    lower.append("or choose a smaller --network or --precision bf16")
    first = str(error).split(". ")[0]
    return (
        f"the device is out of memory with {len(active)} runs on it: {first}. Lower "
        f"{', '.join(lower)}"
    )
