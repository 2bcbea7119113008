"""Files that are written whole or not at all, whatever stops the writer.

Each is written under a temporary name, synced to the disk, and renamed into place: a rename is
atomic, so a reader sees the old file or the new one, and a power cut leaves one of the two. The
temporary names of a writer that was killed begin with `.labelproof-` and are litter.
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


def write_text(path: Path, text: str, *, make_parents: bool = True) -> None:
    """Write a file whole or not at all: a temporary name, a sync, a rename.

    A file that exists keeps its permissions, and a symbolic link keeps its target. A pipe or a
    device such as `/dev/stdout` is written to directly.

    Raises:
        OSError: The file cannot be written.
    """
    write_bytes(path, text.encode(), make_parents=make_parents)


def write_bytes(path: Path, content: bytes, *, make_parents: bool = True) -> None:
    """As `write_text`, for bytes."""
    if path.exists() and not path.is_file():
        with path.open("ab") as stream:
            stream.write(content)
        return
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if make_parents:
        target.parent.mkdir(parents=True, exist_ok=True)
    _replace(target, content)


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], *, make_parents: bool = True
) -> None:
    """Write arrays into an `.npz` file, whole or not at all.

    Not compressed: numbers of networks hardly shrink, and would take ten times as long.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue(), make_parents=make_parents)


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
    """A dataclass from the values of a JSON file, each of the type that its field has.

    A list is not looked into, since a curve is long; a tuple or a dictionary is.

    Raises:
        TypeError, ValueError: A part is missing, unknown or of another type.
    """
    made = kind(**values)
    for name, hint in get_type_hints(kind).items():
        if name in values:
            if not _is_a(values[name], hint):
                raise ValueError(f"{name}: got {str(values[name])[:40]!r}")
            if get_origin(hint) is tuple:
                object.__setattr__(made, name, tuple(values[name]))
    return made


def _is_a(value: object, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in (Any, float):
        return hint is Any or type(value) in (int, float)
    if origin is UnionType:
        return any(_is_a(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, list) and all(_is_a(each, parts[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_a(each, parts[1]) for each in value.values())
    return type(value) is (origin or hint)


def remove_folder(path: Path) -> None:
    """Remove a folder in one step: no reader ever sees it with half of its files."""
    hidden = path.with_name(f"{_LITTER}{secrets.token_hex(4)}")
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def is_litter(name: str) -> bool:
    """Whether a file of this name is what a writer that was killed left behind."""
    return name.startswith(_LITTER)


def clear_litter(folder: Path) -> None:
    """Remove what writers that were killed left in a folder in which no one is writing now."""
    for path in folder.glob(f"{_LITTER}*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()


def sync(path: Path) -> None:
    """Bring a file's content, or the names in a folder, to the disk."""
    # Windows and some network file systems sync only files.
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
        # With the final permissions from the start, so that no one else can read it in between.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as stream:
            if mode is not None:
                temporary.chmod(mode)  # without the process's umask
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
