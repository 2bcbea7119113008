"""Names that look alike and are stored differently: an accented letter in one piece or in two."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from functools import cached_property

__all__ = ["KnownNames", "StoredFiles", "composed"]


class KnownNames:
    r"""Names to look others up in, whichever way their accents are stored.

    A Mac may hand on `ä` as `a` and a diaeresis of its own, most others write one letter. A name
    that is known as it is written is that one; else it is the only one that reads the same.

    Args:
        names: The names, as they are to be found.

    Example:
        >>> known = KnownNames(["K\u00e4tzchen", "Hund"])
        >>> ascii(known.find("Ka\u0308tzchen")), known.find("Katze")
        ("'K\\xe4tzchen'", None)
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def find(self, name: str) -> str | None:
        """The known name that this one is; `None` where there is none, or more than one.

        >>> KnownNames(["Hund"]).find("Hund")
        'Hund'
        """
        return name if name in self._names else self._alike.get(composed(name))

    @cached_property
    def _alike(self) -> dict[str, str | None]:
        # Made when it is first needed: as a rule all names are known as they are written.
        alike: dict[str, str | None] = {}
        for name in self._names:
            form = composed(name)
            # Where two read the same, no one can tell which is meant.
            alike[form] = None if form in alike else name
        return alike


class StoredFiles:
    r"""Files by their paths, whichever way the accents in these are stored.

    What is in a folder is read once, and only if a name in it has to be looked for.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> _ = (folder / "K\u00e4tzchen.png").write_bytes(b"")
        >>> found = StoredFiles().find(str(folder / "Ka\u0308tzchen.png"))
        >>> os.path.samefile(found, folder / "K\u00e4tzchen.png")
        True
    """

    def __init__(self) -> None:
        self._folders: dict[str, KnownNames] = {}

    def find(self, path: str) -> str | None:
        """The path that the file has on the disk; `None` where there is no such file.

        >>> StoredFiles().find(str(getfixture("tmp_path") / "gone.png"))
        """
        if os.path.isfile(path):
            return path
        stored = self._stored(path)
        return stored if stored is not None and os.path.isfile(stored) else None

    def _stored(self, path: str) -> str | None:
        if os.path.lexists(path):
            return path
        # ASCII has one form: what is missing is not looked for in folders that may be large.
        if path.isascii():
            return None
        folder, name = os.path.split(path)
        if not name:
            return None
        within = self._stored(folder) if folder else os.curdir
        if within is None:
            return None
        if name.isascii():
            return os.path.join(within, name)
        if within not in self._folders:
            self._folders[within] = KnownNames(_listed(within))
        known = self._folders[within].find(name)
        return None if known is None else os.path.join(within, known)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # no folder, or none that may be read
        return []


def composed(name: str) -> str:
    r"""A name with every accented letter in one piece.

    >>> composed("a\u0308") == "\u00e4"
    True
    """
    return unicodedata.normalize("NFC", name)
