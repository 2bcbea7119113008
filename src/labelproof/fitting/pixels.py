"""Image files as what a network sees of them, so that they are decoded once and not every epoch.

A photo of ten megapixels that a network looks at through 224 of them need not be decoded again and
again. Where all images at the size that matters fit in memory, they are brought there once; where
they do not, they are decoded at that size whenever they are asked for, which keeps memory flat
however large the folder is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.images import ImageFiles, look_at_each
from labelproof.training.geometry import short_side

_TOLD = 256
"""Images after which progress is told of again."""

Progress: TypeAlias = Callable[[int, int], None]


def bring_to_size(
    dataset: Dataset, crop: int, *, memory: int, progress: Progress | None = None
) -> Dataset:
    """The same dataset with its image files at the size that crops of `crop` pixels need.

    Args:
        dataset: One whose images are files that are decoded when they are asked for.
        crop: Side of what the network sees; 0 for whole images, which become arrays where all of a
            split have one size.
        memory: Bytes that all images may take; beyond, they stay files.
        progress: Told how many images are decoded, and how many there are.
    """
    side, channels = short_side(crop), dataset.input_shape[0]
    sources: dict[str, ImageFiles] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, split in dataset.splits.items():
        if isinstance(source := split.images, ImageFiles):
            shapes[name] = (len(source), *((channels, side, side) if crop else source[0].shape))
            if crop:
                source = ImageFiles(source.files, mode=source.mode, short_side=side)
            sources[name] = source
    fits = sum(math.prod(shape) for shape in shapes.values()) <= memory
    # One size is asked for last, since that opens every file.
    if fits and (crop or all(source.one_size for source in sources.values())):
        return _decode(dataset, sources, shapes, progress)
    return _with_images(dataset, sources)


def _with_images(dataset: Dataset, images: Mapping[str, Any]) -> Dataset:
    changed = {name: replace(dataset.splits[name], images=images[name]) for name in images}
    return replace(dataset, splits={**dataset.splits, **changed})


def _decode(
    dataset: Dataset,
    sources: Mapping[str, ImageFiles],
    shapes: Mapping[str, tuple[int, ...]],
    progress: Progress | None,
) -> Dataset:
    total, done = sum(len(source) for source in sources.values()), 0
    pixels = {name: np.empty(shape, dtype=np.uint8) for name, shape in shapes.items()}
    for name, source in sources.items():
        decoded = look_at_each(range(len(source)), source.__getitem__)
        for index, image in enumerate(decoded):
            pixels[name][index] = _middle(image, *shapes[name][2:])
            done += 1
            if progress is not None and (done % _TOLD == 0 or index == len(source) - 1):
                progress(done, total)
    return _with_images(dataset, pixels)


def _middle(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    top, left = (image.shape[1] - height) // 2, (image.shape[2] - width) // 2
    return image[:, top : top + height, left : left + width]
