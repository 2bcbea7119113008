"""How a run is executed: its device, precision, stop requests and processes.

Each of several processes has a share of every batch, by torch's DistributedDataParallel.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from labelproof.ranges import whole

TYPES = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""Torch's type for each precision."""


def resolve_precision(precision: str, device: torch.device) -> str:
    """The precision, with `auto` resolved for a device."""
    if precision != "auto":
        return precision
    return "bf16" if device.type == "cuda" else "float32"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """The autocast context for a network; none for float32."""
    if precision == "float32":
        return nullcontext()
    # Without the cache of cast weights, which would outlive the capture of a CUDA graph.
    return torch.autocast(device.type, TYPES[precision], cache_enabled=False)


@dataclass(frozen=True)
class Execution:
    """How to execute a run; nothing here changes its result, up to rounding.

    Attributes:
        device: The device.
        compile: Whether the network and the loss are compiled.
        record: Whether a step is recorded as a CUDA graph.
        workers: Number of processes that decode images that are not in memory.
        convolution: One of `kernels.CONVOLUTIONS`; empty for the device's fastest.
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
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    known = ["auto", "cpu"]
    if torch.backends.mps.is_available():
        known.append("mps")
    if count := torch.cuda.device_count():
        known += ["cuda", *(f"cuda:{number}" for number in range(count))]
    if name not in known:
        raise ValueError(f"device: expected {', '.join(known)} on this machine, got {name!r}")
    return torch.device(name)


def choose_execution(
    device: str = "auto", *, compile: bool | None = None, workers: int | None = None
) -> Execution:
    """Choose how to run on a device; on CUDA, compiled and recorded by default.

    In a container that may use fewer cores than the machine has, torch gets no more threads.

    Args:
        device: `auto`, or a device's name.
        compile: Whether to compile.
        workers: Number of processes that decode images that are not in memory; by default one for
            each core, at most 16.
    """
    import joblib  # late: it takes long to import

    cores = joblib.cpu_count()
    torch.set_num_threads(min(torch.get_num_threads(), cores))
    if not torch.cuda.is_initialized():
        # Streams share the hardware's queues; with CUDA's default of 8, more than 8 runs would
        # wait for each other. CUDA reads it when it starts.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    chosen = choose_device(device)
    fast = chosen.type == "cuda"
    return Execution(
        chosen,
        compile=fast if compile is None else compile,
        record=fast,
        workers=min(cores, 16) if workers is None else whole("workers", workers, 0),
    )


class StopRequest:
    """A context that records SIGINT and SIGTERM instead of raising; a second signal raises.

    Outside the main thread it catches no signals.

    Args:
        seconds: Time limit after which to stop; `None` for no limit.

    Attributes:
        end: End of the time limit, by `time.monotonic`.

    Example:
        >>> with StopRequest() as stop:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     stop.wanted, stop.exit_code
        (True, 143)
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.signal: int | None = None
        self.end = math.inf if seconds is None else time.monotonic() + seconds
        self._previous: dict[int, object] = {}

    @property
    def wanted(self) -> bool:
        """Whether to stop: after a signal, or after the time limit."""
        return self.signal is not None or time.monotonic() >= self.end

    @property
    def exit_code(self) -> int:
        """The exit code after a signal, 128 plus its number as in shells; else 0."""
        return 0 if self.signal is None else 128 + self.signal

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def interrupts(handler: Any) -> Iterator[None]:
    """Handle SIGINT (Ctrl-C) by `handler`; processes started inside inherit `signal.SIG_IGN`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def launched() -> bool:
    """Whether `torchrun` started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


@contextmanager
def process_group(execution: Execution) -> Iterator[Execution]:
    """Join the process group of `torchrun`, if there is one, for the length of the block.

    Args:
        execution: The execution of a single process.

    Yields:
        The execution with this process's device and rank.
    """
    if not launched():
        yield execution
        return
    device = execution.device
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    # Waiting for other processes happens in native code, where Python's signal handlers do not run;
    # the default handler may end the process, because there is nothing to save yet.
    with interrupts(signal.SIG_DFL):
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        # Gradients are averaged by hooks of the backward pass, which a recorded graph omits.
        yield replace(
            execution,
            device=device,
            record=False,
            rank=torch.distributed.get_rank(),
            world_size=torch.distributed.get_world_size(),
        )
    finally:
        torch.distributed.destroy_process_group()


def share_gradients(network: nn.Module) -> nn.Module:
    """Average a network's gradients, and its batch statistics, over all processes.

    The parameters and their names do not change. Torch synchronises batch norm only on CUDA, and
    raises an error elsewhere: unsynchronised, the result would differ.
    """
    device = next(network.parameters()).device
    count_batches(nn.SyncBatchNorm.convert_sync_batchnorm(network))
    return DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)


def count_batches(network: nn.Module) -> None:
    """Give torch's synchronised batch norms the batch count they require, though nothing reads it.

    It is not a buffer, so that checkpoints have the same tensors for one process and for several.
    """
    for module in network.modules():
        if isinstance(module, nn.SyncBatchNorm) and module.num_batches_tracked is None:
            module._buffers.pop("num_batches_tracked")
            device = next((each.device for each in module.parameters()), None)
            module.num_batches_tracked = torch.zeros((), dtype=torch.int64, device=device)


def any_process(flag: bool, device: torch.device) -> bool:
    """Whether the flag is true in any process; all processes get the same answer."""
    largest = torch.tensor(int(flag), device=device)
    torch.distributed.all_reduce(largest, op=torch.distributed.ReduceOp.MAX)
    return bool(largest)
