"""A real HTTP server on this machine, with the faults that servers have."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from tiny_dataset import tiny_files, tiny_idx

from labelproof.data.published import DATASETS


@dataclass
class FileServer:
    """Serves `files` by path.

    Attributes:
        files: What is served.
        cuts: For each of the first requests, after how many bytes the connection is closed.
        statuses: What the first requests are answered with, before anything is served.
        pause: Seconds before the second half of a file is sent.
        paths: What was asked for, in order.
    """

    files: dict[str, bytes]
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    pause: float = 0.0
    paths: list[str] = field(default_factory=list)
    address: str = ""

    @contextlib.contextmanager
    def running(self) -> Iterator["FileServer"]:
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


class _Handler(BaseHTTPRequestHandler):
    server_settings: FileServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        settings = self.server_settings
        settings.paths.append(self.path)
        if settings.statuses:
            self.answer_empty(settings.statuses.pop(0))
        elif self.path not in settings.files:
            self.answer_empty(404)
        else:
            self.answer(settings.files[self.path])

    def answer_empty(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, content: bytes) -> None:
        settings = self.server_settings
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.close_connection = bool(settings.cuts)
        stop = settings.cuts.pop(0) if settings.cuts else len(content)
        # A client that has seen enough hangs up, which is its right.
        with contextlib.suppress(ConnectionError):
            self.wfile.write(content[: stop // 2])
            time.sleep(settings.pause)
            self.wfile.write(content[stop // 2 : stop])

    def log_message(self, format: str, *args: object) -> None:
        """Quiet, so that a test's output is its own."""


@pytest.fixture(name="server")
def tiny_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """Serves the files of a dataset that is known as `tiny`."""
    for name in ("LABELPROOF_MIRROR", "LABELPROOF_DATA", "http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    # What is tried again is not waited for.
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda _: None))
    files = {f"/pub/{name}": data for name, data in tiny_files().items()}
    with FileServer(files).running() as running:
        monkeypatch.setitem(DATASETS, "tiny", tiny_idx(running.address))
        yield running
