"""The source pixels of an augmented image, in integer arithmetic.

Rotations are multiples of 1/65536 and boxes whole pixels, so that devices cannot round differently:
an image augmented on a GPU equals the one augmented on a CPU.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ATTEMPTS = 10
"""Number of boxes to try; if none fits the image, the centre is used."""

RATIO = (3 / 4, 4 / 3)
"""The smallest and the largest aspect ratio of a box, width over height."""

_ONE = 1 << 16
# Weights are integers that sum to about 32768: their products with pixel values up to 255 have
# exact sums in float32, in whatever order a device adds them.
_SHARES = 1 << 15


def trace_pixels(
    height: int,
    width: int,
    *,
    crop: Tensor | None = None,
    flip: Tensor | None = None,
    rotation: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The source pixel of each pixel of an image that is cropped, flipped, then rotated.

    The rotation is counter-clockwise about the centre, by nearest neighbour. What a step moves out
    of the image is lost to the next one.

    Args:
        height: Height of the image.
        width: Width of the image.
        crop: `(B, 2)`, whole rows and columns by which the window moves down and right.
        flip: `(B, 1)`, 1 to flip horizontally, else 0.
        rotation: `(B, 2)`, cosine and sine of the angle, multiples of 1/65536.

    Returns:
        `(B, H, W)` indices of pixels, int32, row by row; and 1 for those inside the image, 0 for
        the others, whose index is 0; or `None` if all are inside.
    """
    part = next(part for part in (crop, flip, rotation) if part is not None)
    row = torch.arange(height, dtype=torch.int32, device=part.device).view(1, -1, 1)
    column = torch.arange(width, dtype=torch.int32, device=part.device).view(1, 1, -1)
    outside: Tensor | None = None
    if rotation is not None:
        cosine, sine = ((rotation * _ONE).to(torch.int32)[:, i].view(-1, 1, 1) for i in range(2))
        # Twice the distance from the centre is an integer, even if the centre is between pixels.
        down, right = 2 * row + (1 - height), 2 * column + (1 - width)
        column = (cosine * right - sine * down + width * _ONE) >> 17
        row = (sine * right + cosine * down + height * _ONE) >> 17
        outside = _negative_outside(row, column, height, width)
    if flip is not None:
        sign = (1 - 2 * flip).to(torch.int32).view(-1, 1, 1)
        column = column * sign + (1 - sign) // 2 * (width - 1)
    if crop is not None:
        steps = crop.to(torch.int32)
        row, column = row + steps[:, 0].view(-1, 1, 1), column + steps[:, 1].view(-1, 1, 1)
        lost = _negative_outside(row, column, height, width)
        outside = lost if outside is None else outside | lost
    pixel = row * width + column
    if outside is None:
        return pixel, None
    inside = (outside >> 31) + 1
    return pixel * inside, inside


def choose_boxes(draws: Tensor, height: int, width: int) -> Tensor:
    """The boxes of random resized crops.

    Args:
        draws: `(B, 2 * ATTEMPTS + 2)`: the widths and heights of boxes to try, relative to the side
            of a square of the image's area; then the position from the top and left, in 0..1.
        height: Height of the image.
        width: Width of the image.

    Returns:
        `(B, 4)`, whole numbers: left, top, right and bottom of the first box that fits, or of the
        largest centred box with an allowed aspect ratio.
    """
    sizes = (draws[:, :-2] * math.sqrt(height * width)).round().view(-1, ATTEMPTS, 2)
    limits = [(sizes[..., 0], width), (sizes[..., 1], height)]
    fits = torch.stack([(side >= 1) & (side <= limit) for side, limit in limits]).all(dim=0)
    first = fits.to(torch.int32).argmax(dim=1).view(-1, 1, 1).expand(-1, 1, 2)
    wide, high = sizes.gather(1, first).squeeze(1).unbind(1)
    left = (draws[:, -1] * (width - wide + 1)).floor()
    top = (draws[:, -2] * (height - high + 1)).floor()
    drawn = torch.stack([left, top, left + wide, top + high], dim=1)
    edges = _largest_centre(height, width)
    # One column at a time: a tensor made from a list is copied from the host.
    centre = torch.stack([torch.full_like(left, edge) for edge in edges], dim=1)
    return torch.where(fits.any(dim=1, keepdim=True), drawn, centre)


def choose_box(
    draws: NDArray[np.float32], height: int, width: int
) -> tuple[float, float, float, float]:
    """As `choose_boxes` for one image, with the same bits.

    For the processes that decode images one by one: there the two dozen tensor operations of
    `choose_boxes` take half as long as decoding.
    """
    sizes = np.rint(draws[:-2] * np.float32(math.sqrt(height * width))).tolist()
    for wide, high in zip(sizes[::2], sizes[1::2], strict=True):
        if 1 <= wide <= width and 1 <= high <= height:
            left = float(np.floor(draws[-1] * np.float32(width - wide + 1)))
            top = float(np.floor(draws[-2] * np.float32(height - high + 1)))
            return left, top, left + wide, top + high
    left, top, right, bottom = _largest_centre(height, width)
    return float(left), float(top), float(right), float(bottom)


def _largest_centre(height: int, width: int) -> tuple[int, int, int, int]:
    """Edges of the largest centred box with an allowed aspect ratio."""
    ratio = min(max(width / height, RATIO[0]), RATIO[1])
    wide, high = min(width, round(height * ratio)), min(height, round(width / ratio))
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high


def short_side(size: int) -> int:
    """The short side, in pixels, to which evaluation resizes an image before cropping to `size`."""
    return size * 256 // 224


def centre_box(height: int, width: int, size: int) -> tuple[float, float, float, float]:
    """The box that evaluation crops: the centre, with the short side resized to 256/224 of `size`.

    Resizing this box is the same as resizing the whole image and cropping the centre.

    Returns:
        Left, top, right and bottom.
    """
    short = short_side(size)
    edges: list[tuple[float, float]] = []
    for side in (width, height):
        resized = short * side // min(height, width)
        start = (resized - size) // 2
        edges.append((start * side / resized, (start + size) * side / resized))
    (left, right), (top, bottom) = edges
    return left, top, right, bottom


def resample(images: Tensor, boxes: Tensor, size: int) -> Tensor:
    """Resize a box of each image with Pillow's bilinear filter.

    Shrinking averages over all pixels that are covered. As two matrix products it is exact, needs
    no gather and is cheap compared to a network.

    Args:
        images: `(B, H, W, C)`, uint8.
        boxes: `(B, 4)`: left, top, right, bottom.
        size: Side of the result.

    Returns:
        `(B, size, size, C)`, uint8.
    """
    count, height, width, channels = images.shape
    # Copied: on some CPUs a product with a transposed matrix is ten times slower.
    across = _weights(boxes[:, 0], boxes[:, 2], width, size).mT.contiguous()
    down = _weights(boxes[:, 1], boxes[:, 3], height, size)
    lines = images.permute(0, 1, 3, 2).reshape(count, height * channels, width).to(torch.float32)
    # Pillow also rounds between its two passes.
    narrow = _levels(torch.bmm(lines, across))
    result = _levels(torch.bmm(down, narrow.view(count, height, channels * size)))
    result = result.to(torch.uint8).view(count, size, channels, size)
    return result.permute(0, 1, 3, 2).contiguous()


def _weights(start: Tensor, end: Tensor, length: int, size: int) -> Tensor:
    """Integer weights of `length` source pixels in each of `size` pixels, `(B, size, length)`."""
    scale = ((end - start) / size).view(-1, 1, 1)
    steps = torch.arange(size, dtype=torch.float32, device=start.device).view(1, -1, 1)
    pixels = torch.arange(length, dtype=torch.float32, device=start.device).view(1, 1, -1)
    centre = start.view(-1, 1, 1) + (steps + 0.5) * scale
    heights = (1 - (pixels + 0.5 - centre).abs() / scale.clamp_min(1)).clamp_min(0)
    return (heights / heights.sum(dim=2, keepdim=True) * _SHARES).round()


def _levels(sums: Tensor) -> Tensor:
    """Weighted sums of pixel values, rounded to the nearest value."""
    return torch.floor((sums + _SHARES / 2) / _SHARES).clamp_max(255)


def _negative_outside(row: Tensor, column: Tensor, height: int, width: int) -> Tensor:
    # The sign bit of an `or` is set if that of any operand is; on a CPU this is many times faster
    # than comparing and selecting.
    return (row | (height - 1 - row)) | (column | (width - 1 - column))
