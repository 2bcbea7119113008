"""In which numbers a network computes; its weights, its logits and the loss stay float32."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

__all__ = ["TYPES", "autocast", "resolve_precision"]

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
