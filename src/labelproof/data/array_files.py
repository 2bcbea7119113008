"""What NumPy's files hold: text that is bytes, and why one cannot be read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DAMAGED", "decode_text", "why_unreadable"]

DAMAGED = (
    *(ValueError, EOFError, OSError, KeyError, struct.error, zipfile.BadZipFile, zlib.error),
    # Archives that are encrypted, or packed by a method that Python does not know.
    RuntimeError,
)
"""What is raised of a file of arrays that is damaged, or none."""


def decode_text(array: NDArray[Any]) -> NDArray[Any]:
    r"""Text as such, where it came as bytes; any other array as it is.

    >>> decode_text(np.array([b"caf\xc3\xa9", b"\xff"])).tolist()
    ['café', '\\xff']
    """
    if array.dtype.kind != "S":
        return array
    return np.char.decode(array, "utf-8", "backslashreplace")


def why_unreadable(error: Exception, *, advice: str) -> str:
    """Why a file of arrays was not read, in words for who does not know NumPy's.

    Args:
        error: What was raised.
        advice: How to save what is refused because it could run code.

    >>> why_unreadable(ValueError("Object arrays cannot be loaded when ..."), advice="save text")
    'it holds Python objects, which are not read since they could run code; save text'
    """
    reason = str(error)
    if "Object arrays" in reason or "Python objects" in reason:
        return f"it holds Python objects, which are not read since they could run code; {advice}"
    if "allow_pickle" in reason:  # what NumPy says of a file of any other kind
        return "it is of another kind"
    return reason
