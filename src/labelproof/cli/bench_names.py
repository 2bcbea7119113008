"""What the record of a run will be called, which has the precision that the device decides."""

from __future__ import annotations

from dataclasses import replace

import torch

from labelproof.training.configuration import Configuration
from labelproof.training.execution import choose_device, resolve_precision

__all__ = ["foreseen_name", "resolved"]


def resolved(configuration: Configuration, device: torch.device) -> Configuration:
    """A configuration as its record will have it.

    >>> resolved(Configuration("mnist"), torch.device("cuda")).precision
    'bf16'
    """
    return replace(configuration, precision=resolve_precision(configuration.precision, device))


def foreseen_name(configuration: Configuration, *, engine: str, device: str) -> str:
    """The name of a run's record before anything is begun.

    Args:
        configuration: Of the run.
        engine: One of `ENGINES`.
        device: As it was asked for.

    Example:
        >>> foreseen_name(Configuration("mnist"), engine="local", device="cuda")
        'mnist-ce-s1-f7a9a6cd'
        >>> foreseen_name(Configuration("mnist"), engine="ray", device="auto")
        'mnist-ce-s1-…'
    """
    if engine == "ray" and device == "auto":
        # A cluster's device is known once one is connected to it, and with it the last digits.
        return f"{configuration.name.rpartition('-')[0]}-…"
    # A list of what a GPU would do can be made where there is none.
    found = torch.device(device) if device.startswith("cuda") else choose_device(device)
    return resolved(configuration, found).name
