"""Atomic writes, and reading JSON.

A file is written under a temporary name, synced to disk and renamed into place. A rename is atomic,
so a reader sees the old file or the new one, and a power cut leaves one of the two. A killed
process leaves temporary files whose names start with `.labelproof-`, called litter here.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

_LITTER = ".labelproof-"

Made = TypeVar("Made")


def write_text(path: Path, text: str) -> None:
    """Write a file atomically: all of it or nothing.

    A file that exists keeps its permissions, and a symbolic link keeps its target. A pipe or a
    device such as `/dev/stdout` is written to directly.

    Raises:
        OSError: The file cannot be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """As `write_text`, for bytes."""
    if path.exists() and not path.is_file():
        with path.open("ab") as stream:
            stream.write(content)
        return
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    target.parent.mkdir(parents=True, exist_ok=True)
    _replace(target, content)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays into an `.npz` file atomically.

    Uncompressed: the outputs of networks hardly compress, and it would take ten times as long.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON, not UTF-8, or nested too deeply.
    """
    try:
        return json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_fields(kind: type[Made], values: Mapping[str, Any]) -> Made:
    """Make a dataclass from the values of a JSON file, and check their types.

    The elements of a list are not checked, because a curve is long; those of a tuple or a
    dictionary are.

    Raises:
        TypeError, ValueError: A field is missing, unknown or of another type.
    """
    made = kind(**values)
    for name, hint in get_type_hints(kind).items():
        if name in values:
            if not _has_type(values[name], hint):
                raise ValueError(f"{name}: got {str(values[name])[:40]!r}")
            if get_origin(hint) is tuple:
                object.__setattr__(made, name, tuple(values[name]))
    return made


def _has_type(value: object, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in (Any, float):
        return hint is Any or type(value) in (int, float)
    if origin is UnionType:
        return any(_has_type(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, list) and all(_has_type(each, parts[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_has_type(each, parts[1]) for each in value.values())
    return type(value) is (origin or hint)


def remove_folder(path: Path) -> None:
    """Remove a folder atomically: no reader sees it with some of its files missing."""
    hidden = path.with_name(f"{_LITTER}{secrets.token_hex(4)}")
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def is_litter(name: str) -> bool:
    """Whether this is the name of a temporary file."""
    return name.startswith(_LITTER)


def clear_litter(folder: Path) -> None:
    """Remove temporary files of killed processes; no other process may be writing there."""
    for path in folder.glob(f"{_LITTER}*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()


def sync(path: Path) -> None:
    """Sync a file's content, or a folder's entries, to disk."""
    # Windows and some network file systems cannot sync folders.
    with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _replace(path: Path, content: bytes) -> None:
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    temporary = path.with_name(f"{_LITTER}{secrets.token_hex(4)}")
    try:
        # Created with the final permissions, so that no one else can read it in between.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as stream:
            if mode is not None:
                temporary.chmod(mode)  # the umask does not apply to chmod
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(temporary):
            error.filename = str(path)
        raise
