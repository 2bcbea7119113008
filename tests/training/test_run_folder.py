from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import CPU, kinds, load_small, small, train

from labelproof.training import Job, train_runs
from labelproof.training.provenance import read_description
from labelproof.training.run_folder import (
    FolderInUseError,
    OtherConfigurationError,
    RunFolder,
    check_removable,
    owning,
    remove_run,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_finished_folder_has_what_its_readers_need(tmp_path: Path) -> None:
    train(Job(small(), tmp_path))
    expected = ["checkpoint", "fingerprint.json", "metrics.jsonl", "model.json"]
    expected += ["predictions.npz", "record.json", "timing.jsonl"]
    assert [name for name in names(tmp_path) if name[0] != "."] == expected
    assert names(tmp_path / "checkpoint") == [
        "00002-0000000.safetensors",
        "00003-0000000.safetensors",
    ]
    description = read_description(tmp_path)
    assert description.input_shape == (1, 8, 8)
    assert description.network == small().network


def test_a_record_is_asked_for_by_its_configuration(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.record(small()) is None
    train(Job(small(precision="auto"), tmp_path))
    for precision in ("auto", "float32"):
        record = folder.record(small(precision=precision))
        assert record is not None
        assert record.configuration["precision"] == "float32"
    with pytest.raises(OtherConfigurationError, match="seed: 1 there; asked for seed=4"):
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


@pytest.mark.parametrize("epoch", [0, 2])
def test_a_folder_that_is_removed_meanwhile_is_told_and_not_made_again(
    tmp_path: Path, epoch: int
) -> None:
    folder = tmp_path / "run"
    events = train_runs([Job(small(), folder)], CPU, load=load_small, checkpoint_seconds=0)
    for event in events:
        if event.kind == "epoch" and event.value["epoch"] == epoch:
            break
    shutil.rmtree(folder)
    with pytest.raises(FileNotFoundError, match=r"run: .*removed or moved"):
        list(events)
    assert not folder.exists()


def test_what_a_killed_writer_left_is_cleared(tmp_path: Path) -> None:
    litter = tmp_path / ".labelproof-e625ac47"
    for done in (False, True):
        litter.write_text("{")
        (tmp_path / ".labelproof-1a2b3c4d").mkdir()
        check_removable(tmp_path)
        with owning(tmp_path):
            assert names(tmp_path)[0] == ".lock"
            assert not litter.exists()
        if not done:
            train(Job(small(), tmp_path))
    litter.touch()
    remove_run(tmp_path)
    assert names(tmp_path) == [".lock"]


def test_only_one_process_works_in_a_folder(tmp_path: Path) -> None:
    with (
        owning(tmp_path),
        pytest.raises(FolderInUseError, match=f"pid {os.getpid()}"),
        owning(tmp_path),
    ):
        pass
    with owning(tmp_path):
        pass
    (tmp_path / "file").touch()
    with (
        pytest.raises(NotADirectoryError, match="file: expected a folder"),
        owning(tmp_path / "file"),
    ):
        pass


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_never_writes_through_a_link(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    (tmp_path / "run").mkdir()
    (precious := tmp_path / "thesis.tex").write_text("years of work")
    link(precious, tmp_path / "run" / ".lock")
    with pytest.raises(ValueError, match=r"\.lock"), owning(tmp_path / "run"):
        pass
    assert precious.read_text() == "years of work"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_everything_is_on_the_disk_before_the_record_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
