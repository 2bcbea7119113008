"""One file over HTTPS: resumed where it was cut, checked, and in place whole or not at all."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import os
import secrets
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from labelproof.data.checksums import sha256_of_stream
from labelproof.data.disk import disk_trouble_explained
from labelproof.data.locks import try_lock
from labelproof.version import __version__

__all__ = ["DownloadError", "Progress", "Transfer", "check_address"]

Progress = Callable[[str, int, int], None]
"""Is told a file's name, how many bytes of it are there, and how many there will be."""

_BLOCK = 1 << 18
_WORTH_RETRYING = {408, 425, 429, 500, 502, 503, 504}


class DownloadError(OSError):
    """A file could not be fetched, or is not the one that was expected."""


class _ConnectionLostError(Exception):
    """The connection failed in a way that another attempt may mend."""


@dataclass(frozen=True)
class Transfer:
    """How a file is fetched.

    A transfer that is cut leaves a hidden `.part` file beside the target, and the next one goes on
    from there. Proxies are taken from the environment, as urllib does.

    Attributes:
        timeout: Seconds without an answer after which a connection is given up.
        attempts: How often in a row a connection may fail without bringing anything.
        pause: Seconds before another attempt; doubled with each failure in a row.
        progress: Is told of every block.

    Example:
        >>> Transfer().fetch("http://example.org/a", Path("a"), size=1, sha256="")
        Traceback (most recent call last):
            ...
        ValueError: http://example.org/a: expected an address that begins with https://
    """

    timeout: float = 30.0
    attempts: int = 4
    pause: float = 1.0
    progress: Progress | None = None

    def fetch(self, address: str, target: Path, *, size: int, sha256: str) -> None:
        """Fetch a file into place.

        Args:
            address: Where it is; `https://`, or `http://` on this machine.
            target: Where it goes; what is there is replaced at the very end.
            size: The bytes it has.
            sha256: The checksum it has.

        Raises:
            DownloadError: It cannot be had, or is not that file.
            ValueError: The address is not a safe one.
        """
        check_address(address)
        with disk_trouble_explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with _part_file(target) as part:
                resumed = part.size() > 0
                self._complete(address, target.name, part, size)
                found = part.sha256()
                if found != sha256 and resumed:
                    # The beginning may be of another file than the rest; once more, from scratch.
                    part.clear()
                    self._complete(address, target.name, part, size)
                    found = part.sha256()
                if found != sha256:
                    part.discard()
                    raise DownloadError(
                        f"{address}: expected a file with SHA-256 {sha256}, got {found}; it was "
                        "removed"
                    )
                part.finish(target)

    def _complete(self, address: str, name: str, part: _Part, size: int) -> None:
        """Fetch what is missing of a file, in as many attempts as it takes."""
        if part.size() > size:
            part.clear()
        most, failures = part.size(), 0
        while part.size() != size:
            problem = f"the connection ended before {size} bytes had come"
            try:
                self._attempt(address, name, part, size)
            except _ConnectionLostError as error:
                problem = str(error)
            if part.size() == size:
                return
            failures = 0 if part.size() > most else failures + 1
            if failures == self.attempts:
                raise DownloadError(f"{address}: {problem}, {failures} times in a row")
            most = max(most, part.size())
            time.sleep(self.pause * 2 ** max(failures - 1, 0))

    def _attempt(self, address: str, name: str, part: _Part, size: int) -> None:
        request = urllib.request.Request(address, headers=_HEADERS)  # noqa: S310 (checked)
        start = part.size()
        if start:
            request.add_header("Range", f"bytes={start}-")
            if validator := part.validator():
                # The rest is only sent if the file is still the one that was begun.
                request.add_header("If-Range", validator)
        with self._open(request, part) as response:
            if response.status != 206 or not _continues(response, start):
                part.clear()
                start = 0
                if (length := response.headers.get("Content-Length", str(size))) != str(size):
                    raise DownloadError(
                        f"{address}: expected a file of {size} bytes, the server has one of "
                        f"{length}"
                    )
            part.remember(_validator(response))
            if self.progress is not None:
                self.progress(name, start, size)
            for block in _blocks(response):
                start += len(block)
                if start > size:
                    part.discard()
                    raise DownloadError(
                        f"{address}: expected a file of {size} bytes, got a longer one"
                    )
                part.write(block)
                if self.progress is not None:
                    self.progress(name, start, size)

    @contextlib.contextmanager
    def _open(self, request: urllib.request.Request, part: _Part) -> Iterator[Any]:
        opener = urllib.request.build_opener(_SafeRedirects)
        address = request.full_url
        try:
            with opener.open(request, timeout=self.timeout) as response:
                yield response
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416:
                    part.clear()
                    raise _ConnectionLostError("the server has no such range") from None
                if error.code in _WORTH_RETRYING:
                    raise _ConnectionLostError(f"the server answered {error.code}") from None
                raise DownloadError(
                    f"{address}: the server answered {error.code} {error.reason}"
                ) from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise DownloadError(
                    f"{address}: the server's certificate is not trusted here ({error.reason}); "
                    "SSL_CERT_FILE names another list of trusted ones"
                ) from error
            raise _ConnectionLostError(f"no connection ({error.reason})") from error
        except (ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException) as error:
            raise _ConnectionLostError(f"the connection was cut ({error})") from error


def check_address(address: str) -> None:
    """Refuse an address that anyone on the way could change what comes from.

    >>> check_address("https://example.org/data")
    >>> check_address("http://127.0.0.1:8000/data")
    >>> check_address("ftp://example.org/data")
    Traceback (most recent call last):
        ...
    ValueError: ftp://example.org/data: expected an address that begins with https://
    """
    parts = urllib.parse.urlsplit(address)
    if parts.hostname and (
        parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))
    ):
        return
    raise ValueError(f"{address}: expected an address that begins with https://")


_HEADERS = {
    "User-Agent": f"labelproof/{__version__}",
    # A server that compresses on the way would send other bytes than those of the checksum.
    "Accept-Encoding": "identity",
}


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows where a server sends us, but not from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        try:
            check_address(newurl)
        except ValueError as error:
            raise DownloadError(f"{req.full_url}: leads to {error}") from None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _continues(response: Any, start: int) -> bool:
    """Whether a partial answer begins where it was asked to."""
    return (response.headers.get("Content-Range") or "").startswith(f"bytes {start}-")


def _validator(response: Any) -> str:
    """What identifies this version of the file: a strong ETag, or else its date."""
    tag = response.headers.get("ETag") or ""
    return tag if tag.startswith('"') else response.headers.get("Last-Modified") or ""


def _blocks(response: Any) -> Iterator[bytes]:
    while block := response.read(_BLOCK):
        yield block


class _Part:
    """A file that is not complete yet, and what is known of where it comes from."""

    def __init__(self, path: Path, file: FileIO):
        self.path = path
        self.file = file
        self.notes = path.with_name(f"{path.name}-version")

    def size(self) -> int:
        return os.fstat(self.file.fileno()).st_size

    def sha256(self) -> str:
        self.file.seek(0)
        return sha256_of_stream(self.file)

    def write(self, block: bytes) -> None:
        rest = memoryview(block)
        while rest:
            # An unbuffered file may take less than it is given.
            rest = rest[self.file.write(rest) :]

    def clear(self) -> None:
        self.file.truncate(0)
        self.file.seek(0)
        self.notes.unlink(missing_ok=True)

    def validator(self) -> str:
        return self.notes.read_text(encoding="utf-8") if self.notes.exists() else ""

    def remember(self, validator: str) -> None:
        if validator:
            self.notes.write_text(validator, encoding="utf-8")

    def finish(self, target: Path) -> None:
        os.fsync(self.file.fileno())
        self.notes.unlink(missing_ok=True)
        self._release_on_windows()
        self.path.replace(target)

    def discard(self) -> None:
        self.notes.unlink(missing_ok=True)
        self._release_on_windows()
        self.path.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Leave nothing behind where nothing came."""
        if not self.file.closed and self.size() == 0 and _is_at(self.file, self.path):
            self.discard()

    def _release_on_windows(self) -> None:
        # Elsewhere the lock is kept until the name is gone, so that no one else takes it up.
        if sys.platform == "win32":
            self.file.close()


@contextlib.contextmanager
def _part_file(target: Path) -> Iterator[_Part]:
    """The `.part` file that a former transfer left, or an own one while another process has it."""
    shared = target.with_name(f".{target.name}.part")
    # Unbuffered, so that what arrived is on record when the connection or the process ends.
    with shared.open("a+b", buffering=0) as file:
        if try_lock(file) and _is_at(file, shared):
            part = _Part(shared, file)
            try:
                yield part
            finally:
                part.tidy()
            return
    own = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    with own.open("a+b", buffering=0) as file:
        part = _Part(own, file)
        try:
            yield part
        finally:
            part.discard()


def _is_at(file: FileIO, path: Path) -> bool:
    """Whether an open file still has the name it was opened by: another may have finished it."""
    return path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))
