import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelproof.data.unicode_forms import KnownNames, StoredFiles

ONE_PIECE, TWO_PIECES = "K\u00e4tzchen", "Ka\u0308tzchen"
BY_BYTES = pytest.mark.skipif(sys.platform == "darwin", reason="there the spellings are one name")


@given(st.lists(st.text(alphabet="aäo\u0308e\u0301é\u212b"), unique=True))
def test_what_is_known_is_found_as_it_is_written(names: list[str]) -> None:
    known = KnownNames(names)
    assert [known.find(name) for name in names] == names


@given(st.text())
def test_the_forms_of_a_name_are_one(name: str) -> None:
    for stored in ("NFC", "NFD"):
        known = KnownNames([unicodedata.normalize(stored, name)])
        for written in ("NFC", "NFD"):
            found = known.find(unicodedata.normalize(written, name))
            assert found == unicodedata.normalize(stored, name)


def test_of_two_that_read_the_same_neither_is_taken_for_a_third() -> None:
    both = ["\u00c5ngstro\u0308m", "A\u030angstr\u00f6m"]
    assert KnownNames(both).find("\u00c5ngstr\u00f6m") is None
    assert KnownNames(both[:1]).find("\u00c5ngstr\u00f6m") == both[0]


def test_letters_are_not_taken_for_others() -> None:
    assert KnownNames(["Katzchen", "x\u00b2", "k\u00e4tzchen"]).find(ONE_PIECE) is None
    assert KnownNames(["x\u00b2"]).find("x2") is None


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")


@BY_BYTES
def test_folders_and_files_are_found_by_how_they_read(tmp_path: Path) -> None:
    touch(tmp_path, f"{ONE_PIECE}/{TWO_PIECES}/1.png")
    found = StoredFiles().find(str(tmp_path / TWO_PIECES / ONE_PIECE / "1.png"))
    assert found == str(tmp_path / ONE_PIECE / TWO_PIECES / "1.png")


@BY_BYTES
def test_a_file_that_is_there_as_written_is_that_one(tmp_path: Path) -> None:
    touch(tmp_path, f"{ONE_PIECE}.png", f"{TWO_PIECES}.png")
    for name in (ONE_PIECE, TWO_PIECES):
        path = str(tmp_path / f"{name}.png")
        assert StoredFiles().find(path) == path


def test_paths_may_begin_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, f"{ONE_PIECE}.png")
    monkeypatch.chdir(tmp_path)
    found = StoredFiles().find(f"{TWO_PIECES}.png")
    assert found is not None
    assert Path(found).samefile(f"{ONE_PIECE}.png")


@pytest.mark.parametrize(
    "name",
    [
        "gone.png",
        f"{ONE_PIECE}/gone.png",
        f"gone/{TWO_PIECES}.png",
        f"1.png/{TWO_PIECES}.png",
        f"{TWO_PIECES}\0.png",
        f"{TWO_PIECES}",
        "",
    ],
)
def test_what_is_no_file_is_not_found(name: str, tmp_path: Path) -> None:
    touch(tmp_path, "1.png", f"{ONE_PIECE}/1.png")
    assert StoredFiles().find(str(tmp_path / name)) is None
    assert StoredFiles().find(name) is None
