"""Files that one process at a time writes to."""

from __future__ import annotations

import sys
from io import FileIO

__all__ = ["try_lock"]


def try_lock(file: FileIO) -> bool:
    """Lock an open file for this process, until it is closed or the process ends.

    Returns:
        Whether it could be had; `False` while another holds it.

    Example:
        >>> with (getfixture("tmp_path") / "part").open("ab", buffering=0) as file:
        ...     try_lock(file)
        True
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            # Far behind the end, because on Windows a locked byte cannot be read either.
            file.seek(1 << 40)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
