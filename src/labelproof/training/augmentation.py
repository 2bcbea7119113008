"""Data augmentation: draws made on the host, and a pure function of them on the device.

An augmentation is written as text: `crop:4,flip,rotation:20`, `resized-crop:224,flip`, `none`. All
randomness of an epoch is one tensor of draws with a row for each training example, made on the CPU
before the epoch begins. The device, the batches, runs side by side and resuming therefore do not
change a pixel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelproof.ranges import whole, within
from labelproof.text import parse_form
from labelproof.training import geometry

_STEPS = {
    "resized_crop": ("resized-crop:SIDE", 2 * geometry.ATTEMPTS + 2),
    "crop": ("crop:PIXELS", 2),
    "flip": ("flip", 1),
    "rotation": ("rotation:DEGREES", 2),
    "jitter": ("jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE", 4),
}
"""The steps in their order: how each is written, and how many numbers it draws for an image."""


@dataclass(frozen=True)
class Augmentation:
    """Augmentation of training images; prints as its text.

    The steps are taken in the order resized crop, crop, flip, rotation, jitter.

    Attributes:
        crop: Pixels of black put around the image before a window of its size is cut out.
        flip: Whether left and right are exchanged for half of the images.
        rotation: Largest angle in degrees, either way; nearest neighbours, black corners.
        resized_crop: Side of the result, when a part of the image, 8% to all of it and at most 4:3
            wide or high, is resized to it; 0 for none.
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
        """Which columns of the draws belong to which step; a step that is off has none."""
        found: dict[str, slice] = {}
        end = 0
        for name, (_, width) in _STEPS.items():
            if any(self._numbers(name)):
                found[name] = slice(end, end + width)
                end += width
        return found

    @property
    def num_draws(self) -> int:
        """Columns of the draws."""
        return sum(columns.stop - columns.start for columns in self.columns.values())

    def __str__(self) -> str:
        words = []
        for name in self.columns:
            word, *places = _STEPS[name][0].split(":")
            numbers = [repr(number).removesuffix(".0") for number in self._numbers(name)]
            words.append(":".join([word, *numbers[: len(places)]]))
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
    try:
        return Augmentation(**given)
    except ValueError as error:
        raise ValueError(f"augmentation: {error} in {text!r}") from None


SCALE = (0.08, 1.0)
"""The smallest and the largest share of an image that a resized crop shows."""


def draw_augmentation(augmentation: Augmentation, count: int, generator: torch.Generator) -> Tensor:
    """Draw what an epoch's augmentation needs, a row for each training example.

    The draws of one step do not depend on which other steps there are, so that two runs that differ
    in one step alone see the same images in all others.

    Args:
        augmentation: What is done to the images.
        count: Number of training examples.
        generator: Of the CPU; it is moved on.

    Returns:
        `(count, augmentation.num_draws)`, float32, in the units that the device works in: whole
        pixels, 0 or 1, cosine and sine, and factors.

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
        "rotation": _turns(uniform(1), augmentation.rotation),
        "jitter": _factors(uniform(4), augmentation.jitter),
    }
    # Last, since it has many: nothing is drawn after it that would have to stay the same.
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
    """Take a batch out of images that lie on the device, augment and normalise it.

    A pure function of its tensors without a branch on their values: it can be compiled in one
    graph and captured. Crop, flip and rotation together are one gather.

    Args:
        images: All of them, `(N, H, W, C)`, uint8.
        index: Which ones, `(B)`, int64; `None` for a batch whose resized crops are cut already, as
            `StreamedImages` gives it.
        draws: Their rows of `draw_augmentation`, `(B, K)`.
        augmentation: What the draws were made for.
        mean: Of each channel, scaled to 0..1: `(C)`, float32, on the images' device.
        std: Likewise the standard deviation.
        dtype: Of the result.

    Returns:
        `(B, C, H, W)` in the memory format channels last; `H` and `W` are the resized crop's side
        where there is one.
    """
    columns = augmentation.columns
    if index is not None and "resized_crop" in columns:
        boxes = geometry.choose_boxes(
            draws[:, columns["resized_crop"]], images.shape[1], images.shape[2]
        )
        images = geometry.resample(images.index_select(0, index), boxes, augmentation.resized_crop)
        index = None
    shift, mirror, turn = (
        draws[:, columns[name]] if name in columns else None
        for name in ("crop", "flip", "rotation")
    )
    if shift is not None or mirror is not None or turn is not None:
        if index is None:
            index = torch.arange(images.shape[0], device=images.device)
        images = _move(images, index, shift=shift, mirror=mirror, turn=turn)
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
    dtype: torch.dtype = torch.float32,
    size: int | None = None,
) -> Tensor:
    """Normalise a batch for evaluation.

    Args:
        images: `(B, H, W, C)`, uint8.
        mean: See `gather_images`.
        std: See `gather_images`.
        dtype: Of the result.
        size: Where training has resized crops, their side: the image's short side is brought to
            256/224 of it and the centre cut out.

    Returns:
        `(B, C, H, W)` in the memory format channels last.
    """
    if size is not None:
        edges = geometry.centre_box(images.shape[1], images.shape[2], size)
        columns = [torch.full_like(images[:, 0, 0, 0], edge, dtype=torch.float32) for edge in edges]
        images = geometry.resample(images, torch.stack(columns, dim=1), size)
    return _normalise(images, 1 / (255 * std), mean / std, dtype)


def _move(
    images: Tensor,
    index: Tensor,
    *,
    shift: Tensor | None,
    mirror: Tensor | None,
    turn: Tensor | None,
) -> Tensor:
    """Crop, flip and rotate, `(B, H, W, C)` uint8."""
    _, height, width, channels = images.shape
    pixel, inside = geometry.trace_pixels(height, width, shift=shift, mirror=mirror, turn=turn)
    # A resident set may have more than 2**31 pixels, while one image does not.
    place = pixel + (index * (height * width)).view(-1, 1, 1)
    found = images.view(-1, channels).index_select(0, place.view(-1)).view(*place.shape, channels)
    # Black before normalising, as if the image had been padded in its file.
    return found if inside is None else found * inside.to(torch.uint8).unsqueeze(-1)


def _normalise(images: Tensor, scale: Tensor, offset: Tensor, dtype: torch.dtype) -> Tensor:
    count, height, width, channels = images.shape
    # By whole rows of pixels: a CPU is several times slower when the innermost loop has length 3.
    rows = images.reshape(count, height, width * channels)
    rows = rows * scale.repeat(width) - offset.repeat(width)
    return rows.to(dtype).view(count, height, width, channels).permute(0, 3, 1, 2)


def _turns(uniform: Tensor, degrees: float) -> Tensor:
    angle = (2 * uniform.double() - 1) * math.radians(degrees)
    # In whole 65536ths, which float32 holds exactly.
    return (torch.cat([angle.cos(), angle.sin()]) * 65536).round().div(65536).to(torch.float32)


def _factors(uniform: Tensor, strengths: tuple[float, float, float, float]) -> Tensor:
    lowest = torch.tensor([*(max(0.0, 1 - strength) for strength in strengths[:3]), -strengths[3]])
    highest = torch.tensor([*(1 + strength for strength in strengths[:3]), strengths[3]])
    return lowest.unsqueeze(1) + uniform * (highest - lowest).unsqueeze(1)


def _box_sizes(uniform: Tensor) -> Tensor:
    """Widths and heights of boxes of uniform area and uniform logarithm of the ratio."""
    area, ratio = uniform.double().view(geometry.ATTEMPTS, 2, -1).unbind(1)
    area = SCALE[0] + area * (SCALE[1] - SCALE[0])
    lowest, highest = (math.log(bound) for bound in geometry.RATIO)
    root = (0.5 * (lowest + ratio * (highest - lowest))).exp()
    sides = torch.stack([area.sqrt() * root, area.sqrt() / root], dim=1)
    return sides.view(2 * geometry.ATTEMPTS, -1).to(torch.float32)


def jitter(images: Tensor, factors: Tensor, *, strengths: tuple[float, ...]) -> Tensor:
    """Change the colours of each image by its own factors.

    The changes are torchvision's, but always in the order brightness, contrast, saturation, hue,
    where torchvision shuffles it for every image: branching on a draw would split the kernel.

    Args:
        images: `(B, H, W, C)`, floats in 0..1, of 1 or 3 channels.
        factors: `(B, 4)`: brightness, contrast and saturation, where 1 changes nothing, and the
            part of a full circle that hues turn by.
        strengths: How far each may go; one that is 0 is left out.
    """
    if images.shape[-1] not in (1, 3):
        raise ValueError(
            f"images: colours can be changed where there are 1 or 3 channels, "
            f"got {images.shape[-1]}; leave jitter out of the augmentation"
        )
    changes = (_change_brightness, _change_contrast, _change_saturation, _turn_hue)
    for position, (change, strength) in enumerate(zip(changes, strengths, strict=True)):
        if strength:
            images = change(images, factors[:, position].view(-1, 1, 1, 1))
    return images


def _change_brightness(images: Tensor, factor: Tensor) -> Tensor:
    return (images * factor).clamp(0, 1)


def _change_contrast(images: Tensor, factor: Tensor) -> Tensor:
    return _blend(images, _grey(images).mean(dim=(1, 2), keepdim=True), factor)


def _change_saturation(images: Tensor, factor: Tensor) -> Tensor:
    return _blend(images, _grey(images), factor)


def _turn_hue(images: Tensor, turn: Tensor) -> Tensor:
    """Turn hues by a part of the circle, keeping lightest and darkest channel as values."""
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
    hue = hue + 6 * turn.squeeze(-1)
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
