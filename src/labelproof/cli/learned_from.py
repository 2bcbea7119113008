"""How many of the samples that a run is measured on it has learned from."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.cli.run_data import find_data, find_labels, reading_of, same_data
from labelproof.data.dataset import Dataset, Split
from labelproof.data.duplicates import find_duplicates
from labelproof.data.images import ImageFiles
from labelproof.data.labelled_files import OnError
from labelproof.fitting.attempts import Attempts
from labelproof.training.saved import SavedRun

__all__ = ["count_learned"]


def count_learned(
    run: SavedRun, attempts: Attempts | None, split: Split, root: Path | None
) -> int | None:
    """How many samples are among the training data of a run; `None` if it cannot be known.

    Those that it held out to validate on are among them.

    Files are the same if their paths are, or their bytes; images and rows in memory if their
    numbers are. No image is decoded.

    Args:
        run: The run.
        attempts: What its folder tells of how its data were read.
        split: The samples.
        root: Where datasets are that have a name.
    """
    # Of files the list will do: to look at each would take longer than to measure.
    quick = "later" if isinstance(split.images, ImageFiles) else "skip"
    own = _training_data(run, attempts, root, quick)
    found = None if own is None else _count(split, own.train)
    if own is None or found is None:
        return None
    same = same_data(run, attempts, own)
    if found and same is False and quick == "later":
        # What could not be read was listed and never learned from.
        own = _training_data(run, attempts, root, "skip")
        same = own is not None and same_data(run, attempts, own)
    # Where its data are others by now, who is among them says nothing; nor does, where nothing was
    # noted, that no one is.
    return found if same or (same is None and found) else None


def _training_data(
    run: SavedRun, attempts: Attempts | None, root: Path | None, on_error: OnError
) -> Dataset | None:
    """What a run learned from, read again without a word; `None` if that cannot be done."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = find_data(run, attempts, advice="")
            labels = find_labels(run, attempts, advice="")
            return reading_of(attempts, labels, root).load(data, on_error=on_error)
    except (OSError, ValueError):
        return None


def _count(split: Split, own: Split) -> int | None:
    if isinstance(split.images, ImageFiles) and isinstance(own.images, ImageFiles):
        return _count_files(_paths(split.images), _paths(own.images))
    if isinstance(split.images, np.ndarray) and isinstance(own.images, np.ndarray):
        return _count_equal(split.images, own.images)
    return None


def _paths(images: ImageFiles) -> list[str] | None:
    """The files of images; `None` where they are stored otherwise, as in an archive."""
    if getattr(images.files, "name_of", None) is not None:  # to ask for one is to read it
        return None
    files = [images.files[index] for index in range(len(images))]
    paths = [file for file in files if isinstance(file, str)]
    return paths if len(paths) == len(files) else None


def _count_files(paths: Sequence[str] | None, learned: Sequence[str] | None) -> int | None:
    if paths is None or learned is None:
        return None
    known = {os.path.realpath(path) for path in learned}
    same = {index for index, path in enumerate(paths) if os.path.realpath(path) in known}
    others = [index for index in range(len(paths)) if index not in same]
    sizes = {_size(paths[index]) for index in others}
    # Copies among the learned ones are nobody's concern here, so only what may match is compared.
    alike = [path for path in learned if _size(path) in sizes] if others else []
    for group in find_duplicates([*(paths[index] for index in others), *alike]):
        if group[-1] >= len(others):
            same |= {others[index] for index in group if index < len(others)}
    return len(same)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return -1


def _count_equal(samples: NDArray[Any], learned: NDArray[Any]) -> int | None:
    if samples.shape[1:] != learned.shape[1:] or samples.dtype != learned.dtype:
        return None
    known = {_digest(sample) for sample in learned}
    return sum(_digest(sample) in known for sample in samples)


def _digest(sample: NDArray[Any]) -> bytes:
    return hashlib.blake2b(sample.tobytes(), digest_size=16).digest()
