"""Colour jitter: brightness, contrast, saturation and hue, each image by its own factors."""

from __future__ import annotations

import torch
from torch import Tensor


def jitter(images: Tensor, factors: Tensor, *, strengths: tuple[float, ...]) -> Tensor:
    """Change the colours of each image by its own factors.

    The changes are torchvision's, but always in the order brightness, contrast, saturation, hue,
    where torchvision shuffles it for every image: branching on a draw would split the kernel.

    Args:
        images: `(B, H, W, C)`, floats in 0..1, of 1 or 3 channels.
        factors: `(B, 4)`: brightness, contrast and saturation, where 1 changes nothing, and the
            part of a full circle that hues turn by.
        strengths: How far each may go; one that is 0 is left out.

    Example:
        >>> grey = torch.full((1, 1, 1, 3), 0.5)
        >>> jitter(grey, torch.tensor([[0.5, 1.0, 1.0, 0.0]]), strengths=(0.5, 0, 0, 0)).squeeze()
        tensor([0.2500, 0.2500, 0.2500])
    """
    if images.shape[-1] not in (1, 3):
        raise ValueError(
            f"images: colours can be changed where there are 1 or 3 channels, "
            f"got {images.shape[-1]}; leave jitter out of the augmentation"
        )
    changes = (change_brightness, change_contrast, change_saturation, change_hue)
    for position, (change, strength) in enumerate(zip(changes, strengths, strict=True)):
        if strength:
            images = change(images, factors[:, position].view(-1, 1, 1, 1))
    return images


def change_brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Multiply all channels: 0 is black, 1 the image.

    >>> change_brightness(torch.tensor([0.25, 0.75]), torch.tensor(2.0))
    tensor([0.5000, 1.0000])
    """
    return (images * factor).clamp(0, 1)


def change_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Move away from the image's mean grey, or towards it: 0 is that grey, 1 the image.

    >>> pair = torch.tensor([0.25, 0.75]).view(1, 1, 2, 1)
    >>> change_contrast(pair, torch.tensor(0.5)).flatten()
    tensor([0.3750, 0.6250])
    """
    return _blend(images, _grey(images).mean(dim=(1, 2), keepdim=True), factor)


def change_saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Move each pixel away from its grey, or towards it: 0 is a grey image, 1 the image.

    >>> change_saturation(torch.tensor([1.0, 0.0, 0.0]), torch.tensor(0.0))
    tensor([0.2989, 0.2989, 0.2989])
    """
    return _blend(images, _grey(images), factor)


def change_hue(images: Tensor, turn: Tensor) -> Tensor:
    """Turn hues by a part of the circle, keeping lightest and darkest channel as values.

    >>> change_hue(torch.tensor([1.0, 0.0, 0.5]), torch.tensor(1 / 3))
    tensor([0.5000, 1.0000, 0.0000])
    """
    if images.shape[-1] == 1:
        return images
    red, green, blue = images.unbind(-1)
    highest = torch.maximum(red, torch.maximum(green, blue))
    lowest = torch.minimum(red, torch.minimum(green, blue))
    spread = highest - lowest
    # A grey pixel has no hue; any will do, as it has no spread to show it with.
    divisor = torch.where(spread == 0, 1, spread)
    hue = torch.where(
        highest == red,
        (green - blue) / divisor,
        torch.where(highest == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor),
    )
    hue = hue + 6 * (turn.squeeze(-1) if turn.ndim else turn)
    # Around the circle of sixths, a channel is full for two, empty for two, and linear between;
    # red, green and blue differ in where they start.
    channels: list[Tensor] = []
    for start in (5, 3, 1):
        place = torch.remainder(start + hue, 6)
        missing = torch.minimum(place, 4 - place).clamp(0, 1)
        channels.append(highest - spread * missing)
    return torch.stack(channels, dim=-1)


def _grey(images: Tensor) -> Tensor:
    """The grey of each pixel, by what the eye makes of the three colours, `(..., 1)`."""
    if images.shape[-1] == 1:
        return images
    red, green, blue = images.split(1, dim=-1)
    return 0.2989 * red + 0.587 * green + 0.114 * blue


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * images + (1 - factor) * other).clamp(0, 1)
