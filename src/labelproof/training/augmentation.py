"""Data augmentation: random numbers drawn on the host, applied on the device.

An augmentation is written as text: `crop:4,flip,rotation:20`, `resized-crop:224,flip`, `none`. All
random numbers of an epoch are one tensor with a row for each training example, drawn on the CPU
before the epoch starts. So neither the device, the batches, parallel runs nor resuming change a
pixel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelproof.ranges import whole, within
from labelproof.text import format_value, parse_form
from labelproof.training import geometry

_STEPS = {
    "resized_crop": ("resized-crop:SIDE", 2 * geometry.ATTEMPTS + 2),
    "crop": ("crop:PIXELS", 2),
    "flip": ("flip", 1),
    "rotation": ("rotation:DEGREES", 2),
    "jitter": ("jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE", 4),
}
"""The steps in order: the text of each, and how many numbers it draws per image."""


@dataclass(frozen=True)
class Augmentation:
    """Augmentation of training images; `str` gives its text.

    The order of the steps is resized crop, crop, flip, rotation, jitter.

    Attributes:
        crop: Pixels of black padding around the image before a random crop of its size.
        flip: Whether to flip half of the images horizontally.
        rotation: Largest angle in degrees, either way; nearest neighbour, black corners.
        resized_crop: Side of a random resized crop of 8% to 100% of the image, with an aspect ratio
            of 3:4 to 4:3; 0 for none.
        jitter: Largest change of brightness, contrast, saturation (as a share) and hue (as a part
            of the circle, at most half).

    Example:
        >>> str(Augmentation(crop=4, flip=True))
        'crop:4,flip'
    """

    crop: int = 0
    flip: bool = False
    rotation: float = 0.0
    resized_crop: int = 0
    jitter: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        *strengths, hue = self.jitter
        checked = {
            "crop": whole("crop", self.crop, 0),
            "rotation": within("rotation", self.rotation, 0, 180),
            "resized_crop": whole("resized-crop", self.resized_crop, 0),
            "jitter": (
                *(within("jitter", number, 0) for number in strengths),
                within("jitter's hue", hue, 0, 0.5),
            ),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> dict[str, slice]:
        """The columns of the draws that each step uses; a step that is off is absent."""
        columns: dict[str, slice] = {}
        end = 0
        for name, (_, width) in _STEPS.items():
            if any(self._numbers(name)):
                columns[name] = slice(end, end + width)
                end += width
        return columns

    @property
    def num_draws(self) -> int:
        """Number of columns of the draws."""
        return sum(columns.stop - columns.start for columns in self.columns.values())

    def __str__(self) -> str:
        words = []
        for name in self.columns:
            word, *places = _STEPS[name][0].split(":")
            numbers = self._numbers(name)[: len(places)]
            words.append(":".join([word, *map(format_value, numbers)]))
        return ",".join(words) or "none"

    def _numbers(self, name: str) -> tuple[float, ...]:
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,)


def parse_augmentation(text: str) -> Augmentation:
    """Read `none`, or words such as `crop:4`, `flip` and `rotation:20` joined by commas.

    >>> parse_augmentation("crop:4,flip,rotation:20").rotation
    20.0
    >>> str(parse_augmentation("Flip, resized-crop:224, jitter:0.4:0.4:0.4:0.20"))
    'resized-crop:224,flip,jitter:0.4:0.4:0.4:0.2'
    >>> parse_augmentation("crop:4,flp")
    Traceback (most recent call last):
        ...
    ValueError: augmentation: expected resized-crop:SIDE, crop:PIXELS, flip, rotation:DEGREES or
    jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE, got 'flp'; did you mean 'flip'?
    """
    plain = text.strip().lower()
    if plain == "none":
        return Augmentation()
    given: dict[str, Any] = {}
    forms = {form: name for name, (form, _) in _STEPS.items()}
    for part in plain.split(","):
        form, values = parse_form(part.strip(), [*forms], what="augmentation")
        name, numbers = forms[form], tuple(values.values())
        if name in given:
            raise ValueError(f"augmentation: expected {form} once, got it again in {text!r}")
        given[name] = numbers if len(numbers) > 1 else numbers[0] if numbers else True
    return Augmentation(**given)


SCALE = (0.08, 1.0)
"""The smallest and the largest share of an image that a resized crop covers."""


def draw_augmentation(augmentation: Augmentation, count: int, generator: torch.Generator) -> Tensor:
    """Draw an epoch's random numbers for augmentation, a row for each training example.

    The draws of a step do not depend on the other steps, so two runs that differ in one step draw
    the same numbers for all others.

    Args:
        augmentation: The augmentation.
        count: Number of training examples.
        generator: A generator on the CPU.

    Returns:
        `(count, augmentation.num_draws)`, float32, in the units that the device uses: whole pixels,
        0 or 1, cosine and sine, and factors.

    Example:
        >>> draws = draw_augmentation(Augmentation(crop=4), 2, torch.Generator().manual_seed(1))
        >>> draws
        tensor([[ 2., -1.],
                [-2.,  2.]])
    """
    if not augmentation.columns:
        return torch.empty(count, 0)

    def uniform(columns: int) -> Tensor:
        return torch.rand(columns, count, generator=generator, dtype=torch.float32)

    window = 2 * augmentation.crop + 1
    steps = {
        "crop": (uniform(2) * window).floor() - augmentation.crop,
        "flip": (uniform(1) < 0.5).to(torch.float32),
        "rotation": _rotations(uniform(1), augmentation.rotation),
        "jitter": _factors(uniform(4), augmentation.jitter),
    }
    # Drawn last, so that its many numbers do not shift those of the other steps.
    if augmentation.resized_crop:
        steps["resized_crop"] = torch.cat([_box_sizes(uniform(2 * geometry.ATTEMPTS)), uniform(2)])
    chosen = torch.cat([steps[name] for name in augmentation.columns])
    return chosen.T.contiguous()


def gather_images(
    images: Tensor,
    index: Tensor | None,
    draws: Tensor,
    augmentation: Augmentation,
    *,
    mean: Tensor,
    std: Tensor,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Gather a batch of images on the device, augment and normalise it.

    A pure function of its tensors that does not branch on their values, so it can be compiled and
    captured as one graph. Crop, flip and rotation together are one gather.

    Args:
        images: All images, `(N, H, W, C)`, uint8.
        index: Indices of the batch, `(B)`, int64; `None` if `images` is a batch with its resized
            crops already applied, as `StreamedImages` returns it.
        draws: Their rows of `draw_augmentation`, `(B, K)`.
        augmentation: The augmentation of the draws.
        mean: Per-channel mean of pixels scaled to 0..1: `(C)`, float32, on the images' device.
        std: Per-channel standard deviation, likewise.
        dtype: Type of the result.

    Returns:
        `(B, C, H, W)` in channels-last memory format; `H` and `W` are the side of the resized crop,
        if there is one.
    """
    columns = augmentation.columns
    if index is not None and "resized_crop" in columns:
        boxes = geometry.choose_boxes(
            draws[:, columns["resized_crop"]], images.shape[1], images.shape[2]
        )
        images = geometry.resample(images.index_select(0, index), boxes, augmentation.resized_crop)
        index = None
    moves = [name for name in ("crop", "flip", "rotation") if name in columns]
    if moves:
        if index is None:
            index = torch.arange(images.shape[0], device=images.device)
        images = _move(images, index, {name: draws[:, columns[name]] for name in moves})
    elif index is not None:
        images = images.index_select(0, index)
    if not any(augmentation.jitter):
        return _normalise(images, 1 / (255 * std), mean / std, dtype)
    factors = draws[:, columns["jitter"]]
    coloured = jitter(images.to(torch.float32) / 255, factors, strengths=augmentation.jitter)
    return _normalise(coloured, 1 / std, mean / std, dtype)


def prepare_images(
    images: Tensor,
    *,
    mean: Tensor,
    std: Tensor,
    size: int | None = None,
) -> Tensor:
    """Normalise a batch for evaluation.

    Args:
        images: `(B, H, W, C)`, uint8.
        mean: See `gather_images`.
        std: See `gather_images`.
        size: Side of the resized crops in training, if any: the short side is resized to 256/224 of
            it and the centre cropped.

    Returns:
        `(B, C, H, W)` in channels-last memory format.
    """
    if size is not None:
        edges = geometry.centre_box(images.shape[1], images.shape[2], size)
        columns = [torch.full_like(images[:, 0, 0, 0], edge, dtype=torch.float32) for edge in edges]
        images = geometry.resample(images, torch.stack(columns, dim=1), size)
    return _normalise(images, 1 / (255 * std), mean / std, torch.float32)


def _move(images: Tensor, index: Tensor, moves: dict[str, Tensor]) -> Tensor:
    """Crop, flip and rotate; `(B, H, W, C)`, uint8."""
    _, height, width, channels = images.shape
    pixel, inside = geometry.trace_pixels(height, width, **moves)
    # int64, because a resident set may have more than 2**31 pixels; one image has fewer.
    place = pixel + (index * (height * width)).view(-1, 1, 1)
    moved = images.view(-1, channels).index_select(0, place.view(-1)).view(*place.shape, channels)
    # Black before normalising, as if the image had been padded in its file.
    return moved if inside is None else moved * inside.to(torch.uint8).unsqueeze(-1)


def _normalise(images: Tensor, scale: Tensor, offset: Tensor, dtype: torch.dtype) -> Tensor:
    count, height, width, channels = images.shape
    # Whole rows of pixels: with an innermost loop of length 3 a CPU is several times slower.
    rows = images.reshape(count, height, width * channels)
    rows = rows * scale.repeat(width) - offset.repeat(width)
    return rows.to(dtype).view(count, height, width, channels).permute(0, 3, 1, 2)


def _rotations(uniform: Tensor, degrees: float) -> Tensor:
    angle = (2 * uniform.double() - 1) * math.radians(degrees)
    # Multiples of 1/65536, which float32 represents exactly.
    return (torch.cat([angle.cos(), angle.sin()]) * 65536).round().div(65536).to(torch.float32)


def _factors(uniform: Tensor, strengths: tuple[float, float, float, float]) -> Tensor:
    lowest = torch.tensor([*(max(0.0, 1 - strength) for strength in strengths[:3]), -strengths[3]])
    highest = torch.tensor([*(1 + strength for strength in strengths[:3]), strengths[3]])
    return lowest.unsqueeze(1) + uniform * (highest - lowest).unsqueeze(1)


def _box_sizes(uniform: Tensor) -> Tensor:
    """Widths and heights of boxes with uniform area and uniform log aspect ratio."""
    area, ratio = uniform.double().view(geometry.ATTEMPTS, 2, -1).unbind(1)
    area = SCALE[0] + area * (SCALE[1] - SCALE[0])
    lowest, highest = (math.log(bound) for bound in geometry.RATIO)
    root = (0.5 * (lowest + ratio * (highest - lowest))).exp()
    sides = torch.stack([area.sqrt() * root, area.sqrt() / root], dim=1)
    return sides.view(2 * geometry.ATTEMPTS, -1).to(torch.float32)


def jitter(images: Tensor, factors: Tensor, *, strengths: tuple[float, ...]) -> Tensor:
    """Colour jitter of each image by its own factors.

    The operations are torchvision's, but always in the order brightness, contrast, saturation, hue.
    torchvision shuffles the order for every image; branching on a draw would split the kernel.

    Args:
        images: `(B, H, W, C)`, floats in 0..1, of 1 or 3 channels.
        factors: `(B, 4)`: brightness, contrast and saturation, where 1 changes nothing, and the
            rotation of the hue as a part of the circle.
        strengths: Largest change of each; 0 skips it.
    """
    brightness, contrast, saturation, hue = factors.view(-1, 4, 1, 1, 1).unbind(1)
    if strengths[0]:
        images = (images * brightness).clamp(0, 1)
    if strengths[1]:
        images = _blend(images, _grey(images).mean(dim=(1, 2), keepdim=True), contrast)
    if strengths[2]:
        images = _blend(images, _grey(images), saturation)
    return _turn_hue(images, hue) if strengths[3] else images


def _turn_hue(images: Tensor, turn: Tensor) -> Tensor:
    """Rotate hues by a part of the circle, keeping the largest and smallest channel values."""
    if images.shape[-1] == 1:
        return images
    red, green, blue = images.unbind(-1)
    highest = torch.maximum(red, torch.maximum(green, blue))
    lowest = torch.minimum(red, torch.minimum(green, blue))
    spread = highest - lowest
    # A grey pixel has no hue and a spread of 0, which hides whatever is computed here.
    divisor = torch.where(spread == 0, 1, spread)
    hue = torch.where(
        highest == red,
        (green - blue) / divisor,
        torch.where(highest == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor),
    )
    hue = hue + 6 * turn.squeeze(-1)
    # Of the six sextants of the hue circle, a channel is full in two, empty in two and linear in
    # the two between; red, green and blue differ in where they start.
    channels: list[Tensor] = []
    for start in (5, 3, 1):
        place = torch.remainder(start + hue, 6)
        missing = torch.minimum(place, 4 - place).clamp(0, 1)
        channels.append(highest - spread * missing)
    return torch.stack(channels, dim=-1)


def _grey(images: Tensor) -> Tensor:
    """The luma of each pixel, `(..., 1)`."""
    if images.shape[-1] == 1:
        return images
    red, green, blue = images.split(1, dim=-1)
    return 0.2989 * red + 0.587 * green + 0.114 * blue


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * images + (1 - factor) * other).clamp(0, 1)
