"""Layers written so that torch's compiler folds them into their neighbours.

Between two convolutions a network only reads and writes memory: batch norm, ReLU and pooling are
over when the bytes have passed. The compiler makes one kernel of what it can see through, but not
of torch's max pooling, whose gradient it writes out in float32, at four times the size, and reads
back; nor does it find out the sign before a ReLU from what a batch norm still has in hand. Here
both are spelled out. Results are the same, ties included; without a compiler these are the plain
layers. It is for GPUs alone: on a CPU, computing values again costs more than reading them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_FUSING: dict[str, Any] = {
    "realize_reads_threshold": 20,
    "realize_acc_reads_threshold": 40,
    "realize_opcount_threshold": 200,
}
"""The compiler's options with which it rather computes a normalised value again, for each of the
four places of a window, than writes it to memory."""

Network = TypeVar("Network", bound=nn.Module)


def make_fusible(network: Network) -> Network:
    """Let a network's pooling and ReLUs be folded into their neighbours, in place.

    Parameters, their names and the results stay as they are.

    >>> network = make_fusible(nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.MaxPool2d(3)))
    >>> [type(layer).__name__ for layer in network]
    ['FusibleReLU', 'FusibleMaxPool2d', 'MaxPool2d']
    """
    for module in network.modules():
        if type(module) is nn.ReLU and not module.inplace:
            module.__class__ = FusibleReLU
        elif type(module) is nn.MaxPool2d and _halves(module):
            module.__class__ = FusibleMaxPool2d
    return network


def fusing_options(networks: Iterable[nn.Module]) -> dict[str, Any]:
    """The compiler's options for networks: more than its own if they have layers of this kind."""
    kinds = (FusibleMaxPool2d, FusibleReLU)
    modules = (module for network in networks for module in network.modules())
    return _FUSING if any(isinstance(module, kinds) for module in modules) else {}


def _halves(pooling: nn.MaxPool2d) -> bool:
    twos = all(each in (2, (2, 2)) for each in (pooling.kernel_size, pooling.stride))
    plain = pooling.padding in (0, (0, 0)) and pooling.dilation in (1, (1, 1))
    return twos and plain and not pooling.ceil_mode and not pooling.return_indices


class FusibleReLU(nn.ReLU):
    """`torch.nn.ReLU` whose gradient asks its inputs for their sign, not its outputs."""

    def forward(self, input: Tensor) -> Tensor:
        """Inputs, with zero for what is negative."""
        if not torch.compiler.is_compiling():
            return super().forward(input)
        return torch.where(input <= 0, 0.0, input)


class FusibleMaxPool2d(nn.MaxPool2d):
    """`torch.nn.MaxPool2d` over windows of two by two, as element-wise operations."""

    def forward(self, input: Tensor) -> Tensor:
        """The greatest of each window, `(N, C, H / 2, W / 2)`."""
        even = input.ndim == 4 and input.shape[2] % 2 == 0 and input.shape[3] % 2 == 0
        if not (even and torch.compiler.is_compiling()):
            return F.max_pool2d(input, 2)
        return _Greatest.apply(input)  # pyright: ignore[reportReturnType]


class _Greatest(torch.autograd.Function):
    """The greatest of each window, which remembers where it was: a byte, or less.

    Left to autograd, the compiler would keep four truth values for each window instead.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        windows = inputs.unflatten(3, (-1, 2)).unflatten(2, (-1, 2))
        (a, b), (c, d) = ([windows[:, :, :, row, :, column] for column in (0, 1)] for row in (0, 1))
        upper, lower = torch.maximum(a, b), torch.maximum(c, d)
        # Of equal ones the first counts, as torch has it.
        above, below = (b > a).to(torch.uint8), 2 + (d > c).to(torch.uint8)
        ctx.save_for_backward(torch.where(lower > upper, below, above))
        return torch.maximum(upper, lower)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (place,) = ctx.saved_tensors
        places = torch.arange(4, dtype=torch.uint8, device=place.device).view(2, 1, 2)
        chosen = place[:, :, :, None, :, None] == places
        spread = torch.where(chosen, gradient[:, :, :, None, :, None], 0.0)
        return spread.flatten(4, 5).flatten(2, 3)
