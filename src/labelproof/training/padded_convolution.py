"""Convolutions whose channels are filled up to what the matrix units of a GPU take.

In 16-bit precision they work on eight channels at a time. For any other number (3 colours, the 196
filters of the paper's 8-layer network) cuDNN copies images, weights and gradients into padded ones
before and after each call: a tenth of that network's step. Padded in the graph instead, the zeros
are written by the kernels that make the images and weights in any case.
"""

from __future__ import annotations

from typing import TypeVar

import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["PaddedConv2d", "pad_convolutions"]

_UNIT = 8

Network = TypeVar("Network", bound=nn.Module)


def pad_convolutions(network: Network) -> Network:
    """Make a network's convolutions of odd channel counts pad themselves, in place.

    Parameters, their names and the results stay as they are. Layers that are not exactly
    `torch.nn.Conv2d`, or have groups or another padding than zeros, are left alone.

    >>> network = pad_convolutions(nn.Sequential(nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3)))
    >>> [type(layer).__name__ for layer in network]
    ['PaddedConv2d', 'Conv2d']
    """
    for module in network.modules():
        if (
            type(module) is nn.Conv2d
            and module.groups == 1
            and module.padding_mode == "zeros"
            and (module.in_channels % _UNIT or module.out_channels % _UNIT)
        ):
            module.__class__ = PaddedConv2d
    return network


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
