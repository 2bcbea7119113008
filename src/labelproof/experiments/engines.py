"""Engines that train the runs of a grid: this process, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch

from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution
from labelproof.training.runner import Event, Job, train_runs
from labelproof.training.stop_request import StopRequest

ENGINES = ("local", "ray")
"""What `--engine` takes."""


class Engine(Protocol):
    """Trains jobs and yields their events.

    A failed run is an event, and the others continue. Any other error is raised after all active
    runs have been saved.

    Example:
        >>> import torch
        >>> engine: Engine = LocalEngine(Execution(torch.device("cpu")))
        >>> list(engine.train([], load=lambda configuration: None))
        []
    """

    def opened(self) -> AbstractContextManager[torch.device]:
        """Ready for the length of the block; gives the kind of device that runs are given."""
        ...

    def train(
        self,
        jobs: Iterable[Job],
        *,
        load: Callable[[Configuration], Examples],
        stop: StopRequest | None = None,
    ) -> Iterator[Event]:
        """Train all jobs, and yield events as they happen.

        Args:
            jobs: What is to be done.
            load: Gives the examples of a configuration.
            stop: When it is wanted, every run is saved where it stands.
        """
        ...


@dataclass(frozen=True)
class LocalEngine:
    """Runs in this process, on one device.

    Attributes:
        execution: On which device, and how.
        at_once: Runs at a time.

    Example:
        >>> import torch
        >>> LocalEngine(Execution(torch.device("cpu")), at_once=2).at_once
        2
    """

    execution: Execution
    at_once: int = 1

    def opened(self) -> AbstractContextManager[torch.device]:
        """The device that runs are given, for the length of the block; see `Engine`."""
        return nullcontext(self.execution.device)

    def train(
        self,
        jobs: Iterable[Job],
        *,
        load: Callable[[Configuration], Examples],
        stop: StopRequest | None = None,
    ) -> Iterator[Event]:
        """See `Engine` and `train_runs`."""
        return train_runs(jobs, self.execution, load=load, at_once=self.at_once, stop=stop)
