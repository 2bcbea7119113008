"""Image files: decoding, datasets of them, and the names of samples."""

from __future__ import annotations

import base64
import io
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from labelproof.data.annotators import vote_indices
from labelproof.data.dataset import Dataset, Split, as_indices, order_classes, report_classes
from labelproof.data.duplicates import report_duplicates
from labelproof.data.notices import count, few, leave_out, notice, readable
from labelproof.data.splits import joined_groups, splittable
from labelproof.ranges import choose

OnError: TypeAlias = Literal["raise", "skip", "later"]
"""For an unusable image: raise, leave it out with a warning, or raise only when it is decoded (no
file is opened before). For an unusable row, the last two are the same."""

Statistics: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
"""Mean and standard deviation of each channel, scaled to 0..1."""

Result = TypeVar("Result")

_ROUND = 256
_GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"})
# Not MPO, which cameras write: its other pictures are previews of the first.
_PAGED_FORMATS = frozenset({"GIF", "PNG", "TIFF", "WEBP"})
_STATISTICS_SIDE = 256
_DARK = 0.1
"""Mean and two standard deviations below which images are nearly black: a tenth of the range."""
_UNSEEN: Statistics = ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
"""Default statistics, for images that are not opened."""

EXACT_PIXELS = 64
"""Longest side of an image that pages show exactly, its pixels as squares."""
SMALL = 40
"""Pixels of the longer side up to which images are used whole."""
_RARE = 0.05
"""Share of images below which those that differ from all others are named."""

Mode: TypeAlias = Literal["RGB", "L"]
"""Colour, or one grey channel."""


class StoredImage(NamedTuple):
    """An image file within another file: its name, and where its bytes are read from."""

    name: str
    source: Any
    row: int = 0

    @property
    def content(self) -> bytes:
        """The bytes of the file, read on access."""
        return self.source[self.row]


Encoded: TypeAlias = str | StoredImage
"""An image before it is decoded: the path of its file, or its place in another file."""

SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)
"""Extensions of image files, in lower case."""


def is_image(name: str) -> bool:
    """Whether a file has the extension of an image."""
    return os.path.splitext(name)[1].lower() in SUFFIXES


# Only the formats of these extensions: for some others Pillow runs external programs.
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

    >>> file = str(getfixture("tmp_path") / "sea.png")
    >>> Image.new("RGB", (40, 30), "teal").save(file)
    >>> decode_image(file, mode="RGB", short_side=15).shape
    (3, 15, 20)
    """
    # Broken files make Pillow raise almost anything, down to struct.error and SyntaxError.
    try:
        with open_image(file) as image:
            whole = image.size
            if short_side is not None:
                # Never smaller than requested: a proper filter does the rest.
                image.draft(None, (short_side, short_side))
            image.load()
            # An image with broken EXIF data still has good pixels: use it unrotated.
            with suppress(Exception):
                ImageOps.exif_transpose(image, in_place=True)
            pixels = flatten_image(image, mode)
            if short_side is not None and (enlarge or min(whole) > short_side):
                pixels = _resize(pixels, short_side, whole)
            array = np.array(pixels)
    except Exception as error:
        raise why_unreadable(file, error) from error
    return array[np.newaxis] if mode == "L" else array.transpose(2, 0, 1)


def open_image(file: Encoded) -> Image.Image:
    """Read an image's header; refuse other formats."""
    stream = io.BytesIO(file.content) if isinstance(file, StoredImage) else file
    return Image.open(stream, formats=_FORMATS)


def image_size(file: Encoded) -> tuple[int, int] | None:
    """Width and height of an upright image, or `None` where it is unreadable."""
    try:
        with open_image(file) as image:
            width, height = image.size
            # From 5 on, the image is rotated by a quarter turn.
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
        # Pillow's own conversion clips values above 255 instead of scaling them.
        image = Image.fromarray((values >> 8).astype(np.uint8))
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.new("RGBA", colours.size, "white")
        image.alpha_composite(colours)
    return image if image.mode == mode else image.convert(mode)


def _scaled(size: tuple[int, int], short_side: int) -> tuple[int, int]:
    width, height = (max(round(side * short_side / min(size)), 1) for side in size)
    if width * height > (Image.MAX_IMAGE_PIXELS or math.inf):  # of a line of pixels
        raise Image.DecompressionBombError(f"{width:,} x {height:,} pixels after resizing")
    return width, height


def _resize(image: Image.Image, short_side: int, whole: tuple[int, int]) -> Image.Image:
    """Resize to the short side; the image may be decoded at a fraction of its `whole` size."""
    width, height = _scaled(whole, short_side)
    # It may have been rotated upright.
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


class ImageFiles:
    """A lazy source over image files, which are decoded on access; it can be pickled.

    All images are converted to one mode, transparent pixels become white, 16-bit greys are divided
    by 256, and the EXIF orientation is applied. Of several pages, the first is used.

    Args:
        files: Paths, or stored images.
        mode: `"RGB"` or `"L"`.
        short_side: Resize to this shorter side while decoding. Much larger JPEG files are decoded
            at a half, a quarter or an eighth, which is faster.

    >>> folder = getfixture("tmp_path")
    >>> Image.new("RGB", (40, 30), "teal").save(folder / "sea.png")
    >>> images = ImageFiles([str(folder / "sea.png")], short_side=15)
    >>> len(images), images[0].shape, images[0][:, 0, 0]
    (1, (3, 15, 20), array([  0, 128, 128], dtype=uint8))
    """

    def __init__(
        self, files: Sequence[Encoded], *, mode: Mode = "RGB", short_side: int | None = None
    ):
        self.files = files
        self.mode: Mode = mode
        self.short_side = short_side

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int, /) -> NDArray[np.uint8]:
        index = range(len(self))[index]
        try:
            return decode_image(self.files[index], mode=self.mode, short_side=self.short_side)
        except UnreadableImageError as error:
            raise UnreadableImageError(f"image {index}: {error}") from error

    @cached_property
    def one_size(self) -> bool:
        """Whether all images have the same size, by their headers."""
        sizes = look_at_each(self.files, image_size)
        first = next(sizes, None)
        return first is not None and all(size == first for size in sizes)


def look_at_each(files: Any, look: Callable[[Any], Result]) -> Iterator[Result]:
    """Apply a function to each stored image, or index of one, in order, on several threads."""
    # Threads are enough: Pillow releases the GIL while it reads.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        # In rounds: a pool takes all its inputs at once, which could be the whole dataset.
        indices = iter(range(len(files)))
        while chosen := list(itertools.islice(indices, _ROUND)):
            yield from pool.map(look, [files[index] for index in chosen])


def as_picture(pixels: NDArray[np.uint8]) -> Image.Image:
    """A Pillow image from `(C, H, W)`: colours for three channels, else the first channel."""
    colours = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]
    return Image.fromarray(np.ascontiguousarray(colours))


def encode_picture(image: Image.Image, kind: str = "") -> tuple[bytes, str]:
    """A Pillow image as a file and its media type: a small one exactly, as PNG, else as JPEG."""
    kind = kind or ("png" if max(image.size) <= EXACT_PIXELS else "jpeg")
    stream = io.BytesIO()
    image.save(stream, kind, quality=80, optimize=kind == "png")
    return stream.getvalue(), f"image/{kind}"


def data_url(content: bytes, kind: str) -> str:
    """A file of a media type as an address that contains it, to embed in a page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


class Look(NamedTuple):
    """A readable image, whether it is grey, its width and height, and if it has several pages."""

    file: Encoded
    grey: bool
    size: tuple[int, int]
    paged: bool


def examine_image(
    file: Encoded, *, full: bool, short_side: int | None = None
) -> Look | UnreadableImageError:
    """A look at an image, or why it cannot be read: at its header, or at all of its pixels.

    A truncated file has a good header; only `full` finds it, and grey pixels in a file with
    transparency or of CMYK. An image that `short_side` would make too large cannot be read.
    """
    try:
        with open_image(file) as image:
            if short_side is not None:
                _scaled(image.size, short_side)
            mode, size, grey = image.mode, image.size, image.mode in _GREY_MODES
            if full:
                # Decoding at an eighth of the size still reads the whole file, but is much faster.
                image.draft(None, (1, 1))
                image.load()
                flat = flatten_image(image, "RGB")
                if not grey and mode != "RGB":  # transparent, CMYK or of a palette
                    pixels = np.asarray(flat)
                    grey = bool((pixels == pixels[..., :1]).all())
            paged = False
            with suppress(Exception):  # a broken second page does not count
                # Last, since Pillow searches a GIF for its second frame.
                paged = image.format in _PAGED_FORMATS and getattr(image, "is_animated", False)
            return Look(file, grey, size, paged)
    except Exception as error:
        return why_unreadable(file, error)


def report_odd(place: str, looks: Sequence[Look]) -> None:
    """Warn of pages that are not read, and of a few images that change how all are used."""
    if paged := [look for look in looks if look.paged]:
        many = count(len(paged), "image has", "images have")
        first = image_name(paged[0].file)
        notice(f"{place}: {many} more than one page, such as {first}: only the first page is read")
    (usual, _), *_ = Counter(look.size for look in looks).most_common(1)
    width, height = usual
    for odd, what in (
        ([look for look in looks if not look.grey], "coloured, so all are read in colour"),
        (
            [look for look in looks if look.size != usual and max(usual) <= SMALL],
            f"not of {width}x{height} pixels as the others, so all are cropped and resized",
        ),
    ):
        if 0 < len(odd) < _RARE * len(looks):
            names = few([image_name(look.file) for look in odd])
            share = f"{len(odd):,} of {len(looks):,} images {'is' if len(odd) == 1 else 'are'}"
            notice(f"{place}: {share} {what}: {names}")


def channel_statistics(images: Iterable[NDArray[np.uint8]]) -> Statistics:
    """Mean and standard deviation of each channel over all pixels, scaled to 0..1."""
    pixels, total, squares = 0, np.zeros(1), np.zeros(1)
    for image in images:
        values = image.reshape(len(image), -1).astype(np.float64) / 255
        pixels += values.shape[1]
        total = total + values.sum(axis=1)
        squares = squares + (values**2).sum(axis=1)
    mean = total / pixels
    # At least one grey level, or images of a single colour would be divided by zero.
    std = np.sqrt(np.maximum(squares / pixels - mean**2, 1 / 255**2))
    return tuple(mean.tolist()), tuple(std.tolist())


def sample_statistics(images: ImageFiles, *, sample: int = 256) -> Statistics:
    """Channel statistics of up to `sample` evenly spaced images, large ones scaled down."""
    side = images.short_side
    spread = np.linspace(0, len(images) - 1, min(sample, len(images))).astype(int)
    return channel_statistics(
        decode_image(
            images.files[index],
            mode=images.mode,
            short_side=side or _STATISTICS_SIDE,
            enlarge=side is not None,
        )
        for index in np.unique(spread).tolist()
    )


@dataclass(frozen=True)
class LabelledFiles:
    """Image files with the class name of each and, if known, its group and its votes."""

    files: Sequence[Encoded]
    labels: Sequence[str]
    groups: Sequence[str] | None = None
    votes: pd.DataFrame | None = None


def dataset_from_files(
    name: str,
    splits: Mapping[str, LabelledFiles],
    class_names: Sequence[str] | None,
    on_error: OnError,
    short_side: int | None,
    statistics: Statistics | None = None,
) -> Dataset:
    """Open every file, then make a dataset that decodes them on access.

    With `on_error="raise"` only headers are read, and a truncated file is an error when it is
    decoded. With `"skip"` all pixels are decoded once. With `"later"` no file is opened. Images are
    grey if all of them are, and a few others are named. Copies are reported, and stay together.
    Without `statistics`, those of 256 training images are computed; with them, as for published
    data, copies are ignored.
    """
    if "train" not in splits:
        raise ValueError(f"{name}: expected a split train with labels, got {few(list(splits))}")
    choose("on_error", on_error, get_args(OnError))
    names = class_names or order_classes(word for part in splits.values() for word in part.labels)
    opened = on_error != "later"
    copies = report_duplicates(name, splits) if opened and statistics is None else {}
    contents: dict[str, Split] = {}
    found: list[Look | UnreadableImageError] = []
    for split, content in splits.items():
        labels = as_indices(content.labels, names)
        groups = joined_groups(content.groups, copies.get(split))
        if content.groups is None:
            groups = splittable(groups, labels)
        votes = None if content.votes is None else vote_indices(content.votes, names)
        files = ImageFiles(content.files, short_side=short_side)
        part = Split(files, labels, groups=groups, votes=votes)
        if opened:
            look = partial(examine_image, full=on_error == "skip", short_side=short_side)
            examined = [*look_at_each(files.files, look)]
            part = select_samples(part, np.flatnonzero([isinstance(n, Look) for n in examined]))
            found += examined
        if len(part):
            contents[split] = part
    looks = [each for each in found if isinstance(each, Look)]
    if unreadable := [str(each) for each in found if not isinstance(each, Look)]:
        total = count(sum(len(content.labels) for content in splits.values()), "image")
        share = f"{len(unreadable):,} of {total}"
        leave_out(f"{name}: {share} cannot be read: {few(unreadable)}", on_error)
    if "train" not in contents:
        raise ValueError(f"{name}: none of the training images can be read")
    report_classes(name, contents["train"].labels, names)
    if opened:
        report_odd(name, looks)
    grey = opened and all(look.grey for look in looks)
    for part in contents.values():
        cast(ImageFiles, part.images).mode = "L" if grey else "RGB"
    train = cast(ImageFiles, contents["train"].images)
    mean, std = statistics or (sample_statistics(train) if opened else _UNSEEN)
    if max(mean) + 2 * max(std) < _DARK:
        notice(
            f"{name}: the images are nearly black; of 16-bit images only the upper 8 bits are "
            "read: scale all of them to 8 bits by one common range first"
        )
    return Dataset(name, contents, tuple(names), mean, std, clean=False)


def select_samples(split: Split, kept: NDArray[np.int64]) -> Split:
    """Some samples of a split, under their old names."""
    if len(kept) == len(split):
        return split
    images: Any = split.images
    places: Any = split.places
    if places is not None:
        places = [places[index] for index in kept.tolist()]
    if isinstance(images, np.ndarray):
        # Samples keep their old index as their name.
        places = places or [str(index) for index in kept.tolist()]
        images = images[kept]
    elif isinstance(images, ImageFiles):
        files = [images.files[index] for index in kept.tolist()]
        images = ImageFiles(files, mode=images.mode, short_side=images.short_side)
    given = {name: getattr(split, name) for name in ("groups", "votes", "truth")}
    chosen = {name: each[kept] for name, each in given.items() if each is not None}
    return Split(images, split.labels[kept], places, **chosen)


def sample_names(split: Split, data: str | os.PathLike[str]) -> list[str]:
    """The name of each sample of a split, to find it in the data.

    That is an image's path relative to the folder of the data or of their table, a row's line, or
    the index in an array, counted from 0.

    >>> sample_names(Split(np.zeros((2, 3), np.float32), np.array([0, 1])), "table.npz")
    ['0', '1']
    """
    if split.places is not None:
        return list(split.places)
    if not isinstance(split.images, ImageFiles):
        return [str(index) for index in range(len(split))]
    return file_names(split.images.files, data)


def file_names(files: Sequence[Encoded], data: str | os.PathLike[str]) -> list[str]:
    """The paths of images relative to the folder of the data or of their table."""
    place = Path(data).expanduser()
    base = os.path.abspath(place if place.is_dir() else place.parent)
    return [_file_name(file, base) for file in files]


def _file_name(file: Encoded, base: str) -> str:
    if isinstance(file, StoredImage):
        return file.name
    path = os.path.abspath(file)
    inside = path.startswith(base + os.sep)
    return Path(os.path.relpath(path, base) if inside else path).as_posix()
