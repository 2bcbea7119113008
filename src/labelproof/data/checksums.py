"""SHA-256 of files, a block at a time."""

from __future__ import annotations

import hashlib
from pathlib import Path

from labelproof.data.streams import ByteStream

__all__ = ["sha256_of_file", "sha256_of_stream"]


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    >>> file = getfixture("tmp_path") / "empty"
    >>> file.touch()
    >>> sha256_of_file(file)[:16]
    'e3b0c44298fc1c14'
    """
    with path.open("rb", buffering=0) as file:
        return sha256_of_stream(file)


def sha256_of_stream(stream: ByteStream) -> str:
    """SHA-256 of what is left of a stream, in hexadecimal."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(1 << 20))
    while count := stream.readinto(block):
        digest.update(block[:count])
    return digest.hexdigest()
