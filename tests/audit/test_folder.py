import csv
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audits import make_audit, make_findings

from labelproof.audit.folder import (
    AUDIT,
    INSIDE,
    PAGE,
    REVIEW,
    RUNS,
    SAMPLES,
    SETTINGS,
    SUSPECTS,
    Audit,
    find_audit,
    remove_audit,
)
from labelproof.audit.labels import audit_given, settle_copies
from labelproof.data.load import Reading
from labelproof.training.checkpoint import LaterFormatError

ODD = [
    "plain.png",
    "a comma, and more.png",
    'a "quoted" name.png',
    "a new\nline.png",
    "a carriage\rreturn.png",
    "Größe/猫.png",
    os.fsdecode(b"caf\xe9.png"),
    "",
    " spaces ",
    "=SUM(A1).png",
    "semicolon;.png",
    "tab\t.png",
]


def odd_audit(samples: list[str] = ODD) -> Audit:
    findings, _ = make_findings(len(samples), 3, wrong=0.5, seed=1)
    return make_audit(
        replace(findings, shared_doubts=0.125),
        ("cat", "dog, or so", os.fsdecode(b"b\xe9b\xe9")),
        samples=samples,
        index=np.arange(len(samples)) * 2,
        method={"predictions": "cross-validation", "folds": 3},
        options={"label": None, "labels": "reviewed.csv"},
    )


def same(first: Audit, second: Audit) -> None:
    """Assert that two audits are the same in all they hold."""
    for name in ("name", "data", "kind", "class_names", "agreement", "method", "options"):
        assert getattr(first, name) == getattr(second, name), name
    assert list(first.samples) == list(second.samples)
    assert np.array_equal(first.index, second.index)
    assert first.findings.noise_rate == second.findings.noise_rate
    assert first.findings.temperature == second.findings.temperature
    assert first.findings.shared_doubts == second.findings.shared_doubts
    arrays = ("given", "suggested", "score", "likeliest", "probability")
    for name in (*arrays, "transition", "transition_low", "transition_high"):
        mine, theirs = getattr(first.findings, name), getattr(second.findings, name)
        assert mine.dtype == theirs.dtype, name
        assert np.array_equal(mine, theirs), name


def test_what_is_written_is_read_and_suspects_are_a_table_of_their_own(tmp_path: Path) -> None:
    audit = odd_audit()
    audit.write(tmp_path / "new" / "folder")
    same(Audit.read(tmp_path / "new" / "folder"), audit)
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == {
        *(AUDIT, SAMPLES, SUSPECTS)
    }
    audit.write(tmp_path)
    with (tmp_path / SUSPECTS).open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["sample", "given", "suggested", "score"]
    findings = audit.findings
    assert len(rows) == len(findings.suspects) > 3
    for row, place in zip(rows, findings.suspects.tolist(), strict=True):
        assert row[0] == audit.samples[place]
        assert row[1] == audit.class_names[findings.given[place]]
        assert row[2] == audit.class_names[findings.suggested[place]] != row[1]
        assert float(row[3]) == pytest.approx(findings.score[place], abs=1e-4)
    scores = [float(row[3]) for row in rows]
    assert scores == sorted(scores, reverse=True)


def edit(folder: Path, *, without: str = "", **changed: object) -> None:
    """Change, or leave out, something of `audit.json`."""
    values = json.loads((folder / AUDIT).read_text()) | changed
    (folder / AUDIT).write_text(json.dumps({k: v for k, v in values.items() if k != without}))


def rewrite(folder: Path, *, without: str = "", **changed: np.ndarray) -> None:
    """The same of `samples.npz`."""
    with np.load(folder / SAMPLES) as arrays:
        kept = {key: arrays[key] for key in arrays.files if key != without}
    np.savez(folder / SAMPLES, allow_pickle=False, **(kept | changed))


DAMAGE: list[tuple[str, Callable[[Path], object]]] = [
    (AUDIT, lambda folder: (folder / AUDIT).write_bytes(b"\xff\xfe")),
    (AUDIT, lambda folder: (folder / AUDIT).write_bytes((folder / AUDIT).read_bytes()[:200])),
    (AUDIT, lambda folder: (folder / AUDIT).write_text("[1]")),
    (AUDIT, lambda folder: edit(folder, without="name")),
    (AUDIT, lambda folder: edit(folder, noise_rate={"mean": 1})),
    (SAMPLES, lambda folder: (folder / SAMPLES).unlink()),
    (SAMPLES, lambda folder: (folder / SAMPLES).write_bytes(b"")),
    (SAMPLES, lambda folder: (folder / SAMPLES).write_text("hello")),
    (SAMPLES, lambda folder: (folder / SAMPLES).write_bytes((folder / SAMPLES).read_bytes()[:300])),
    (SAMPLES, lambda folder: rewrite(folder, transition=np.eye(1))),
    ("score", lambda folder: rewrite(folder, without="score")),
    (SAMPLES, lambda folder: rewrite(folder, given=np.zeros(2, np.int64))),
    (SAMPLES, lambda folder: rewrite(folder, given=odd_audit().findings.given + 1)),
]


def test_damage_and_a_later_version_are_said_with_the_file(tmp_path: Path) -> None:
    for name, damage in DAMAGE:
        odd_audit().write(tmp_path)
        damage(tmp_path)
        with pytest.raises(ValueError, match="incomplete or damaged") as caught:
            Audit.read(tmp_path)
        assert str(tmp_path / AUDIT) in str(caught.value)
        assert name in str(caught.value)
    odd_audit().write(tmp_path)
    edit(tmp_path, version=2, name=None)
    with pytest.raises(LaterFormatError, match="got 2; update"):
        Audit.read(tmp_path)


def test_an_audit_is_never_half_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd_audit().write(tmp_path)

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("labelproof.audit.folder.write_text", fail)
    with pytest.raises(OSError, match="full"):
        odd_audit(["1", "2"]).write(tmp_path)
    with pytest.raises(FileNotFoundError, match="no audit in this folder"):
        Audit.read(tmp_path)


def test_an_audit_is_found_where_it_is_and_within_a_run(tmp_path: Path) -> None:
    odd_audit().write(tmp_path / "alone")
    odd_audit().write(tmp_path / "run" / INSIDE)
    assert find_audit(tmp_path / "alone") == tmp_path / "alone"
    assert find_audit(tmp_path / "run") == tmp_path / "run" / INSIDE
    for find in (find_audit, Audit.read):
        with pytest.raises(FileNotFoundError, match="no audit in this folder; 'labelproof audit"):
            find(tmp_path)


def test_removing_an_audit_leaves_decisions_and_all_else(tmp_path: Path) -> None:
    odd_audit().write(tmp_path)
    kept = [REVIEW, f"{REVIEW}-wal", "notes.txt", ".lock"]
    for name in (*kept, PAGE, SETTINGS):
        (tmp_path / name).write_text("{}")
    (tmp_path / RUNS / "1").mkdir(parents=True)
    (tmp_path / RUNS / "1" / "record.json").write_text("{}")
    remove_audit(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(kept)
    # What is called so without an audit beside it is someone else's.
    (tmp_path / PAGE).write_text("mine")
    with pytest.raises(ValueError, match="not the folder of an audit, so nothing in it is removed"):
        remove_audit(tmp_path)
    assert (tmp_path / PAGE).exists()


def test_ids_near_duplicates_and_outliers_are_columns_and_a_section(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(120, 4))
    true = (rows[:, 0] > 0).astype(int)
    rows[7], rows[9] = rows[3] + 1e-4, 40
    given = np.where(np.isin(np.arange(120), (7, 9, 50)), 1 - true, true)
    table = pd.DataFrame(rows.round(6), columns=list("abcd")).assign(
        key=[f"k{n}" for n in range(120)], label=np.array(["no", "yes"])[given]
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    told = pd.DataFrame(np.eye(2)[true] * 0.9 + 0.05, columns=["no", "yes"])
    told["key"] = table["key"]
    dataset = Reading("label", drop=("key",)).load(tmp_path / "table.csv")
    audit = audit_given(told, dataset, data=tmp_path / "table.csv", id="key")
    audit.write(tmp_path / "audit")
    suspects = Audit.read(tmp_path / "audit").suspects.set_index("id")
    assert set(suspects.index) == {"k7", "k9", "k50"}
    assert suspects["duplicate_of"].to_dict() == {"k7": audit.samples[3], "k9": "", "k50": ""}
    assert suspects.index[suspects["outlier"].astype(bool)].tolist() == ["k9"]
    page = audit.report(tmp_path / "report.html").read_text()
    assert "Near duplicates and outliers" in page
    assert "different labels" in page


def test_of_one_image_under_two_labels_one_is_certainly_wrong() -> None:
    findings = make_findings(60, 3)[0]
    right = np.flatnonzero(findings.suggested == findings.given)
    first, second = right[0], right[findings.given[right] != findings.given[right[0]]][0]
    copies = np.full(60, -1)
    copies[[first, second]] = 0
    settled = settle_copies(findings, copies)
    # The label that was less in doubt stays.
    wrong, kept = sorted((first, second), key=lambda place: -findings.score[place])
    assert settled.suspects[0] == wrong
    assert settled.suggested[wrong] == settled.suggested[kept] == findings.given[kept]
    assert (settled.score != findings.score).sum() == 1
