"""A review: decisions in an SQLite file, the queue of samples, and the export."""

from __future__ import annotations

import contextlib
import csv
import io
import sqlite3
import threading
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.folder import Audit
from labelproof.data.notices import count, readable
from labelproof.ranges import choose, within

CHOICES = ("keep", "accept", "another", "unsure")
"""Keep the label, accept the suggestion, choose another class, or leave the sample out."""


_VERSION = 2

# Rows are only ever added; one that undoes another has the number of that in `undoes`. In a batch,
# all rows but the first have the number of the first in `batch`.
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
        given: The name of its class at that time.
        choice: One of `keep`, `accept`, `another`, `unsure`; or `undo`.
        label: The name of its new class; `None` if that is left open.
        undoes: The number of the decision that this one undoes.
        batch: The number of the first decision of its batch, unless it is that or has none.
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
        path: The file; created if missing.

    Raises:
        OSError: The file cannot be read or written.
        ValueError: The file holds something else, or decisions of another version.

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
        self._lock = threading.Lock()
        with self._explained():
            self._file = sqlite3.connect(path, isolation_level="IMMEDIATE", check_same_thread=False)
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
            given: The name of its class.
            choice: One of `CHOICES`.
            label: The name of its new class; `None` if that is left open.
        """
        with self._writing():
            return self._add(sample, given, choice, label)

    def accept(self, samples: Iterable[tuple[str, str, str]]) -> None:
        """Accept several suggestions as a batch, which `undo` undoes as a whole.

        Args:
            samples: For each, the sample's name, its given class and its new class.
        """
        first = None
        with self._writing():
            for sample, given, label in samples:
                one = self._add(sample, given, "accept", label, batch=first)
                first = first or one.number

    def undo(self, among: Container[tuple[str, str]] | None = None) -> Decision | None:
        """Undo the last standing decision and return it; `None` if there is none.

        All decisions of its batch are undone as well.

        Args:
            among: Samples and given labels; if the last decision is about another one, it stays.
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
        """The standing decision about each sample and given label."""
        with self._lock, self._explained():
            return {(one.sample, one.given): one for one in self._read("SELECT * FROM standing")}

    def history(self, since: int = 0) -> list[Decision]:
        """All decisions and undos after the number `since`, in order."""
        with self._lock, self._explained():
            return self._read("SELECT * FROM decisions WHERE number > ? ORDER BY number", since)

    @property
    def revision(self) -> int:
        """The number of the last decision or undo; 0 before the first."""
        with self._lock, self._explained():
            last = self._file.execute("SELECT MAX(number) FROM decisions").fetchone()[0]
            return last or 0

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Decisions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> None:
        # Every commit reaches the disk, the folder's entry included. A rollback journal works on
        # network drives and in read-only folders, where a write-ahead log does not.
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
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (time, sample, given, choice, label, undoes, batch),
        )
        assert cursor.lastrowid is not None  # noqa: S101
        return Decision(cursor.lastrowid, time, sample, given, choice, label, undoes, batch)

    def _read(self, query: str, *values: int) -> list[Decision]:
        return [Decision(*row) for row in self._file.execute(query, values)]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._explained(), self._file:  # commits, or rolls back
            yield

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path}: decisions cannot be kept there ({error})") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path}: not a file of decisions ({error})") from error


SCOPES = ("suspects", "everything")
SHOWN = ("undecided", "decided", "all")
ORDERS = ("suspicious", "plausible", "data")
"""The most suspicious first, the least suspicious first, or in the order of the data."""


@dataclass(frozen=True)
class Counts:
    """Progress of a review.

    Attributes:
        suspects: The number of suspects.
        seen: Suspects with a decision.
        decided: Samples with a decision, suspects or not.
        changed: Samples with a changed label.
        unsure: Samples marked unsure.
    """

    suspects: int
    seen: int
    decided: int
    changed: int
    unsure: int


class Review:
    """An audit with its decisions; thread-safe.

    Args:
        audit: What is reviewed.
        decisions: Earlier decisions, to which new ones are added. Nobody else may write there
            meanwhile.

    Attributes:
        samples: The samples' names; bytes that are not UTF-8 are escapes, as in the file.
        class_names: The names of the classes, likewise.
        decided: By place, a sample's index in the audit: the choice and the new class, which is
            `None` if left open.
        stale: Number of decisions that no longer apply to this audit's data.
    """

    def __init__(self, audit: Audit, decisions: Decisions):
        self.audit = audit
        self.decisions = decisions
        self.decided: dict[int, tuple[str, int | None]] = {}
        # Sorted once: every answer counts suspects, and there may be a million samples.
        self._order = audit.findings.order
        self._suspects = audit.findings.suspects
        self._lock = threading.RLock()
        self.samples = [readable(name) for name in audit.samples]
        self.class_names = [readable(name) for name in audit.class_names]
        names = (self.class_names[label] for label in audit.findings.given.tolist())
        keys = zip(self.samples, names, strict=True)
        self._places = {key: place for place, key in enumerate(keys)}
        self.stale = self._read()

    @property
    def revision(self) -> int:
        """A number that grows with every change; see `changes`."""
        return self.decisions.revision

    def _read(self) -> int:
        """Read the standing decisions; returns how many of them do not apply here."""
        classes = {None: None} | {name: label for label, name in enumerate(self.class_names)}
        latest = self.decisions.latest()
        applies = {
            key: one for key, one in latest.items() if key in self._places and one.label in classes
        }
        self.decided = {
            self._places[key]: (one.choice, classes[one.label]) for key, one in applies.items()
        }
        # If a sample's label changed and has a new decision, the earlier one does not count.
        known = {sample for sample, _ in applies}
        return sum(sample not in known for sample, _ in latest)

    def decide(self, place: int, choice: str, label: int | None = None) -> None:
        """Store a decision about a sample.

        Args:
            place: The sample's index in the audit.
            choice: One of `CHOICES`.
            label: The class, for `"another"`.
        """
        names, findings = self.class_names, self.audit.findings
        within("place", place, 0, len(self.samples) - 1)
        if label is not None:
            within("label", label, 0, len(names) - 1)
        given, suggested = int(findings.given[place]), int(findings.suggested[place])
        new = {"keep": given, "accept": suggested, "another": label}.get(choice)
        if choose("choice", choice, CHOICES) != "unsure":
            if new is None:
                raise ValueError("label: expected the class for choice 'another', got none")
            # Choosing the suggested class from the list is accepting it, and the given one keeping.
            choice = "keep" if new == given else "accept" if new == suggested else "another"
        with self._lock:
            label_name = None if new is None else names[new]
            self.decisions.decide(self.samples[place], names[given], choice, label_name)
            self.decided[place] = choice, new

    def accept_all(self, given: int, suggested: int) -> int:
        """Accept the suggestion of all undecided suspects of one confusion; returns their number.

        Args:
            given: The class of their labels.
            suggested: The suggested class.
        """
        names = self.class_names
        within("given", given, 0, len(names) - 1)
        if within("suggested", suggested, 0, len(names) - 1) == given:
            raise ValueError(f"suggested: expected another class than the given one, got {given}")
        with self._lock:
            places: list[int] = self.queue(given=given, suggested=suggested).tolist()
            samples = (self.samples[place] for place in places)
            self.decisions.accept((one, names[given], names[suggested]) for one in samples)
            self.decided |= dict.fromkeys(places, ("accept", suggested))
        return len(places)

    def undo(self) -> int | None:
        """Undo the last decision, or the last batch.

        Returns the place of its sample, or `None` if there is nothing to undo.

        A decision about samples that are not in this audit stays: nobody would see it undone.
        """
        with self._lock:
            undone = self.decisions.undo(among=self._places)
            self._read()
            return None if undone is None else self._places[undone.sample, undone.given]

    def changes(self, since: int) -> dict[int, tuple[str, int | None] | None]:
        """By place, what was decided after a revision: choice and class, or `None` if undone.

        Args:
            since: The revision; 0 for all changes.
        """
        with self._lock:  # so that `decided` and the file agree
            keys = [(one.sample, one.given) for one in self.decisions.history(since)]
            places = [self._places[key] for key in keys if key in self._places]
            return {place: self.decided.get(place) for place in places}

    def counts(self) -> Counts:
        """The progress of the review."""
        decided = dict(self.decided)
        choices = Counter(choice for choice, _ in decided.values())
        return Counts(
            suspects=len(self._suspects),
            seen=int(self._are_decided(self._suspects).sum()),
            decided=len(decided),
            changed=choices["accept"] + choices["another"],
            unsure=choices["unsure"],
        )

    def queue(
        self,
        *,
        scope: str = "suspects",
        shown: str = "undecided",
        order: str = "suspicious",
        given: int | None = None,
        suggested: int | None = None,
    ) -> NDArray[np.int64]:
        """The places of the samples to look at, in order.

        Args:
            scope: `"suspects"`, or `"everything"`, with the others after them.
            shown: `"undecided"`, `"decided"` or `"all"`.
            order: One of `ORDERS`.
            given: Only samples with this label.
            suggested: Only samples with this suggestion.
        """
        findings = self.audit.findings
        places = self._within(scope)
        if choose("order", order, ORDERS) == "plausible":
            places = places[::-1]
        elif order == "data":
            places = np.sort(places)
        selected = np.ones(len(places), bool)
        if choose("shown", shown, SHOWN) != "all":
            selected &= self._are_decided(places) == (shown == "decided")
        if given is not None:
            selected &= findings.given[places] == given
        if suggested is not None:
            selected &= findings.suggested[places] == suggested
        return places[selected]

    def pairs(self, scope: str = "suspects") -> list[tuple[int, int, int]]:
        """Confusions: given class, suggested class and count, the most frequent first."""
        places, findings = self._within(scope), self.audit.findings
        classes = findings.num_classes
        codes = findings.given[places] * classes + findings.suggested[places]
        found, times = np.unique(codes, return_counts=True)
        order = np.argsort(-times, kind="stable")
        return [
            (code // classes, code % classes, number)
            for code, number in zip(found[order].tolist(), times[order].tolist(), strict=True)
        ]

    def stale_notice(self) -> str:
        """A notice about decisions that no longer apply; empty if all do."""
        number = count(self.stale, "earlier decision")
        why = "their samples are gone, or have another label or class by now"
        return f"{number} not applied: {why}" if self.stale else ""

    def _within(self, scope: str) -> NDArray[np.int64]:
        return self._suspects if choose("scope", scope, SCOPES) == "suspects" else self._order

    def _are_decided(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        decided = np.zeros(len(self.samples), bool)
        decided[list(self.decided)] = True
        return decided[places]


COLUMNS = ("sample", "given", "label", "decision")


def export_csv(audit: Audit, decisions: Decisions) -> str:
    """All samples of an audit, in the order of the data, with their labels after the review.

    An undecided sample keeps its label and has no decision. An `unsure` one has no label, so that
    training leaves it out. Samples that an earlier file left out come last, still without a label.

    Args:
        audit: The samples.
        decisions: The decisions about them.

    Returns:
        CSV with the columns `sample`, `given`, `label` and `decision`.

    Example:
        >>> from labelproof.audit import audit_given
        >>> audit = audit_given([[0.1, 0.9], [0.8, 0.2], [0.1, 0.9]], ["cat", "cat", "dog"])
        >>> with Decisions(getfixture("tmp_path") / "review.sqlite") as decisions:
        ...     _ = decisions.decide("0", "cat", "accept", "dog")
        ...     print(export_csv(audit, decisions).splitlines()[:3])
        ['sample,given,label,decision', '0,cat,dog,accept', '1,cat,cat,']
    """
    review = Review(audit, decisions)
    classes = review.class_names
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    given = audit.findings.given.tolist()
    for place, sample in enumerate(review.samples):
        choice, label = review.decided.get(place, ("", given[place]))
        new = "" if label is None else classes[label]
        table.writerow([sample, classes[given[place]], new, choice])
    # Samples that were left out before stay out, though this audit has not seen them.
    for sample in audit.left_out:
        table.writerow([readable(sample), "", "", "unsure"])
    return text.getvalue()
