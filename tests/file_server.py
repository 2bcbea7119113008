"""A real HTTP server on this machine, with the faults that servers have."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """Serves `files` by path.

    Attributes:
        files: What is served.
        ranges: Whether a range is answered with that range, or with the whole file.
        tag: The ETag of every file.
        cuts: For each of the first requests, after how many bytes the connection is closed.
        statuses: What the first requests are answered with, before anything is served.
        redirects: For a path, the address it leads to.
        chunk: Bytes sent at a time.
        pause: Seconds between two of them.
        requests: What was asked for, in order, with its headers.
    """

    files: dict[str, bytes]
    ranges: bool = True
    tag: str = '"one"'
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    chunk: int = 1 << 16
    pause: float = 0.0
    length: bool = True
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    address: str = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[FileServer]:
        settings = self

        class Handler(_Handler):
            server_settings = settings

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    @property
    def asked_ranges(self) -> list[str | None]:
        return [headers.get("range") for _, headers in self.requests]


class _Handler(BaseHTTPRequestHandler):
    server_settings: FileServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        settings = self.server_settings
        headers = {key.lower(): value for key, value in self.headers.items()}
        settings.requests.append((self.path, headers))
        if settings.statuses:
            self.answer_empty(settings.statuses.pop(0))
        elif self.path in settings.redirects:
            self.answer_empty(302, Location=settings.redirects[self.path])
        elif self.path not in settings.files:
            self.answer_empty(404)
        else:
            self.answer(settings.files[self.path], headers)

    def answer_empty(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, content: bytes, headers: dict[str, str]) -> None:
        settings = self.server_settings
        start = 0
        unchanged = headers.get("if-range", settings.tag) == settings.tag
        if settings.ranges and unchanged and "range" in headers:
            start = int(headers["range"].removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.answer_empty(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if settings.tag:
            self.send_header("ETag", settings.tag)
        if settings.length:
            self.send_header("Content-Length", str(len(content) - start))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        stop = len(content)
        if settings.cuts:
            stop = min(start + settings.cuts.pop(0), stop)
            self.close_connection = True
        self.send_slowly(content[start:stop])

    def send_slowly(self, content: bytes) -> None:
        settings = self.server_settings
        # A client that has seen enough hangs up, which is its right.
        with contextlib.suppress(ConnectionError):
            for first in range(0, len(content), settings.chunk):
                self.wfile.write(content[first : first + settings.chunk])
                if settings.pause:
                    threading.Event().wait(settings.pause)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet, so that a test's output is its own."""
