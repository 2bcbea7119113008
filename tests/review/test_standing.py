import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from audits import make_audit, make_findings

from labelproof.audit.folder import Audit
from labelproof.review.decisions import Decisions, Review, export_csv

CLASSES = ("cat", "dog", "owl")


@pytest.fixture
def audit() -> Audit:
    findings, _ = make_findings(200, 3)
    return make_audit(findings, CLASSES, samples=[f"{number}.jpg" for number in range(200)])


@pytest.fixture
def decisions(tmp_path: Path) -> Iterator[Decisions]:
    with Decisions(tmp_path / "review.sqlite") as opened:
        yield opened


def exported(audit: Audit, decisions: Decisions) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export_csv(audit, decisions))))


def test_suspects_come_first_and_leave_the_list_when_decided(
    audit: Audit, decisions: Decisions
) -> None:
    review, findings = Review(audit, decisions), audit.findings
    suspects = findings.suspects.tolist()
    assert review.queue().tolist() == suspects
    everything = review.queue(scope="everything").tolist()
    assert everything[: len(suspects)] == suspects
    assert sorted(everything) == list(range(200))
    review.decide(suspects[3], "keep")
    assert review.queue().tolist() == suspects[:3] + suspects[4:]
    assert review.queue(shown="decided").tolist() == [suspects[3]]
    assert review.queue(shown="all", order="plausible").tolist() == suspects[::-1]
    assert review.queue(shown="all", order="data").tolist() == sorted(suspects)


def test_pairs_of_classes_filter_and_are_accepted_at_once_except_what_is_decided(
    audit: Audit, decisions: Decisions
) -> None:
    review, findings = Review(audit, decisions), audit.findings
    pairs = review.pairs()
    assert sum(times for *_, times in pairs) == len(findings.suspects)
    assert [times for *_, times in pairs] == sorted((p[2] for p in pairs), reverse=True)
    for given, suggested, times in pairs:
        places = review.queue(given=given, suggested=suggested)
        assert len(places) == times
        assert (findings.given[places] == given).all()
        assert (findings.suggested[places] == suggested).all()
    review, findings = Review(audit, decisions), audit.findings
    given, suggested, times = review.pairs()[0]
    places = review.queue(given=given, suggested=suggested).tolist()
    assert times > 2
    review.decide(places[1], "keep")
    assert review.accept_all(given, suggested) == times - 1
    assert review.counts().changed == times - 1
    assert review.decided[places[1]] == ("keep", given)
    assert review.undo() in places
    assert review.counts().decided == 1
    assert findings.suspects.tolist() != places
    for wrong in ((given, given), (given, 3), (-1, suggested)):
        with pytest.raises(ValueError, match=r"given|suggested"):
            review.accept_all(*wrong)


def test_every_choice_is_counted_and_exported(audit: Audit, decisions: Decisions) -> None:
    review, findings = Review(audit, decisions), audit.findings
    kept, accepted, other, unsure = findings.suspects[:4].tolist()
    given, suggested = findings.given.tolist(), findings.suggested.tolist()
    third = ({0, 1, 2} - {given[other], suggested[other]}).pop()
    review.decide(kept, "keep")
    review.decide(accepted, "accept")
    review.decide(other, "another", suggested[other])
    assert review.decided[other] == ("accept", suggested[other])
    review.decide(other, "another", given[other])
    assert review.decided[other] == ("keep", given[other])
    review.decide(other, "another", third)
    review.decide(unsure, "unsure")
    counts = review.counts()
    assert (counts.seen, counts.decided, counts.changed, counts.unsure) == (4, 4, 2, 1)
    rows = exported(audit, decisions)
    assert list(rows[0]) == ["sample", "given", "label", "decision"]
    assert [row["sample"] for row in rows] == list(audit.samples)
    assert [row["given"] for row in rows] == [CLASSES[label] for label in given]
    expected = {
        kept: (CLASSES[given[kept]], "keep"),
        accepted: (CLASSES[suggested[accepted]], "accept"),
        other: (CLASSES[third], "another"),
        unsure: ("", "unsure"),
    }
    for place, row in enumerate(rows):
        wanted = expected.get(place, (CLASSES[given[place]], ""))
        assert (row["label"], row["decision"]) == wanted


def test_undo_goes_back_step_by_step_and_over_a_restart(audit: Audit, decisions: Decisions) -> None:
    review = Review(audit, decisions)
    review.decide(5, "unsure")
    review.decide(6, "keep")
    review.decide(5, "keep")
    assert review.undo() == 5
    assert review.decided[5] == ("unsure", None)
    again = Review(audit, decisions)
    assert [again.undo(), again.undo(), again.undo()] == [6, 5, None]
    assert again.counts().decided == 0


def test_changes_are_told_since_a_revision(audit: Audit, decisions: Decisions) -> None:
    review = Review(audit, decisions)
    review.decide(7, "unsure")
    seen = review.revision
    assert review.changes(0) == {7: ("unsure", None)}
    review.undo()
    review.decide(8, "keep")
    assert review.changes(seen) == {7: None, 8: ("keep", audit.findings.given[8])}


def test_an_audit_of_changed_data_says_what_no_longer_applies(
    audit: Audit, decisions: Decisions
) -> None:
    review = Review(audit, decisions)
    for place in range(5):
        review.decide(place, "keep")
    review.decide(5, "another", 2)
    again = Review(audit, decisions)
    assert again.stale_notice() == ""
    assert again.counts().decided == 6

    given = audit.findings.given.copy()
    given[1] = (given[1] + 1) % 3
    changed = replace(
        audit,
        findings=replace(audit.findings, given=given),
        samples=["new.jpg", *audit.samples[1:]],
    )
    review = Review(changed, decisions)
    assert "2 earlier decisions not applied" in review.stale_notice()
    assert review.counts().decided == 4
    assert [row["decision"] for row in exported(changed, decisions)][:3] == ["", "", "keep"]
    # Decided about again, the earlier decision is no news.
    review.decide(1, "keep")
    assert Review(changed, decisions).stale == 1


def test_decisions_of_another_audit_are_not_undone_and_a_class_that_is_gone_is_undecided(
    audit: Audit, decisions: Decisions
) -> None:
    given = CLASSES[audit.findings.given[0]]
    decisions.decide("0.jpg", given, "another", "wolf")
    decisions.decide("elsewhere.jpg", "cat", "keep", "cat")
    review = Review(audit, decisions)
    assert review.undo() is None
    assert ("elsewhere.jpg", "cat") in decisions.latest()
    assert 0 not in review.decided
    assert review.stale == 2
    row = {"sample": "0.jpg", "given": given, "label": given, "decision": ""}
    assert exported(audit, decisions)[0] == row


def test_what_makes_no_sense_is_refused(audit: Audit, decisions: Decisions) -> None:
    for name, place, choice, label in (
        ("place", 200, "keep", None),
        ("place", -1, "keep", None),
        ("label", 0, "another", 3),
        ("label", 0, "another", None),
        ("choice", 0, "perhaps", None),
    ):
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            Review(audit, decisions).decide(place, choice, label)
    assert decisions.history() == []
