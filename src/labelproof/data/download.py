"""Download published datasets with pooch: SHA-256 checks, retries, no partial files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labelproof.data.published import (
    PublishedFile,
    Verification,
    data_root,
    known_dataset,
    verify_dataset,
)
from labelproof.version import __version__

MIRROR_VARIABLE = "LABELPROOF_MIRROR"
"""The environment variable that names a mirror."""

Progress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes downloaded so far, and its size in bytes."""

_BLOCK = 1 << 18
# Compressed in transit, the bytes would not match the checksum.
_HEADERS = {"User-Agent": f"labelproof/{__version__}", "Accept-Encoding": "identity"}


class DownloadError(OSError):
    """A file could not be downloaded, or is not the expected one."""


def download_dataset(
    name: str,
    *,
    root: str | os.PathLike[str] | None = None,
    mirror: str | None = None,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> Verification:
    """Download a dataset, unless a verified copy is there already.

    A file is used only if its SHA-256 matches, and moved into place when it is complete. Proxies
    are taken from the environment. Concurrent processes download a dataset only once.

    Args:
        name: The name of a published dataset.
        root: As for [`load_dataset`][labelproof.data.load_dataset].
        mirror: Download from `MIRROR/mnist/FILE`; by default `LABELPROOF_MIRROR`, or the publisher.
        timeout: Seconds without a response after which a connection is abandoned.
        progress: Called with each block that arrives.

    >>> download_dataset("digits").version
    'embedded'
    """
    dataset = known_dataset(name)
    folder = data_root(root)
    mirror = mirror or os.environ.get(MIRROR_VARIABLE)
    if mirror and not re.match(r"https://|http://(127\.0\.0\.1|localhost)(:\d+)?/", f"{mirror}/"):
        raise ValueError(f"mirror: expected an address that begins with https://, got {mirror}")
    found = verify_dataset(dataset.name, root=folder)
    if found.good:
        return found
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{dataset.name}.lock"):
        # Another process may have downloaded it while this one waited.
        if not verify_dataset(dataset.name, root=folder).good:
            for file in dataset.files:
                _fetch(file, folder / dataset.name, mirror, timeout, progress)
    found = verify_dataset(dataset.name, root=folder)
    if not found.good:
        raise DownloadError(f"{dataset.name}: {'; '.join(found.problems)}")
    return found


def _fetch(
    file: PublishedFile, folder: Path, mirror: str | None, timeout: float, progress: Progress | None
) -> None:
    """Download a file from the first address that has it, and unpack it if it is an archive."""
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    bar: Any = _ProgressBar(file, progress)
    downloader: Any = pooch.HTTPDownloader(
        progressbar=bar,
        chunk_size=_BLOCK,
        timeout=timeout,
        headers=_HEADERS,
    )
    problems = []
    for base in (f"{mirror.rstrip('/')}/{folder.name}/",) if mirror else file.folders:
        registry = {file.name: f"sha256:{file.sha256}"}
        try:
            store = pooch.create(folder, base, registry=registry, retry_if_failed=2)
            store.fetch(file.name, downloader=downloader)
        except (DownloadError, requests.RequestException) as error:
            problems.append(f"{base}{file.name}: {_reason(error)}")
        except ValueError:
            problems.append(f"{base}{file.name}: its SHA-256 is not {file.sha256}; removed")
        else:
            # pooch makes the file readable only by its owner.
            (folder / file.name).chmod(0o644)
            if file.unpacks is not None:
                members = [f"{file.unpacks.folder}/{name}" for name in file.unpacks.files]
                pooch.Untar(members, ".")(str(folder / file.name), "download", store)
                (folder / file.name).unlink()
            return
    raise DownloadError(
        f"{'; '.join(problems)}. If you can get {file.name} another way (SHA-256 {file.sha256}), "
        f"place it in {folder}"
    )


class _ProgressBar:
    """Passes on pooch's progress; abandons a download that is larger than expected."""

    def __init__(self, file: PublishedFile, progress: Progress | None):
        self.file, self.progress, self.done = file, progress, 0

    @property
    def total(self) -> int:
        return self.file.size

    @total.setter
    def total(self, _: int) -> None:
        self.done = 0  # pooch sets the total at the start of each attempt

    def update(self, size: int) -> None:
        self.done += size
        if self.done >= self.file.size + _BLOCK:
            raise DownloadError(f"expected a file of {self.file.size} bytes, got a larger one")
        if self.progress is not None:
            self.progress(self.file.name, min(self.done, self.file.size), self.file.size)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None: ...


def _reason(error: OSError) -> str:
    if isinstance(error, DownloadError):
        return str(error)
    if (response := getattr(error, "response", None)) is not None:
        return f"the server answered {response.status_code}"
    inner: BaseException = error
    while further := inner.__cause__ or inner.__context__:
        inner = further
    return f"the connection failed ({getattr(inner, 'strerror', None) or inner})"
