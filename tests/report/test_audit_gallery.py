"""Which samples an audit's page lists, and which of them can be seen."""

from pathlib import Path

import numpy as np
import pandas as pd
from array_audits import made_audit

import labelproof
from labelproof.audit.samples import open_samples
from labelproof.report.audit import list_samples, look_at, seen_first, write_audit_page
from labelproof.report.typical import Typical


def test_suspects_and_the_next_samples_are_listed_as_far_as_there_is_room(tmp_path: Path) -> None:
    audit, _ = made_audit(1000, tuple("abcd"))
    listed = list_samples(audit, limit_bytes=10**6)
    assert len(listed.places) == 200
    assert listed.suspects == len(audit.findings.suspects)
    scores = audit.findings.score[listed.places]
    assert (np.diff(scores) <= 0).all()
    assert (scores[: listed.suspects] > 0.5).all()
    assert (scores[listed.suspects :] <= 0.5).all()
    audit, samples = made_audit(3000, tuple("ab"))
    listed = list_samples(audit, limit_bytes=4000)
    assert 0 < len(listed.places) < len(audit.findings.suspects) == listed.all_suspects
    page = write_audit_page(tmp_path / "page.html", audit, samples, limit_bytes=10_000)
    said = f"The first {listed.suspects} of {listed.all_suspects} suspects are listed here"
    assert said in page.read_text(encoding="utf-8")


def test_each_pair_of_classes_is_seen_before_more_of_another(tmp_path: Path) -> None:
    audit, samples = made_audit(4000, tuple("abcde"))
    findings = audit.findings
    listed = list_samples(audit, limit_bytes=10**6)
    looks = look_at(samples, listed, limit_bytes=400_000)
    assert 60 < len(looks) < listed.suspects
    pairs = {(findings.given[i], findings.suggested[i]) for i in findings.suspects}
    seen = [listed.places[number] for number in looks]
    assert {(findings.given[i], findings.suggested[i]) for i in seen} == pairs
    order = seen_first(findings, listed)
    assert sorted(order) == list(range(len(listed.places)))
    late = order[3 * len(pairs) :]
    assert late == sorted(late)
    page = write_audit_page(tmp_path / "page.html", audit, samples, limit_bytes=500_000)
    assert 450_000 < page.stat().st_size <= 500_000
    assert f" of {listed.suspects} suspects have a picture here" in page.read_text(encoding="utf-8")


def test_cells_that_are_unusual_for_the_given_class_are_marked(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    kinds = np.array(["cat", "dog"])[np.arange(80) % 2]
    weight = np.where(kinds == "cat", 4, 30) + generator.normal(0, 0.5, 80)
    sound = np.where(kinds == "cat", "meow", "bark")
    kinds[0], sound[2] = "dog", ""  # a cat that is labelled dog, and a cell that is missing
    note = [f"seen by someone for the time number {n}" for n in range(80)]
    table = pd.DataFrame({"note": note, "weight": weight, "sound": sound, "kind": kinds})
    table.to_csv(tmp_path / "pets.csv", index=False)
    told = np.where(np.arange(80) % 2 == 0, 0.9, 0.1)[:, None]
    audit = labelproof.audit(
        tmp_path / "pets.csv", "kind", probabilities=np.hstack([told, 1 - told])
    )
    samples = open_samples(audit)
    looks = look_at(
        samples, list_samples(audit, limit_bytes=10**6), limit_bytes=10**6, typical=Typical(samples)
    )
    first, second, *_ = looks.values()
    assert isinstance(first, tuple)
    assert first[0][2:] == ["meow", "dog"]
    assert first[1] == [1, 2]
    assert isinstance(second, tuple)
    assert second[1] == []
