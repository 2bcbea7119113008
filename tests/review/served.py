"""Reviews that are served: within the test's process, and as a program of their own."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from labelproof.audit.folder import REVIEW, Audit
from labelproof.audit.samples import open_samples
from labelproof.review.decisions import Decisions

TOKEN = "the-token"  # noqa: S105


@dataclass
class Served:
    """A review that can be opened."""

    address: str
    port: int
    decisions: Decisions


def history(path: Path) -> list[tuple[str, str, str | None, bool]]:
    """What is on disk: each sample, choice and class, and whether it was taken back."""
    with contextlib.closing(sqlite3.connect(path)) as other:
        return [*other.execute("SELECT sample, choice, label, undone IS NOT NULL FROM decisions")]


@contextlib.contextmanager
def served(audit: Audit, folder: Path) -> Iterator[Served]:
    """Serve a review from a thread; its decisions go to the folder."""
    pytest.importorskip("uvicorn", reason="needs the extra review")
    from labelproof.review.serving import _listen, make_server

    folder.mkdir(parents=True, exist_ok=True)
    with Decisions(folder / REVIEW) as decisions, contextlib.closing(_listen(0)) as listener:
        server = make_server(audit, open_samples(audit), decisions, TOKEN)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield Served(f"http://127.0.0.1:{port}/{TOKEN}/", port, decisions)
        finally:
            server.should_exit = True
            thread.join()


class Program:
    """`labelproof review` as a person starts it."""

    def __init__(self, *arguments: str | Path):
        environment = {key: value for key, value in os.environ.items() if key != "SSH_CONNECTION"}
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "labelproof", "review", *map(str, arguments), "--no-open"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, "PYTHONWARNINGS": "default"},
        )

    def address(self, *, within: float = 300) -> str:
        """The address it prints, once it serves."""
        end = time.monotonic() + within
        line = ""
        while time.monotonic() < end and (line := self.process.stdout.readline()):
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S+/", line):
                return found.group()
        raise AssertionError(f"no address, but {line!r} and {self.finish()}")

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.finish()

    def interrupt(self) -> tuple[int, str, str]:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self) -> tuple[int, str, str]:
        """Wait for its end: exit code, and what it said."""
        output, errors = self.process.communicate(timeout=300)
        return self.process.returncode, output, errors

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
