"""The search by noisy labels runs, resumes, and never sees a true label or a test image."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripts import load_script
from small_runs import SMALL, small_digits

from labelproof.data import Split
from labelproof.experiments.records import RecordStore
from labelproof.training import Configuration, choose_examples

search = load_script("benchmarks", "sparse_weights_search")
ENTRIES: list[dict[str, Any]] = [
    {"data": "digits", **SMALL, "epochs": 2, "l1": l1, "network": "mlp(hidden=16,depth=1)"}
    for l1 in (1e-4, 1e-3)
]


def run(folder: Path, *options: str, entries: list[dict[str, Any]] = ENTRIES) -> list[Any]:
    """Carry out a search on the CPU; the lines of its log."""
    runs = folder / "runs.json"
    runs.write_text(json.dumps(entries))
    given = ["--runs", runs, "--log", folder / "log.jsonl", "--records", folder / "records"]
    code = search.main([*map(str, given), "--device", "cpu", "--at-once", "2", *options])
    assert code == (75 if "--budget-minutes" in options else 0)
    return search.read_log(folder / "log.jsonl")


def measured(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = ("agreement_curve", "agreed", "held", "predicted_classes", "train_loss", "sparse_rate")
    return [{name: line[name] for name in kept} for line in lines]


@pytest.fixture(autouse=True)
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_load", lambda *_: small_digits())


def test_a_search_resumes_and_trains_nothing_twice(tmp_path: Path) -> None:
    assert run(tmp_path, "--budget-minutes", "0") == []
    lines = run(tmp_path)
    assert sorted(line["configuration"]["l1"] for line in lines) == [1e-4, 1e-3]
    log = tmp_path / "log.jsonl"
    written = log.read_bytes()
    assert run(tmp_path) == lines
    assert log.read_bytes() == written
    # What was cut off while the last line was written is trained again, to the same.
    log.write_bytes(written[: len(written) - 100])
    assert measured(run(tmp_path)) == measured(lines)
    assert not list((tmp_path / "log.runs").iterdir())
    assert not (tmp_path / "records").exists()
    for line in lines:
        assert line["held"] == 20
        assert line["agreement"] == pytest.approx(100 * search._agreed(line).mean())
        assert not [name for name in line if "test" in name or "clean" in name]


def test_without_the_truth_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_truth = run(tmp_path)
    (tmp_path / "log.jsonl").unlink()
    digits = small_digits()
    given = choose_examples(Configuration("digits", noise=SMALL["noise"]), digits).given
    assert (given != digits.train.labels).mean() > 0.3
    blind = replace(digits, splits={"train": Split(digits.train.images, given)}, clean=False)
    monkeypatch.setattr(search, "_load", lambda *_: blind)
    without = run(tmp_path, entries=[{**entry, "noise": "none"} for entry in ENTRIES])
    assert measured(without) == measured(with_truth)


def test_a_final_run_learns_from_all_samples_and_leaves_a_record(tmp_path: Path) -> None:
    lines = run(tmp_path, "--final", entries=ENTRIES[:1])
    (record,) = RecordStore(tmp_path / "records")
    assert record.configuration["validation"] == 0
    curve = record.curve["test_accuracy"]
    assert [(line["test_last"], line["test_best"]) for line in lines] == [(curve[-1], max(curve))]
