"""What to do about a disk that is full, or a folder that cannot be written to."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

__all__ = ["disk_trouble_explained"]

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextlib.contextmanager
def disk_trouble_explained(target: Path) -> Iterator[None]:
    """Add advice to an error that comes of writing a file or a folder.

    >>> with disk_trouble_explained(Path("data/mnist.gz")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    OSError: data: no room left for mnist.gz; free some, or choose another folder with --data-root
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise OSError(
                f"{target.parent}: no room left for {target.name}; free some, or choose another "
                "folder with --data-root"
            ) from error
        if error.errno in _NOT_ALLOWED:
            raise PermissionError(
                f"{target.parent}: not allowed to write {target.name} here; choose another folder "
                "with --data-root"
            ) from error
        raise
