"""IDX, the format of MNIST: a magic number, the sizes, then the values; plain or gzipped."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.data.streams import ByteStream, fill

__all__ = ["idx_bytes", "read_idx"]

_UNSIGNED_BYTE = 8
_TYPES = {9: "int8", 11: "int16", 12: "int32", 13: "float32", 14: "float64"}
_GZIP_MAGIC = b"\x1f\x8b"
# What deflate can make of one byte at best: a file cannot hold more than this many times its size.
_LARGEST_RATIO = 1032


def read_idx(path: str | Path) -> NDArray[np.uint8]:
    """Read one IDX file of bytes.

    Args:
        path: The file. Whether it is gzipped is seen from its first bytes, not from its name.

    Returns:
        An array of the sizes the file gives: `(N, H, W)` for images, `(N)` for labels.

    Raises:
        ValueError: The file is not IDX, holds other numbers than bytes, or is cut short.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> labels = np.array([5, 0, 4], np.uint8)
        >>> written = (folder / "labels-idx1-ubyte").write_bytes(idx_bytes(labels))
        >>> read_idx(folder / "labels-idx1-ubyte")
        array([5, 0, 4], dtype=uint8)
    """
    path = Path(path)
    with path.open("rb") as file:
        gzipped = file.read(2) == _GZIP_MAGIC
        file.seek(0)
        room = path.stat().st_size * (_LARGEST_RATIO if gzipped else 1)
        if not gzipped:
            return _read(file, path, room)
        try:
            with gzip.open(file) as stream:
                return _read(stream, path, room)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path}: the gzip file is cut short or damaged ({error}); fetch it again"
            ) from error


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    """Write an array of bytes as IDX, the inverse of [`read_idx`][labelproof.data.read_idx].

    >>> idx_bytes(np.array([[1, 2]], np.uint8)).hex(" ")
    '00 00 08 02 00 00 00 01 00 00 00 02 01 02'
    """
    header = struct.pack(f">HBB{array.ndim}I", 0, _UNSIGNED_BYTE, array.ndim, *array.shape)
    return header + array.astype(np.uint8, copy=False).tobytes()


def _read(stream: ByteStream, path: Path, room: int) -> NDArray[np.uint8]:
    shape = _read_shape(stream, path)
    size = math.prod(shape)
    sizes = " x ".join(str(length) for length in shape)
    if size > room:
        raise ValueError(
            f"{path}: the header promises {sizes} bytes, more than the file can hold: it is cut "
            "short or damaged; fetch it again"
        )
    array = np.empty(shape, np.uint8)
    got = fill(stream, array.reshape(-1))
    if got < size:
        raise ValueError(
            f"{path}: expected {size} bytes after the header ({sizes}), got {got}: the file is cut "
            "short; fetch it again"
        )
    if stream.read(1):
        raise ValueError(
            f"{path}: expected {size} bytes after the header ({sizes}), got more: the file is not "
            "what its header says; fetch it again"
        )
    return array


def _read_shape(stream: ByteStream, path: Path) -> tuple[int, ...]:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in {_UNSIGNED_BYTE, *_TYPES}:
        raise ValueError(
            f"{path}: expected an IDX file, which begins with 00 00 08, got {magic.hex(' ')!r}; "
            "was a web page saved under this name?"
        )
    if magic[2] != _UNSIGNED_BYTE:
        raise ValueError(f"{path}: expected IDX of unsigned bytes, got {_TYPES[magic[2]]}")
    dimensions = magic[3]
    header = stream.read(4 * dimensions)
    if not dimensions or len(header) < 4 * dimensions:
        raise ValueError(f"{path}: the header is cut short; fetch it again")
    return struct.unpack(f">{dimensions}I", header)
