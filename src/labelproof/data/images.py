"""Image files, decoded one at a time when they are asked for."""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelproof.data.encoded import Encoded, Mode, UnreadableImageError, decode_image, image_size

__all__ = ["EncodedImages", "ImageFiles", "as_picture", "look_at_each", "select_images"]

_ROUND = 256

Found = TypeVar("Found")


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
        sizes = look_at_each(self.files, image_size)
        first = next(sizes, None)
        return first is not None and all(size == first for size in sizes)


def look_at_each(files: EncodedImages, look: Callable[[Encoded], Found]) -> Iterator[Found]:
    """What a function finds in each of many stored images, in order, by several threads.

    >>> list(look_at_each(["a.png", "b.jpeg"], len))
    [5, 6]
    """
    # Threads are enough: Pillow lets go of the interpreter while it reads.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        # A pool takes in all of its work at once, which for stored bytes is the whole dataset.
        indices = iter(range(len(files)))
        while chosen := list(itertools.islice(indices, _ROUND)):
            yield from pool.map(look, [files[index] for index in chosen])


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


def as_picture(pixels: NDArray[np.uint8]) -> Image.Image:
    """An image `(C, H, W)` as Pillow has it; of more channels than a screen has, the first.

    >>> as_picture(np.zeros((3, 4, 5), np.uint8)).size
    (5, 4)
    """
    colours = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]
    return Image.fromarray(np.ascontiguousarray(colours))
