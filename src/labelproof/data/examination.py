"""What can be said of many images before any is learned from: readable, grey, how bright."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelproof.data.encoded import (
    Encoded,
    Mode,
    UnreadableImageError,
    decode_image,
    flatten_image,
    image_name,
    open_image,
    why_unreadable,
)
from labelproof.data.grey_levels import GreyLevels
from labelproof.data.images import EncodedImages, ImageFiles, look_at_each
from labelproof.data.notices import count, notice

__all__ = [
    "Examination",
    "channel_statistics",
    "examine_images",
    "report_grey_levels",
    "sample_statistics",
]

_GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"})
# Not MPO, a photo's: its further pictures are previews of the first.
_PAGED_FORMATS = frozenset({"GIF", "PNG", "TIFF", "WEBP"})
_STATISTICS_SIDE = 256


@dataclass(frozen=True)
class Examination:
    """What was found out about stored images without keeping any.

    Attributes:
        readable: Indices of those that can be read.
        unreadable: For each of the others, its name and why not.
        grey: Whether all that can be read are grey.
    """

    readable: list[int]
    unreadable: list[str]
    grey: bool

    @property
    def mode(self) -> Mode:
        """The mode that keeps all there is to see."""
        return "L" if self.grey else "RGB"


def examine_images(files: EncodedImages, *, full: bool) -> Examination:
    """Look at every image: at its header, which is quick, or at all of its pixels.

    A file that was cut off while it was copied has a good header; only `full` finds it.

    Args:
        files: Paths, or another sequence of stored images.
        full: Whether all pixels are decoded.

    Warns:
        DataWarning: Some have more than one page, of which the first is taken.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> Image.new("L", (4, 4)).save(folder / "a.png")
        >>> (folder / "b.png").touch()
        >>> found = examine_images([str(folder / name) for name in ("a.png", "b.png")], full=False)
        >>> found.readable, found.mode, found.unreadable[0].endswith("b.png: the file is empty")
        ([0], 'L', True)
    """
    kept: list[int] = []
    unreadable: list[str] = []
    paged: list[int] = []
    grey = True
    for index, found in enumerate(look_at_each(files, partial(_examine, full=full))):
        if isinstance(found, UnreadableImageError):
            unreadable.append(str(found))
        else:
            kept.append(index)
            grey = grey and found.mode in _GREY_MODES
            if found.paged:
                paged.append(index)
    if paged:
        many = count(len(paged), "image has", "images have")
        notice(
            f"{many} more than one page, of {len(files):,} that were opened, such as "
            f"{image_name(files[paged[0]])}: only the first page is taken; save the others as "
            "files of their own where they matter"
        )
    return Examination(kept, unreadable, grey and bool(kept))


def channel_statistics(
    images: Iterable[NDArray[np.uint8]],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel, scaled to 0..1, every pixel counting the same.

    >>> channel_statistics([np.array([[[0, 255]]], np.uint8), np.array([[[255, 0]]], np.uint8)])
    ((0.5,), (0.5,))
    """
    pixels, total, squares = 0, np.zeros(1), np.zeros(1)
    for image in images:
        values = image.reshape(len(image), -1).astype(np.float64) / 255
        pixels += values.shape[1]
        total = total + values.sum(axis=1)
        squares = squares + (values**2).sum(axis=1)
    mean = total / pixels
    # One grey level at the least: images of a single colour must not be divided by zero.
    std = np.sqrt(np.maximum(squares / pixels - mean**2, 1 / 255**2))
    return tuple(mean.tolist()), tuple(std.tolist())


def sample_statistics(
    images: ImageFiles, *, sample: int = 256
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Channel statistics of images spread evenly over a source, all of them when they are few.

    Large images that are not resized are looked at in a smaller size, for speed.

    Warns:
        DataWarning: They have 16 bits and use so few of their values that little is left of them
            in 8.
    """
    side = images.short_side
    levels = GreyLevels()
    statistics = channel_statistics(
        decode_image(
            images.files[index],
            mode=images.mode,
            short_side=side or _STATISTICS_SIDE,
            enlarge=side is not None,
            levels=levels,
        )
        for index in _spread(len(images), sample)
    )
    if (warning := levels.warning) is not None:
        notice(warning)
    return statistics


def report_grey_levels(files: EncodedImages, *, sample: int = 256) -> None:
    """Warn of 16-bit images of which little is left in 8, as `sample_statistics` does.

    Of all others only the header is read, and what cannot be read is passed over.

    Args:
        files: Paths, or another sequence of stored images.
        sample: How many are looked at, spread evenly.

    Warns:
        DataWarning: They use few of their values.

    Example:
        >>> import warnings
        >>> file = str(getfixture("tmp_path") / "dim.png")
        >>> Image.fromarray(np.arange(4096, dtype=np.uint16).reshape(64, 64)).save(file)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     report_grey_levels([file])
        >>> print(str(caught[0].message).split(",")[0])
        16-bit images with 16 of the 256 grey levels that are kept
    """
    levels = GreyLevels()
    for index in _spread(len(files), sample):
        file = files[index]
        # Broken files make Pillow raise almost anything; whoever decodes them says what is wrong.
        with suppress(Exception), open_image(file) as image:
            levels.count(image_name(file), image)
    if (warning := levels.warning) is not None:
        notice(warning)


def _spread(number: int, sample: int) -> list[int]:
    """Some of many indices at even distances, all of them when they are few."""
    return np.unique(np.linspace(0, number - 1, min(sample, number)).astype(int)).tolist()


@dataclass(frozen=True)
class _Kind:
    mode: str
    paged: bool


def _examine(file: Encoded, *, full: bool) -> _Kind | UnreadableImageError:
    """What kind of image it is, or why it cannot be read."""
    try:
        with open_image(file) as image:
            mode = image.mode
            if full:
                # An eighth of the size needs all of the file and a fraction of the arithmetic.
                image.draft(None, (1, 1))
                image.load()
                flatten_image(image, "RGB")
            # Last, since a GIF is searched for its second picture.
            return _Kind(mode, paged=_has_pages(image))
    except Exception as error:
        return why_unreadable(file, error)


def _has_pages(image: Image.Image) -> bool:
    try:
        return image.format in _PAGED_FORMATS and getattr(image, "is_animated", False)
    except Exception:
        # A second page that is broken is none; the first has been found good.
        return False
