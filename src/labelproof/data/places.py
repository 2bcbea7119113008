"""Where a dataset's files lie: in a folder, or still in the archive they came in."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from labelproof.data.streams import ByteStream

__all__ = ["ArchivePlace", "FolderPlace", "Place"]


class Place(Protocol):
    """Files by name, wherever they are kept."""

    @property
    def path(self) -> Path:
        """The folder or the archive."""
        ...

    def __contains__(self, name: str) -> bool: ...

    def title(self, name: str) -> str:
        """What to call a file in a message."""
        ...

    def size(self, name: str) -> int:
        """A file's size in bytes."""
        ...

    def open(self, name: str) -> AbstractContextManager[ByteStream]:
        """Open a file for reading."""
        ...

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        ...


@dataclass(frozen=True)
class FolderPlace:
    """Files in a folder.

    >>> folder = getfixture("tmp_path")
    >>> written = (folder / "labels.txt").write_bytes(b"cat dog")
    >>> place = FolderPlace(folder)
    >>> "labels.txt" in place, place.read("labels.txt")
    (True, b'cat dog')
    """

    path: Path

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file()

    def title(self, name: str) -> str:
        """The file's path."""
        return str(self.path / name)

    def size(self, name: str) -> int:
        """A file's size in bytes."""
        return (self.path / name).stat().st_size

    def open(self, name: str) -> AbstractContextManager[ByteStream]:
        """Open a file; unbuffered, because it is read in large blocks into arrays."""
        return (self.path / name).open("rb", buffering=0)

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        return (self.path / name).read_bytes()


@dataclass(frozen=True)
class ArchivePlace:
    """Files that were read from an archive into memory."""

    path: Path
    contents: Mapping[str, bytes] = field(repr=False)

    def __contains__(self, name: str) -> bool:
        return name in self.contents

    def title(self, name: str) -> str:
        """The archive and the file in it."""
        return f"{self.path}: {name}"

    def size(self, name: str) -> int:
        """A file's size in bytes."""
        return len(self.contents[name])

    def open(self, name: str) -> AbstractContextManager[ByteStream]:
        """Open a file for reading."""
        return io.BytesIO(self.contents[name])

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        return self.contents[name]
