"""3x3 convolutions of few channels as one matrix product over unfolded patches."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["unfolded_backward", "unfolded_forward"]


def unfolded_forward(
    images: Tensor, weight: Tensor, bias: Tensor | None, padding: tuple[int, int]
) -> Tensor:
    """The convolution of stride 1, as the product of patches and weights.

    Args:
        images: `(N, C, H, W)` of any strides.
        weight: `(K, C, h, w)`.
        bias: `(K,)` or none.
        padding: Zeros above and below, left and right.

    Returns:
        `(N, K, H', W')` with the channels last in memory.

    Example:
        >>> images = torch.arange(16.0).view(1, 1, 4, 4)
        >>> unfolded_forward(images, torch.ones(1, 1, 3, 3), None, (0, 0))
        tensor([[[[45., 54.],
                  [81., 90.]]]])
    """
    patches = _patches(images, weight, padding)
    matrix = weight.permute(2, 3, 1, 0).reshape(-1, weight.shape[0])
    flat = patches.view(-1, matrix.shape[0])
    result = torch.mm(flat, matrix) if bias is None else torch.addmm(bias, flat, matrix)
    return result.view(*patches.shape[:3], -1).permute(0, 3, 1, 2)


def unfolded_backward(
    images: Tensor,
    weight: Tensor,
    gradient: Tensor,
    padding: tuple[int, int],
    needs: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients by the images, the weight and the bias, where `needs` says so.

    Example:
        >>> images, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)
        >>> gradient = torch.ones(1, 1, 4, 4)
        >>> unfolded_backward(images, weight, gradient, (1, 1), (False, False, True))[2]
        tensor([16.])
    """
    by_images, by_weight, by_bias = needs
    filters, channels, height, width = weight.shape
    flat = gradient.permute(0, 2, 3, 1).reshape(-1, filters)
    image_gradient = weight_gradient = bias_gradient = None
    if by_images:  # Rare: so few channels are a network's input, which needs none.
        image_gradient = F.conv_transpose2d(gradient, weight, padding=padding)
    if by_weight:
        patches = _patches(images, weight, padding).view(len(flat), -1)
        # This way round: the other order's long thin left side is ten times slower in OpenBLAS.
        product = torch.mm(flat.t(), patches).view(filters, height, width, channels)
        weight_gradient = product.permute(0, 3, 1, 2)
    if by_bias:
        bias_gradient = flat.sum(0)
    return image_gradient, weight_gradient, bias_gradient


def _patches(images: Tensor, weight: Tensor, padding: tuple[int, int]) -> Tensor:
    """Every window, `(N, H', W', h * w * C)`: two copies of memory, both in long runs."""
    number, channels, height, width = images.shape
    rows, columns = weight.shape[2:]
    above, left = padding
    padded = images.new_zeros(number, height + 2 * above, width + 2 * left, channels)
    padded[:, above : above + height, left : left + width] = images.permute(0, 2, 3, 1)
    image, row, column, _ = padded.stride()
    windows = padded.as_strided(
        (
            number,
            padded.shape[1] - rows + 1,
            padded.shape[2] - columns + 1,
            rows,
            columns * channels,
        ),
        (image, row, column, row, 1),
    )
    return windows.contiguous().flatten(3)
