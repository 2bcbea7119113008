"""Image files, decoded one at a time when they are asked for."""

from __future__ import annotations

import io
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from labelproof.data.grey_levels import GreyLevels
from labelproof.data.notices import count, notice, readable

__all__ = [
    "SUFFIXES",
    "Encoded",
    "EncodedImages",
    "Examination",
    "ImageFiles",
    "Mode",
    "StoredImage",
    "UnreadableImageError",
    "as_picture",
    "channel_statistics",
    "decode_image",
    "examine_images",
    "sample_statistics",
    "select_images",
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
_GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"})
# Not MPO, a photo's: its further pictures are previews of the first.
_PAGED_FORMATS = frozenset({"GIF", "PNG", "TIFF", "WEBP"})
_ORIENTATION = 0x0112
_STATISTICS_SIDE = 256
_ROUND = 256

Found = TypeVar("Found")


class UnreadableImageError(ValueError):
    """A file that was taken for an image and cannot be decoded; the message names it."""


class EncodedImages(Protocol):
    """Images as they are stored, one after the other; a list of paths is one."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Encoded:
        """The path of an image's file, or its bytes."""
        ...


class ImageFiles:
    """A lazy source over image files: each is decoded when it is asked for.

    Colours are brought to one mode, transparent pixels are laid on white, 16-bit greys are divided
    by 256, and the camera's orientation is applied. Of a file with several pages, the first is
    taken. Objects of this class can be sent to other processes.

    Args:
        files: Paths, or another sequence of stored images.
        mode: `"RGB"` or `"L"`, which all images are converted to.
        short_side: Resize while decoding, so that the shorter side has as many pixels. JPEG files
            that are much larger are decoded at a half, a quarter or an eighth, which is faster.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> Image.new("RGB", (40, 30), "teal").save(folder / "sea.png")
        >>> images = ImageFiles([str(folder / "sea.png")], short_side=15)
        >>> len(images), images[0].shape, images[0][:, 0, 0]
        (1, (3, 15, 20), array([  0, 128, 128], dtype=uint8))
    """

    def __init__(self, files: EncodedImages, *, mode: Mode = "RGB", short_side: int | None = None):
        if mode not in ("RGB", "L"):
            raise ValueError(f"mode: expected 'RGB' or 'L', got {mode!r}")
        if short_side is not None and operator.index(short_side) < 1:
            raise ValueError(f"short_side: expected at least 1 pixel, got {short_side}")
        self.files = files
        self.mode: Mode = mode
        self.short_side = short_side

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int, /) -> NDArray[np.uint8]:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index: expected less than {len(self)}, got {index}")
        index %= len(self)
        try:
            return decode_image(self.files[index], mode=self.mode, short_side=self.short_side)
        except UnreadableImageError as error:
            raise UnreadableImageError(f"image {index}: {error}") from error

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self[index] for index in range(len(self)))

    @cached_property
    def one_size(self) -> bool:
        """Whether all images have the same size, by their headers; the first other one ends it."""
        with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
            sizes = _in_rounds(pool, _look_at_size, self.files)
            first = next(sizes, None)
            return first is not None and all(size == first for size in sizes)


def select_images(files: EncodedImages, indices: Sequence[int]) -> EncodedImages:
    """Some of many stored images, still read only when they are asked for.

    >>> select_images(["a.png", "b.png", "c.png"], [2, 0])
    ['c.png', 'a.png']
    """
    return [files[i] for i in indices] if isinstance(files, list) else _Selected(files, indices)


class _Selected:
    def __init__(self, files: EncodedImages, indices: Sequence[int]):
        self.files = files
        self.indices = list(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int, /) -> Encoded:
        return self.files[self.indices[index]]

    def __getattr__(self, name: str) -> Callable[[int], str]:
        # Only where the files have it: that is how they say that names cost less than images.
        if name != "name_of" or "files" not in self.__dict__:
            raise AttributeError(name)
        name_of = self.files.name_of  # pyright: ignore[reportAttributeAccessIssue]
        return lambda index: name_of(self.indices[index])


def decode_image(
    file: Encoded, *, mode: Mode, short_side: int | None = None, enlarge: bool = True
) -> NDArray[np.uint8]:
    """Decode one image.

    Args:
        file: A path, or a stored image.
        mode: `"RGB"` or `"L"`.
        short_side: Pixels of the shorter side; the image's own when `None`.
        enlarge: Whether a smaller image is brought to `short_side` too.

    Returns:
        `(C, H, W)`, writable; the channels of a pixel lie together in memory.

    Raises:
        UnreadableImageError: It cannot be decoded; the message says why.
    """
    return _decode(file, mode=mode, short_side=short_side, enlarge=enlarge)


def _decode(
    file: Encoded,
    *,
    mode: Mode,
    short_side: int | None,
    enlarge: bool,
    levels: GreyLevels | None = None,
) -> NDArray[np.uint8]:
    # Broken files make Pillow raise almost anything, down to struct.error and SyntaxError.
    try:
        with _open(file) as image:
            if levels is not None:
                levels.count(_name(file), image)
            whole = image.size
            if short_side is not None:
                # Never below the size that is wanted: the rest is done by a proper filter.
                image.draft(None, (short_side, short_side))
            image.load()
            pixels = _flatten(_upright(image), mode)
            if short_side is not None and (enlarge or min(whole) > short_side):
                pixels = _resize(pixels, short_side, whole)
            array = np.array(pixels)
    except Exception as error:
        raise UnreadableImageError(f"{_name(file)}: {_reason(file, error)}") from error
    return array[np.newaxis] if mode == "L" else array.transpose(2, 0, 1)


def as_picture(pixels: NDArray[np.uint8]) -> Image.Image:
    """An image `(C, H, W)` as Pillow has it; of more channels than a screen has, the first.

    >>> as_picture(np.zeros((3, 4, 5), np.uint8)).size
    (5, 4)
    """
    colours = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]
    return Image.fromarray(np.ascontiguousarray(colours))


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
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for index, found in enumerate(_in_rounds(pool, partial(_examine, full=full), files)):
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
            f"{_name(files[paged[0]])}: only the first page is taken; save the others as files of "
            "their own where they matter"
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
    chosen = np.unique(np.linspace(0, len(images) - 1, min(sample, len(images))).astype(int))
    levels = GreyLevels()
    statistics = channel_statistics(
        _decode(
            images.files[int(index)],
            mode=images.mode,
            short_side=side or _STATISTICS_SIDE,
            enlarge=side is not None,
            levels=levels,
        )
        for index in chosen
    )
    if (warning := levels.warning) is not None:
        notice(warning)
    return statistics


def _open(file: Encoded) -> Image.Image:
    stream = io.BytesIO(file.content) if isinstance(file, StoredImage) else file
    image = Image.open(stream, formats=_FORMATS)
    limit = Image.MAX_IMAGE_PIXELS
    # Pillow only warns up to twice its limit.
    if limit is not None and image.width * image.height > limit:
        image.close()
        raise Image.DecompressionBombError(_bomb(image.width * image.height, limit))
    return image


@dataclass(frozen=True)
class _Kind:
    mode: str
    paged: bool


def _examine(file: Encoded, *, full: bool) -> _Kind | UnreadableImageError:
    """What kind of image it is, or why it cannot be read."""
    try:
        with _open(file) as image:
            mode = image.mode
            if full:
                # An eighth of the size needs all of the file and a fraction of the arithmetic.
                image.draft(None, (1, 1))
                image.load()
                _flatten(image, "RGB")
            # Last, since a GIF is searched for its second picture.
            return _Kind(mode, paged=_has_pages(image))
    except Exception as error:
        return UnreadableImageError(f"{_name(file)}: {_reason(file, error)}")


def _has_pages(image: Image.Image) -> bool:
    try:
        return image.format in _PAGED_FORMATS and getattr(image, "is_animated", False)
    except Exception:
        # A second page that is broken is none; the first has been found good.
        return False


def _look_at_size(file: Encoded) -> tuple[int, int] | None:
    """Width and height as the image is looked at, or `None` where it cannot be read."""
    try:
        with _open(file) as image:
            width, height = image.size
            # From 5 on, the camera was on its side.
            if width != height and image.getexif().get(_ORIENTATION, 1) >= 5:
                return height, width
            return width, height
    except Exception:
        return None


def _in_rounds(
    pool: ThreadPoolExecutor, look: Callable[[Encoded], Found], files: EncodedImages
) -> Iterator[Found]:
    # A pool takes in all of its work at once, which for stored bytes is the whole dataset.
    indices = iter(range(len(files)))
    while chosen := list(itertools.islice(indices, _ROUND)):
        yield from pool.map(look, [files[index] for index in chosen])


def _upright(image: Image.Image) -> Image.Image:
    try:
        ImageOps.exif_transpose(image, in_place=True)
    except Exception:
        # The pixels are good, only the camera's notes are not: such an image is taken as it lies.
        return image
    return image


def _flatten(image: Image.Image, mode: Mode) -> Image.Image:
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


def _name(file: Encoded) -> str:
    return file.name if isinstance(file, StoredImage) else readable(file)


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
