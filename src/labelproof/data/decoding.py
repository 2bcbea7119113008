"""Stored images and how they are decoded."""

from __future__ import annotations

import io
import math
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from labelproof.data.notices import readable

Mode: TypeAlias = Literal["RGB", "L"]
"""Colour, or one grey channel."""


@dataclass(frozen=True)
class StoredImage:
    """The bytes of an image file within another file, and its name."""

    name: str
    content: bytes


Encoded: TypeAlias = str | StoredImage
"""An image before it is decoded: the path of its file, or its bytes."""

SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)
"""Endings of image files, in lower case."""

# Only the formats of these endings: for others Pillow starts other programs.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
_ORIENTATION = 0x0112


class UnreadableImageError(ValueError):
    """An image that cannot be decoded; the message names it."""


def decode_image(
    file: Encoded, *, mode: Mode, short_side: int | None = None, enlarge: bool = True
) -> NDArray[np.uint8]:
    """Decode one image.

    Args:
        file: A path, or a stored image.
        mode: `"RGB"` or `"L"`.
        short_side: Pixels of the shorter side; the image's own when `None`.
        enlarge: Whether a smaller image is enlarged to `short_side` too.

    Returns:
        `(C, H, W)`, writable; the channels of a pixel are adjacent in memory.

    Raises:
        UnreadableImageError: It cannot be decoded; the message says why.

    Example:
        >>> file = str(getfixture("tmp_path") / "sea.png")
        >>> Image.new("RGB", (40, 30), "teal").save(file)
        >>> decode_image(file, mode="RGB", short_side=15).shape
        (3, 15, 20)
    """
    # Broken files make Pillow raise almost anything, down to struct.error and SyntaxError.
    try:
        with open_image(file, short_side if enlarge else None) as image:
            whole = image.size
            if short_side is not None:
                # Never below the wanted size: a proper filter does the rest.
                image.draft(None, (short_side, short_side))
            image.load()
            # Pixels are good where only the camera's notes are not: such an image stays as it is.
            with suppress(Exception):
                ImageOps.exif_transpose(image, in_place=True)
            pixels = flatten_image(image, mode)
            if short_side is not None and (enlarge or min(whole) > short_side):
                pixels = _resize(pixels, short_side, whole)
            array = np.array(pixels)
    except Exception as error:
        raise why_unreadable(file, error) from error
    return array[np.newaxis] if mode == "L" else array.transpose(2, 0, 1)


def open_image(file: Encoded, short_side: int | None = None) -> Image.Image:
    """Read an image's header; refuse other formats, and sizes that are unsafe now or resized."""
    stream = io.BytesIO(file.content) if isinstance(file, StoredImage) else file
    image = Image.open(stream, formats=_FORMATS)
    size = image.size
    pixels = max(math.prod(size), math.prod(_scaled(size, short_side)) if short_side else 0)
    limit = Image.MAX_IMAGE_PIXELS
    # Pillow only warns up to twice its limit.
    if limit is not None and pixels > limit:
        image.close()
        raise Image.DecompressionBombError(
            f"{pixels:,} pixels, more than the safe {limit:,}; if you trust it, raise "
            "PIL.Image.MAX_IMAGE_PIXELS"
        )
    return image


def image_size(file: Encoded) -> tuple[int, int] | None:
    """Width and height of an upright image, or `None` where it is unreadable."""
    try:
        with open_image(file) as image:
            width, height = image.size
            # From 5 on, the camera was on its side.
            if width != height and image.getexif().get(_ORIENTATION, 1) >= 5:
                return height, width
            return width, height
    except Exception:
        return None


def flatten_image(image: Image.Image, mode: Mode) -> Image.Image:
    """Convert to 8 bits, no transparency, and the mode."""
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers of unknown range; save it as 8 bit")
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError("its pixels have 32 bits of unknown range; save it as 8 or 16 bit")
        # Pillow's own conversion cuts everything above 255 instead of scaling it.
        image = Image.fromarray((values >> 8).astype(np.uint8))
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.new("RGBA", colours.size, "white")
        image.alpha_composite(colours)
    return image if image.mode == mode else image.convert(mode)


def _scaled(size: tuple[int, int], short_side: int) -> list[int]:
    return [max(round(side * short_side / min(size)), 1) for side in size]


def _resize(image: Image.Image, short_side: int, whole: tuple[int, int]) -> Image.Image:
    """Resize to the short side an image that may be decoded at a fraction of its `whole` size."""
    width, height = _scaled(whole, short_side)
    # It may have been turned upright.
    if (image.width > image.height) != (width > height):
        width, height = height, width
    if image.size == (width, height):
        return image
    return image.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2.0)


def image_name(file: Encoded) -> str:
    """The name of an image in messages."""
    return file.name if isinstance(file, StoredImage) else readable(file)


def why_unreadable(file: Encoded, error: Exception) -> UnreadableImageError:
    """The error for an image that could not be read."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, UnidentifiedImageError):
        size = len(file.content) if isinstance(file, StoredImage) else os.path.getsize(file)
        reason = "not an image, of an unknown format, or damaged" if size else "the file is empty"
    return UnreadableImageError(f"{image_name(file)}: {reason}")
