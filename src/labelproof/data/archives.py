"""Archives from elsewhere: only the files that are expected come out, and only as plain files."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, cast

from labelproof.data.streams import LimitedReader

__all__ = ["extract", "read_members"]

_BLOCK = 1 << 20
_NOT_PLAIN = "is a link or a device, not a plain file"


def extract(archive: Path, folder: Path, *, members: Mapping[str, str], limit: int) -> None:
    """Extract the expected files of a tar or zip archive into a folder, all of them or none.

    They are written into a folder beside it that takes its place at the end. Other files in the
    archive are left out; a path that leads elsewhere, a link or a device refuses all of it.

    Args:
        archive: A `.tar`, `.tar.gz` or `.zip` file.
        folder: Where they go; what was there is replaced.
        members: The expected files: their paths in the archive, and their names in the folder.
        limit: Bytes that all files of the archive may have together.

    Raises:
        ValueError: The archive is damaged, unsafe, too large, or lacks an expected file.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> with zipfile.ZipFile(folder / "a.zip", "w") as file:
        ...     file.writestr("data/one.bin", b"1")
        ...     file.writestr("data/readme.html", b"hello")
        >>> wanted = {"data/one.bin": "one.bin"}
        >>> extract(folder / "a.zip", folder / "out", members=wanted, limit=100)
        >>> [path.name for path in (folder / "out").iterdir()]
        ['one.bin']
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        inside = unfinished / "new"
        inside.mkdir()
        missing = set(members)
        with _damage_explained(archive):
            for path, stream in _plain_files(archive, members, limit):
                _write(inside / members[path], stream)
                missing.discard(path)
        if missing:
            raise ValueError(f"{archive}: expected {', '.join(sorted(missing))} in it, found none")
        if folder.exists():
            folder.rename(unfinished / "old")
        inside.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def read_members(archive: Path, *, members: Mapping[str, str], limit: int) -> dict[str, bytes]:
    """Read the expected files of a tar or zip archive into memory, with the same care.

    Args:
        archive: A `.tar`, `.tar.gz` or `.zip` file.
        members: The expected files: their paths in the archive, and what they are called in the
            answer; one that is not there is left out.
        limit: Bytes that all files of the archive may have together.
    """
    with _damage_explained(archive):
        files = _plain_files(archive, members, limit)
        return {members[path]: stream.read() for path, stream in files}


def _write(path: Path, stream: IO[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, _BLOCK)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _damage_explained(archive: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{archive}: the archive is cut short or damaged ({error}); fetch it again"
        ) from error


def _plain_files(
    archive: Path, members: Mapping[str, str], limit: int
) -> Iterator[tuple[str, IO[bytes]]]:
    """Each expected file with its content, after everything before it was found safe."""
    files = _zip_files if zipfile.is_zipfile(archive) else _tar_files
    return files(archive, members, limit)


def _tar_files(
    archive: Path, members: Mapping[str, str], limit: int
) -> Iterator[tuple[str, IO[bytes]]]:
    with archive.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        content = gzip.GzipFile(fileobj=file) if gzipped else file
        # Headers are counted with the files: a header may claim to be gigabytes long as well.
        limited = LimitedReader(content, limit + _overhead(limit), str(archive))
        # A tar that is opened as a stream is only ever read from, front to back.
        with tarfile.open(fileobj=cast("IO[bytes]", limited), mode="r|") as tar:
            for member in tar:
                _check_path(archive, member.name)
                # A sparse file is short in the archive and as long as it likes on the disk.
                if member.type not in {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE}:
                    raise _unsafe(archive, member.name, _NOT_PLAIN)
                name = str(PurePosixPath(member.name))
                stream = tar.extractfile(member) if name in members else None
                if stream is not None:
                    yield name, stream


def _zip_files(
    archive: Path, members: Mapping[str, str], limit: int
) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as bundle:
        entries = bundle.infolist()
        for entry in entries:
            _check_path(archive, entry.filename)
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _unsafe(archive, entry.filename, _NOT_PLAIN)
        if sum(entry.file_size for entry in entries) > limit:
            raise ValueError(f"{archive}: holds more than the {limit} bytes expected of it")
        for entry in entries:
            if entry.filename in members:
                # zipfile reads no further than the size that was summed up above.
                with bundle.open(entry) as stream:
                    yield entry.filename, stream


def _overhead(limit: int) -> int:
    """Room for tar's own blocks: a header of 512 bytes a file, and padding at the end."""
    return limit // 64 + (1 << 20)


def _check_path(archive: Path, name: str) -> None:
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    if posix.is_absolute() or windows.drive or windows.root or ".." in windows.parts:
        raise _unsafe(archive, name, "leads out of the folder it is extracted into")


def _unsafe(archive: Path, name: str, why: str) -> ValueError:
    return ValueError(f"{archive}: refused: {name!r} {why}")
