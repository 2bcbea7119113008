"""Arrays of NumPy's files: the one door for `.npy` and `.npz`, whoever wrote them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_room", "read_npz"]

_LARGEST_RATIO, _SMALLEST_ROOM = 200, 256 << 20
"""How far an archive may unpack: to this many times its size, or this many bytes."""


def read_npz(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` by their names, or that of an `.npy` as `""`; no code is run.

    Args:
        path: The file.
        names: The arrays to read; all of them by default.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, holds objects or lacks a name, or unpacks to too much.

    Example:
        >>> file = getfixture("tmp_path") / "predictions.npz"
        >>> np.savez(file, held=np.array([2, 5]), logits=np.zeros((2, 3)))
        >>> read_npz(file, ["held"])
        {'held': array([2, 5])}
    """
    # Opened here, since NumPy leaves the file of a damaged archive open.
    with path.open("rb") as stream:
        try:
            check_room(path)
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                loaded = {"": loaded}
            for name in names or ():
                if name not in loaded:
                    raise ValueError(f"it lacks {name!r}")
            members = {name: loaded[name] for name in (loaded if names is None else names)}
            return {name: each for name, each in members.items() if isinstance(each, np.ndarray)}
        # Damaged headers and archives reach Python's parser and NumPy's types, which raise
        # what they like.
        except Exception as error:
            reason = str(error)[:200] or type(error).__name__
            if "pickle" in reason or "Object arrays" in reason:
                # NumPy's own message would advise to allow pickles.
                reason = "it holds Python objects or is of another kind; save plain arrays"
            raise ValueError(f"{path.name}: not a whole file of arrays ({reason})") from None


def check_room(path: Path) -> None:
    """Refuse an archive that unpacks to far more than it takes.

    Raises:
        ValueError: It does.
    """
    if not zipfile.is_zipfile(path):
        return
    room = max(_LARGEST_RATIO * path.stat().st_size, _SMALLEST_ROOM)
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > room:
            raise ValueError(f"it unpacks to more than {room >> 20:,} MB")
