"""Arrays that were kept in a `.npz` file, and what is said where it is damaged."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_arrays"]

_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
"""How an archive begins; the second one is empty."""


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of a file that labelproof wrote, by name.

    Nothing in the file is executed. What is wrong with it is said in words of its own, since those
    of NumPy advise to trust it.

    Args:
        path: The file.
        names: Those that are wanted; without them, all. Others are not read.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, or something else; the message begins with its name.

    Example:
        >>> file = getfixture("tmp_path") / "predictions.npz"
        >>> np.savez(file, held=np.array([2, 5]), logits=np.zeros((2, 3)))
        >>> read_arrays(file, ["held"])
        {'held': array([2, 5])}
        >>> _ = file.write_text("lost")
        >>> read_arrays(file)
        Traceback (most recent call last):
            ...
        ValueError: predictions.npz: not a whole file of arrays (it is no .npz file)
    """
    # Opened here: of a damaged archive NumPy leaves its own file open.
    with path.open("rb") as stream:
        try:
            return _read(stream, names)
        except KeyError as error:
            reason = f"it lacks {error}"
        except ValueError as error:
            reason = "it holds objects" if "pickle" in str(error) else str(error)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            reason = str(error) or type(error).__name__
    raise ValueError(f"{path.name}: not a whole file of arrays ({reason})")


def _read(stream: Any, names: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    begins = stream.read(4)
    if begins not in _SIGNATURES:
        raise ValueError("it is no .npz file")
    stream.seek(0)
    with np.load(stream, allow_pickle=False) as file:
        missing = [name for name in names or () if name not in file.files]
        if missing:
            raise KeyError(missing[0])
        return {name: file[name] for name in (file.files if names is None else names)}
