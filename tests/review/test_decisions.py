import csv
import io
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from audits import make_audit, make_findings
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from review.served import history

from labelproof.audit.folder import Audit
from labelproof.review.decisions import Decisions, Review, export_csv


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "review.sqlite"


@pytest.fixture
def decisions(path: Path) -> Iterator[Decisions]:
    with Decisions(path) as opened:
        yield opened


def standing(decisions: Decisions) -> dict[str, str | None]:
    return {sample: label for (sample, _), (_, label) in decisions.latest().items()}


def test_decisions_are_on_disk_and_stay_there_when_undone(path: Path, decisions: Decisions) -> None:
    decisions.decide([("a", "cat", "keep", "cat")])
    # Another connection: it sees nothing but what is committed.
    assert history(path) == [("a", "keep", "cat", False)]
    decisions.decide([("a", "cat", "another", "owl")])
    decisions.undo()
    decisions.decide([("a", "cat", "unsure", None)])
    undone, unsure = ("a", "another", "owl", True), ("a", "unsure", None, False)
    assert history(path) == [("a", "keep", "cat", False), undone, unsure]
    assert standing(decisions) == {"a": None}
    # A changed label is another matter.
    decisions.decide([("a", "cat", "accept", "dog")])
    decisions.decide([("a", "dog", "keep", "dog")])
    assert set(decisions.latest()) == {("a", "cat"), ("a", "dog")}


BATCHES = [*itertools.product(["a", "b", "c", "ab", "bc"], "123")]


@settings(max_examples=15)
@drawn(steps=st.lists(st.sampled_from(["undo", "undo", "reopen", *BATCHES]), max_size=25))
def test_it_is_a_stack_of_decisions(tmp_path_factory: pytest.TempPathFactory, steps: list) -> None:
    path = tmp_path_factory.mktemp("decisions") / "review.sqlite"
    decisions = Decisions(path)
    stack: list[dict[str, str | None]] = []
    for step in steps:
        if step == "reopen":
            decisions.close()
            decisions = Decisions(path)
            continue
        if step == "undo":
            undone = stack.pop() if stack else {}
            assert decisions.undo() == [(sample, "given") for sample in undone]
        else:
            decisions.decide((sample, "given", "another", step[1]) for sample in step[0])
            stack.append(dict.fromkeys(step[0], step[1]))
    assert standing(decisions) == dict(ChainMap(*reversed(stack)))
    decisions.close()


def test_names_that_are_not_utf8_are_kept_as_escapes(path: Path) -> None:
    audit = make_audit(make_findings(1, 2)[0], ["cat", "dog"])
    audit = replace(audit, samples=[os.fsdecode(b"caf\xe9.jpg")])
    with Decisions(path) as decisions:
        Review(audit, decisions).decide(0, "unsure")
        assert standing(decisions) == {r"caf\xe9.jpg": None}
    with Decisions(path) as again:
        assert Review(audit, again).counts().unsure == 1
        assert r"caf\xe9.jpg" in export_csv(audit, again)


KILLED = """
import os, signal, sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA cache_size = 1")
file.execute("BEGIN EXCLUSIVE")
row = "INSERT INTO decisions VALUES (NULL, '', ?, 'cat', 'keep', 'cat', 2, NULL)"
for number in range(500):
    file.execute(row, ("b" * 100 + str(number),))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_killed_in_the_middle_leaves_the_decisions_before(path: Path) -> None:
    with Decisions(path) as decisions:
        decisions.decide([("a", "cat", "keep", "cat")])
    size = path.stat().st_size
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    # Else nothing was half written, and nothing is tested.
    assert path.stat().st_size > size
    with Decisions(path) as decisions:
        assert standing(decisions) == {"a": "cat"}


def test_files_that_are_something_else_are_named(path: Path) -> None:
    path.mkdir()
    with pytest.raises(OSError, match=r"review\.sqlite: decisions cannot be kept there"):
        Decisions(path)
    path.rmdir()
    path.write_bytes(b"a picture, say" * 100)
    with pytest.raises(ValueError, match=r"review\.sqlite: not a file of decisions"):
        Decisions(path)
    assert path.read_bytes() == b"a picture, say" * 100
    path.unlink()
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 2")
    later.close()
    with pytest.raises(ValueError, match="expected decisions of version 3, got version 2"):
        Decisions(path)


def test_a_write_that_fails_is_told_and_leaves_no_trace(path: Path, decisions: Decisions) -> None:
    decisions.decide([("a", "cat", "keep", "cat")])
    decisions._file.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OSError, match="database is locked"):
        decisions.decide([("b", "cat", "keep", "cat")])
    other.execute("ROLLBACK")
    other.close()
    decisions.decide([("c", "cat", "keep", "cat")])
    assert set(standing(decisions)) == {"a", "c"}


CLASSES = ("cat", "dog", "owl")


@pytest.fixture
def audit() -> Audit:
    findings, _ = make_findings(200, 3)
    return make_audit(findings, CLASSES, samples=[f"{number}.jpg" for number in range(200)])


def exported(audit: Audit, decisions: Decisions) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export_csv(audit, decisions))))


def test_suspects_come_first_and_leave_when_decided(audit: Audit, decisions: Decisions) -> None:
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


def test_pairs_filter_and_are_accepted_unless_decided(audit: Audit, decisions: Decisions) -> None:
    review, findings = Review(audit, decisions), audit.findings
    pairs = review.pairs()
    assert sum(times for *_, times in pairs) == len(findings.suspects)
    assert [times for *_, times in pairs] == sorted((p[2] for p in pairs), reverse=True)
    for given, suggested, times in pairs:
        places = review.queue(given=given, suggested=suggested)
        assert len(places) == times
        assert (findings.given[places] == given).all()
        assert (findings.suggested[places] == suggested).all()
    given, suggested, times = pairs[0]
    places = review.queue(given=given, suggested=suggested).tolist()
    assert times > 2
    review.decide(places[1], "keep")
    rest = [places[0], *places[2:]]
    assert review.accept_all(given, suggested) == rest
    assert review.counts().changed == times - 1
    assert review.decided[places[1]] == ("keep", given)
    assert review.undo() == rest
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


def test_ids_are_exported_beside_the_samples(audit: Audit, decisions: Decisions) -> None:
    named = replace(audit, ids=[f"T{number}" for number in range(200)], left_out=["gone.jpg"])
    rows = exported(named, decisions)
    assert list(rows[0]) == ["sample", "id", "given", "label", "decision"]
    assert [row["id"] for row in rows] == [*named.ids, ""]
    assert [row["decision"] for row in rows[-2:]] == ["", "unsure"]


def test_undo_goes_back_step_by_step_and_over_a_restart(audit: Audit, decisions: Decisions) -> None:
    review, kept = Review(audit, decisions), ("keep", audit.findings.given[6])
    for place, choice in ((5, "unsure"), (6, "keep"), (5, "keep")):
        review.decide(place, choice)
    assert review.undo() == [5]
    assert review.decided == {5: ("unsure", None), 6: kept}
    again = Review(audit, decisions)
    assert again.decided == review.decided
    assert [again.undo(), again.undo(), again.undo()] == [[6], [5], []]
    assert again.decided == {}


def test_an_audit_of_changed_data_says_what_is_stale(audit: Audit, decisions: Decisions) -> None:
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


def test_decisions_of_another_audit_are_not_undone(audit: Audit, decisions: Decisions) -> None:
    given = CLASSES[audit.findings.given[0]]
    decisions.decide([("0.jpg", given, "another", "wolf")])
    decisions.decide([("elsewhere.jpg", "cat", "keep", "cat")])
    review = Review(audit, decisions)
    assert review.undo() == []
    assert ("elsewhere.jpg", "cat") in decisions.latest()
    decisions.decide((sample, given, "unsure", None) for sample in ("0.jpg", "elsewhere.jpg"))
    assert review.undo() == [0]
    assert len(decisions.latest()) == 2
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
    assert decisions.latest() == {}
