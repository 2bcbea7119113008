import json
from pathlib import Path

import pytest

from labelproof.training.files import write_text
from labelproof.training.record import RunRecord, read_record, versions


def record(accuracy: float = 90.0) -> RunRecord:
    return RunRecord("run", {"seed": 1}, 0.4, {"test_accuracy": [99.0, accuracy]}, 1.5, versions())


def write(folder: Path, record: RunRecord) -> Path:
    write_text(folder / "record.json", record.as_json())
    return folder


def test_a_record_reads_back_with_six_digits_and_a_line_for_each_curve(tmp_path: Path) -> None:
    assert read_record(write(tmp_path, record())) == record()
    rounded = record(accuracy=100 * 2 / 3)
    assert '"test_accuracy": [99.0, 66.6667]' in rounded.as_json().splitlines()[-3]
    saved = read_record(write(tmp_path, rounded))
    assert saved is not None
    assert saved.final_accuracy == 66.6667  # the last epoch's, not the best


def test_a_run_that_was_not_tested_says_so_and_what_there_is_instead() -> None:
    held = RunRecord("mine", {}, 0.0, {"validation_accuracy": [50.0, 71.25]}, 1.5, {})
    with pytest.raises(ValueError, match=r"mine: .* no test part .* 71\.25% of the held-out"):
        _ = held.final_accuracy
    with pytest.raises(ValueError, match=r"no test part to measure an accuracy on$"):
        _ = RunRecord("mine", {}, 0.0, {"loss": [1.0]}, 1.5, {}).final_accuracy


def test_a_record_that_is_broken_or_of_other_types_counts_as_none(tmp_path: Path) -> None:
    texts = ["", "{", "[]", json.dumps({"name": "x"}), "[" * 100_000]
    whole = json.loads(record().as_json())
    for name in whole:
        for value in (None, [3], "text", 5):
            numbers = type(whole[name]) in (int, float) and value == 5
            if type(whole[name]) is not type(value) and not numbers:
                texts.append(json.dumps(whole | {name: value}))
    for text in texts:
        (tmp_path / "record.json").write_text(text)
        assert read_record(tmp_path) is None, text[:100]
