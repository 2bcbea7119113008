import json
import stat
from pathlib import Path

import numpy as np
import pytest

from labelproof.training.record import (
    RunRecord,
    read_record,
    remove_unfinished,
    save_run,
    versions,
    write_text,
)


def record(name: str = "run", accuracy: float = 90.0) -> RunRecord:
    return RunRecord(name, {"seed": 1}, 0.4, {"test_accuracy": [99.0, accuracy]}, 1.5, versions())


def test_a_saved_run_reads_back(tmp_path: Path) -> None:
    folder = save_run(tmp_path, record(), {"labels": np.arange(3)})
    assert read_record(folder) == record()
    with np.load(folder / "predictions.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["labels"], np.arange(3))


def test_accuracy_is_the_last_epochs_not_the_best() -> None:
    assert record().final_accuracy == 90.0


def test_a_run_can_be_saved_again(tmp_path: Path) -> None:
    save_run(tmp_path, record(), {"labels": np.arange(3)})
    folder = save_run(tmp_path, record(accuracy=80.0), {})
    saved = read_record(folder)
    assert saved is not None
    assert saved.final_accuracy == 80.0
    assert [path.name for path in folder.iterdir()] == ["record.json"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    unpicklable = np.array([object()], dtype=object)
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        save_run(tmp_path, record(), {"bad": unpicklable})
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_a_killed_run_are_removed_and_others_kept(tmp_path: Path) -> None:
    kept = save_run(tmp_path, record(), {})
    (tmp_path / ".unfinished-abc").mkdir()
    (tmp_path / ".unfinished-abc" / "record.json").write_text("{")
    remove_unfinished(tmp_path)
    assert list(tmp_path.iterdir()) == [kept]


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"name": "x"})])
def test_a_broken_record_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "record.json").write_text(text)
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "nowhere") is None


def test_a_text_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "page.html"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_others_may_read_what_is_written(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    run = save_run(tmp_path, record(), {"labels": np.arange(3)})
    write_text(tmp_path / "page.html", "page")
    for path in (tmp_path / "page.html", run / "record.json", run / "predictions.npz"):
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    assert run.stat().st_mode & stat.S_IXUSR
