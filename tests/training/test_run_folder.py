"""The folder of a run, its record, and how files are written."""

import errno
import json
import os
import shutil
import stat
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from small_runs import CPU, kinds, load_small, names, small, train

from labelproof.npz import read_npz
from labelproof.training import Job, run_folder, train_runs
from labelproof.training.files import write_arrays, write_bytes, write_text
from labelproof.training.provenance import read_description
from labelproof.training.record import RunRecord, read_record, versions


def test_a_finished_folder_has_what_its_readers_need(tmp_path: Path) -> None:
    train(Job(small(), tmp_path))
    expected = ["checkpoint", "fingerprint.json", "metrics.jsonl", "model.json"]
    expected += ["predictions.npz", "record.json", "timing.jsonl"]
    assert [name for name in names(tmp_path) if name[0] != "."] == expected
    assert names(tmp_path / "checkpoint") == [
        "00002-0000000.safetensors",
        "00003-0000000.safetensors",
    ]
    assert read_description(tmp_path).network == small().network


def test_a_record_is_asked_for_by_its_configuration(tmp_path: Path) -> None:
    folder = run_folder.RunFolder(tmp_path)
    assert folder.record(small()) is None
    train(Job(small(precision="auto"), tmp_path))
    for precision in ("auto", "float32"):
        record = folder.record(small(precision=precision))
        assert record.configuration["precision"] == "float32"
    with pytest.raises(run_folder.OtherConfigurationError, match="seed: 1 there; asked for seed=4"):
        folder.record(small(seed=4))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_too_full_for_a_line_is_explained_too(tmp_path: Path) -> None:
    job, name = Job(small(), tmp_path), "metrics.jsonl"
    events = train_runs([job], CPU, load=load_small, checkpoint_seconds=0)
    assert [next(events).kind, next(events).kind] == ["started", "epoch"]
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as failure:
        list(events)
    assert str(tmp_path) in str(failure.value)
    assert "checkpoint" in str(failure.value)
    (tmp_path / name).unlink()
    assert kinds(train(job))[-1] == "finished"


def test_a_folder_that_is_removed_meanwhile_is_told_and_not_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for epoch in (0, 2):
        events = train_runs([Job(small(), folder)], CPU, load=load_small, checkpoint_seconds=0)
        while (event := next(events)).kind != "epoch" or event.value["epoch"] < epoch:
            pass
        shutil.rmtree(folder)
        with pytest.raises(FileNotFoundError, match=r"run: cannot be written"):
            list(events)
        assert not folder.exists()


def test_what_a_killed_writer_left_is_cleared(tmp_path: Path) -> None:
    litter = tmp_path / ".labelproof-e625ac47"
    for done in (False, True):
        litter.write_text("{")
        (tmp_path / ".labelproof-1a2b3c4d").mkdir()
        run_folder.check_removable(tmp_path)
        with run_folder.owning(tmp_path):
            assert names(tmp_path)[0] == ".lock"
            assert not litter.exists()
        if not done:
            train(Job(small(), tmp_path))
    litter.touch()
    run_folder.remove_run(tmp_path)
    assert names(tmp_path) == [".lock"]


def test_only_one_process_works_in_a_folder(tmp_path: Path) -> None:
    in_use = pytest.raises(run_folder.FolderInUseError, match=f"pid {os.getpid()}")
    with run_folder.owning(tmp_path), in_use, run_folder.owning(tmp_path):
        pass
    with run_folder.owning(tmp_path):
        pass
    (file := tmp_path / "file").touch()
    with (
        pytest.raises(NotADirectoryError, match="file: expected a folder"),
        run_folder.owning(file),
    ):
        pass


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")
def test_a_lock_never_writes_through_a_link(tmp_path: Path) -> None:
    (precious := tmp_path / "thesis.tex").write_text("years of work")
    for link in (os.symlink, os.link):
        (folder := tmp_path / link.__name__).mkdir()
        link(precious, folder / ".lock")
        with pytest.raises(ValueError, match=r"\.lock"), run_folder.owning(folder):
            pass
        assert precious.read_text() == "years of work"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_the_record_is_the_last_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    sync, replace = os.fsync, Path.replace

    def told_sync(handle: int) -> None:
        events.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}")
        sync(handle)

    def told_replace(path: Path, target: Path) -> Path:
        events.append(f"rename {target.name}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", told_sync)
    monkeypatch.setattr(Path, "replace", told_replace)
    train(Job(small(), tmp_path / "run"))
    done = events.index("rename record.json")
    for name in ("predictions.npz", "00003-0000000.safetensors", "model.json"):
        renamed = events.index(f"rename {name}")
        assert events[renamed - 1].startswith("sync .labelproof-")
        assert events[renamed + 1] in ("sync run", "sync checkpoint")
        assert renamed < done
    lines = [events.index(f"sync {name}.jsonl") for name in ("metrics", "timing")]
    assert max(lines) < done
    assert f"sync {tmp_path.name}" in events[:done]
    assert events[done + 1] == "sync run"


def record(accuracy: float = 90.0) -> RunRecord:
    return RunRecord("run", {"seed": 1}, 0.4, {"test_accuracy": [99.0, accuracy]}, 1.5, versions())


def test_a_record_reads_back_with_six_digits_and_a_line_for_each_curve(tmp_path: Path) -> None:
    rounded = record(accuracy=100 * 2 / 3)
    for each, last in ((record(), 90.0), (rounded, 66.6667)):  # the last epoch's, not the best
        write_text(tmp_path / "record.json", each.as_json())
        assert read_record(tmp_path).final_accuracy == last
        assert (read_record(tmp_path) == each) is (each is not rounded)
    assert '"test_accuracy": [99.0, 66.6667]' in rounded.as_json().splitlines()[-3]
    with pytest.raises(ValueError, match=r"mine: .* no test part .*validation_accuracy"):
        _ = RunRecord("mine", {}, 0.0, {"validation_accuracy": [50.0]}, 1.5, {}).final_accuracy


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


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="files are simpler there")


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc refuses files of everyone")
def test_a_file_that_cannot_be_written_is_named() -> None:
    with pytest.raises(OSError, match=r"'/proc/predictions\.csv'"):
        write_text(Path("/proc/predictions.csv"), "new")


@posix_only
def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "predictions.csv"
    file.write_text("old")
    for mode in (0o600, 0o640, 0o666, 0o444):
        file.chmod(mode)
        write_text(file, f"{mode}")
        assert file.read_text() == f"{mode}"
        assert stat.S_IMODE(file.stat().st_mode) == mode
    assert names(tmp_path) == ["predictions.csv"]


@posix_only
def test_what_a_link_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "second.csv").symlink_to("real.csv")
    (tmp_path / "link.csv").symlink_to("second.csv")
    (tmp_path / "early.csv").symlink_to(Path("deep", "late.csv"))  # which is not there yet
    for name in ("link.csv", "early.csv"):
        write_text(tmp_path / name, "new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_text() == "new"
    assert (tmp_path / "second.csv").is_symlink()
    assert not (tmp_path / "real.csv").is_symlink()
    assert names(tmp_path) == ["deep", "early.csv", "link.csv", "real.csv", "second.csv"]


@posix_only
def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)  # noqa: B023
        reader.start()
        write_bytes(path, b"new" * 50_000)
        reader.join(timeout=120)
        assert found == [b"new" * 50_000]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["link", "pipe"]


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, arrays = tmp_path / "deep" / "page.html", tmp_path / "predictions.npz"
    write_text(text, "old")
    write_arrays(arrays, {"labels": np.arange(3)})
    with pytest.raises(UnicodeEncodeError):
        write_text(text, "new \ud800")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_arrays(arrays, {"labels": np.array([object()], dtype=object)})
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("labelproof.training.files.os.fsync", Mock(side_effect=full))
    with pytest.raises(OSError, match="No space left"):
        write_bytes(arrays, bytes(2000))
    assert text.read_text() == "old"
    assert read_npz(arrays)["labels"].tolist() == [0, 1, 2]
    assert names(tmp_path) == ["deep", "predictions.npz"]
