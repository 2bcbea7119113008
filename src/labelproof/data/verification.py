"""Whether a dataset that is here is what its publisher published."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labelproof.data.catalogue import KnownDataset, known_dataset
from labelproof.data.checksums import sha256_of_file
from labelproof.data.layouts import Contents, Found
from labelproof.data.loading import find_dataset, how_to_get, load_dataset
from labelproof.data.root import data_root

__all__ = ["Verification", "verify_dataset"]


@dataclass(frozen=True)
class Verification:
    """What came of a verification.

    Attributes:
        name: The dataset.
        path: Where it is, `None` where it is not.
        version: How it is laid out there.
        problems: What is wrong; nothing, if all is well.
        unknown: Files whose checksum is not known, so that only sizes and counts were looked at.
    """

    name: str
    path: Path | None
    version: str
    problems: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify_dataset(name: str, *, root: str | os.PathLike[str] | None = None) -> Verification:
    """Read a known dataset and compare counts, sizes and SHA-256 with what was published.

    The checksum is of what was read, written back as the publisher's uncompressed files. So it
    holds for every version and compression, and covers the reader, too.

    Args:
        name: A name of the catalogue.
        root: As for [`load_dataset`][labelproof.data.load_dataset].

    Example:
        >>> verify_dataset("digits").good
        True
    """
    dataset = known_dataset(name)
    folder = data_root(root)
    if dataset.embedded:
        digits = load_dataset(name)
        counts = {split: len(digits.splits[split]) for split in digits.splits}
        return Verification(name, None, "embedded", tuple(_count_problems(dataset, counts)))
    try:
        found = find_dataset(dataset, folder)
    except FileNotFoundError as error:
        return Verification(dataset.name, None, "incomplete", (str(error),))
    if found is None:
        problem = f"not found in {folder}; {how_to_get(dataset, folder)}"
        return Verification(dataset.name, None, "missing", (problem,))
    try:
        contents = found.read()
    except (ValueError, OSError) as error:
        return Verification(dataset.name, found.path, found.layout.version, (str(error),))
    problems = [*_shape_problems(dataset, contents)]
    unknown: tuple[str, ...] = ()
    if dataset.checksums:
        problems += _content_problems(dataset, found, contents)
    else:
        file_problems, unknown = _file_problems(dataset, found)
        problems += file_problems
    return Verification(dataset.name, found.path, found.layout.version, tuple(problems), unknown)


def _count_problems(dataset: KnownDataset, counts: dict[str, int]) -> Iterator[str]:
    for split, expected in dataset.counts.items():
        if counts.get(split, 0) != expected:
            yield f"expected {expected} images to {split}, got {counts.get(split, 0)}"


def _shape_problems(dataset: KnownDataset, contents: Contents) -> Iterator[str]:
    counts = {split: len(records.images) for split, records in contents.splits.items()}
    yield from _count_problems(dataset, counts)
    for split, records in contents.splits.items():
        if records.images.shape[1:] != dataset.image_shape:
            yield (
                f"expected images to {split} of {dataset.image_shape}, "
                f"got {records.images.shape[1:]}"
            )


def _content_problems(dataset: KnownDataset, found: Found, contents: Contents) -> Iterator[str]:
    for name, content in found.layout.published(contents):
        digest = hashlib.sha256(content).hexdigest()
        if digest != dataset.checksums[name]:
            yield (
                f"what was read is not the publisher's {name}: expected SHA-256 "
                f"{dataset.checksums[name]}, got {digest}"
            )


def _file_problems(dataset: KnownDataset, found: Found) -> tuple[list[str], tuple[str, ...]]:
    """Compare the files themselves, where only the checksums of the compressed ones are known."""
    problems, unknown = [], []
    for file in dataset.files:
        path = found.path / file.name
        if not path.is_file():
            unknown.append(file.name.removesuffix(".gz"))
        elif (digest := sha256_of_file(path)) != file.sha256:
            problems.append(f"{path}: expected SHA-256 {file.sha256}, got {digest}")
    return problems, tuple(unknown)
