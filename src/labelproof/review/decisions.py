"""The decisions of a review in an SQLite file, append-only and durable."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

CHOICES = ("keep", "accept", "another", "unsure")
"""Keep the label, accept the suggestion, give another class, or leave it open."""


_VERSION = 2

# A row that takes another back has that one's number in `undoes`; rows are only ever added. All but
# the first of those taken at once have its number in `batch`. Names are text whose bytes need not
# be UTF-8, since files may be called so.
_TABLE = """
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    sample NOT NULL,
    given NOT NULL,
    choice TEXT NOT NULL,
    label,
    undoes INTEGER REFERENCES decisions (number),
    batch INTEGER REFERENCES decisions (number)
);
"""
_STANDING = """
CREATE TEMPORARY VIEW standing AS SELECT * FROM decisions WHERE undoes IS NULL
AND number NOT IN (SELECT undoes FROM decisions WHERE undoes IS NOT NULL) ORDER BY number
"""


@dataclass(frozen=True)
class Decision:
    """A decision about one label, or the undoing of one.

    Attributes:
        number: Its place in the order of all decisions, from 1.
        time: UTC time in ISO 8601.
        sample: The sample's name.
        given: The name of the class that it was labelled with at that time.
        choice: One of `keep`, `accept`, `another`, `unsure`; or `undo`.
        label: The name of the class that it is to have; `None` where that is left open.
        undoes: The number of the decision that this one undoes.
        batch: The number of the first of the decisions that were taken at once with this one.
    """

    number: int
    time: str
    sample: str
    given: str
    choice: str
    label: str | None
    undoes: int | None = None
    batch: int | None = None


class Decisions:
    """The decisions about the labels of one audit, in an SQLite file.

    A decision refers to a sample's name and given label, so it outlives the audit: it still applies
    in a new audit of the same data, unless the label has changed. Thread-safe.

    Args:
        path: The file; made where it is not there.

    Raises:
        OSError: It cannot be read or written.
        ValueError: It is something else, or of a later version.

    Example:
        >>> with Decisions(getfixture("tmp_path") / "review.sqlite") as decisions:
        ...     _ = decisions.decide("cats/1.jpg", "cat", "accept", "dog")
        ...     _ = decisions.decide("cats/2.jpg", "cat", "keep", "cat")
        ...     undone = decisions.undo()
        ...     standing = decisions.latest()
        >>> undone.sample
        'cats/2.jpg'
        >>> {sample: one.label for (sample, given), one in standing.items()}
        {'cats/1.jpg': 'dog'}
    """

    def __init__(self, path: Path):
        self.path = path
        self._turn = threading.Lock()
        with self._explained():
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            with self._explained():
                self._prepare()
        except BaseException:
            self._file.close()
            raise

    def decide(self, sample: str, given: str, choice: str, label: str | None) -> Decision:
        """Store a decision; it is on disk when this returns.

        Args:
            sample: The sample's name.
            given: Its label's class, by name.
            choice: One of `CHOICES`.
            label: The class it is to have; `None` for one that is left open.
        """
        with self._writing():
            return self._add(sample, given, choice, label)

    def accept(self, samples: Iterable[tuple[str, str, str]]) -> None:
        """Store acceptances of several suggestions, which `undo` takes back at once.

        Args:
            samples: Of each the sample's name, the class it was given, and the one it is to have.
        """
        first = None
        with self._writing():
            for sample, given, label in samples:
                one = self._add(sample, given, "accept", label, batch=first)
                first = first or one.number

    def undo(self, among: Container[tuple[str, str]] | None = None) -> Decision | None:
        """Undo the last standing decision and return it; `None` if there is none.

        All decisions that were taken at once with it are undone as well.

        Args:
            among: Samples and given labels; a last decision about another one stays.
        """
        with self._writing():
            for last in self._read("SELECT * FROM standing ORDER BY number DESC LIMIT 1"):
                if among is None or (last.sample, last.given) in among:
                    together = "SELECT * FROM standing WHERE ? IN (number, batch)"
                    for one in self._read(together, last.batch or last.number):
                        self._add(one.sample, one.given, "undo", None, undoes=one.number)
                    return last
        return None

    def latest(self) -> dict[tuple[str, str], Decision]:
        """The decision that stands for each sample and given label."""
        with self._turn, self._explained():
            return {(one.sample, one.given): one for one in self._read("SELECT * FROM standing")}

    def history(self) -> list[Decision]:
        """All decisions and undos, in order."""
        with self._turn, self._explained():
            return self._read("SELECT * FROM decisions ORDER BY number")

    def close(self) -> None:
        """Let go of the file."""
        with self._turn:
            self._file.close()

    def __enter__(self) -> Decisions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> None:
        # On the disk at every commit, the folder's entry included. A journal beside the file works
        # on network drives and in folders that can only be read, where a write-ahead log does not.
        self._file.execute("PRAGMA synchronous = EXTRA")
        version = self._file.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            expected = f"expected decisions of version {_VERSION}"
            raise ValueError(f"{self.path}: {expected}, got version {version}")
        if version == 0:
            self._file.executescript(
                f"BEGIN IMMEDIATE; {_TABLE} PRAGMA user_version = {_VERSION}; COMMIT;"
            )
        self._file.execute(_STANDING)
        self._file.text_factory = lambda stored: stored.decode("utf-8", "surrogateescape")

    def _add(
        self,
        sample: str,
        given: str,
        choice: str,
        label: str | None,
        *,
        undoes: int | None = None,
        batch: int | None = None,
    ) -> Decision:
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        cursor = self._file.execute(
            "INSERT INTO decisions (time, sample, given, choice, label, undoes, batch) "
            "VALUES (?, CAST(? AS TEXT), CAST(? AS TEXT), ?, CAST(? AS TEXT), ?, ?)",
            (time, _stored(sample), _stored(given), choice, _stored(label), undoes, batch),
        )
        assert cursor.lastrowid is not None  # noqa: S101
        return Decision(cursor.lastrowid, time, sample, given, choice, label, undoes, batch)

    def _read(self, query: str, *values: int) -> list[Decision]:
        return [Decision(*row) for row in self._file.execute(query, values)]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._turn, self._explained():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._file.execute("COMMIT")
            except BaseException:
                # After some errors, a full disk among them, SQLite has rolled back by itself.
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path}: decisions cannot be kept there ({error})") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path}: not a file of decisions ({error})") from error


def _stored(name: str | None) -> bytes | None:
    return None if name is None else name.encode("utf-8", "surrogateescape")
