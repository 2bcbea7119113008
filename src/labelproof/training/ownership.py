"""A folder in which one process at a time trains."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["LOCK", "FolderInUseError", "owning", "refuse_file"]

LOCK = ".lock"
"""In every folder that a process trains in, or has."""


class FolderInUseError(RuntimeError):
    """Another process is at work there.

    Args:
        message: What is said of it.
        process: Who that is, in words.
    """

    def __init__(self, message: str, process: str = "another process"):
        super().__init__(message)
        self.process = process


@contextlib.contextmanager
def owning(folder: Path) -> Iterator[None]:
    """Be the only process that trains in a folder, for the length of the block.

    The lock goes with the process, however that ends. Where the system has no such locks (Windows,
    some network file systems), nothing is checked.

    Args:
        folder: Where the training writes; made where it is not there.

    Raises:
        FolderInUseError: Another process is at work there.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> with owning(folder):
        ...     (folder / ".lock").exists()
        True
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+b", buffering=0)
    except (FileExistsError, NotADirectoryError):
        raise _not_a_folder(folder) from None
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise PermissionError(f"{folder}: not allowed to write here ({error.strerror})") from error
    with lock:
        if not _lock(lock.fileno()):
            lock.seek(0)
            pid = lock.read().decode(errors="replace").strip()
            process = f"another process (pid {pid})" if pid else "another process"
            raise FolderInUseError(
                f"{process} is at work in {folder}; wait for it to end, or choose another folder",
                process,
            )
        # Only for the other's message, so a full disk is no reason to stop here.
        with contextlib.suppress(OSError):
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n".encode())
        try:
            yield
        finally:
            _unlock(lock.fileno())


def refuse_file(folder: Path) -> None:
    """Refuse a file in the place of a folder, before anything is done for it.

    >>> refuse_file(getfixture("tmp_path"))
    """
    if folder.exists() and not folder.is_dir():
        raise _not_a_folder(folder)


def _not_a_folder(folder: Path) -> NotADirectoryError:
    return NotADirectoryError(
        f"{folder}: expected a folder to write into, got a file; choose another folder"
    )


def _lock(handle: int) -> bool:
    """Whether the lock is ours, or there are no locks here."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, where refusing would be wrong each time
        return True
    return True


def _unlock(handle: int) -> None:
    """Let go also for processes forked meanwhile, which closing the file alone would not."""
    if sys.platform == "win32":
        return
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
