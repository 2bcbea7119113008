"""Image files as what a network sees of them, so that they are decoded once and not every epoch.

A photo of ten megapixels that a network looks at through 224 of them need not be decoded again and
again. Where all images at the size that matters fit in memory, they are brought there once; where
they do not, they are decoded at that size whenever they are asked for, which keeps memory flat
however large the folder is.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset, Split
from labelproof.data.images import ImageFiles

__all__ = ["bring_to_memory", "bring_to_size", "gather_squares", "square_side"]

_ROUND = 256


def square_side(crop: int) -> int:
    """Pixels of the square that random crops are cut from, as evaluation has them.

    >>> square_side(224)
    256
    """
    return crop * 256 // 224


def bring_to_size(
    dataset: Dataset, crop: int, *, memory: int, progress: Callable[[int, int], None] | None = None
) -> Dataset:
    """The same dataset with its image files at the size that crops of `crop` pixels need.

    Args:
        dataset: One whose images are files that are decoded when they are asked for.
        crop: Side of what the network sees.
        memory: Bytes that all images may take; beyond, they stay files.
        progress: Told, as images are brought to memory, how many there are and how many in all.
    """
    side = square_side(crop)
    sources = {
        name: split.images
        for name, split in dataset.splits.items()
        if isinstance(split.images, ImageFiles)
    }
    total = sum(len(source) for source in sources.values())
    channels = dataset.input_shape[0]
    resident = total * channels * side * side <= memory
    splits: dict[str, Split] = {}
    done = 0
    for name, split in dataset.splits.items():
        if name not in sources:
            splits[name] = split
            continue
        smaller = ImageFiles(sources[name].files, mode=sources[name].mode, short_side=side)
        if not resident:
            splits[name] = replace(split, images=smaller)
            continue
        pixels = np.empty((len(smaller), channels, side, side), dtype=np.uint8)
        for index, square in enumerate(gather_squares(smaller, side)):
            pixels[index] = square
            done += 1
            if progress is not None and (done % _ROUND == 0 or done == total):
                progress(done, total)
        splits[name] = replace(split, images=pixels)
    return replace(dataset, splits=splits)


def bring_to_memory(
    dataset: Dataset, *, memory: int, progress: Callable[[int, int], None] | None = None
) -> Dataset:
    """The same dataset with its image files as arrays, where all of a split have one size.

    Args:
        dataset: One that is trained on without crops of another size.
        memory: Bytes that all images may take; beyond, they stay files.
        progress: Told, as images are brought to memory, how many there are and how many in all.
    """
    sources = {
        name: split.images
        for name, split in dataset.splits.items()
        if isinstance(split.images, ImageFiles)
    }
    shapes = {name: (len(source), *source[0].shape) for name, source in sources.items()}
    if sum(math.prod(shape) for shape in shapes.values()) > memory:
        return dataset
    # Asked last, since it opens every file.
    if not all(source.one_size for source in sources.values()):
        return dataset
    total = sum(len(source) for source in sources.values())
    splits = dict(dataset.splits)
    done = 0
    for name, source in sources.items():
        pixels = np.empty(shapes[name], dtype=np.uint8)
        for index, image in enumerate(_gather(source, lambda image: image)):
            pixels[index] = image
            done += 1
            if progress is not None and (done % _ROUND == 0 or done == total):
                progress(done, total)
        splits[name] = replace(dataset.splits[name], images=pixels)
    return replace(dataset, splits=splits)


def gather_squares(images: ImageFiles, side: int) -> Iterator[NDArray[np.uint8]]:
    """The square in the middle of each image, in order, decoded by several threads.

    Args:
        images: Their shorter sides have `side` pixels.
        side: Of the squares.

    Raises:
        UnreadableImageError: An image cannot be decoded; the message names it.
    """
    return _gather(images, lambda image: _middle(image, side))


def _gather(
    images: ImageFiles, cut: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
) -> Iterator[NDArray[np.uint8]]:
    # Threads are enough: the decoders let go of the interpreter while they work.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 16)) as pool:
        indices = iter(range(len(images)))
        # In rounds, since a pool takes in all of its work at once and keeps all results.
        while chosen := list(itertools.islice(indices, _ROUND)):
            yield from pool.map(lambda index: cut(images[index]), chosen)


def _middle(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    _, height, width = image.shape
    top, left = (height - side) // 2, (width - side) // 2
    return image[:, top : top + side, left : left + side]
