from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from made_records import made_record
from trained import refusal, succeed

from labelproof.training.configuration import Configuration
from labelproof.training.files import write_text

DIGITS = Configuration("digits", epochs=1)


def write(folder: Path) -> None:
    for loss, accuracy in (("ce", 80.0), ("gce", 90.0)):
        for seed in (1, 2):
            made = made_record(replace(DIGITS, loss=loss, seed=seed), accuracy + seed)
            write_text(folder / f"{loss}-{seed}" / "record.json", made.as_json())
            write_text(folder / f"{loss}-{seed}" / "fingerprint.json", "{}")


def test_runs_are_compared(tmp_path: Path) -> None:
    write(tmp_path)
    write_text(tmp_path / "later" / "fingerprint.json", "{}")
    ended = succeed("compare", tmp_path)
    assert ended.stderr == f"1 run not finished, left out: {tmp_path}/later\n"
    *_, first, second = ended.stdout.splitlines()
    assert first.startswith("| gce ")
    assert "| 91.50 ± 0.71 (2)  |" in first
    assert "| -10.00 ± 0.00 |" in second


def test_a_file_is_written_as_it_is_called(tmp_path: Path) -> None:
    write(tmp_path / "runs")
    file = tmp_path / "mine.csv"
    succeed("compare", tmp_path / "runs", "--output", file)
    assert file.read_text().splitlines()[0].startswith("loss,measured_on,mean")
    refused = refusal("compare", tmp_path / "runs", "--output", tmp_path / "a.html")
    assert "expected a name that ends in .md, .tex, .csv" in refused
