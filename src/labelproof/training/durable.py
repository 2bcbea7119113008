"""Files and folders that are there whole or not at all, whatever stops the writer.

All of them are written under a hidden name, brought to the disk, and renamed into place: a rename
is one step, so a reader meets the old or the new, and a power cut leaves one of the two.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["folders", "remove_folder", "settle", "whole_folder", "write_bytes", "write_text"]

_UNFINISHED = ".unfinished-"
_REMOVED = ".removed-"
_REPLACED = ".replaced-"


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: a temporary name, a sync, a rename.

    >>> page = getfixture("tmp_path") / "pages" / "page.html"
    >>> write_text(page, "<p>")
    >>> page.read_text()
    '<p>'
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """As `write_text`, for what is not text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(content)
        _sync(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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
