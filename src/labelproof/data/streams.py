"""Bytes from a stream into an array, and streams that end before they fill a disk or a memory."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["ByteStream", "LimitedReader", "fill"]


class ByteStream(Protocol):
    """What is read from: a file, a gzip stream, bytes in memory."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes."""
        ...

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read into a buffer, and return how many bytes."""
        ...


def fill(stream: ByteStream, array: NDArray[np.uint8]) -> int:
    """Read from a stream until a contiguous array is full or the stream ends; return the bytes.

    >>> import io
    >>> array = np.zeros(4, np.uint8)
    >>> fill(io.BytesIO(b"ab"), array), array.tolist()
    (2, [97, 98, 0, 0])
    """
    view = array.data.cast("B")
    done = 0
    while done < len(view):
        count = stream.readinto(view[done:])
        if not count:
            break
        done += count
    return done


class LimitedReader:
    """A stream that refuses to give more than a number of bytes.

    What is unpacked from an archive is larger than the archive, without bound; this is the bound.

    >>> import io
    >>> LimitedReader(io.BytesIO(bytes(10)), 4, "a.tar").read(8)
    Traceback (most recent call last):
        ...
    ValueError: a.tar: holds more than the 4 bytes expected of it
    """

    def __init__(self, stream: ByteStream, limit: int, name: str):
        self.stream = stream
        self.limit = limit
        self.name = name
        self.given = 0

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes."""
        # One byte past the limit is enough to know, and never asks for the size a header claims.
        block = self.stream.read(min(size, self.limit - self.given + 1))
        self.given += len(block)
        if self.given > self.limit:
            raise ValueError(f"{self.name}: holds more than the {self.limit} bytes expected of it")
        return block
