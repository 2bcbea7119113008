"""Named tensors as the bytes of a safetensors file, and back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

__all__ = ["check_tensors", "from_bytes", "to_bytes"]

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def check_tensors(argument: str, named: Mapping[str, Tensor]) -> None:
    """Refuse what such a file cannot hold, before anything is written.

    Args:
        argument: Its name, for the message.
        named: Tensors by name.

    Example:
        >>> check_tensors("weights", {"bias": torch.zeros(2)})
        >>> check_tensors("weights", {"bias": 0.0})
        Traceback (most recent call last):
            ...
        TypeError: weights: expected a tensor as 'bias', got 0.0 (float)
    """
    for name, tensor in named.items():
        if not isinstance(name, str) or name == "__metadata__":  # which the format keeps for itself
            raise ValueError(f"{argument}: expected a tensor's name, got {name!r}")
        if not isinstance(tensor, Tensor):
            came = f"{tensor!r} ({type(tensor).__name__})"
            raise TypeError(f"{argument}: expected a tensor as {name!r}, got {came}")
        dense = tensor.layout is torch.strided and tensor.device.type != "meta"
        if not dense or tensor.dtype not in (*_FLOATS, *_WHOLE):
            raise TypeError(
                f"{argument}: expected a dense tensor of real or whole numbers as {name!r}, got "
                f"one of {tensor.dtype}, {tensor.layout}, on {tensor.device}"
            )


def to_bytes(named: Mapping[str, Tensor]) -> bytes:
    """The content of a file with these tensors, from any device and in any memory format.

    In memory, because safetensors' own writer keeps the system's error to itself, makes files for
    their owner alone, and leaves a file that must be read again for its checksum.

    >>> from_bytes(to_bytes({"bias": torch.zeros(2)}))
    {'bias': tensor([0., 0.])}
    """
    taken: set[int] = set()
    packed: dict[str, Tensor] = {}
    for name, tensor in named.items():
        own = tensor.detach().cpu().contiguous().resolve_neg()
        if own.untyped_storage().data_ptr() in taken:  # the format knows no shared memory
            own = own.clone()
        taken.add(own.untyped_storage().data_ptr())
        packed[name] = own
    return save(packed)


def from_bytes(content: bytes) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU, each with memory of its own.

    >>> from_bytes(b"something else")
    Traceback (most recent call last):
        ...
    ValueError: is not a safetensors file (...)
    """
    try:
        return load(content)
    except SafetensorError as error:
        raise ValueError(f"is not a safetensors file ({error})") from None
