"""A Ray that is made up: tasks are streams in this process, and tell what a test wants told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """What all errors of a Ray are."""


class WorkerCrashedError(RayError):
    pass


class TaskCancelledError(RayError):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception):
        super().__init__(str(cause))
        self.cause = cause


class MadeRay:
    """As much of Ray as the engine uses; an error among what a task tells is raised.

    Args:
        plans: What each task tells, in the order in which they are begun; `None` lets every task do
            its work for real.
        cpus: Cores of the one machine.
    """

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=RayTaskError,
        TaskCancelledError=TaskCancelledError,
        WorkerCrashedError=WorkerCrashedError,
        **{
            name: type(name, (RayError,), {})
            for name in ("NodeDiedError", "OutOfMemoryError", "ObjectLostError")
        },
    )

    def __init__(self, plans: list[list[Any]] | None = None, *, cpus: int = 2):
        self.plans = plans
        self.cpus = cpus
        self.begun = 0
        self.stored: list[Any] = []

    def nodes(self) -> list[dict[str, Any]]:
        gone = {"Alive": False, "Resources": {"CPU": 1000.0}}
        return [{"Alive": True, "Resources": {"CPU": float(self.cpus)}}, gone]

    def put(self, value: Any) -> Any:
        self.stored.append(value)
        return value

    def get(self, value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    def remote(self, **_options: Any) -> Callable[..., Any]:
        def begin(function: Callable[..., Iterator[Any]], *arguments: Any) -> Iterator[Any]:
            self.begun += 1
            return function(*arguments) if self.plans is None else iter(self.plans.pop(0))

        return lambda function: SimpleNamespace(remote=lambda *given: begin(function, *given))

    def wait(
        self, streams: list[Any], num_returns: int = 1, **_options: Any
    ) -> tuple[list[Any], list[Any]]:
        return streams[:num_returns], streams[num_returns:]

    def cancel(self, stream: Any, *, force: bool = False) -> None:
        """What was told before is there still."""
