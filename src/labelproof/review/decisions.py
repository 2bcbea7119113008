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


_VERSION = 3

# Rows are never deleted: undoing sets `undone` to its time, so the file records all that was
# decided. `batch` is the number of the first of the decisions that are undone together.
_CREATE = f"""
BEGIN IMMEDIATE;
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    sample NOT NULL,
    given NOT NULL,
    choice TEXT NOT NULL,
    label,
    batch INTEGER NOT NULL,
    undone TEXT
);
PRAGMA user_version = {_VERSION};
COMMIT;
"""


class Decisions(contextlib.AbstractContextManager["Decisions"]):
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
        ...     decisions.decide([("cats/1.jpg", "cat", "accept", "dog")])
        ...     decisions.decide([("cats/2.jpg", "cat", "keep", "cat")])
        ...     undone = decisions.undo()
        ...     latest = decisions.latest()
        >>> undone
        [('cats/2.jpg', 'cat')]
        >>> latest
        {('cats/1.jpg', 'cat'): ('accept', 'dog')}
    """

    def __init__(self, path: Path):
        self.path = path
        self.lock = threading.RLock()
        with self._explained(), contextlib.ExitStack() as opened:
            self._file = sqlite3.connect(path, isolation_level="IMMEDIATE", check_same_thread=False)
            opened.callback(self._file.close)
            # Every commit reaches the disk, the folder's entry included. A rollback journal works
            # on network drives and in read-only folders, where a write-ahead log does not.
            self._file.execute("PRAGMA synchronous = EXTRA")
            version = self._file.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                expected = f"expected decisions of version {_VERSION}"
                raise ValueError(f"{path}: {expected}, got version {version}")
            if version == 0:
                self._file.executescript(_CREATE)
            opened.pop_all()  # stays open

    def decide(self, batch: Iterable[tuple[str, str, str, str | None]]) -> None:
        """Store decisions, which `undo` undoes together; they are on disk when this returns.

        Args:
            batch: For each, the sample's name, the name of its class, one of `CHOICES`, and the
                name of its new class; `None` if that is left open.
        """
        row = "INSERT INTO decisions VALUES (NULL, ?, ?, ?, ?, ?, ?, NULL)"
        with self._transaction() as file:
            last = file.execute("SELECT MAX(number) FROM decisions").fetchone()[0] or 0
            file.executemany(row, ((_now(), *one, last + 1) for one in batch))

    def undo(self, among: Container[tuple[str, str]] | None = None) -> list[tuple[str, str]]:
        """Undo the last batch that stands; returns its samples and given labels.

        Args:
            among: Samples and given labels. Only these are returned; if the last batch is about
                none of them, it stays.
        """
        with self._transaction() as file:
            last = file.execute("SELECT MAX(batch) FROM decisions WHERE undone IS NULL").fetchone()
            rows = file.execute("SELECT sample, given FROM decisions WHERE batch = ?", last)
            undone = [key for key in rows if among is None or key in among]
            if undone:
                file.execute("UPDATE decisions SET undone = ? WHERE batch = ?", (_now(), *last))
            return undone

    def latest(self) -> dict[tuple[str, str], tuple[str, str | None]]:
        """By sample and given label: the choice and the new class of the decision that stands."""
        select = "SELECT sample, given, choice, label FROM decisions"
        with self._transaction() as file:
            rows = file.execute(f"{select} WHERE undone IS NULL ORDER BY number")
            return {row[:2]: row[2:] for row in rows}

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self._file.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self.lock, self._explained(), self._file:  # commits, or rolls back
            yield self._file

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path}: decisions cannot be kept there ({error})") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path}: not a file of decisions ({error})") from error


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


SCOPES = ("suspects", "duplicates", "outliers", "everything")
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
            `None` if left open. A change replaces the dict, so another thread may read it.
        stale: Number of decisions that no longer apply to this audit's data.
        revision: A number that grows with every change.
    """

    def __init__(self, audit: Audit, decisions: Decisions):
        self.audit = audit
        self.decisions = decisions
        self.revision = 0
        self.samples = [readable(name) for name in audit.samples]
        self.class_names = [readable(name) for name in audit.class_names]
        names = (self.class_names[label] for label in audit.findings.given.tolist())
        self._keys = [*zip(self.samples, names, strict=True)]
        self._places = {key: place for place, key in enumerate(self._keys)}
        self.decided, self.stale = self._read()

    def _read(self) -> tuple[dict[int, tuple[str, int | None]], int]:
        """The decisions that apply here, and the number of those that do not."""
        classes = {None: None} | {name: label for label, name in enumerate(self.class_names)}
        latest = self.decisions.latest()
        decided = {
            self._places[key]: (choice, classes[label])
            for key, (choice, label) in latest.items()
            if key in self._places and label in classes
        }
        # If a sample's label changed and has a new decision, the earlier one does not count.
        known = {self.samples[place] for place in decided}
        return decided, sum(sample not in known for sample, _ in latest)

    def decide(self, place: int, choice: str, label: int | None = None) -> list[int]:
        """Store a decision about a sample; returns its place.

        Args:
            place: The sample's index in the audit.
            choice: One of `CHOICES`.
            label: The class, for `"another"`.
        """
        findings = self.audit.findings
        within("place", place, 0, len(self.samples) - 1)
        if label is not None:
            within("label", label, 0, len(self.class_names) - 1)
        given, suggested = int(findings.given[place]), int(findings.suggested[place])
        new = {"keep": given, "accept": suggested, "another": label}.get(choice)
        if choose("choice", choice, CHOICES) != "unsure":
            if new is None:
                raise ValueError("label: expected the class for choice 'another', got none")
            # Choosing the suggested class from the list is accepting it, and the given one keeping.
            choice = "keep" if new == given else "accept" if new == suggested else "another"
        return self._store([place], choice, new)

    def accept_all(self, given: int, suggested: int) -> list[int]:
        """Accept the suggestion of all undecided suspects of one confusion; returns their places.

        Args:
            given: The class of their labels.
            suggested: The suggested class.
        """
        within("given", given, 0, len(self.class_names) - 1)
        if within("suggested", suggested, 0, len(self.class_names) - 1) == given:
            raise ValueError(f"suggested: expected another class than the given one, got {given}")
        with self.decisions.lock:
            places = self.queue(given=given, suggested=suggested).tolist()
            return self._store(places, "accept", suggested)

    def _store(self, places: list[int], choice: str, new: int | None) -> list[int]:
        label = None if new is None else self.class_names[new]
        with self.decisions.lock:
            self.decisions.decide((*self._keys[place], choice, label) for place in places)
            # As `_read` would find it, which takes long with many decisions.
            self.decided = self.decided | dict.fromkeys(places, (choice, new))
            self.revision += 1
        return places

    def undo(self) -> list[int]:
        """Undo the last decision, or the last batch; returns the places of its samples.

        A decision about samples that are not in this audit stays: nobody would see it undone.
        """
        with self.decisions.lock:
            undone = self.decisions.undo(among=self._places)
            self.decided, self.stale = self._read()
            self.revision += 1
        return [self._places[key] for key in undone]

    def counts(self) -> Counts:
        """The progress of the review."""
        suspects = self.audit.findings.suspects
        choices = Counter(choice for choice, _ in self.decided.values())
        return Counts(
            suspects=len(suspects),
            seen=int(self._are_decided(suspects).sum()),
            decided=len(self.decided),
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
            scope: `"suspects"`, near `"duplicates"`, `"outliers"`, or `"everything"`.
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
        audit, order = self.audit, self.audit.findings.order
        if choose("scope", scope, SCOPES) == "suspects":
            return audit.findings.suspects
        if scope == "everything":
            return order
        if audit.outlier is None or audit.duplicate_of is None:
            return order[:0]
        marked = audit.outlier if scope == "outliers" else audit.duplicate_of >= 0
        return order[marked[order]]

    def _are_decided(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        decided = np.zeros(len(self.samples), bool)
        decided[list(self.decided)] = True
        return decided[places]


COLUMNS = ("sample", "given", "label", "decision")
COLUMNS_WITH_ID = (COLUMNS[0], "id", *COLUMNS[1:])


def export_csv(audit: Audit, decisions: Decisions) -> str:
    """All samples of an audit, in the order of the data, with their labels after the review.

    An undecided sample keeps its label and has no decision. An `unsure` one has no label, so that
    training leaves it out. Samples that an earlier file left out come last, still without a label.

    Args:
        audit: The samples.
        decisions: The decisions about them.

    Returns:
        CSV with the columns `sample`, `given`, `label` and `decision`; `id` after `sample` where
        the audit has ids.

    Example:
        >>> from labelproof.audit import audit_given
        >>> audit = audit_given([[0.1, 0.9], [0.8, 0.2], [0.1, 0.9]], ["cat", "cat", "dog"])
        >>> with Decisions(getfixture("tmp_path") / "review.sqlite") as decisions:
        ...     decisions.decide([("0", "cat", "accept", "dog")])
        ...     print(export_csv(audit, decisions).splitlines()[:3])
        ['sample,given,label,decision', '0,cat,dog,accept', '1,cat,cat,']
    """
    review, text = Review(audit, decisions), io.StringIO()
    classes = review.class_names
    table = csv.writer(text, lineterminator="\n")
    ids = [readable(each) for each in audit.ids]
    table.writerow(COLUMNS_WITH_ID if ids else COLUMNS)
    for place, (sample, label) in enumerate(zip(review.samples, audit.findings.given, strict=True)):
        choice, new = review.decided.get(place, ("", label))
        key = [ids[place]] if ids else []
        after = "" if new is None else classes[new]
        table.writerow([sample, *key, classes[label], after, choice])
    # Samples that were left out before stay out, though this audit has not seen them.
    for sample in audit.left_out:
        table.writerow([readable(sample), *[""] * bool(ids), "", "", "unsure"])
    return text.getvalue()
