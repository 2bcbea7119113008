"""How a run is executed: its device, its precision, and how it is asked to stop."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from labelproof.ranges import whole

TYPES = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""What the names stand for."""


def resolve_precision(precision: str, device: torch.device) -> str:
    """What `auto` means on a device."""
    if precision != "auto":
        return precision
    return "bf16" if device.type == "cuda" else "float32"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """The context a network runs in."""
    if precision == "float32":
        return nullcontext()
    # Without the cache of cast weights: inside a captured graph it would outlive the capture.
    return torch.autocast(device.type, TYPES[precision], cache_enabled=False)


@dataclass(frozen=True)
class Execution:
    """How to execute a run; nothing here changes its result, up to rounding.

    Attributes:
        device: The device.
        compile: Whether the network and the loss are compiled.
        record: Whether a step is recorded as a CUDA graph.
        workers: Processes that decode images which do not lie in memory.
        convolution: One of `convolution.CONVOLUTIONS`; the device's fastest where it is empty.
        rank: Rank of this process.
        world_size: Number of processes.
    """

    device: torch.device
    compile: bool = False
    record: bool = False
    workers: int = 0
    convolution: str = ""
    rank: int = 0
    world_size: int = 1


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name; `auto` is the fastest available.

    >>> choose_device("cpu")
    device(type='cpu')
    >>> choose_device("gpu")
    Traceback (most recent call last):
        ...
    ValueError: device: expected auto, cpu, cuda, cuda:NUMBER or mps, got 'gpu'
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(
            f"device: expected auto, cpu, cuda, cuda:NUMBER or mps, got {name!r}"
        ) from None
    there = {
        "cpu": True,
        "cuda": (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise ValueError(f"device: {name} is not there; auto takes the fastest that is")
    return device


def choose_execution(
    device: str = "auto", *, compile: bool | None = None, workers: int | None = None
) -> Execution:
    """Choose how to run on a device; on CUDA, compiled and recorded by default.

    Args:
        device: `auto`, or a device's name.
        compile: Whether to compile.
        workers: Processes that decode images which do not lie in memory; one for each core, at most
            16, unless told otherwise.
    """
    if not torch.cuda.is_initialized():
        # Streams share the hardware's queues; with torch's default of 8, more runs than that wait
        # for each other. It is read when CUDA starts.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    chosen = choose_device(device)
    fast = chosen.type == "cuda"
    return Execution(
        chosen,
        compile=fast if compile is None else compile,
        record=fast,
        workers=min(os.cpu_count() or 1, 16) if workers is None else whole("workers", workers, 0),
    )


class StopRequest:
    """A context that records SIGINT and SIGTERM instead of raising; a second signal raises.

    Outside the main thread it catches no signals.

    Args:
        seconds: Time limit after which to stop; `None` for no limit.

    Attributes:
        end: When the time is over, as `time.monotonic` has it.

    Example:
        >>> with StopRequest() as stop:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     stop.wanted, stop.exit_code
        (True, 143)
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.signal: int | None = None
        self.end = math.inf if seconds is None else time.monotonic() + seconds
        self._before: dict[int, object] = {}

    @property
    def wanted(self) -> bool:
        """Whether to stop at the next occasion."""
        return self.signal is not None or time.monotonic() >= self.end

    @property
    def exit_code(self) -> int:
        """What a program that was stopped by a signal exits with, by the custom of shells; or 0."""
        return 0 if self.signal is None else 128 + self.signal

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


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
