import shutil
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from audits import make_photos
from review.served import Program
from trained import labelproof, labelproof_to_its_end, refusal, succeed

from labelproof.audit.folder import REVIEW, Audit
from labelproof.review.decisions import Decisions, Review


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Of made photos, kept in the folder `audit`."""
    made = make_photos(tmp_path / "photos", samples=60)
    made.write(tmp_path / "audit")
    return made


def decide(audit: Audit, folder: Path, *choices: str) -> None:
    with Decisions(folder / REVIEW) as decisions:
        review = Review(audit, decisions)
        for place, choice in zip(audit.findings.suspects.tolist(), choices, strict=False):
            review.decide(place, choice)


def test_decisions_are_exported_and_replace_only_an_export(audit: Audit, tmp_path: Path) -> None:
    file = tmp_path / "out" / "reviewed.csv"
    assert "no decisions" in refusal("review", tmp_path / "audit", "--export", file)
    decide(audit, tmp_path / "audit", "accept", "unsure", "keep")
    for _ in range(2):
        result = succeed("review", tmp_path / "audit", "--export", file)
        assert "60 labels, 1 changed, 1 left out as unsure, 57 not decided" in result.stdout
    printed = labelproof("review", tmp_path / "audit", "--export", "-")
    assert printed.stdout == file.read_text(encoding="utf-8")
    assert "standard output: 60 labels, 1 changed" in printed.stderr
    file.write_text("sample,id,given,label,decision\n")  # of an audit with --id
    succeed("review", tmp_path / "audit", "--export", file)
    file.write_text("size,kind\n1,x\n")
    assert "an earlier export" in refusal("review", tmp_path / "audit", "--export", file)
    assert file.read_text() == "size,kind\n1,x\n"
    other = file.with_suffix(".xlsx")
    assert "expected a new CSV file" in refusal("review", tmp_path / "audit", "--export", other)


def test_data_that_have_moved_are_told_and_nothing_is_lost(audit: Audit, tmp_path: Path) -> None:
    decide(audit, tmp_path / "audit", "keep")
    (tmp_path / "photos").rename(tmp_path / "elsewhere")
    command = ("review", tmp_path / "audit", "--no-open")
    said = refusal(*command)
    assert "there is no such file or folder; --data says where the data are now" in said
    (tmp_path / "elsewhere").rename(tmp_path / "photos")
    shutil.rmtree(tmp_path / "photos" / "red")
    assert "expected the classes of the audit" in refusal(*command)
    with Decisions(tmp_path / "audit" / REVIEW) as decisions:
        assert len(decisions.latest()) == 1


def test_the_extra_is_needed(audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    decide(audit, tmp_path / "audit", "keep")
    result = labelproof("review", tmp_path / "audit", "--no-open")
    assert isinstance(result.exception, ImportError)
    assert "needs uvicorn: pip install 'labelproof[review]'" in str(result.exception)
    # Whoever exports what was decided elsewhere does not need it.
    succeed("review", tmp_path / "audit", "--export", tmp_path / "reviewed.csv")


def test_ctrl_c_ends_it_and_a_second_review_has_to_wait(audit: Audit, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra review")
    folder = tmp_path / "audit"
    decide(audit, folder, "accept", "keep")
    (tmp_path / "photos").rename(tmp_path / "elsewhere")
    with Program(folder, "--data", tmp_path / "elsewhere") as first:
        address = first.address()
        with urllib.request.urlopen(f"{address}picture/0", timeout=60) as answer:  # noqa: S310
            assert answer.headers["Content-Type"] == "image/png"
        second = labelproof_to_its_end("review", folder, "--no-open")
        assert second.returncode == 2
        mine = f"error: another process (pid {first.process.pid}) is at work in {folder}"
        assert mine in second.stderr
        # What is being reviewed can be exported.
        succeed("review", folder, "--export", tmp_path / "reviewed.csv")
        code, output, errors = first.interrupt()
    assert code == 0, errors
    suspects = len(audit.findings.suspects)
    assert f"2 of {suspects} suspects decided; 2 decisions kept in {folder / REVIEW}" in output
    assert f"Export: labelproof review {folder} --export reviewed.csv" in output
    assert errors == ""
    token = address.rstrip("/").rpartition("/")[2]
    assert len(token) >= 40
    assert len(np.unique(list(token))) > 10
