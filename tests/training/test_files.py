"""What a file is before it is written, it is after."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from labelproof.npz import read_npz
from labelproof.training.files import write_arrays, write_bytes, write_text

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="files are simpler there")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "real.csv").write_text("old")
    (there / "second.csv").symlink_to("real.csv")
    (here / "link.csv").symlink_to(Path("..", "there", "second.csv"))
    write_text(here / "link.csv", "new")
    assert (here / "link.csv").is_symlink()
    assert (there / "second.csv").is_symlink()
    assert (there / "real.csv").read_text() == "new"
    # One that is not there yet.
    (here / "early.csv").symlink_to(there / "deep" / "late.csv")
    write_text(here / "early.csv", "new")
    assert (there / "deep" / "late.csv").read_text() == "new"
    assert names(here) == ["early.csv", "link.csv"]
    assert names(there) == ["deep", "real.csv", "second.csv"]


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
        reader.join(timeout=30)
        assert found == [b"new" * 50_000]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["link", "pipe"]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_an_open_file_is_written_to_where_it_stands(tmp_path: Path) -> None:
    # As a shell's >(wc -l) is handed over.
    reader, writer = os.pipe()
    write_text(Path(f"/dev/fd/{writer}"), "lines")
    os.close(writer)
    with open(reader, "rb") as stream:
        assert stream.read() == b"lines"
    log = tmp_path / "log"
    log.write_text("before, ")
    with log.open("ab") as stream:
        inode = log.stat().st_ino
        write_text(Path(f"/dev/fd/{stream.fileno()}"), "lines")
    assert (log.read_text(), log.stat().st_ino) == ("before, lines", inode)


def test_a_full_disk_is_told_with_the_file_and_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = errno.ENOSPC
    file = tmp_path / "predictions.csv"
    file.write_text("old")

    def full(handle: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("labelproof.training.files.os.fsync", full)
    with pytest.raises(
        OSError, match=r"it needs 2,000 bytes, [\d,]+ are free; free some"
    ) as caught:
        write_bytes(file, bytes(2000))
    assert str(caught.value).startswith(f"{file}: no room for it ({os.strerror(code)})")
    assert caught.value.errno == code
    assert file.read_text() == "old"
    assert names(tmp_path) == ["predictions.csv"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    text, arrays = tmp_path / "deep" / "page.html", tmp_path / "predictions.npz"
    write_text(text, "old")
    write_arrays(arrays, {"labels": np.arange(3)})
    with pytest.raises(UnicodeEncodeError):
        write_text(text, "new \ud800")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_arrays(arrays, {"labels": np.array([object()], dtype=object)})
    assert text.read_text() == "old"
    assert read_npz(arrays)["labels"].tolist() == [0, 1, 2]
    assert names(tmp_path) == ["deep", "predictions.npz"]
    with pytest.raises(FileNotFoundError):
        write_text(tmp_path / "removed" / "record.json", "", make_parents=False)
