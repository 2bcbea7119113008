import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelproof.review.decisions import Decisions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "review.sqlite"


@pytest.fixture
def decisions(path: Path) -> Iterator[Decisions]:
    with Decisions(path) as opened:
        yield opened


def standing(decisions: Decisions) -> dict[str, str | None]:
    return {sample: one.label for (sample, _), one in decisions.latest().items()}


def test_a_decision_is_in_the_file_when_decide_returns(path: Path, decisions: Decisions) -> None:
    decisions.decide("a.jpg", "cat", "accept", "dog")
    # Another connection: it sees nothing but what is committed.
    other = sqlite3.connect(path)
    rows = other.execute("SELECT sample, given, choice, label, undoes FROM decisions").fetchall()
    other.close()
    assert rows == [("a.jpg", "cat", "accept", "dog", None)]


def test_nothing_is_overwritten_and_a_changed_label_is_another_matter(decisions: Decisions) -> None:
    decisions.decide("a", "cat", "keep", "cat")
    decisions.decide("a", "cat", "another", "owl")
    decisions.undo()
    decisions.decide("a", "cat", "unsure", None)
    told = [(one.choice, one.label, one.undoes) for one in decisions.history()]
    assert told == [
        ("keep", "cat", None),
        ("another", "owl", None),
        ("undo", None, 2),
        ("unsure", None, None),
    ]
    assert standing(decisions) == {"a": None}
    decisions.decide("a", "cat", "accept", "dog")
    decisions.decide("a", "dog", "keep", "dog")
    assert set(decisions.latest()) == {("a", "cat"), ("a", "dog")}


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.one_of(
            st.just("undo"), st.just("reopen"), st.tuples(st.sampled_from("abc"), st.integers(0, 4))
        ),
        max_size=25,
    )
)
def test_it_is_a_stack_of_decisions(tmp_path_factory: pytest.TempPathFactory, steps: list) -> None:
    path = tmp_path_factory.mktemp("decisions") / "review.sqlite"
    decisions = Decisions(path)
    stack: list[tuple[str, str]] = []
    for step in steps:
        if step == "reopen":
            decisions.close()
            decisions = Decisions(path)
            continue
        if step == "undo":
            undone = decisions.undo()
            assert (undone and undone.sample) == (stack[-1][0] if stack else None)
            stack = stack[:-1]
        else:
            decisions.decide(step[0], "given", "another", f"class {step[1]}")
            stack.append((step[0], f"class {step[1]}"))
    assert standing(decisions) == dict(stack)
    decisions.close()


def test_names_that_are_not_text_come_back(path: Path) -> None:
    sample, label = os.fsdecode(b"caf\xe9.jpg"), os.fsdecode(b"\xff")
    with Decisions(path) as decisions:
        decisions.decide(sample, label, "keep", label)
        decisions.decide("🐈\n'\"", "cat", "keep", "cat")
    with Decisions(path) as again:
        assert set(again.latest()) == {(sample, label), ("🐈\n'\"", "cat")}


KILLED = """
import os, signal, sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA cache_size = 1")
file.execute("BEGIN EXCLUSIVE")
row = "INSERT INTO decisions (time, sample, given, choice) VALUES ('', ?, 'cat', 'keep')"
for number in range(500):
    file.execute(row, ("b" * 100 + str(number),))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_killed_in_the_middle_leaves_the_decisions_before(path: Path) -> None:
    with Decisions(path) as decisions:
        decisions.decide("a", "cat", "keep", "cat")
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
    later.execute("PRAGMA user_version = 9")
    later.close()
    with pytest.raises(ValueError, match="expected decisions of version 2, got version 9"):
        Decisions(path)


def test_a_write_that_fails_is_told_and_leaves_no_trace(path: Path, decisions: Decisions) -> None:
    decisions.decide("a", "cat", "keep", "cat")
    decisions._file.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OSError, match="database is locked"):
        decisions.decide("b", "cat", "keep", "cat")
    other.execute("ROLLBACK")
    other.close()
    decisions.decide("c", "cat", "keep", "cat")
    assert set(standing(decisions)) == {"a", "c"}
