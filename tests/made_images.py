"""Small image files to read: smooth, so that JPEG keeps them, and all different."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image


def make_image(seed: int, *, size: tuple[int, int] = (24, 16), mode: str = "RGB") -> Image.Image:
    """An image `size` wide and high that a seed decides."""
    coarse = np.random.default_rng(seed).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).convert(mode)


def write_images(
    folder: Path, names: Iterable[str], *, size: tuple[int, int] = (24, 16), mode: str = "RGB"
) -> None:
    """Write an image of its own under each name, with the folders it needs."""
    for seed, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        make_image(seed, size=size, mode=mode).save(path)


def pixels(image: Image.Image) -> np.ndarray:
    """What a source has to give for an image: `(C, H, W)`."""
    array = np.asarray(image)
    return array[np.newaxis] if array.ndim == 2 else array.transpose(2, 0, 1)
