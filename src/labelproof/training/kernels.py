r"""Layers that are faster than torch's own on some devices.

The choice of a convolution changes results by rounding, so it never depends on a timing at run
time, which could differ when a run resumes.

Winograd's algorithm computes 3x3 convolutions with a quarter of the multiplications, as matrix
products. A row of 4 outputs of a kernel of 3 taps is the transpose of multiplying two polynomials,
of degrees 3 and 2. Values at 6 points determine their product, at one multiplication a point: 6
instead of 12, and 36 instead of 144 for a tile of 4x4 outputs. With the matrices $B$ (6x6), $G$
(6x3) and $A$ (6x4) along each side of a tile,

$$y = A^\top \left[ (B\,x\,B^\top) \odot (G\,w\,G^\top) \right] A .$$

Summed over channels, the elementwise product becomes one matrix product for each of the 36 points:
$(\text{tiles} \times \text{channels}) (\text{channels} \times \text{filters})$. These take most of
the time. Every step is linear, so the gradients are the same products with the matrices transposed,
and both share $A\,\frac{dL}{dy}\,A^\top$.

Reference: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.

Fusible layers are written so that torch's compiler fuses them with their neighbours. Between two
convolutions, batch norm, ReLU and pooling are limited by memory bandwidth. The compiler does not
fuse torch's max pooling: it writes its gradient in float32, at four times the size, and reads it
back. Nor does it recompute the sign before a ReLU from the batch norm's inputs. Here both are
element-wise operations. Results are the same, ties included; uncompiled, these are the plain
layers. They are for GPUs only: on a CPU, recomputing values costs more than reading them.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from labelproof.ranges import choose

_UNIT = 8

Network = TypeVar("Network", bound=nn.Module)


CONVOLUTIONS = ("torch", "winograd", "padded")
"""Torch's own; `WinogradConv2d` where it applies, for CPUs; `PaddedConv2d`, for 16 bits on CUDA."""


def default_convolution(device: torch.device, precision: str = "float32") -> str:
    """The fastest convolution on a device.

    >>> default_convolution(torch.device("cuda"), "bf16")
    'padded'
    """
    if device.type == "cuda" and precision != "float32":
        return "padded"
    # On two Neoverse-N1 cores with torch 2.13, whose backward kernels run there at half the speed
    # of its forward ones, a step with Winograd is 2.3 times faster for the 8-layer CNN and 2.9
    # times for ResNet-34 (benchmarks/training.py). Other CPUs have not been measured.
    arm = sys.platform == "linux" and platform.machine() == "aarch64"
    return "winograd" if device.type == "cpu" and precision == "float32" and arm else "torch"


def use_convolution(network: Network, convolution: str) -> Network:
    """Change the implementation of a network's convolutions, in place.

    Parameters, their names, the state dict, copying and pickling do not change; `torch` undoes it.
    Only layers that are exactly `torch.nn.Conv2d` change.

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


TILE = 4
"""Outputs along one side of a tile."""

_TAPS = 3
_SIDE = TILE + _TAPS - 1
_NUM_POINTS = _SIDE * _SIDE

_POINTS = (0.0, 1.0, -1.0, 0.5, -2.0)
"""Where polynomials are evaluated, besides infinity. The rounding error is 2.6 times that of a
direct convolution; with the textbook's 2 and -2 it is half as large again."""

_AT_ONE = _SIDE + 1
"""Index of the point (1, 1), which contributes equally to all outputs of a tile: adding the bias
here adds it to each, and the sum of a tile's gradients is read here."""

_TILES_AT_ONCE = 2048
"""Tiles in one product: fewer make the products slow, more take memory without a gain. The buffers
take 19 MB at 64 channels."""


class _Transforms(NamedTuple):
    image: Tensor  # (36, 36): B along both sides
    kernel: Tensor  # (36, 9): G along both sides
    output: Tensor  # (36, 16): A along both sides


class _Grid(NamedTuple):
    height: int
    width: int
    down: int
    across: int

    @property
    def images_at_once(self) -> int:
        return max(1, _TILES_AT_ONCE // (self.down * self.across))


def winograd_forward(
    images: Tensor, weight: Tensor, bias: Tensor | None, padding: tuple[int, int]
) -> Tensor:
    """A convolution of stride 1 by Winograd's algorithm.

    Args:
        images: `(N, C, H, W)` of any strides; channels last is fastest.
        weight: `(K, C, 3, 3)`.
        bias: `(K,)` or none.
        padding: Zeros above and below, and left and right.

    Returns:
        `(N, K, H', W')` in channels-last memory format.

    Example:
        >>> images = torch.arange(16.0).view(1, 1, 4, 4)
        >>> winograd_forward(images, torch.ones(1, 1, 3, 3), None, (0, 0)).round()
        tensor([[[[45., 54.],
                  [81., 90.]]]])
    """
    transforms = _transforms(images.dtype)
    grid = _grid(images, padding)
    channels, filters = images.shape[1], weight.shape[0]
    kernel = _transform_kernel(weight, transforms)
    tiled = images.new_empty(len(images), grid.down * TILE, grid.across * TILE, filters)
    for chunk, result in zip(
        images.split(grid.images_at_once), tiled.split(grid.images_at_once), strict=True
    ):
        points = _transform_images(chunk, padding, grid, transforms)
        product = torch.bmm(points.view(_NUM_POINTS, -1, channels), kernel)
        if bias is not None:
            product[_AT_ONE] += bias
        outputs = torch.mm(transforms.output.t(), product.view(_NUM_POINTS, -1))
        outputs = outputs.view(TILE, TILE, len(chunk), grid.down, grid.across, filters)
        blocks = result.view(len(chunk), grid.down, TILE, grid.across, TILE, filters)
        blocks.copy_(outputs.permute(2, 3, 0, 4, 1, 5))
    return tiled[:, : grid.height, : grid.width].contiguous().permute(0, 3, 1, 2)


def winograd_backward(
    images: Tensor,
    weight: Tensor,
    gradient: Tensor,
    padding: tuple[int, int],
    needs: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of the images, the weight and the bias; `None` where `needs` is false.

    Example:
        >>> images, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)
        >>> gradient = torch.ones(1, 1, 4, 4)
        >>> winograd_backward(images, weight, gradient, (1, 1), (False, True, True))[1].round()
        tensor([[[[ 9., 12.,  9.],
                  [12., 16., 12.],
                  [ 9., 12.,  9.]]]])
    """
    transforms = _transforms(images.dtype)
    grid = _grid(images, padding)
    filters, channels = weight.shape[:2]
    by_images, by_weight, by_bias = needs
    # Contiguous: a product with a transposed right side runs at half the speed.
    kernel = _transform_kernel(weight, transforms).transpose(1, 2).contiguous()
    image_gradient = torch.empty_like(images, memory_format=torch.channels_last)
    kernel_gradient = images.new_zeros(_NUM_POINTS, channels, filters)
    bias_gradient = images.new_zeros(filters)
    right, below = grid.across * TILE - grid.width, grid.down * TILE - grid.height
    tiled = gradient.permute(0, 2, 3, 1)
    if right or below:
        tiled = F.pad(tiled, (0, 0, 0, right, 0, below))
    for start in range(0, len(images), grid.images_at_once):
        chunk = slice(start, start + grid.images_at_once)
        blocks = tiled[chunk].reshape(-1, grid.down, TILE, grid.across, TILE, filters)
        outputs = blocks.permute(2, 4, 0, 1, 3, 5).reshape(TILE * TILE, -1)
        product = torch.mm(transforms.output, outputs).view(_NUM_POINTS, -1, filters)
        if by_bias:
            bias_gradient += product[_AT_ONE].sum(0)
        if by_weight:
            points = _transform_images(images[chunk], padding, grid, transforms)
            points = points.view(_NUM_POINTS, -1, channels).transpose(1, 2)
            kernel_gradient += torch.bmm(points, product)
        if by_images:
            points = torch.bmm(product, kernel).view(_NUM_POINTS, -1)
            tiles = torch.mm(transforms.image.t(), points)
            image_gradient[chunk] = _untile(tiles, images[chunk], padding, grid)
    flat = torch.mm(transforms.kernel.t(), kernel_gradient.view(_NUM_POINTS, -1))
    weight_gradient = flat.view(_TAPS, _TAPS, channels, filters).permute(3, 2, 0, 1)
    return (
        image_gradient if by_images else None,
        weight_gradient if by_weight else None,
        bias_gradient if by_bias else None,
    )


def _evaluation(coefficients: int) -> NDArray[np.float64]:
    """The matrix from a polynomial's coefficients to its values at the points and infinity."""
    infinity = np.eye(coefficients)[-1:]
    return np.concatenate([np.vander(_POINTS, coefficients, increasing=True), infinity])


# B, G and A. A product of polynomials is evaluated by the last two and interpolated by the inverse
# of the first; a convolution is the transpose of that map, so the inverse applies to the image.
_SIDES = (np.linalg.inv(_evaluation(_SIDE)).T, _evaluation(_TAPS), _evaluation(TILE))
_MATRICES = tuple(np.kron(side, side) for side in _SIDES)


def _transforms(dtype: torch.dtype) -> _Transforms:
    # Not cached as tensors: one made in inference mode, or on a fake device, cannot be reused.
    return _Transforms(*(torch.tensor(matrix, dtype=dtype, device="cpu") for matrix in _MATRICES))


def _grid(images: Tensor, padding: tuple[int, int]) -> _Grid:
    height, width = (
        size + 2 * zeros - _TAPS + 1 for size, zeros in zip(images.shape[2:], padding, strict=True)
    )
    return _Grid(height, width, -(-height // TILE), -(-width // TILE))


def _transform_kernel(weight: Tensor, transforms: _Transforms) -> Tensor:
    filters, channels = weight.shape[:2]
    flat = weight.permute(2, 3, 1, 0).reshape(_TAPS * _TAPS, -1)
    return torch.mm(transforms.kernel, flat).view(_NUM_POINTS, channels, filters)


def _transform_images(
    images: Tensor, padding: tuple[int, int], grid: _Grid, transforms: _Transforms
) -> Tensor:
    number, channels, height, width = images.shape
    above, left = padding
    padded = images.new_zeros(
        number, grid.down * TILE + _TAPS - 1, grid.across * TILE + _TAPS - 1, channels
    )
    padded[:, above : above + height, left : left + width] = images.permute(0, 2, 3, 1)
    image, row, column, _ = padded.stride()
    tiles = padded.as_strided(
        (_SIDE, _SIDE, number, grid.down, grid.across, channels),
        (row, column, image, TILE * row, TILE * column, 1),
    )
    return torch.mm(transforms.image, tiles.reshape(_NUM_POINTS, -1))


def _untile(tiles: Tensor, images: Tensor, padding: tuple[int, int], grid: _Grid) -> Tensor:
    """Sum of the tiles, which overlap by two pixels on each side; `(N, C, H, W)`."""
    number, channels, height, width = images.shape
    down, across, over = grid.down, grid.across, _SIDE - TILE
    tiles = tiles.view(_SIDE, _SIDE, number, down, across, channels).permute(2, 3, 0, 4, 1, 5)
    blocks = tiles.new_zeros(number, down + 1, TILE, across + 1, TILE, channels)
    blocks[:, :down, :, :across] = tiles[:, :, :TILE, :, :TILE]
    blocks[:, 1:, :over, :across] += tiles[:, :, TILE:, :, :TILE]
    blocks[:, :down, :, 1:, :over] += tiles[:, :, :TILE, :, TILE:]
    blocks[:, 1:, :over, 1:, :over] += tiles[:, :, TILE:, :, TILE:]
    above, left = padding
    padded = blocks.view(number, (down + 1) * TILE, (across + 1) * TILE, channels)
    return padded[:, above : above + height, left : left + width].permute(0, 3, 1, 2)


# Break-even points in CPU time, forward and backward, measured on a Neoverse-N1 core.
_FEWEST_CHANNELS = 8  # With fewer, transforming the tiles costs more than the products save.
_FEWEST_TILES = 64  # With fewer, transforming the kernel costs more.
_LEAST_WORK = 10_000_000  # Multiplications; with fewer there is no gain.
_LEAST_FILLED = 1 / 3  # Share of the tiles' outputs inside the image; the rest is discarded.


class WinogradConv2d(nn.Conv2d):
    """`torch.nn.Conv2d` with a quarter of the multiplications on the CPU.

    For 3x3 kernels of stride 1. Other devices and precisions, autocast, compiled graphs, few or
    small images use `torch.nn.Conv2d`. Second derivatives are not supported. Unlike torch's, an
    infinite pixel makes the whole 4x4 tiles of outputs around it infinite or NaN.

    Example:
        >>> WinogradConv2d(32, 64, 3, padding=1)(torch.zeros(8, 32, 16, 16)).shape
        torch.Size([8, 64, 16, 16])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Outputs, `(N, K, H', W')`."""
        if not _is_faster(self, input):
            return super().forward(input)
        return _Convolution.apply(input, self.weight, self.bias, _padding(self))


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        images: Tensor, weight: Tensor, bias: Tensor | None, padding: tuple[int, int]
    ) -> Tensor:
        return winograd_forward(images, weight, bias, padding)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        images, weight, _, ctx.padding = inputs
        ctx.save_for_backward(images, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        images, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad[:3]
        return (*winograd_backward(images, weight, gradient, ctx.padding, needs), None)


def fits_layer(layer: nn.Conv2d) -> bool:
    """Whether a layer is a 3x3 convolution of stride 1."""
    return (
        layer.kernel_size == (3, 3)
        and layer.stride == (1, 1)
        and layer.dilation == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
    )


def _is_faster(layer: nn.Conv2d, images: Tensor) -> bool:
    """Decided by shapes only, so that a resumed run computes the same."""
    if (
        images.ndim != 4
        or images.device.type != "cpu"
        or not images.dtype == layer.weight.dtype == torch.float32
        or images.shape[1] != layer.in_channels  # torch raises its own error
        or torch.is_autocast_enabled("cpu")
        or torch.compiler.is_compiling()
    ):
        return False
    height, width = (
        size + 2 * zeros - 2 for size, zeros in zip(images.shape[2:], _padding(layer), strict=True)
    )
    if height < 1 or width < 1:
        return False
    tiles = -(-height // TILE) * -(-width // TILE)
    work = len(images) * height * width * layer.weight.numel()
    return (
        layer.in_channels >= _FEWEST_CHANNELS
        and len(images) * tiles >= _FEWEST_TILES
        and work >= _LEAST_WORK
        and height * width >= _LEAST_FILLED * tiles * TILE * TILE
    )


def _padding(layer: nn.Conv2d) -> tuple[int, int]:
    if isinstance(layer.padding, str):  # For 3x3 kernels of stride 1, "same" is one zero a side.
        return (1, 1) if layer.padding == "same" else (0, 0)
    above, left = layer.padding
    return above, left


_FUSING: dict[str, Any] = {
    "realize_reads_threshold": 20,
    "realize_acc_reads_threshold": 40,
    "realize_opcount_threshold": 200,
}
"""Options with which the compiler recomputes a normalised value for each of the four positions of
a window, rather than writing it to memory."""


def make_fusible(network: Network) -> Network:
    """Make a network's pooling and ReLUs fusible with their neighbours, in place.

    Parameters, their names and the results do not change.

    >>> network = make_fusible(nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.MaxPool2d(3)))
    >>> [type(layer).__name__ for layer in network]
    ['FusibleReLU', 'FusibleMaxPool2d', 'MaxPool2d']
    """
    for module in network.modules():
        if type(module) is nn.ReLU and not module.inplace:
            module.__class__ = FusibleReLU
        elif type(module) is nn.MaxPool2d and _is_two_by_two(module):
            module.__class__ = FusibleMaxPool2d
    return network


def fusing_options(networks: Iterable[nn.Module]) -> dict[str, Any]:
    """The compiler's options for networks; empty if none has fusible layers."""
    kinds = (FusibleMaxPool2d, FusibleReLU)
    modules = (module for network in networks for module in network.modules())
    return _FUSING if any(isinstance(module, kinds) for module in modules) else {}


def _is_two_by_two(pooling: nn.MaxPool2d) -> bool:
    twos = all(each in (2, (2, 2)) for each in (pooling.kernel_size, pooling.stride))
    plain = pooling.padding in (0, (0, 0)) and pooling.dilation in (1, (1, 1))
    return twos and plain and not pooling.ceil_mode and not pooling.return_indices


class FusibleReLU(nn.ReLU):
    """`torch.nn.ReLU` whose gradient uses the sign of its inputs, not of its outputs."""

    def forward(self, input: Tensor) -> Tensor:
        """Inputs, with negative ones set to zero."""
        if not torch.compiler.is_compiling():
            return super().forward(input)
        return torch.where(input <= 0, 0.0, input)


class FusibleMaxPool2d(nn.MaxPool2d):
    """`torch.nn.MaxPool2d` over 2x2 windows, as element-wise operations."""

    def forward(self, input: Tensor) -> Tensor:
        """The maximum of each window, `(N, C, H / 2, W / 2)`."""
        even = input.ndim == 4 and input.shape[2] % 2 == 0 and input.shape[3] % 2 == 0
        if not (even and torch.compiler.is_compiling()):
            return F.max_pool2d(input, 2)
        return _MaxPool.apply(input)  # pyright: ignore[reportReturnType]


class _MaxPool(torch.autograd.Function):
    """The maximum of each window, which saves its position in a byte for the backward pass.

    With autograd the compiler would save four booleans for each window.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        windows = inputs.unflatten(3, (-1, 2)).unflatten(2, (-1, 2))
        (a, b), (c, d) = ([windows[:, :, :, row, :, column] for column in (0, 1)] for row in (0, 1))
        upper, lower = torch.maximum(a, b), torch.maximum(c, d)
        # Of equal values the first counts, as in torch.
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
