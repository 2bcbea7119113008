import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labelproof.data.archives import extract, read_members

WANTED = {"data/one.bin": "one.bin", "data/two.bin": "two.bin"}


def tar_of(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], mode: Any = "w:gz") -> Path:
    with tarfile.open(path, mode) as file:
        for member, content in members:
            member.size = len(content) if member.isreg() else member.size
            file.addfile(member, io.BytesIO(content))
    return path


def plain(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def good_tar(path: Path, mode: Any = "w:gz") -> Path:
    folder = special("data", tarfile.DIRTYPE)
    members = [(plain("data/readme.html"), b"hello"), (plain("./data/two.bin"), b"22")]
    return tar_of(path, [(folder, b""), (plain("data/one.bin"), b"1"), *members], mode)


def good_zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("data/", b"")
        file.writestr("data/readme.html", b"hello")
        file.writestr("data/one.bin", b"1")
        file.writestr("data/two.bin", b"22")
    return path


ARCHIVES: dict[str, Callable[[Path], Path]] = {
    "a.tar.gz": good_tar,
    "a.tar": lambda path: good_tar(path, "w"),
    "a.zip": good_zip,
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_only_the_expected_files_come_out(tmp_path: Path, name: str) -> None:
    archive = ARCHIVES[name](tmp_path / name)
    extract(archive, tmp_path / "deep" / "out", members=WANTED, limit=1000)
    out = tmp_path / "deep" / "out"
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        "one.bin": b"1",
        "two.bin": b"22",
    }
    assert list((tmp_path / "deep").iterdir()) == [out]
    assert read_members(archive, members=WANTED, limit=1000) == {"one.bin": b"1", "two.bin": b"22"}


def test_what_was_there_is_replaced_as_a_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "old.bin").write_bytes(b"old")
    extract(good_tar(tmp_path / "a.tar.gz"), out, members=WANTED, limit=1000)
    assert sorted(path.name for path in out.iterdir()) == ["one.bin", "two.bin"]


UNSAFE = {
    "absolute": plain("/tmp/labelproof-evil"),  # noqa: S108 (never written)
    "parent": plain("../evil"),
    "parent within": plain("data/../../evil"),
    "backslashes": plain("..\\evil"),
    "drive": plain("C:\\evil"),
    "symlink": special("data/one.bin", tarfile.SYMTYPE, "/etc/passwd"),
    "symlink to a folder": special("data", tarfile.SYMTYPE, "/tmp"),  # noqa: S108 (refused)
    "hard link": special("data/one.bin", tarfile.LNKTYPE, "/etc/passwd"),
    "character device": special("data/one.bin", tarfile.CHRTYPE),
    "block device": special("data/one.bin", tarfile.BLKTYPE),
    "named pipe": special("data/one.bin", tarfile.FIFOTYPE),
    "sparse": special("data/one.bin", tarfile.GNUTYPE_SPARSE),
}


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("first", [True, False])
def test_an_unsafe_member_refuses_the_whole_archive(tmp_path: Path, name: str, first: bool) -> None:
    good = [(plain("data/one.bin"), b"1"), (plain("data/two.bin"), b"22")]
    bad = [(UNSAFE[name], b"")]
    archive = tar_of(tmp_path / "a.tar.gz", bad + good if first else good + bad)
    with pytest.raises(ValueError, match=r"a\.tar\.gz: refused: .*(leads out|a link or a device)"):
        extract(archive, tmp_path / "out", members=WANTED, limit=1000)
    assert list(tmp_path.iterdir()) == [archive]


@pytest.mark.parametrize("name", ["/evil", "../evil", "data/../../evil", "..\\evil", "C:/evil"])
def test_an_unsafe_path_refuses_a_zip(tmp_path: Path, name: str) -> None:
    archive = good_zip(tmp_path / "a.zip")
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(name, b"x")
    with pytest.raises(ValueError, match="leads out of the folder"):
        extract(archive, tmp_path / "out", members=WANTED, limit=1000)
    assert list(tmp_path.iterdir()) == [archive]


def test_a_link_refuses_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        link = zipfile.ZipInfo("data/one.bin")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, "/etc/passwd")
    with pytest.raises(ValueError, match="is a link or a device"):
        extract(archive, tmp_path / "out", members=WANTED, limit=1000)


def test_a_bomb_is_stopped_at_the_limit(tmp_path: Path) -> None:
    limit = 10_000
    content = bytes(4 << 20)
    zipped = tmp_path / "a.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("data/one.bin", content)
    for archive in (tar_of(tmp_path / "a.tar.gz", [(plain("data/one.bin"), content)]), zipped):
        with pytest.raises(ValueError, match="holds more than the"):
            extract(archive, tmp_path / "out", members=WANTED, limit=limit)
        with pytest.raises(ValueError, match="holds more than the"):
            read_members(archive, members=WANTED, limit=limit)
    assert not (tmp_path / "out").exists()


def test_a_header_that_is_a_bomb_is_stopped_at_the_limit(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    archive = tmp_path / "a.tar.gz"
    with gzip.open(archive, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        file.write(bytes(4 << 20))
    with pytest.raises(ValueError, match="holds more than the"):
        read_members(archive, members=WANTED, limit=1000)


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_is_cut_short_is_explained_and_leaves_nothing(
    tmp_path: Path, name: str
) -> None:
    archive = ARCHIVES[name](tmp_path / name)
    whole = archive.read_bytes()
    for length in (0, 5, len(whole) // 2, len(whole) - 20):
        # Half a tar of whole blocks is a tar with fewer files.
        archive.write_bytes(whole[:length])
        try:
            extract(archive, tmp_path / "out", members=WANTED, limit=100_000)
        except ValueError as error:
            assert str(error).startswith(str(archive))  # noqa: PT017
        else:
            assert name == "a.tar"
            assert length > len(whole) // 3
            (tmp_path / "out" / "one.bin").unlink()
            (tmp_path / "out" / "two.bin").unlink()
            (tmp_path / "out").rmdir()
    assert list(tmp_path.iterdir()) == [archive]


def test_a_missing_member_is_named(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "a.tar.gz", [(plain("data/one.bin"), b"1")])
    with pytest.raises(ValueError, match=r"expected data/two\.bin in it, found none"):
        extract(archive, tmp_path / "out", members=WANTED, limit=1000)
    assert not (tmp_path / "out").exists()
