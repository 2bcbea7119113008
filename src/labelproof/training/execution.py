"""The device and the execution options of a run."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from labelproof.ranges import whole

TYPES = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""What the names stand for."""


def resolve_precision(precision: str, device: torch.device) -> str:
    """What `auto` means on a device.

    >>> resolve_precision("auto", torch.device("cpu"))
    'float32'
    """
    if precision != "auto":
        return precision
    return "bf16" if device.type == "cuda" else "float32"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """The context a network runs in."""
    if precision == "float32":
        return nullcontext()
    # Without the cache of cast weights: inside a captured graph it would outlive the capture.
    return torch.autocast(device.type, TYPES[precision], cache_enabled=False)


_QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"


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
    device: str = "auto",
    *,
    compile: bool | None = None,
    record: bool | None = None,
    workers: int | None = None,
) -> Execution:
    """Choose how to run on a device; on CUDA, compiled and recorded by default.

    Args:
        device: `auto`, or a device's name.
        compile: Whether to compile.
        record: Whether to record steps as graphs.
        workers: Processes that decode images which do not lie in memory; one for each core, at most
            16, unless told otherwise.
    """
    if not torch.cuda.is_initialized():
        # Streams share the hardware's queues; with torch's default of 8, more runs than that wait
        # for each other. It is read when CUDA starts.
        os.environ.setdefault(_QUEUES, "32")
    chosen = choose_device(device)
    fast = chosen.type == "cuda"
    if record and not fast:
        raise ValueError(f"record: steps are recorded on CUDA only, got {chosen}")
    return Execution(
        chosen,
        compile=fast if compile is None else compile,
        record=fast if record is None else record,
        workers=min(os.cpu_count() or 1, 16) if workers is None else whole("workers", workers, 0),
    )
