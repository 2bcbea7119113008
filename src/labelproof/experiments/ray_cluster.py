"""A Ray to work with: one that runs already, or one of our own for the length of a block."""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["connected", "machines", "require_ray", "runs_at_once"]

_PRIVATE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""What a Ray of our own is started with: it listens on 127.0.0.1 alone, and reports to no one.

Ray takes 127.0.0.1 for a node's address only where clusters are switched off, which is what the
first variable does on any system, whatever its name. It is read when Ray is imported.
"""


def require_ray() -> None:
    """Say how to get Ray where it is not installed.

    Raises:
        ImportError: It is not.

    Example:
        >>> getfixture("monkeypatch").setitem(__import__("sys").modules, "ray", None)
        >>> require_ray()
        Traceback (most recent call last):
            ...
        ImportError: --engine ray: expected the package ray, which is not installed; get it with pip
        install 'labelproof[cluster]'
    """
    if importlib.util.find_spec("ray") is None:
        raise ImportError(
            "--engine ray: expected the package ray, which is not installed; get it with pip "
            "install 'labelproof[cluster]'"
        )


@contextlib.contextmanager
def connected(address: str | None = None, **options: Any) -> Iterator[Any]:
    """The module `ray`, connected for the length of the block.

    Where the program is connected already, that connection is used and left as it is.

    Args:
        address: `auto` or `HOST:PORT` of a cluster that this machine is part of; `None` starts a
            Ray here, which ends with the block.
        options: More of what `ray.init` takes.

    Raises:
        ConnectionError: No Ray answers there.
    """
    require_ray()
    with _unchanged_environment():
        with _environment({} if address else _PRIVATE):
            import ray

            ours = not ray.is_initialized()
            if ours:
                with _own_signals():
                    _connect(ray, address, options)
        try:
            yield ray
        finally:
            if ours:
                ray.shutdown()


def machines(ray: Any) -> list[dict[str, float]]:
    """What each machine of a cluster has, such as `CPU` and `GPU`; those that are gone left out.

    Args:
        ray: The module, connected.

    Example:
        >>> from types import SimpleNamespace
        >>> nodes = [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {}}]
        >>> machines(SimpleNamespace(nodes=lambda: nodes))
        [{'CPU': 2.0}]
    """
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def runs_at_once(machines: Iterable[Mapping[str, float]], *, cpus: int, gpus: float) -> int:
    """How many runs have room on machines at the same time, if no one else is there.

    Args:
        machines: What each of them has.
        cpus: Cores of each run.
        gpus: The part of a GPU that each run takes; it lies on one of them.

    Example:
        >>> cluster = [{"CPU": 16, "GPU": 2}, {"CPU": 4, "GPU": 1}, {"CPU": 8}]
        >>> runs_at_once(cluster, cpus=1, gpus=0.1666), runs_at_once(cluster, cpus=1, gpus=0)
        (16, 28)
    """
    room = 0
    for machine in machines:
        runs = int(machine.get("CPU", 0) // cpus)
        room += min(runs, int(machine.get("GPU", 0)) * int(1 / gpus)) if gpus else runs
    return room


def _connect(ray: Any, address: str | None, options: dict[str, Any]) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        # By this word a cluster that RAY_ADDRESS names is left alone.
        ray.init("local", include_dashboard=False, **quiet, **options)
        return
    try:
        host, _, port = address.rpartition(":")
        if host:  # Ray itself would ask for minutes where no one is
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address, **quiet, **options)
    except (RuntimeError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ConnectionError(
            f"--address: no Ray cluster lets this program in at {address!r} ({first}); start one "
            "with 'ray start --head', and run this on one of its machines. Where it asks for a "
            "token, as newer ones do, HOST:PORT also needs RAY_AUTH_MODE=token"
        ) from error


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def _unchanged_environment() -> Iterator[None]:
    """Undo what Ray leaves behind in a program.

    A variable that gives `breakpoint` to Ray's debugger, and a function of its own for `print`.
    """
    names = ("PYTHONBREAKPOINT", "RAY_AUTH_MODE", "RAY_CLIENT_MODE")
    before = {name: os.environ.get(name) for name in names}
    printing = builtins.print
    try:
        yield
    finally:
        builtins.print = printing
        _restore(before)


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray's SIGTERM handler, which exits at once, must not take the place of a `StopRequest`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
