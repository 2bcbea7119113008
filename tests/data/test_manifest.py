import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from made_images import write_images

from labelproof.data import Dataset
from labelproof.data.listing import read_beside
from labelproof.data.manifest import load_manifest
from labelproof.data.notices import DataWarning

IMAGES = ["1.png", "2.png", "sub/3.png", "4.jpg"]
TABLE = "path,label\n1.png,cat\n2.png,dog\nsub/3.png,cat\n4.jpg,dog\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_images(tmp_path, IMAGES)
    return tmp_path


def write(folder: Path, text: str, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def told(path: Path, **options: str) -> tuple[Dataset, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = load_manifest(path, **options)  # type: ignore[arg-type]
    assert all(issubclass(entry.category, DataWarning) for entry in caught)
    return dataset, [str(entry.message) for entry in caught]


def test_rows_become_images_in_their_order(folder: Path) -> None:
    dataset = load_manifest(write(folder, TABLE), short_side=8)
    assert dataset.name == "labels"
    assert dataset.class_names == ("cat", "dog")
    assert dataset.train.labels.tolist() == [0, 1, 0, 1]
    assert dataset.image_shape == (3, 8, 12)
    assert not dataset.clean
    names = [Path(file).name for file in dataset.train.images.files]  # type: ignore[union-attr]
    assert names == ["1.png", "2.png", "3.png", "4.jpg"]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + TABLE,
        TABLE.replace("\n", "\r\n"),
        TABLE.replace(",", ";"),
        TABLE.replace(",", "\t"),
        "\n\n" + TABLE + "\n , \n",
        TABLE.replace("path,label", " File , CLASS "),
        TABLE.replace("path,label", "filename,target"),
        TABLE.replace("path,label", "image,category"),
        "id,path,label\n" + "\n".join(f"7,{row}" for row in TABLE.splitlines()[1:]),
        TABLE.replace("1.png,cat", '"1.png"," cat "'),
        TABLE.replace("sub/3.png", "sub\\3.png"),
        TABLE.replace("sub/3.png", "./sub/../sub/3.png"),
    ],
)
def test_what_other_programs_write_is_read(text: str, folder: Path) -> None:
    assert load_manifest(write(folder, text)).train.labels.tolist() == [0, 1, 0, 1]


def test_tabs_and_json_lines(folder: Path) -> None:
    tabs = write(folder, TABLE.replace(",", "\t"), "labels.tsv")
    assert load_manifest(tabs).train.labels.tolist() == [0, 1, 0, 1]
    lines = [
        '{"file_name": "1.png", "label": 10}',
        '{"file_name": "2.png", "label": 9.0}',
        "",
        '{"file_name": "4.jpg", "label": 9, "note": "as it \u2028 came"}',
    ]
    dataset = load_manifest(write(folder, "\n".join(lines), "metadata.jsonl"))
    assert dataset.class_names == ("9", "10")
    assert dataset.train.labels.tolist() == [1, 0, 0]


ONE_PIECE, TWO_PIECES = "K\u00e4tzchen", "Ka\u0308tzchen"


@pytest.mark.parametrize("backslashes", [False, True])
@pytest.mark.parametrize(
    ("stored", "written"), [(ONE_PIECE, TWO_PIECES), (TWO_PIECES, ONE_PIECE)], ids=["two", "one"]
)
def test_accents_may_be_stored_in_another_way(
    stored: str, written: str, backslashes: bool, folder: Path
) -> None:
    write_images(folder, [f"{stored}/{stored}.png", f"{stored}/5.png"], size=(8, 8))
    rows = f"{written}/{written}.png,Katze\n{written}/5.png,Katze\n"
    path = write(folder, TABLE + (rows.replace("/", "\\") if backslashes else rows))
    dataset = load_manifest(path)
    assert dataset.train.labels.tolist() == [1, 2, 1, 2, 0, 0]
    files = [Path(file) for file in dataset.train.images.files]  # type: ignore[union-attr]
    assert [
        file.samefile(folder / stored / name)
        for file, name in zip(files[4:], (f"{stored}.png", "5.png"), strict=True)
    ] == [True, True]
    assert set(read_beside(path, "label").values()) == {"cat", "dog", "Katze"}


@pytest.mark.skipif(sys.platform == "darwin", reason="there both spellings open the file")
def test_one_file_in_two_spellings_is_one(folder: Path) -> None:
    write_images(folder, [f"{ONE_PIECE}.png"], size=(8, 8))
    text = TABLE + f"{ONE_PIECE}.png,cat\n{TWO_PIECES}.png,dog\n"
    with pytest.raises(ValueError, match="1 path with more than one label"):
        load_manifest(write(folder, text))


def test_absolute_paths_are_taken_as_they_are(folder: Path) -> None:
    (folder / "tables").mkdir()
    text = TABLE.replace("\n", f"\n{folder}/").removesuffix(f"{folder}/")
    assert len(load_manifest(write(folder / "tables", text)).train) == 4


def test_a_split_column_makes_splits(folder: Path) -> None:
    text = (
        "path,label,Split\n1.png,cat,TEST\n2.png,dog,training\nsub/3.png,cat,train\n4.jpg,dog,val\n"
    )
    dataset = load_manifest(write(folder, text))
    assert list(dataset.splits) == ["train", "test", "validation"]
    assert dataset.train.labels.tolist() == [1, 0]
    assert dataset.test.labels.tolist() == [0]


def test_one_file_by_two_paths_is_one_image(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    table = write(folder, f"{TABLE}{folder / '1.png'},cat\n")
    dataset, said = told(Path(table.name))
    assert len(dataset.train) == 4
    assert said[0].startswith("labels.csv: 1 row left out, the same path and label again: line 6")
    write(folder, f"{TABLE}{folder / '1.png'},dog\n")
    with pytest.raises(
        ValueError, match=r"1 path with more than one label: 1\.png \(cat and dog\)"
    ):
        load_manifest(table.name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a column path .or file, filename, file_name., .* found none"),
        ("name,label\nu,cat\n", "expected a column path .*, found 'name', 'label'"),
        (
            "path,tag,who\n1.png,cat,me\n",
            r"expected a column label .or class, target, category., found 'path', 'tag', 'who'",
        ),
        ("path,label\n", "expected a row for each image, got none"),
        (TABLE + "5.png\n", "expected 2 cells in line 6, got 1"),
        (TABLE + "5.png,cat,\n", "expected 2 cells in line 6, got 3"),
        (TABLE + '"5.png,cat\n', "line 6: unexpected end of data"),
        (TABLE + '"5.png"x,cat\n', "line 6: .*expected after"),
        (TABLE + "4.jpg\0,cat\n", "zero bytes"),
        (TABLE.replace("dog", "cat"), "expected at least two classes, got only 'cat'"),
        ("path,label\n1.png,a\n2.png,b\nsub/3.png,c\n", "3 images with 3 labels .a, b, c.; these"),
        ("path,label,split\n1.png,a,0\n2.png,b,1\n", "rows of the split train, got only 0, 1"),
        ("path,label,split\n1.png,a,train\n2.png,b,\n", "expected a split in line 3"),
        (TABLE + "5.png,cat\n", r"1 of 5 rows without a file: line 6 \(5\.png\); mend"),
        (TABLE + ",cat\n", r"1 of 5 rows without a file: line 6 \(\); mend"),
        (TABLE + "sub,cat\n", r"1 of 5 rows without a file: line 6 \(sub\)"),
        (TABLE.replace("dog", " "), r"2 of 4 rows without a label: line 3 \(2\.png\), line 5"),
        (TABLE.replace("dog", "NaN"), r"2 of 4 rows without a label: line 3 \(2\.png\), line 5"),
        (TABLE + "./1.png,dog\n", r"1 path with more than one label: .*1\.png \(cat and dog\)"),
        (
            "path,label\n" + "".join(f"{n}.gif,{n % 2}\n" for n in range(9)),
            r"9 of 9 rows without a file: .*line 4 \(2\.gif\) and 6 more; paths are relative to",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(text: str, message: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load_manifest(write(folder, text))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", TABLE.replace("cat", "chat né").encode("latin-1"), "byte 0xe9 in line 2; save"),
        ("b.csv", TABLE.encode("utf-16"), "expected UTF-8, got byte 0xff in line 1"),
        ("c.csv", TABLE.encode("utf-16-le"), "zero bytes"),
        ("d.xlsx", b"PK", r"ends in \.csv, \.tsv, .*, got .*d\.xlsx; save it as CSV"),
        ("e.jsonl", b'{"path": "1.png", "label": 1}\n[1]\n', "line 2: expected an object"),
        ("f.jsonl", b'{"path": "1.png"\n', "line 1: "),
    ],
)
def test_files_that_are_no_such_table_are_refused(
    name: str, content: bytes, message: str, folder: Path
) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_manifest(folder / name)


def test_a_table_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: there is no such file"):
        load_manifest(folder / "gone.csv")


def test_what_cannot_be_used_is_left_out_by_choice_and_named(folder: Path) -> None:
    (folder / "5.png").touch()
    extra = "5.png,cat\n6.png,cat\n1.png,dog\n2.png,dog\n4.jpg,\n"
    dataset, messages = told(write(folder, TABLE + extra), on_error="skip")
    # 1.png is out as well: nobody knows which of its labels is right.
    assert dataset.train.labels.tolist() == [1, 0, 1]
    unlabelled, missing, conflict, repeated, unreadable = messages
    assert "1 of 9 rows without a label: line 10 (4.jpg)" in unlabelled
    assert "1 of 9 rows without a file: line 7 (6.png)" in missing
    assert "1 path with more than one label" in conflict
    assert "1 row left out, the same path and label again: line 9" in repeated
    assert "5.png: the file is empty" in unreadable


@pytest.mark.parametrize("label", ["gone.png,a", "1.png,", "1.png,a\n1.png,b"])
def test_a_table_of_which_nothing_is_left_is_refused(label: str, folder: Path) -> None:
    with pytest.warns(DataWarning), pytest.raises(ValueError, match="no row can be used"):
        load_manifest(write(folder, f"path,label\n{label}\n"), on_error="skip")


def test_the_same_row_twice_counts_once(folder: Path) -> None:
    dataset, messages = told(write(folder, TABLE + "1.png,cat\n"))
    assert len(dataset.train) == 4
    assert "1 row left out, the same path and label again: line 6" in messages[0]


def test_an_image_in_two_splits_is_pointed_out(folder: Path) -> None:
    text = "path,label,split\n1.png,cat,train\n2.png,dog,train\n1.png,cat,test\n"
    dataset, messages = told(write(folder, text))
    assert len(dataset.test) == 1
    assert "1 image found in more than one split" in messages[0]


def test_parquet_without_pyarrow_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "labels.parquet").touch()
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Parquet needs pyarrow; .*labelproof\[parquet\]"):
        load_manifest(folder / "labels.parquet")


def test_parquet_is_read_like_any_table(folder: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = folder / "labels.parquet"
    table = {"Path": IMAGES, "label": [1.0, 0.0, 1.0, None], "other": [b"x"] * 4}
    parquet.write_table(arrow.table(table), path)
    with pytest.raises(ValueError, match=r"1 of 4 rows without a label: row 3 \(4\.jpg\)"):
        load_manifest(path)
    dataset, _ = told(path, on_error="skip")
    assert dataset.class_names == ("0", "1")
    np.testing.assert_array_equal(dataset.train.labels, [1, 0, 1])
    parquet.write_table(arrow.table({"image": [{"bytes": b"x"}], "label": [1]}), path)
    with pytest.raises(ValueError, match="expected text or numbers in the column 'image', got st"):
        load_manifest(path)
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        load_manifest(path)
