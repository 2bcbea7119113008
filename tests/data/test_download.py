"""Downloads, from a real server on this machine."""

import errno
import io
import os
import ssl
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from file_server import FileServer
from tiny_dataset import (
    sha256,
    tar_gz,
    tiny_cifar,
    tiny_cifar_archive,
    tiny_contents,
    tiny_files,
    tiny_idx,
)

from labelproof.data import DownloadError, Transfer, download_dataset, load_dataset, verify_dataset
from labelproof.data.catalogue import DATASETS, KnownDataset
from labelproof.data.transfer import check_address

CONTENT = bytes(range(256)) * 4096
QUICK = Transfer(pause=0.0, timeout=10.0)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LABELPROOF_MIRROR", "LABELPROOF_DATA", "http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer({"/pub/file": CONTENT}).running() as running:
        yield running


def fetch(server: FileServer, folder: Path, transfer: Transfer = QUICK, **changes: Any) -> Path:
    target = folder / "data" / "file"
    expected = {"size": len(CONTENT), "sha256": sha256(CONTENT), **changes}
    transfer.fetch(f"{server.address}/pub/file", target, **expected)
    return target


def only(target: Path) -> bool:
    return [path.name for path in target.parent.iterdir()] == [target.name]


def test_a_file_arrives_whole_with_its_progress(server: FileServer, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    transfer = replace(QUICK, progress=lambda *event: seen.append(event))
    target = fetch(server, tmp_path, transfer)
    assert target.read_bytes() == CONTENT
    assert only(target)
    done = [count for _, count, _ in seen]
    assert seen[0] == ("file", 0, len(CONTENT))
    assert done == sorted(done)
    assert done[-1] == len(CONTENT)


def test_a_file_without_a_length_arrives_whole(server: FileServer, tmp_path: Path) -> None:
    server.length = False
    assert fetch(server, tmp_path).read_bytes() == CONTENT


def test_a_connection_that_is_cut_is_resumed(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [300_000, 100_000, 0]
    target = fetch(server, tmp_path)
    assert target.read_bytes() == CONTENT
    assert only(target)
    assert server.asked_ranges[0] is None
    assert server.asked_ranges[1] == "bytes=300000-"
    assert server.requests[1][1]["if-range"] == '"one"'
    assert server.asked_ranges[-1] == "bytes=400000-"


def test_a_later_call_goes_on_where_an_earlier_one_stopped(
    server: FileServer, tmp_path: Path
) -> None:
    server.cuts = [300_000, 0, 0]
    with pytest.raises(DownloadError, match=r"connection ended before .* 2 times in a row"):
        fetch(server, tmp_path, replace(QUICK, attempts=2))
    assert not (tmp_path / "data" / "file").exists()
    target = fetch(server, tmp_path)
    assert target.read_bytes() == CONTENT
    assert only(target)
    assert server.asked_ranges[-1] == "bytes=300000-"


def test_a_file_that_changed_meanwhile_is_fetched_anew(server: FileServer, tmp_path: Path) -> None:
    server.files["/pub/file"] = bytes(len(CONTENT))
    server.cuts = [300_000, 0]
    with pytest.raises(DownloadError):
        fetch(server, tmp_path, replace(QUICK, attempts=1))
    server.files["/pub/file"], server.tag, server.cuts = CONTENT, '"two"', []
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.requests[-1][1]["if-range"] == '"one"'


def test_a_file_that_changed_unnoticed_is_fetched_once_more(
    server: FileServer, tmp_path: Path
) -> None:
    server.tag = ""
    server.files["/pub/file"] = bytes(len(CONTENT))
    server.cuts = [300_000, 0]
    with pytest.raises(DownloadError):
        fetch(server, tmp_path, replace(QUICK, attempts=1))
    server.files["/pub/file"], server.cuts = CONTENT, []
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked_ranges[-2:] == ["bytes=300000-", None]


def test_a_server_without_ranges_sends_all_of_it_again(server: FileServer, tmp_path: Path) -> None:
    server.ranges = False
    server.cuts = [300_000]
    target = fetch(server, tmp_path)
    assert target.read_bytes() == CONTENT
    assert server.asked_ranges == [None, "bytes=300000-"]


def test_a_server_that_never_gets_further_is_given_up(server: FileServer, tmp_path: Path) -> None:
    server.ranges = False
    server.cuts = [1000] * 20
    with pytest.raises(DownloadError, match="4 times in a row"):
        fetch(server, tmp_path)
    assert len(server.requests) == 5


@pytest.mark.parametrize("leftover", [CONTENT + b"more", CONTENT[:-1] + b"x"])
def test_a_leftover_of_something_else_is_not_used(
    server: FileServer, tmp_path: Path, leftover: bytes
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".file.part").write_bytes(leftover)
    target = fetch(server, tmp_path)
    assert target.read_bytes() == CONTENT
    assert only(target)


def test_a_range_that_the_server_does_not_have_starts_anew(
    server: FileServer, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".file.part").write_bytes(bytes(1000))
    server.statuses = [416]
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked_ranges == ["bytes=1000-", None]


def test_a_wrong_checksum_is_an_error_and_the_file_is_gone(
    server: FileServer, tmp_path: Path
) -> None:
    target = tmp_path / "data" / "file"
    target.parent.mkdir()
    target.write_bytes(b"what was there")
    server.files["/pub/file"] = bytes(len(CONTENT))
    with pytest.raises(DownloadError, match=f"expected a file with SHA-256 {sha256(CONTENT)}, got"):
        fetch(server, tmp_path)
    assert target.read_bytes() == b"what was there"
    assert only(target)


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("content", [b"<html>log in</html>", CONTENT + b"more"])
def test_a_file_of_another_size_is_refused_at_once(
    server: FileServer, tmp_path: Path, content: bytes, length: bool
) -> None:
    server.files["/pub/file"] = content
    server.length = length
    with pytest.raises(DownloadError, match=r"expected a file of|ended before"):
        fetch(server, tmp_path)
    assert length is False or len(server.requests) == 1
    assert not (tmp_path / "data" / "file").exists()


def test_a_missing_file_is_not_asked_for_again(server: FileServer, tmp_path: Path) -> None:
    server.files.clear()
    with pytest.raises(DownloadError, match="the server answered 404 Not Found"):
        fetch(server, tmp_path)
    assert len(server.requests) == 1
    assert list((tmp_path / "data").iterdir()) == []


def test_a_server_that_is_busy_is_asked_again(server: FileServer, tmp_path: Path) -> None:
    server.statuses = [503, 429, 500]
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert len(server.requests) == 4


def test_a_server_that_stays_busy_is_given_up(server: FileServer, tmp_path: Path) -> None:
    server.statuses = [503] * 9
    with pytest.raises(DownloadError, match="the server answered 503, 4 times in a row"):
        fetch(server, tmp_path)


def test_a_server_that_does_not_answer_is_given_up(server: FileServer, tmp_path: Path) -> None:
    server.chunk, server.pause = 100_000, 2.0
    with pytest.raises(DownloadError, match=r"the connection was cut .*timed out"):
        fetch(server, tmp_path, Transfer(timeout=0.2, pause=0.0, attempts=1))


def test_no_server_at_all_is_explained(server: FileServer, tmp_path: Path) -> None:
    server.address = "http://127.0.0.1:9"
    with pytest.raises(DownloadError, match=r"no connection \(.*refused\), 4 times in a row"):
        fetch(server, tmp_path)


def test_a_certificate_that_is_not_trusted_is_explained(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise urllib.error.URLError(ssl.SSLCertVerificationError("self-signed certificate"))

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", refuse)
    with pytest.raises(DownloadError, match=r"certificate is not trusted here .* SSL_CERT_FILE"):
        fetch(server, tmp_path)


def test_a_redirect_is_followed_unless_it_is_unsafe(server: FileServer, tmp_path: Path) -> None:
    content = server.files.pop("/pub/file")
    server.files["/other"] = content
    server.redirects["/pub/file"] = "/other"
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    server.redirects["/pub/file"] = "http://example.org/other"
    with pytest.raises(DownloadError, match=r"leads to http://example\.org/other: expected"):
        fetch(server, tmp_path)


@pytest.mark.parametrize(
    "address",
    ["http://example.org/a", "ftp://127.0.0.1/a", "file:///etc/passwd", "http://127.0.0.1.evil.org",
     "https://", "/etc/passwd", "http://10.0.0.1/a"],
)  # fmt: skip
def test_an_unsafe_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="expected an address that begins with https://"):
        check_address(address)


@pytest.mark.parametrize("address", ["http://localhost:1/a", "http://[::1]/a", "http://127.9.9.9"])
def test_this_machine_may_be_asked_without_encryption(address: str) -> None:
    check_address(address)


def test_a_proxy_of_the_environment_is_used(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.address)
    monkeypatch.setenv("no_proxy", "")
    server.files["http://localhost:9/pub/file"] = CONTENT
    target = tmp_path / "file"
    QUICK.fetch("http://localhost:9/pub/file", target, size=len(CONTENT), sha256=sha256(CONTENT))
    assert server.paths == ["http://localhost:9/pub/file"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left"), "no room left for file; free some"),
        (OSError(errno.EACCES, "Permission denied"), "not allowed to write file here; choose"),
        (OSError(errno.EROFS, "Read-only file system"), "not allowed to write file here; choose"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
    ],
)
def test_trouble_with_the_disk_is_explained(
    server: FileServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    message: str,
) -> None:
    def fail(_: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=message) as raised:
        fetch(server, tmp_path)
    assert not isinstance(raised.value, DownloadError)
    assert not (tmp_path / "data" / "file").exists()


DOWNLOAD = """
import sys
from pathlib import Path
from labelproof.data import Transfer
address, target, size, sha256 = sys.argv[1:]
Transfer().fetch(address, Path(target), size=int(size), sha256=sha256)
"""


def test_two_processes_at_once_leave_one_whole_file(server: FileServer, tmp_path: Path) -> None:
    server.chunk, server.pause = 1 << 15, 0.05
    target = tmp_path / "data" / "file"
    arguments = [f"{server.address}/pub/file", str(target), str(len(CONTENT)), sha256(CONTENT)]
    command = [sys.executable, "-c", DOWNLOAD, *arguments]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert target.read_bytes() == CONTENT
    assert only(target)
    assert len(server.requests) == 2


def test_while_another_has_the_part_file_an_own_one_is_used(
    server: FileServer, tmp_path: Path
) -> None:
    fcntl = pytest.importorskip("fcntl")
    part = tmp_path / "data" / ".file.part"
    part.parent.mkdir()
    with part.open("wb") as held:
        held.write(b"theirs")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        target = fetch(server, tmp_path)
    assert target.read_bytes() == CONTENT
    assert part.read_bytes() == b"theirs"
    assert sorted(path.name for path in target.parent.iterdir()) == [".file.part", "file"]


@pytest.fixture
def tiny(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> KnownDataset:
    dataset = tiny_idx(server.address)
    server.files = {f"/pub/{name}": data for name, data in tiny_files().items()}
    monkeypatch.setitem(DATASETS, "tiny", dataset)
    return dataset


@pytest.mark.usefixtures("tiny")
def test_a_dataset_is_downloaded_verified_and_read(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="labelproof data download tiny"):
        load_dataset("tiny", root=tmp_path)
    found = download_dataset("tiny", root=tmp_path, transfer=QUICK)
    assert found.good
    assert found.path == tmp_path / "tiny"
    assert len(load_dataset("tiny", root=tmp_path).train) == 6
    assert len(server.requests) == 4
    assert download_dataset("tiny", root=tmp_path, transfer=QUICK) == found
    assert len(server.requests) == 4


@pytest.mark.usefixtures("tiny")
def test_only_what_is_damaged_is_fetched_again(server: FileServer, tmp_path: Path) -> None:
    download_dataset("tiny", root=tmp_path, transfer=QUICK)
    path = tmp_path / "tiny" / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-3])
    server.requests.clear()
    with pytest.raises(ValueError, match=r"fetch it again \(labelproof data download tiny\)"):
        load_dataset("tiny", root=tmp_path)
    assert not verify_dataset("tiny", root=tmp_path).good
    assert download_dataset("tiny", root=tmp_path, transfer=QUICK).good
    assert server.paths == ["/pub/t10k-labels-idx1-ubyte.gz"]


@pytest.mark.usefixtures("tiny")
def test_what_is_right_but_compressed_otherwise_is_left_alone(
    server: FileServer, tmp_path: Path
) -> None:
    (tmp_path / "tiny").mkdir()
    for name, data in tiny_contents().items():
        (tmp_path / "tiny" / name).write_bytes(data)
    assert download_dataset("tiny", root=tmp_path, transfer=QUICK).good
    assert server.requests == []


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("by_variable", [True, False])
def test_a_mirror_takes_the_publishers_place(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool
) -> None:
    server.files = {path.replace("/pub/", "/mirror/tiny/"): d for path, d in server.files.items()}
    mirror = f"{server.address}/mirror"
    if by_variable:
        monkeypatch.setenv("LABELPROOF_MIRROR", mirror)
    found = download_dataset(
        "tiny", root=tmp_path, mirror=None if by_variable else f"{mirror}/", transfer=QUICK
    )
    assert found.good
    assert all(path.startswith("/mirror/tiny/") for path in server.paths)


@pytest.mark.usefixtures("tiny")
def test_an_unsafe_mirror_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"http://mirror\.example/: expected"):
        download_dataset("tiny", root=tmp_path / "new", mirror="http://mirror.example/")
    assert not (tmp_path / "new").exists()


def test_the_next_address_is_asked_when_one_fails(
    server: FileServer, tiny: KnownDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (f"{server.address}/gone/", f"{server.address}/pub/")
    files = tuple(replace(file, folders=places) for file in tiny.files)
    monkeypatch.setitem(DATASETS, "tiny", replace(tiny, files=files))
    assert download_dataset("tiny", root=tmp_path, transfer=QUICK).good


def test_a_failure_says_which_file_to_place_where(
    server: FileServer, tiny: KnownDataset, tmp_path: Path
) -> None:
    server.files.clear()
    with pytest.raises(DownloadError) as error:
        download_dataset("tiny", root=tmp_path, transfer=QUICK)
    file = tiny.files[0]
    for part in ("404", file.name, file.sha256, f"place it in {tmp_path / 'tiny'}"):
        assert part in str(error.value)


def test_a_file_that_was_placed_by_hand_is_used(
    server: FileServer, tiny: KnownDataset, tmp_path: Path
) -> None:
    first = tiny.files[0].name
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / first).write_bytes(server.files.pop(f"/pub/{first}"))
    with pytest.raises(FileNotFoundError, match=r"tiny lacks train-labels-idx1-ubyte, t10k-images"):
        load_dataset("tiny", root=tmp_path)
    assert download_dataset("tiny", root=tmp_path, transfer=QUICK).good


def serve_archive(server: FileServer, archive: bytes, patch: pytest.MonkeyPatch) -> None:
    server.files = {"/pub/cifar-10-binary.tar.gz": archive}
    entry = tiny_cifar(server.address, archive)
    patch.setitem(DATASETS, "cifar10", entry)


def test_an_archive_is_unpacked_into_its_folder_and_removed(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_archive(server, tiny_cifar_archive(), monkeypatch)
    found = download_dataset("cifar10", root=tmp_path, transfer=QUICK)
    assert found.path == tmp_path / "cifar10" / "cifar-10-batches-bin"
    assert [path.name for path in (tmp_path / "cifar10").iterdir()] == ["cifar-10-batches-bin"]
    assert load_dataset("cifar10", root=tmp_path).class_names[3] == "class3"
    assert not list(tmp_path.rglob("readme.html"))
    assert download_dataset("cifar10", root=tmp_path, transfer=QUICK) == found
    assert len(server.requests) == 1


def test_a_damaged_folder_is_replaced(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_archive(server, tiny_cifar_archive(), monkeypatch)
    found = download_dataset("cifar10", root=tmp_path, transfer=QUICK)
    assert found.path is not None
    batch = found.path / "data_batch_2.bin"
    content = bytearray(batch.read_bytes())
    content[100] ^= 1
    batch.write_bytes(content)
    (problem,) = verify_dataset("cifar10", root=tmp_path).problems
    assert "what was read is not the publisher's data_batch_2.bin" in problem
    assert download_dataset("cifar10", root=tmp_path, transfer=QUICK) == found


@pytest.mark.parametrize("kind", ["traversal", "symlink", "hard link", "device"])
def test_a_hostile_archive_leaves_nothing_behind(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    bad = tarfile.TarInfo("../../evil" if kind == "traversal" else "cifar-10-batches-bin/evil")
    bad.type = {
        "symlink": tarfile.SYMTYPE,
        "hard link": tarfile.LNKTYPE,
        "device": tarfile.CHRTYPE,
    }.get(kind, tarfile.REGTYPE)
    bad.linkname = "/etc/passwd" if "link" in kind else ""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.addfile(bad, io.BytesIO())
    serve_archive(server, buffer.getvalue(), monkeypatch)
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz: refused: '.*evil'"):
        download_dataset("cifar10", root=tmp_path / "root", transfer=QUICK)
    folders = [path.name for path in (tmp_path / "root" / "cifar10").iterdir()]
    assert folders == ["cifar-10-binary.tar.gz"]
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_an_archive_with_other_contents_is_noticed(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tiny_cifar_archive()
    serve_archive(server, archive, monkeypatch)
    entry = replace(
        DATASETS["cifar10"], checksums=dict.fromkeys(DATASETS["cifar10"].checksums, "x")
    )
    monkeypatch.setitem(DATASETS, "cifar10", entry)
    with pytest.raises(DownloadError, match=r"not the publisher's data_batch_1\.bin"):
        download_dataset("cifar10", root=tmp_path, transfer=QUICK)


def test_an_archive_without_a_batch_is_noticed(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_archive(server, tar_gz({"cifar-10-batches-bin/data_batch_1.bin": b"x"}), monkeypatch)
    with pytest.raises(ValueError, match=r"expected .*data_batch_2\.bin.* in it, found none"):
        download_dataset("cifar10", root=tmp_path, transfer=QUICK)
