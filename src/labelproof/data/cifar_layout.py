"""CIFAR-10 and CIFAR-100 as they are published: a binary and a python version, each an archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from labelproof.data.archives import read_members
from labelproof.data.cifar import (
    cifar_bytes,
    read_cifar_binary,
    read_cifar_names,
    read_cifar_python,
)
from labelproof.data.layouts import Contents
from labelproof.data.places import ArchivePlace, FolderPlace, Place
from labelproof.data.records import Records

__all__ = ["ARCHIVE_LIMIT", "CIFAR10_LAYOUTS", "CIFAR100_LAYOUTS", "CifarLayout"]

ARCHIVE_LIMIT = 256 << 20
"""The published archives hold about 190 MB; what holds much more is not one of them."""


@dataclass(frozen=True)
class CifarLayout:
    """One of the four archives and the folder that comes out of it.

    Attributes:
        version: What this layout is called.
        folder: The folder in the archive.
        archive: The archive.
        batches: The files of each split, in order.
        binary: The files of each split in the binary version, whichever version this is.
        classes: For each label of an image, how many classes there are.
        names_file: The file with the class names.
        names_key: What they are called in it, where it is a pickle; a text has no keys.
        home: The dataset's own folder below the root.
    """

    version: str
    folder: str
    archive: str
    batches: Mapping[str, tuple[str, ...]]
    binary: Mapping[str, tuple[str, ...]]
    classes: tuple[int, ...]
    names_file: str
    names_key: str | None
    home: str

    @property
    def folders(self) -> tuple[str, ...]:
        """Its folder below its home, its home itself, or its folder below the root."""
        return (f"{self.home}/{self.folder}", self.home, self.folder)

    @property
    def archives(self) -> tuple[str, ...]:
        """The archive in its home, or at the root."""
        return (f"{self.home}/{self.archive}", self.archive)

    @property
    def files(self) -> tuple[str, ...]:
        """All batches."""
        return tuple(name for names in self.batches.values() for name in names)

    @property
    def members(self) -> dict[str, str]:
        """What is taken out of the archive: paths there, and names in the folder."""
        return {f"{self.folder}/{name}": name for name in (*self.files, self.names_file)}

    def spelling(self, place: Place, name: str) -> str | None:
        """The name itself."""
        return name if name in place else None

    def open(self, path: Path) -> Place:
        """The folder, or the archive with its batches and names read into memory."""
        if path.is_dir():
            return FolderPlace(path)
        place = ArchivePlace(path, read_members(path, members=self.members, limit=ARCHIVE_LIMIT))
        missing = [name for name in self.files if name not in place]
        if missing:
            raise ValueError(f"{path}: expected {', '.join(missing)} in it, found none")
        return place

    def read(self, place: Place) -> Contents:
        """Read all batches of both splits."""
        read = read_cifar_binary if self.names_key is None else read_cifar_python
        splits = {
            split: read(place, names, classes=self.classes) for split, names in self.batches.items()
        }
        names = read_cifar_names(
            place, self.names_file, key=self.names_key, expected=self.classes[-1]
        )
        return Contents(splits, names)

    def published(self, contents: Contents) -> Iterator[tuple[str, bytes]]:
        """The batches of the binary version."""
        for split, names in self.binary.items():
            records = contents.splits[split]
            # As many images in each batch; what does not come out even fails its checksum.
            length = -(-len(records.images) // len(names))
            for index, name in enumerate(names):
                part = slice(index * length, (index + 1) * length)
                yield name, cifar_bytes(Records(records.images[part], records.labels[part]))


_BINARY10 = {
    "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    "test": ("test_batch.bin",),
}
_BINARY100 = {"train": ("train.bin",), "test": ("test.bin",)}

CIFAR10_LAYOUTS = (
    CifarLayout(
        version="binary version",
        folder="cifar-10-batches-bin",
        archive="cifar-10-binary.tar.gz",
        batches=_BINARY10,
        binary=_BINARY10,
        classes=(10,),
        names_file="batches.meta.txt",
        names_key=None,
        home="cifar10",
    ),
    CifarLayout(
        version="python version",
        folder="cifar-10-batches-py",
        archive="cifar-10-python.tar.gz",
        batches={
            "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
            "test": ("test_batch",),
        },
        binary=_BINARY10,
        classes=(10,),
        names_file="batches.meta",
        names_key="label_names",
        home="cifar10",
    ),
)
"""CIFAR-10's two versions."""

CIFAR100_LAYOUTS = (
    CifarLayout(
        version="binary version",
        folder="cifar-100-binary",
        archive="cifar-100-binary.tar.gz",
        batches=_BINARY100,
        binary=_BINARY100,
        classes=(20, 100),
        names_file="fine_label_names.txt",
        names_key=None,
        home="cifar100",
    ),
    CifarLayout(
        version="python version",
        folder="cifar-100-python",
        archive="cifar-100-python.tar.gz",
        batches={"train": ("train",), "test": ("test",)},
        binary=_BINARY100,
        classes=(20, 100),
        names_file="meta",
        names_key="fine_label_names",
        home="cifar100",
    ),
)
"""CIFAR-100's two versions."""
