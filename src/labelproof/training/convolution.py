"""Which convolution kernels a network uses: torch's own, or those that suit the device better.

The choice moves results by rounding, so it is never made by a timing at run time, which could fall
differently when a run is resumed.
"""

from __future__ import annotations

import platform
import sys
from typing import TypeVar

import torch
from torch import nn

from labelproof.ranges import choose
from labelproof.training.padded_convolution import PaddedConv2d, pad_convolutions
from labelproof.training.winograd_convolution import WinogradConv2d, use_winograd

__all__ = ["CONVOLUTIONS", "default_convolution", "use_convolution"]

CONVOLUTIONS = ("torch", "winograd", "padded")
"""Torch's own; `WinogradConv2d` where it fits, for CPUs; `PaddedConv2d`, for 16 bits on CUDA."""

Network = TypeVar("Network", bound=nn.Module)


def default_convolution(device: torch.device, precision: str = "float32") -> str:
    """The fastest convolution on a kind of device.

    >>> default_convolution(torch.device("cuda"), "bf16")
    'padded'
    """
    if device.type == "cuda" and precision != "float32":
        return "padded"
    # On two Neoverse-N1 cores with torch 2.13, whose backward kernels run there at half the speed
    # of its forward ones, Winograd's whole step is 2.3 times faster for the 8-layer CNN and 2.9
    # times for ResNet-34 (benchmarks/training.py). Elsewhere nothing is measured yet.
    arm = sys.platform == "linux" and platform.machine() == "aarch64"
    return "winograd" if device.type == "cpu" and precision == "float32" and arm else "torch"


def use_convolution(network: Network, convolution: str) -> Network:
    """Make a network's convolutions use the kernels named, in place.

    Parameters, their names, the state dict, copying and pickling stay as they are, and it can be
    undone with `torch`. Only layers that are exactly `torch.nn.Conv2d` are touched.

    Args:
        network: Any module.
        convolution: One of `CONVOLUTIONS`.

    Returns:
        The same network.

    Example:
        >>> network = use_convolution(nn.Sequential(nn.Conv2d(32, 64, 3, padding=1)), "winograd")
        >>> type(network[0]).__name__
        'WinogradConv2d'
    """
    choose("convolution", convolution, CONVOLUTIONS)
    for module in network.modules():
        if type(module) in (PaddedConv2d, WinogradConv2d):
            module.__class__ = nn.Conv2d  # pyright: ignore[reportAttributeAccessIssue]
    if convolution == "winograd":
        use_winograd(network)
    elif convolution == "padded":
        pad_convolutions(network)
    return network
