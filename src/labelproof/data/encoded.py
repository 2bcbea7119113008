"""One image as it is stored, and how it is decoded."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from labelproof.data.grey_levels import GreyLevels
from labelproof.data.notices import readable

__all__ = [
    "SUFFIXES",
    "Encoded",
    "Mode",
    "StoredImage",
    "UnreadableImageError",
    "decode_image",
    "flatten_image",
    "image_name",
    "image_size",
    "open_image",
    "why_unreadable",
]

Mode: TypeAlias = Literal["RGB", "L"]
"""Colour, or one grey channel."""


@dataclass(frozen=True)
class StoredImage:
    """The bytes of an image file that lies in another file, and what to call it."""

    name: str
    content: bytes


Encoded: TypeAlias = str | StoredImage
"""An image before it is decoded: the path of its file, or its bytes."""

SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)
"""Endings of the files that are taken for images, in lower case."""

# Only what the endings stand for: Pillow knows formats that start other programs to be drawn.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")

_ORIENTATION = 0x0112


class UnreadableImageError(ValueError):
    """A file that was taken for an image and cannot be decoded; the message names it."""


def decode_image(
    file: Encoded,
    *,
    mode: Mode,
    short_side: int | None = None,
    enlarge: bool = True,
    levels: GreyLevels | None = None,
) -> NDArray[np.uint8]:
    """Decode one image.

    Args:
        file: A path, or a stored image.
        mode: `"RGB"` or `"L"`.
        short_side: Pixels of the shorter side; the image's own when `None`.
        enlarge: Whether a smaller image is brought to `short_side` too.
        levels: Counts its values, where it has 16 bits.

    Returns:
        `(C, H, W)`, writable; the channels of a pixel lie together in memory.

    Raises:
        UnreadableImageError: It cannot be decoded; the message says why.
    """
    # Broken files make Pillow raise almost anything, down to struct.error and SyntaxError.
    try:
        with open_image(file) as image:
            if levels is not None:
                levels.count(image_name(file), image)
            whole = image.size
            if short_side is not None:
                # Never below the size that is wanted: the rest is done by a proper filter.
                image.draft(None, (short_side, short_side))
            image.load()
            pixels = flatten_image(_upright(image), mode)
            if short_side is not None and (enlarge or min(whole) > short_side):
                pixels = _resize(pixels, short_side, whole)
            array = np.array(pixels)
    except Exception as error:
        raise why_unreadable(file, error) from error
    return array[np.newaxis] if mode == "L" else array.transpose(2, 0, 1)


def open_image(file: Encoded) -> Image.Image:
    """Read an image's header; refuse formats that are not read here, and sizes that are unsafe."""
    stream = io.BytesIO(file.content) if isinstance(file, StoredImage) else file
    image = Image.open(stream, formats=_FORMATS)
    limit = Image.MAX_IMAGE_PIXELS
    # Pillow only warns up to twice its limit.
    if limit is not None and image.width * image.height > limit:
        image.close()
        raise Image.DecompressionBombError(_bomb(image.width * image.height, limit))
    return image


def image_size(file: Encoded) -> tuple[int, int] | None:
    """Width and height as the image is looked at, or `None` where it cannot be read."""
    try:
        with open_image(file) as image:
            width, height = image.size
            # From 5 on, the camera was on its side.
            if width != height and image.getexif().get(_ORIENTATION, 1) >= 5:
                return height, width
            return width, height
    except Exception:
        return None


def _upright(image: Image.Image) -> Image.Image:
    try:
        ImageOps.exif_transpose(image, in_place=True)
    except Exception:
        # The pixels are good, only the camera's notes are not: such an image is taken as it lies.
        return image
    return image


def flatten_image(image: Image.Image, mode: Mode) -> Image.Image:
    """Eight bits, no transparency, and the mode."""
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


def _resize(image: Image.Image, short_side: int, whole: tuple[int, int]) -> Image.Image:
    """Bring to the short side an image that may be a fraction of the whole one by now."""
    wanted = [max(round(side * short_side / min(whole)), 1) for side in whole]
    # What was wide may stand upright now.
    if (image.width > image.height) != (wanted[0] > wanted[1]):
        wanted.reverse()
    size = (wanted[0], wanted[1])
    if image.size == size:
        return image
    return image.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)


def image_name(file: Encoded) -> str:
    """What to call an image in messages."""
    return file.name if isinstance(file, StoredImage) else readable(file)


def why_unreadable(file: Encoded, error: Exception) -> UnreadableImageError:
    """The image and what is the matter with it, after something went wrong."""
    return UnreadableImageError(f"{image_name(file)}: {_reason(file, error)}")


def _reason(file: Encoded, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if _size(file) == 0:
        return "the file is empty"
    if isinstance(error, UnidentifiedImageError):
        return "not an image of a kind that is read here, or damaged at its beginning"
    return str(error) or type(error).__name__


def _size(file: Encoded) -> int | None:
    if isinstance(file, StoredImage):
        return len(file.content)
    try:
        return os.path.getsize(file)
    except (OSError, ValueError):  # a link that leads nowhere, a name with a zero in it
        return None


def _bomb(pixels: int, limit: int) -> str:
    return (
        f"it has {pixels:,} pixels, more than the {limit:,} that are taken for safe; if you trust "
        "it, raise PIL.Image.MAX_IMAGE_PIXELS"
    )
