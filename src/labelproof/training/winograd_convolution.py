"""Convolutions on the CPU as fewer multiplications, by Winograd's method where it fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from labelproof.training.unfolded import unfolded_backward, unfolded_forward
from labelproof.training.winograd import TILE, winograd_backward, winograd_forward

__all__ = ["WinogradConv2d", "use_winograd"]

# Where the ways cross in processor time, forward and backward, measured on a Neoverse-N1 core.
_FEWEST_CHANNELS = 8  # With fewer, transforming the tiles costs more than the products save.
_FEWEST_TILES = 64  # With fewer, transforming the kernel does.
_LEAST_WORK = (
    10_000_000  # Multiplications; with fewer nothing is gained, and threads wait for more.
)
_LEAST_FILLED = 1 / 3  # Share of the tiles' outputs that a map must have: the rest is thrown away.

Network = TypeVar("Network", bound=nn.Module)
Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]


class _Kernel(NamedTuple):
    forward: Callable[[Tensor, Tensor, Tensor | None, tuple[int, int]], Tensor]
    backward: Callable[
        [Tensor, Tensor, Tensor, tuple[int, int], tuple[bool, bool, bool]], Gradients
    ]


_WINOGRAD = _Kernel(winograd_forward, winograd_backward)
_UNFOLDED = _Kernel(unfolded_forward, unfolded_backward)


def use_winograd(network: Network) -> Network:
    """Make a network's 3x3 convolutions of stride 1 use Winograd's method, in place.

    >>> type(use_winograd(nn.Conv2d(32, 64, 3))).__name__
    'WinogradConv2d'
    """
    for module in network.modules():
        if type(module) is nn.Conv2d and _fits_layer(module):
            module.__class__ = WinogradConv2d
    return network


class WinogradConv2d(nn.Conv2d):
    """`torch.nn.Conv2d` that multiplies a quarter as often on the CPU; see `winograd`.

    Whatever it has no fast way for goes to `torch.nn.Conv2d`: strides, dilation, groups, other
    kernel sizes, other devices and precisions, autocast, compiled graphs, few or small images.
    Unlike there, an infinite pixel makes the whole 4x4 tile of outputs around it infinite or NaN.

    Example:
        >>> WinogradConv2d(32, 64, 3, padding=1)(torch.zeros(8, 32, 16, 16)).shape
        torch.Size([8, 64, 16, 16])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Outputs, `(N, K, H', W')`."""
        kernel = _choose_kernel(self, input) if _fits_layer(self) else None
        if kernel is None:
            return super().forward(input)
        return _Convolution.apply(input, self.weight, self.bias, _padding(self), kernel)


class _Convolution(torch.autograd.Function):
    """Ties a kernel's forward and backward together."""

    @staticmethod
    def forward(
        images: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        padding: tuple[int, int],
        kernel: _Kernel,
    ) -> Tensor:
        return kernel.forward(images, weight, bias, padding)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        images, weight, _, ctx.padding, ctx.kernel = inputs
        ctx.save_for_backward(images, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        images, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad[:3]
        # Gradients of gradients are rare; torch's own kernels know how to be differentiated.
        compute = _torch_backward if torch.is_grad_enabled() else ctx.kernel.backward
        return (*compute(images, weight, gradient, ctx.padding, needs), None, None)


def _torch_backward(
    images: Tensor,
    weight: Tensor,
    gradient: Tensor,
    padding: tuple[int, int],
    needs: tuple[bool, bool, bool],
) -> Gradients:
    shape, ones, zeros = [len(weight)], (1, 1), (0, 0)
    return torch.ops.aten.convolution_backward(
        gradient, images, weight, shape, ones, padding, ones, False, zeros, 1, needs
    )


def _fits_layer(layer: nn.Conv2d) -> bool:
    return (
        layer.kernel_size == (3, 3)
        and layer.stride == (1, 1)
        and layer.dilation == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
    )


def _choose_kernel(layer: nn.Conv2d, images: Tensor) -> _Kernel | None:
    """By the shapes alone, so that a run and its continuation take the same one."""
    weight = layer.weight
    if (
        images.ndim != 4
        or images.device.type != "cpu"
        or weight.device.type != "cpu"
        or images.dtype not in (torch.float32, torch.float64)
        or weight.dtype != images.dtype
        or images.shape[1] != layer.in_channels  # torch has the message
        or torch.is_autocast_enabled("cpu")
        or torch.compiler.is_compiling()
        # Inside torch.func the tensor is a wrapper whose memory cannot be viewed as tiles.
        or torch._C._functorch.is_functorch_wrapped_tensor(images)  # pyright: ignore
    ):
        return None
    height, width = (
        size + 2 * zeros - 2 for size, zeros in zip(images.shape[2:], _padding(layer), strict=True)
    )
    if height < 1 or width < 1:
        return None
    tiles = -(-height // TILE) * -(-width // TILE)
    work = len(images) * height * width * layer.weight.numel()
    if len(images) * tiles < _FEWEST_TILES or work < _LEAST_WORK:
        return None
    if layer.in_channels < _FEWEST_CHANNELS:
        return _UNFOLDED
    if height * width < _LEAST_FILLED * tiles * TILE * TILE:
        return None
    return _WINOGRAD


def _padding(layer: nn.Conv2d) -> tuple[int, int]:
    if isinstance(layer.padding, str):  # For 3x3 kernels of stride 1, "same" is one zero a side.
        return (1, 1) if layer.padding == "same" else (0, 0)
    above, left = layer.padding
    return above, left
