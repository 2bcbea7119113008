"""Which convolution kernels a network uses: torch's own, or those that suit the device better.

The choice changes results by rounding, so it is never made by a timing at run time, which could
fall differently when a run resumes.
"""

from __future__ import annotations

import platform
import sys
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelproof.ranges import choose
from labelproof.training.kernels.winograd import WinogradConv2d, fits_layer

_UNIT = 8

Network = TypeVar("Network", bound=nn.Module)


class PaddedConv2d(nn.Conv2d):
    """`torch.nn.Conv2d` over channels padded with zeros to a multiple of eight.

    >>> import torch
    >>> PaddedConv2d(3, 4, 3)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 4, 6, 6])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Outputs, `(N, K, H', W')`."""
        inward, outward = -self.in_channels % _UNIT, -self.out_channels % _UNIT
        weight = F.pad(self.weight, (0, 0, 0, 0, 0, inward, 0, outward))
        padded = F.pad(input, (0, 0, 0, 0, 0, inward)) if inward else input
        bias = None if self.bias is None else F.pad(self.bias, (0, outward))
        result = F.conv2d(padded, weight, bias, self.stride, self.padding, self.dilation)
        # Not a slice: its gradient is laid out with channels first, and cuDNN would copy it back.
        return F.pad(result, (0, 0, 0, 0, 0, -outward)) if outward else result


CONVOLUTIONS = ("torch", "winograd", "padded")
"""Torch's own; `WinogradConv2d` where it fits, for CPUs; `PaddedConv2d`, for 16 bits on CUDA."""


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
        if type(module) is nn.Conv2d:
            if convolution == "winograd" and fits_layer(module):
                module.__class__ = WinogradConv2d
            elif convolution == "padded" and _is_uneven(module):
                module.__class__ = PaddedConv2d
    return network


def _is_uneven(layer: nn.Conv2d) -> bool:
    uneven = layer.in_channels % _UNIT or layer.out_channels % _UNIT
    return bool(uneven) and layer.groups == 1 and layer.padding_mode == "zeros"
