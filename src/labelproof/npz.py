"""Read untrusted `.npy` and `.npz` files."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST_RATIO, _SMALLEST_LIMIT = 200, 256 << 20
"""An archive may unpack to this many times its size, or to this many bytes if that is more."""


def read_npz(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` by name, or the array of an `.npy` as `""`; runs no code.

    Args:
        path: The file.
        names: The arrays to read; all of them by default.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is corrupted, holds Python objects, lacks a name or unpacks to too much.

    Example:
        >>> file = getfixture("tmp_path") / "predictions.npz"
        >>> np.savez(file, held=np.array([2, 5]), logits=np.zeros((2, 3)))
        >>> read_npz(file, ["held"])
        {'held': array([2, 5])}
    """
    # Opened here, because NumPy does not close the file of a corrupted archive.
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
        # A corrupted header reaches Python's parser and NumPy's types, which raise any error.
        except Exception as error:
            reason = str(error)[:200] or type(error).__name__
            if "pickle" in reason or "Object arrays" in reason:
                # NumPy's own message advises to allow pickles.
                reason = "it holds Python objects or is another kind of file; save plain arrays"
            raise ValueError(f"{path.name}: not a valid file of arrays ({reason})") from None


def check_room(path: Path) -> None:
    """Refuse a zip bomb: an archive that unpacks to far more than its size.

    Raises:
        ValueError: It does.
    """
    if not zipfile.is_zipfile(path):
        return
    limit = max(_LARGEST_RATIO * path.stat().st_size, _SMALLEST_LIMIT)
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > limit:
            raise ValueError(f"it unpacks to more than {limit >> 20:,} MB")
