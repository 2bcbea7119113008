"""How a publisher lays a dataset out in files: what they are called, and how they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from labelproof.data.places import FolderPlace, Place
from labelproof.data.records import Records

__all__ = ["Contents", "Found", "Layout", "find_layout"]


class Contents(NamedTuple):
    """What was read: records for each split, and class names where the files say them."""

    splits: dict[str, Records]
    class_names: tuple[str, ...] | None


class Layout(Protocol):
    """One way a dataset is laid out in files."""

    @property
    def version(self) -> str:
        """What this layout is called."""
        ...

    @property
    def folders(self) -> Sequence[str]:
        """Where below the root its files may be, the first choice first."""
        ...

    @property
    def archives(self) -> Sequence[str]:
        """Where below the root the archive with its files may be."""
        ...

    @property
    def files(self) -> Sequence[str]:
        """The files without which it cannot be read."""
        ...

    def spelling(self, place: Place, name: str) -> str | None:
        """The name one of its files has in a place, or `None` where it is not there."""
        ...

    def open(self, path: Path) -> Place:
        """Open its folder or its archive."""
        ...

    def read(self, place: Place) -> Contents:
        """Read all of it."""
        ...

    def published(self, contents: Contents) -> Iterator[tuple[str, bytes]]:
        """What was read, written as the publisher's own uncompressed files, each with its name."""
        ...


@dataclass(frozen=True)
class Found:
    """A dataset that is there.

    Attributes:
        layout: How it is laid out.
        path: Its folder or its archive.
    """

    layout: Layout
    path: Path

    def read(self) -> Contents:
        """Read all of it."""
        return self.layout.read(self.layout.open(self.path))


def find_layout(layouts: Sequence[Layout], root: Path) -> Found | None:
    """Find a dataset below a root: a folder with all its files, or else an archive.

    Raises:
        FileNotFoundError: There are some of its files, but not all of them.
    """
    partial: list[str] = []
    for layout in layouts:
        for folder in layout.folders:
            place = FolderPlace(root / folder)
            missing = [name for name in layout.files if layout.spelling(place, name) is None]
            if not missing:
                return Found(layout, place.path)
            if len(missing) < len(layout.files):
                partial.append(f"{place.path} lacks {', '.join(missing)}")
    for layout in layouts:
        for archive in layout.archives:
            if (root / archive).is_file():
                return Found(layout, root / archive)
    if partial:
        raise FileNotFoundError("; ".join(dict.fromkeys(partial)))
    return None
