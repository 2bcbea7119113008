"""Downloads, from a real server on this machine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from file_server import FileServer, tiny_server  # noqa: F401
from tiny_dataset import sha256, tar_gz, tiny_cifar, tiny_cifar_archive, tiny_contents, tiny_files

from labelproof.data import DownloadError, download_dataset, load_dataset, verify_dataset
from labelproof.data.published import DATASETS

FIRST = "train-images-idx3-ubyte.gz"


def test_a_dataset_is_downloaded_once_with_its_progress(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="labelproof data download tiny"):
        load_dataset("tiny", root=tmp_path)
    seen: list[tuple[str, int, int]] = []
    found = download_dataset("tiny", root=tmp_path, progress=lambda *event: seen.append(event))
    assert found.good
    assert found.path == tmp_path / "tiny"
    assert len(load_dataset("tiny", root=tmp_path).train) == 6
    paths = list((tmp_path / "tiny").iterdir())
    assert sorted(path.name for path in paths) == sorted(tiny_files())
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in paths)
    for file in DATASETS["tiny"].files:
        done = [count for name, count, total in seen if (name, total) == (file.name, file.size)]
        assert done == sorted(done)
        assert done[-1] == file.size
    assert download_dataset("tiny", root=tmp_path) == found
    assert len(server.paths) == 4


def test_only_what_is_damaged_or_missing_is_downloaded(server: FileServer, tmp_path: Path) -> None:
    download_dataset("tiny", root=tmp_path)
    path = tmp_path / "tiny" / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-3])
    server.paths.clear()
    with pytest.raises(ValueError, match=r"\(labelproof data download tiny\)"):
        load_dataset("tiny", root=tmp_path)
    assert download_dataset("tiny", root=tmp_path).good
    assert server.paths == [f"/pub/{path.name}"]
    path.unlink()
    path.with_suffix("").write_bytes(tiny_contents()[path.stem])
    # It is right, although compressed otherwise.
    assert download_dataset("tiny", root=tmp_path).good
    assert len(server.paths) == 1


def test_a_cut_line_and_a_busy_server_are_tried_again(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [500]
    server.statuses = [503]
    assert download_dataset("tiny", root=tmp_path).good
    assert server.paths[:3] == [f"/pub/{FIRST}"] * 3
    assert len(server.paths) == 6


PATH = f"/pub/{FIRST}"
FAULTS: dict[str, tuple[Callable[[FileServer], object], str]] = {
    "gone": (lambda server: server.files.clear(), "the server answered 404"),
    "busy": (lambda server: server.statuses.extend([503] * 9), "the server answered 503"),
    "another file": (lambda server: server.files.update({PATH: b"<html>"}), "SHA-256"),
    "larger": (lambda server: server.files.update({PATH: bytes(1 << 20)}), "got a larger one"),
    "slow": (lambda server: setattr(server, "pause", 30.0), "timed out"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_failure_says_what_to_place_where(server: FileServer, tmp_path: Path, name: str) -> None:
    (fault, reason), checksum = FAULTS[name], DATASETS["tiny"].files[0].sha256
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / FIRST).write_bytes(b"what was there")
    fault(server)
    with pytest.raises(DownloadError) as error:
        download_dataset("tiny", root=tmp_path, timeout=0.2 if name == "slow" else 20)
    for part in (
        f"{server.address}/pub/{FIRST}: ",
        reason,
        f"{FIRST} another way (SHA-256 {checksum}), place it in {tmp_path / 'tiny'}",
    ):
        assert part in str(error.value)
    if name != "slow":  # whose server may not have come to the last request yet
        assert server.paths == [f"/pub/{FIRST}"] * (1 if name == "larger" else 3)
    assert [path.name for path in (tmp_path / "tiny").iterdir()] == [FIRST]
    assert (tmp_path / "tiny" / FIRST).read_bytes() == b"what was there"


@pytest.mark.usefixtures("server")
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            download_dataset("tiny", root=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "tiny").iterdir()) == []


@pytest.mark.usefixtures("server")
def test_a_mirror_that_is_no_web_address_is_refused(tmp_path: Path) -> None:
    for address in (
        *("http://localhost.elsewhere.org", "http://localhost:80@elsewhere.org"),
        *("http://example.org", "ftp://127.0.0.1/a", "file:///etc/passwd", "/etc/passwd"),
    ):
        with pytest.raises(ValueError, match=f"mirror: expected .* https://.*{address}"):
            download_dataset("tiny", root=tmp_path / "new", mirror=address)
    assert not (tmp_path / "new").exists()


def serve_archive(server: FileServer, archive: bytes, patch: pytest.MonkeyPatch) -> None:
    server.files = {"/pub/cifar-10-binary.tar.gz": archive}
    patch.setitem(DATASETS, "cifar10", tiny_cifar(server.address, archive))


def test_an_archive_is_unpacked_into_its_folder_and_removed(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_archive(server, tiny_cifar_archive(), monkeypatch)
    found = download_dataset("cifar10", root=tmp_path)
    assert found.path == tmp_path / "cifar10" / "cifar-10-batches-bin"
    assert list((tmp_path / "cifar10").iterdir()) == [found.path]
    assert len(load_dataset("cifar10", root=tmp_path).train) == 10
    assert not list(tmp_path.rglob("readme.html"))
    assert download_dataset("cifar10", root=tmp_path) == found
    assert len(server.paths) == 1
    batch = tmp_path / "cifar10" / "cifar-10-batches-bin" / "data_batch_2.bin"
    content = bytearray(batch.read_bytes())
    content[100] ^= 1
    batch.write_bytes(content)
    (problem,) = verify_dataset("cifar10", root=tmp_path).problems
    assert "data_batch_2.bin" in problem
    # A damaged folder is replaced, without the server where the archive is there.
    (tmp_path / "cifar10" / "cifar-10-binary.tar.gz").write_bytes(tiny_cifar_archive())
    server.files.clear()
    assert download_dataset("cifar10", root=tmp_path) == found
    assert list((tmp_path / "cifar10").iterdir()) == [found.path]


def test_an_archive_with_other_contents_is_noticed(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_archive(server, tar_gz({"cifar-10-batches-bin/data_batch_1.bin": b"x"}), monkeypatch)
    with pytest.raises(DownloadError, match=r"cifar10: .*get it with"):
        download_dataset("cifar10", root=tmp_path / "root")
    serve_archive(server, tiny_cifar_archive(), monkeypatch)
    sums = dict.fromkeys(DATASETS["cifar10"].checksums, sha256(b""))
    monkeypatch.setitem(DATASETS, "cifar10", replace(DATASETS["cifar10"], checksums=sums))
    with pytest.raises(DownloadError, match=r"not the publisher's data_batch_1\.bin"):
        download_dataset("cifar10", root=tmp_path)
