"""Image files that are decoded on access, the datasets they make, and the names of samples."""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelproof.data.classes import UnusableSamplesError
from labelproof.data.dataset import Dataset, Split
from labelproof.data.decoding import (
    Encoded,
    Mode,
    StoredImage,
    UnreadableImageError,
    decode_image,
    flatten_image,
    image_name,
    image_size,
    open_image,
    why_unreadable,
)
from labelproof.data.notices import count, few, notice

OnError: TypeAlias = Literal["raise", "skip", "later"]
"""For an unusable image: raise, leave it out with a warning, or raise only when it is decoded (no
file is opened before). For an unusable row, the latter two are the same."""

Statistics: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
"""Mean and standard deviation of each channel, scaled to 0..1."""

Found = TypeVar("Found")

_ROUND = 256
_GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"})
# Not MPO, a photo's: its further pictures are previews of the first.
_PAGED_FORMATS = frozenset({"GIF", "PNG", "TIFF", "WEBP"})
_STATISTICS_SIDE = 256
_FAINT = 0.03
"""A standard deviation below which 16-bit images have hardly any contrast left, such as those of
12-bit detectors, which fill 16 of the 256 levels."""
_UNSEEN: Statistics = ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
"""Statistics of images that were not opened."""


class EncodedImages(Protocol):
    """A sequence of stored images, such as a list of paths.

    One that reads an image on access may have `name_of(index)` and `select(indices)`, which do not.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Encoded:
        """The path of an image's file, or its bytes."""
        ...


class ImageFiles:
    """A lazy source over image files, which are decoded on access; it can be pickled.

    All images are converted to one mode, transparent pixels become white, 16-bit greys are divided
    by 256, and the camera's orientation is applied. Of several pages, the first is used.

    Args:
        files: Paths, or another sequence of stored images.
        mode: `"RGB"` or `"L"`.
        short_side: Resize to this shorter side while decoding. Much larger JPEG files are decoded
            at a half, a quarter or an eighth, which is faster.

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
        """Whether all images have the same size, by their headers."""
        sizes = _look_at_each(self.files, image_size)
        first = next(sizes, None)
        return first is not None and all(size == first for size in sizes)


def _look_at_each(files: EncodedImages, look: Callable[[Encoded], Found]) -> Iterator[Found]:
    """Apply a function to each stored image, in order, on several threads."""
    # Threads are enough: Pillow releases the GIL while it reads.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        # A pool takes all its work at once, which for stored bytes is the whole dataset.
        indices = iter(range(len(files)))
        while chosen := list(itertools.islice(indices, _ROUND)):
            yield from pool.map(look, [files[index] for index in chosen])


def select_images(files: EncodedImages, indices: Sequence[int]) -> EncodedImages:
    """Some of many stored images, still read on access."""
    select = getattr(files, "select", None)
    return [files[index] for index in indices] if select is None else select(indices)


def as_picture(pixels: NDArray[np.uint8]) -> Image.Image:
    """A Pillow image from `(C, H, W)`: colours for three channels, else the first channel."""
    colours = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]
    return Image.fromarray(np.ascontiguousarray(colours))


@dataclass(frozen=True)
class Examination:
    """The result of opening every image.

    Attributes:
        readable: Indices of the readable images.
        unreadable: For each of the others, its name and the reason.
        grey: Whether all readable images are grey.
    """

    readable: list[int]
    unreadable: list[str]
    grey: bool


def examine_images(
    files: EncodedImages, *, full: bool, short_side: int | None = None
) -> Examination:
    """Open every image: its header, which is quick, or all of its pixels.

    A truncated file has a good header; only `full` finds it.

    Args:
        files: Paths, or another sequence of stored images.
        full: Decode all pixels.
        short_side: The size for later; an image that would grow beyond bounds is unreadable.

    Warns:
        DataWarning: Some have more than one page, of which the first is used.
    """
    kept: list[int] = []
    unreadable: list[str] = []
    paged: list[int] = []
    grey = True
    look = partial(_examine, full=full, short_side=short_side)
    for index, found in enumerate(_look_at_each(files, look)):
        if isinstance(found, UnreadableImageError):
            unreadable.append(str(found))
            continue
        mode, pages = found
        kept.append(index)
        grey = grey and mode in _GREY_MODES
        if pages:
            paged.append(index)
    if paged:
        many = count(len(paged), "image has", "images have")
        notice(
            f"{many} more than one page, such as {image_name(files[paged[0]])}: only the first is "
            "used; save the others as files of their own if they matter"
        )
    return Examination(kept, unreadable, grey and bool(kept))


def _examine(
    file: Encoded, *, full: bool, short_side: int | None
) -> tuple[str, bool] | UnreadableImageError:
    """An image's mode and whether it has several pages, or why it cannot be read."""
    try:
        with open_image(file, short_side) as image:
            mode = image.mode
            if full:
                # An eighth of the size needs all of the file and a fraction of the arithmetic.
                image.draft(None, (1, 1))
                image.load()
                flatten_image(image, "RGB")
            # Last, since a GIF is searched for its second picture.
            return mode, _has_pages(image)
    except Exception as error:
        return why_unreadable(file, error)


def _has_pages(image: Image.Image) -> bool:
    try:
        return image.format in _PAGED_FORMATS and getattr(image, "is_animated", False)
    except Exception:
        # A second page that is broken is none; the first has been found good.
        return False


def channel_statistics(images: Iterable[NDArray[np.uint8]]) -> Statistics:
    """Mean and standard deviation of each channel over all pixels, scaled to 0..1."""
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


def sample_statistics(images: ImageFiles, *, sample: int = 256) -> Statistics:
    """Channel statistics of up to `sample` evenly spaced images, large ones in a smaller size.

    Warns:
        DataWarning: 16-bit images have hardly any contrast after division by 256.
    """
    side = images.short_side
    spread = np.linspace(0, len(images) - 1, min(sample, len(images))).astype(int)
    mean, std = channel_statistics(
        decode_image(
            images.files[index],
            mode=images.mode,
            short_side=side or _STATISTICS_SIDE,
            enlarge=side is not None,
        )
        for index in np.unique(spread).tolist()
    )
    if max(std) < _FAINT:
        with open_image(images.files[0]) as image:
            deep = image.mode.startswith("I")
        if deep:
            notice(
                f"16-bit images such as {image_name(images.files[0])} have hardly any contrast "
                "after division by 256; scale all images, and new ones, to 8 bits by one range"
            )
    return mean, std


@dataclass(frozen=True)
class LabelledFiles:
    """Stored images and the class of each; samples with the same group belong together."""

    files: EncodedImages
    labels: Sequence[int]
    groups: NDArray[np.int64] | None = None


def check_on_error(value: str) -> None:
    """Refuse what is neither `"raise"`, `"skip"` nor `"later"`."""
    if value not in ("raise", "skip", "later"):
        raise ValueError(f"on_error: expected 'raise', 'skip' or 'later', got {value!r}")


def dataset_from_files(
    name: str,
    splits: Mapping[str, LabelledFiles],
    class_names: Sequence[str],
    *,
    on_error: OnError = "raise",
    short_side: int | None = None,
    statistics: Statistics | None = None,
) -> Dataset:
    """Open every file, then make a dataset that decodes them on access.

    With `on_error="raise"` only headers are read, and a truncated file is an error when it is
    decoded. With `"skip"` all pixels are decoded once. With `"later"` no file is opened. Images are
    grey if all of them are. Without `statistics`, those of 256 training images are computed.
    """
    check_on_error(on_error)
    kept: dict[str, LabelledFiles] = {}
    unreadable: list[str] = []
    grey = on_error != "later"
    for split, content in splits.items():
        if on_error == "later":
            kept[split] = content
            continue
        found = examine_images(content.files, full=on_error == "skip", short_side=short_side)
        unreadable += found.unreadable
        grey = grey and (found.grey or not found.readable)
        if found.readable:
            chosen = found.readable
            groups = None if content.groups is None else content.groups[chosen]
            labels = [content.labels[index] for index in chosen]
            kept[split] = LabelledFiles(select_images(content.files, chosen), labels, groups)
    if unreadable:
        total = count(sum(len(content.labels) for content in splits.values()), "image")
        message = f"{name}: {len(unreadable):,} of {total} cannot be read"
        if on_error == "raise":
            advice = "fix them, or leave them out with on_error='skip'"
            raise UnusableSamplesError(f"{message}: {few(unreadable)}", advice)
        notice(f"{message} and are left out: {few(unreadable)}")
    if "train" not in kept:
        raise ValueError(f"{name}: none of the training images can be read")
    shown = set(kept["train"].labels)
    if missing := [word for label, word in enumerate(class_names) if label not in shown]:
        classes = count(len(missing), "class", "classes")
        notice(f"{name}: {classes} without a training image: {few(missing)}")
    sources = {
        split: ImageFiles(content.files, mode="L" if grey else "RGB", short_side=short_side)
        for split, content in kept.items()
    }
    if on_error == "later":
        statistics = statistics or _UNSEEN
    mean, std = statistics or sample_statistics(sources["train"])
    contents = {
        split: Split(source, np.asarray(kept[split].labels, np.int64), groups=kept[split].groups)
        for split, source in sources.items()
    }
    return Dataset(name, contents, tuple(class_names), mean, std, clean=False)


def sample_names(split: Split, data: str | os.PathLike[str]) -> list[str]:
    """A name for each sample of a split, by which a person finds it in the data.

    An image file has its path within the data's folder, a row its line, and an entry of an array
    its index, counted from 0.

    Args:
        split: The samples.
        data: The path they were read from.

    Example:
        >>> sample_names(Split(np.zeros((2, 3), np.float32), np.array([0, 1])), "table.npz")
        ['0', '1']
    """
    if split.places is not None:
        return list(split.places)
    images = split.images
    name_of = str
    if isinstance(images, ImageFiles):
        files, base = images.files, sample_folder(data)
        # Some sources know an image's name without reading it.
        name_of = getattr(files, "name_of", lambda index: _file_name(files[index], base))
    return [name_of(index) for index in range(len(split))]


def sample_folder(data: str | os.PathLike[str]) -> str:
    """The absolute path of the folder that files are named within: the data's, or their table's."""
    place = Path(data).expanduser()
    return os.path.abspath(place if place.is_dir() else place.parent)


def _file_name(file: str | StoredImage, base: str) -> str:
    if isinstance(file, StoredImage):
        return file.name
    path = os.path.abspath(file)
    inside = path.startswith(base + os.sep)
    return Path(os.path.relpath(path, base) if inside else path).as_posix()
