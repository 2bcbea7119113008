"""Files and folders that are written whole or not at all, whatever stops the writer.

Each is written under a hidden name, synced to the disk, and renamed into place: a rename is atomic,
so a reader sees the old or the new, and a power cut leaves one of the two. A pipe or a device,
which cannot be replaced, is written to directly.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "folders",
    "read_arrays",
    "remove_folder",
    "settle",
    "whole_folder",
    "write_bytes",
    "write_text",
]

_UNFINISHED = ".unfinished-"
_REMOVED = ".removed-"
_REPLACED = ".replaced-"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DESCRIPTORS = ("/dev/fd", "/proc/self/fd")
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: a temporary name, a sync, a rename.

    A file that is there keeps its permissions, and a link keeps leading to the file it leads to.
    What is no plain file, such as a pipe, is written to and stays what it is.

    Raises:
        OSError: The file cannot be written; where there is no room for it, that names the file.

    Example:
        >>> page = getfixture("tmp_path") / "pages" / "page.html"
        >>> write_text(page, "<p>")
        >>> page.read_text()
        '<p>'
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """As `write_text`, for what is not text."""
    try:
        found = _status(path)
        if found is not None and stat.S_ISLNK(found.st_mode):
            found = _status(path, follow=True)
            target = Path(os.path.realpath(path))
        else:
            target = path
        if _descriptor(path) is not None or not (found is None or stat.S_ISREG(found.st_mode)):
            _write_into(path, content)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(target, content, found)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise _no_room(path, len(content), error) from error


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A hidden folder to fill, which becomes `path` at the end of the block, and not before.

    A folder that had the name is replaced; should the writer be killed between the two renames of
    that, `folders` still finds the earlier one. Where the block raises, nothing stays behind.

    Args:
        path: The folder to make; its parents are made too.

    Example:
        >>> run = getfixture("tmp_path") / "run"
        >>> with whole_folder(run) as unfinished:
        ...     _ = (unfinished / "record.json").write_bytes(b"{}")
        ...     run.exists()
        False
        >>> [file.name for file in run.iterdir()]
        ['record.json']
    """
    parent = path.parent
    if not parent.is_dir():
        parent.mkdir(parents=True, exist_ok=True)
        _sync(parent.parent)
    unfinished = parent / f"{_UNFINISHED}{secrets.token_hex(4)}"
    unfinished.mkdir()
    try:
        yield unfinished
        for file in unfinished.iterdir():
            _sync(file)
        _sync(unfinished)
        replaced = parent / f"{_REPLACED}{path.name}"
        if path.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            path.rename(replaced)
        unfinished.rename(path)
        _sync(parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def folders(parent: Path) -> dict[str, Path]:
    """The whole folders under `parent`, by name; none where `parent` is not there.

    >>> parent = getfixture("tmp_path")
    >>> for name in ("run", ".replaced-run", ".replaced-other", ".unfinished-1a2b"):
    ...     (parent / name).mkdir()
    >>> {name: path.name for name, path in sorted(folders(parent).items())}
    {'other': '.replaced-other', 'run': 'run'}
    """
    try:
        paths = [path for path in parent.iterdir() if path.is_dir()]
    except FileNotFoundError:
        return {}
    # A name stands only under its hidden form when its writer was killed between two renames.
    found = {path.name.removeprefix(_REPLACED): path for path in paths if _is_replaced(path)}
    found.update((path.name, path) for path in paths if not path.name.startswith("."))
    return found


def settle(parent: Path) -> None:
    """Finish or undo what writers that were killed left under `parent`.

    Only for a folder in which no other process is writing at that moment.

    >>> parent = getfixture("tmp_path")
    >>> for name in ("run", ".replaced-run", ".replaced-other", ".unfinished-1a2b"):
    ...     (parent / name).mkdir()
    >>> settle(parent)
    >>> sorted(path.name for path in parent.iterdir())
    ['other', 'run']
    """
    for name, path in folders(parent).items():
        if _is_replaced(path):
            path.rename(parent / name)
    for hidden in (_UNFINISHED, _REMOVED, _REPLACED):
        for leftover in parent.glob(f"{hidden}*"):
            shutil.rmtree(leftover, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder in one step: it is never seen with half of its files.

    >>> run = getfixture("tmp_path") / "run"
    >>> run.mkdir()
    >>> remove_folder(run)
    >>> run.exists()
    False
    """
    hidden = path.with_name(f"{_REMOVED}{secrets.token_hex(4)}")
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def _status(path: Path, *, follow: bool = False) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)
    except FileNotFoundError:
        return None


def _descriptor(path: Path) -> int | None:
    """The number of an open file that a path names; it may be a log with lines of others in it."""
    if str(path) in _STREAMS:
        return _STREAMS[str(path)]
    named = str(path.parent) in _DESCRIPTORS and path.name.isdecimal()
    return int(path.name) if named else None


def _write_into(path: Path, content: bytes) -> None:
    """Hand bytes to a pipe, a device or an open file; none of them can be synced or undone."""
    number = _descriptor(path)
    if number is not None:
        # Through the same open file, so that what others write there next comes after it.
        for printed in (sys.stdout, sys.stderr):
            if printed is not None:
                printed.flush()
    opened = os.dup(number) if number is not None else os.open(path, os.O_WRONLY | os.O_APPEND)
    with open(opened, "wb") as stream:
        stream.write(content)


def _replace(path: Path, content: bytes, found: os.stat_result | None) -> None:
    """Put a file in the place of the one that was found there, with its permissions."""
    # Of a long name a part: with what is added it may be longer than a file system takes.
    temporary = path.with_name(f".{path.name[:50]}-{secrets.token_hex(4)}")
    mode = 0o666 if found is None else found.st_mode & 0o777
    try:
        # Of these permissions from the beginning, so that no one else may read it in between.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(temporary, flags, mode), "wb") as stream:
            if found is not None and os.fstat(stream.fileno()).st_mode & 0o777 != mode:
                temporary.chmod(mode)  # what a process leaves out of the permissions of new files
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _no_room(path: Path, needed: int, error: OSError) -> OSError:
    try:
        free = f", {shutil.disk_usage(os.path.realpath(path.parent)).free:,} are free"
    except OSError:
        free = ""
    explained = OSError(
        f"{path}: no room for it ({error.strerror}): it needs {needed:,} bytes{free}; free some, "
        "or choose another place"
    )
    explained.errno = error.errno
    return explained


def _is_replaced(path: Path) -> bool:
    return path.name.startswith(_REPLACED)


def _sync(path: Path) -> None:
    """Bring a file, or a folder's list of names, to the disk."""
    is_folder = path.is_dir()
    if is_folder and sys.platform == "win32":  # where folders cannot be opened
        return
    handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems sync files alone; the names they then bring along by themselves.
        if not (is_folder and error.errno in (errno.EINVAL, errno.ENOTSUP)):
            raise
    finally:
        os.close(handle)


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
