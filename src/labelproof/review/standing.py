"""The state of a review: decisions about the samples of an audit, the queue, and the export."""

from __future__ import annotations

import csv
import io
import threading
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.folder import Audit
from labelproof.data.notices import count, readable
from labelproof.ranges import choose, within
from labelproof.review.decisions import CHOICES, Decisions

SCOPES = ("suspects", "everything")
SHOWN = ("undecided", "decided", "all")
ORDERS = ("suspicious", "plausible", "data")
"""The most suspicious first, the least suspicious first, or as the data are."""


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
        decisions: Those that were taken before, and where new ones are kept. Nobody else may write
            there meanwhile.

    Attributes:
        decided: By place, the choice about a sample and the class it is to have; `None` where that
            is left open.
        stale: How many decisions do not apply to this audit's data any more.
    """

    def __init__(self, audit: Audit, decisions: Decisions):
        self.audit = audit
        self.decisions = decisions
        self.decided: dict[int, tuple[str, int | None]] = {}
        # Sorted once: every answer counts suspects, and there may be a million samples.
        self._order = audit.findings.order
        self._suspects = audit.findings.suspects
        self._turn = threading.RLock()
        names = (audit.class_names[label] for label in audit.findings.given.tolist())
        keys = zip(audit.samples, names, strict=True)
        self._places = {key: place for place, key in enumerate(keys)}
        self._changed: list[int] = []
        self.stale = self._read()

    @property
    def revision(self) -> int:
        """A number that grows with every change; see `changes`."""
        return len(self._changed)

    def _read(self) -> int:
        """Take in what stands in the file; gives how many decisions do not apply here."""
        classes = {None: None} | {name: label for label, name in enumerate(self.audit.class_names)}
        latest = self.decisions.latest()
        applies = {
            key: one for key, one in latest.items() if key in self._places and one.label in classes
        }
        before = self.decided
        self.decided = {
            self._places[key]: (one.choice, classes[one.label]) for key, one in applies.items()
        }
        now = self.decided
        self._changed += [
            place for place in {**before, **now} if before.get(place) != now.get(place)
        ]
        # Where a sample's label changed and was decided about again, the earlier one is no news.
        known = {sample for sample, _ in applies}
        return sum(sample not in known for sample, _ in latest)

    def decide(self, place: int, choice: str, label: int | None = None) -> None:
        """Keep a decision about a sample.

        Args:
            place: Which of the audit's samples.
            choice: One of `CHOICES`.
            label: The class, for `"another"`.
        """
        audit = self.audit
        names, findings = audit.class_names, audit.findings
        within("place", place, 0, len(audit.samples) - 1)
        if label is not None:
            within("label", label, 0, len(names) - 1)
        given, suggested = int(findings.given[place]), int(findings.suggested[place])
        wanted = {"keep": given, "accept": suggested, "another": label}.get(choice)
        if choose("choice", choice, CHOICES) != "unsure":
            if wanted is None:
                raise ValueError("label: expected the class for choice 'another', got none")
            # Choosing the suggested class from the list is accepting it, and the given one keeping.
            choice = "keep" if wanted == given else "accept" if wanted == suggested else "another"
        with self._turn:
            label_name = None if wanted is None else names[wanted]
            self.decisions.decide(audit.samples[place], names[given], choice, label_name)
            self.decided[place] = choice, wanted
            self._changed.append(place)

    def accept_all(self, given: int, suggested: int) -> int:
        """Accept the suggestion of all undecided suspects of one confusion; how many there were.

        Args:
            given: The class that they are labelled with.
            suggested: The class that is suggested for them.
        """
        audit, names = self.audit, self.audit.class_names
        within("given", given, 0, len(names) - 1)
        if within("suggested", suggested, 0, len(names) - 1) == given:
            raise ValueError(f"suggested: expected another class than the given one, got {given}")
        with self._turn:
            places: list[int] = self.queue(given=given, suggested=suggested).tolist()
            samples = (audit.samples[place] for place in places)
            self.decisions.accept((one, names[given], names[suggested]) for one in samples)
            self.decided |= dict.fromkeys(places, ("accept", suggested))
            self._changed += places
        return len(places)

    def undo(self) -> int | None:
        """Take the last decision back, or the last that were taken at once.

        Returns its sample's place, or `None` where there is none to take.

        One about samples that are not in this audit stays: nobody would see what is undone.
        """
        with self._turn:
            undone = self.decisions.undo(among=self._places)
            self._read()
            return None if undone is None else self._places[undone.sample, undone.given]

    def changes(self, since: int) -> dict[int, tuple[str, int | None] | None]:
        """By place, what was decided after a revision: choice and class, or `None` if taken back.

        Args:
            since: The revision; 0 for all that stands.
        """
        return {place: self.decided.get(place) for place in self._changed[since:]}

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
            scope: `"suspects"`, or `"everything"`: the others after them.
            shown: `"undecided"`, `"decided"` or `"all"`.
            order: One of `ORDERS`.
            given: Only those of this label.
            suggested: Only those for which this class is suggested.
        """
        findings = self.audit.findings
        places = self._within(scope)
        if choose("order", order, ORDERS) == "plausible":
            places = places[::-1]
        elif order == "data":
            places = np.sort(places)
        wanted = np.ones(len(places), bool)
        if choose("shown", shown, SHOWN) != "all":
            wanted &= self._are_decided(places) == (shown == "decided")
        if given is not None:
            wanted &= findings.given[places] == given
        if suggested is not None:
            wanted &= findings.suggested[places] == suggested
        return places[wanted]

    def pairs(self, scope: str = "suspects") -> list[tuple[int, int, int]]:
        """Which classes are taken for which: given, suggested and how many, the commonest first."""
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
        """What to say of decisions that do not apply any more; nothing where all do."""
        number = count(self.stale, "earlier decision")
        why = "their samples are gone, or have another label or class by now"
        return f"{number} not applied: {why}" if self.stale else ""

    def _within(self, scope: str) -> NDArray[np.int64]:
        return self._suspects if choose("scope", scope, SCOPES) == "suspects" else self._order

    def _are_decided(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        decided = np.zeros(len(self.audit.samples), bool)
        decided[list(self.decided)] = True
        return decided[places]


COLUMNS = ("sample", "given", "label", "decision")


def export_csv(audit: Audit, decisions: Decisions) -> str:
    """All samples of an audit, in the order of the data, with their labels after the review.

    An undecided sample keeps its label and has no decision. An `unsure` one has no label, so that
    training leaves it out. Samples that an earlier file left out come last, still without a label.

    Args:
        audit: The samples.
        decisions: What was decided about them.

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
    classes = [readable(name) for name in audit.class_names]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    given = audit.findings.given.tolist()
    for place, sample in enumerate(audit.samples):
        choice, label = review.decided.get(place, ("", given[place]))
        wanted = "" if label is None else classes[label]
        table.writerow([readable(sample), classes[given[place]], wanted, choice])
    # Who was left out before stays out, though this audit has not seen it.
    for sample in audit.left_out:
        table.writerow([readable(sample), "", "", "unsure"])
    return text.getvalue()
