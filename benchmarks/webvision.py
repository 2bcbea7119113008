"""How fast images are read: a tree laid out as mini WebVision, beside Pillow's bare decoding.

Makes a small tree in a temporary folder (JPEG files of photo-like content, once resized to 256
pixels as the publisher does, once whole), loads it, and reads every training image on one core.

- bare: `PIL.Image.open(path).load()`, the decoding alone and no array.
- plain: decode, convert, resize the short side to 256, make an array; what a plain loader does.
- ours: one image of the source.

All three take turns in the same run, in seconds of the processor, so that neither a disk nor
another program counts. The last columns are files a second that the check at loading looks at: the
headers (`on_error="raise"`), and all pixels (`"skip"`).

    python benchmarks/webvision.py
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelproof.data.images import ImageFiles, examine_image
from labelproof.data.published import load_webvision

CLASSES = 50
SIZES = {"resized": (341, 256), "whole": (1280, 960)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=4, help="training images for each class")
    parser.add_argument("--rounds", type=int, default=5, help="turns; the median is printed")
    options = parser.parse_args()
    print(f"{CLASSES * options.images} JPEG files, one core, median of {options.rounds} turns")
    print("                      images a second      ours over      files a second")
    print("files         size    bare  plain   ours   bare  plain    headers   pixels")
    for kind, size in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            make_tree(root, options.images, size)
            source = load_webvision(root).train.images
            assert isinstance(source, ImageFiles)
            files = [str(source.files[index]) for index in range(len(source))]
            readers = ((bare, files), (plain, files), (source.__getitem__, range(len(source))))
            turns = [[speed(*reader) for reader in readers] for _ in range(options.rounds)]
            bare_speed, plain_speed, ours = (median(column) for column in zip(*turns, strict=True))
            ratios = [median(turn[2] / turn[other] for turn in turns) for other in (0, 1)]
            checks = [speed(partial(examine_image, full=full), files) for full in (False, True)]
            print(
                f"{kind:8} {size[0]:5d}x{size[1]:<4d} {bare_speed:6.0f} {plain_speed:6.0f} "
                f"{ours:6.0f} {ratios[0]:6.2f} {ratios[1]:6.2f} "
                f"{checks[0]:10.0f} {checks[1]:8.0f}"
            )


def make_tree(root: Path, images: int, size: tuple[int, int]) -> None:
    """WebVision 1.0's layout with made images: `images` a class to train on, one to test on."""
    info = root / "info"
    info.mkdir()
    generator = np.random.default_rng(0)
    synsets = [f"n{1440764 + label:08d} thing {label}" for label in range(CLASSES)]
    (info / "synsets.txt").write_text("\n".join(synsets))
    train = [
        (f"google/q{label:04d}/{number}.jpg", label)
        for label in range(CLASSES)
        for number in range(images)
    ]
    test = [(f"val{label + 1:06d}.jpg", label) for label in range(CLASSES)]
    for name, place, files in (
        ("train_filelist_google.txt", root, train),
        ("val_filelist.txt", root / "val_images_256", test),
    ):
        (info / name).write_text("".join(f"{file} {label}\n" for file, label in files))
        for file, _ in files:
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            photo(generator, size).save(place / file, quality=85)


def photo(generator: np.random.Generator, size: tuple[int, int]) -> Image.Image:
    """Shapes and a little grain, which compress about as photos do."""
    coarse = generator.integers(0, 256, (12, 16, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC), np.int16)
    grain = generator.integers(-6, 7, (*smooth.shape[:2], 1), dtype=np.int16)
    return Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8))


def bare(path: str) -> None:
    with Image.open(path) as image:
        image.load()


def plain(path: str) -> NDArray[np.uint8]:
    with Image.open(path) as image:
        pixels = image.convert("RGB")
    size = (round(pixels.width * 256 / pixels.height), 256)
    if pixels.size != size:
        pixels = pixels.resize(size, Image.Resampling.BILINEAR)
    return np.array(pixels)


def speed(read: Callable[[Any], object], items: Sequence[object]) -> float:
    """Items for each second of the processor."""
    start = time.process_time()
    for item in items:
        read(item)
    return len(items) / (time.process_time() - start)


if __name__ == "__main__":
    main()
