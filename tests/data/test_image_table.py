from pathlib import Path

import pandas as pd
import pytest
from made_images import write_images
from notices import told

from labelproof.data import load_dataset
from labelproof.data.image_table import image_paths, load_image_table
from labelproof.data.notices import DataWarning
from labelproof.data.table import read_table

TABLE = "path,label\n1.png,cat\n2.png,dog\nsub/3.png,cat\n4.jpg,dog\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_images(tmp_path, ["1.png", "2.png", "sub/3.png", "4.jpg"])
    return tmp_path


def write(folder: Path, text: str, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_rows_become_images_in_their_order_and_splits(folder: Path) -> None:
    dataset = load_image_table(write(folder, TABLE), short_side=8)
    assert (dataset.name, dataset.label, dataset.class_names) == ("labels", "label", ("cat", "dog"))
    assert dataset.train.labels.tolist() == [0, 1, 0, 1]
    assert dataset.image_shape == (3, 8, 12)
    assert not dataset.clean
    names = [Path(file).name for file in dataset.train.images.files]  # type: ignore[union-attr]
    assert names == ["1.png", "2.png", "3.png", "4.jpg"]
    text = (
        "path,label,Split\n1.png,cat,TEST\n2.png,dog,training\nsub/3.png,cat,train\n4.jpg,dog,val\n"
    )
    dataset = load_image_table(write(folder, text))
    assert set(dataset.splits) == {"train", "test", "validation"}
    assert next(iter(dataset.splits)) == "train"
    assert dataset.train.labels.tolist() == [1, 0]
    assert dataset.test.labels.tolist() == [0]


def test_what_other_programs_write_is_read(folder: Path) -> None:
    for text in (
        TABLE.replace("path,label", " Photo , CLASS ").replace(",", ";"),
        "id,path,label\n" + "\n".join(f"7,{row}" for row in TABLE.splitlines()[1:]),
        TABLE.replace("sub/3.png", "sub\\3.png"),
        TABLE.replace("sub/3.png", "./sub/../sub/3.png"),
        TABLE.replace("\n", f"\n{folder}/").removesuffix(f"{folder}/"),
    ):
        assert load_dataset(write(folder, text)).train.labels.tolist() == [0, 1, 0, 1]
    pd.read_csv(write(folder, TABLE)).to_parquet(folder / "labels.parquet")
    assert load_dataset(folder / "labels.parquet").train.labels.tolist() == [0, 1, 0, 1]


def test_listed_images_make_an_image_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "photo,size,kind\n1.png,3,a\n2.png,4,b\nsub/3.png,5,a\n4.jpg,7,b\n"
    file = write(folder, text)
    assert not load_dataset(file, label="kind").tabular
    monkeypatch.chdir(folder)  # the paths of a DataFrame are relative to it
    frame = pd.read_csv(file)
    assert load_dataset(frame, label="kind").train.images[2].shape == (3, 16, 24)
    voted = load_dataset(frame.assign(other=frame["kind"]), annotators=["kind", "other"])
    assert voted.train.votes is not None
    assert voted.train.votes.tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]
    dropped = load_dataset(file, label="kind", drop="photo")
    assert dropped.columns is not None
    assert dropped.columns.names == ("size",)
    plain = text.replace(".png", "").replace(".jpg", "")
    with pytest.warns(DataWarning, match="photo"):
        assert load_dataset(write(folder, plain), label="kind").tabular
    with pytest.raises(ValueError, match="column of images"):
        load_image_table(write(folder, "size,label\n1,a\n2,b\n"))


def test_what_cannot_be_used_is_refused(folder: Path) -> None:
    many = "path,label\n" + "".join(f"{number}.gif,{number % 2}\n" for number in range(9))
    for text, message in {
        "path,tag\n1.png,cat\n": "--label",
        "path,label,split\n1.png,a,0\n2.png,b,1\n": "split train",
        "path,label,split\n1.png,a,train\n2.png,b,\n": "split such as train in line 3",
        TABLE + "5.png,cat\n": r"1 of 5 rows without a file: line 6 \(5\.png\)",
        TABLE + "sub,cat\n": r"1 of 5 rows without a file: line 6 \(sub\)",
        TABLE.replace("dog", " "): "2 of 4 rows without a label: line 3, line 5",
        TABLE + "./1.png,dog\n": "more than one label",
        many: r"9 of 9 rows without a file: .*line 2 \(0\.gif\)",
    }.items():
        with pytest.raises(ValueError, match=message):
            load_image_table(write(folder, text))


def test_what_cannot_be_used_is_left_out_by_choice_and_named(folder: Path) -> None:
    (folder / "5.png").touch()
    extra = "5.png,cat\n6.png,cat\n1.png,dog\n2.png,dog\n4.jpg,\n"
    dataset, messages = told(load_image_table, write(folder, TABLE + extra), on_error="skip")
    said = "\n".join(messages)
    # 1.png is out as well: nobody knows which of its labels is right.
    assert dataset.train.labels.tolist() == [1, 0, 1]
    assert "1 of 9 rows without a label: line 10" in said
    assert "1 of 8 rows without a file: line 7 (6.png)" in said
    assert "with more than one label for a file: line 2 (1.png), line 8 (1.png)" in said
    assert "1 row left out, the same path and label again" in said
    assert "5.png" in said.splitlines()[-1]
    with pytest.warns(DataWarning), pytest.raises(ValueError, match="none of the training images"):
        load_image_table(write(folder, "path,label\ngone.png,a\n"), on_error="skip")


def test_images_are_listed_empty_cells_too(folder: Path) -> None:
    table = read_table(write(folder, "key,file\n007,1.png\n008,\n009,gone.png\n"))
    assert [Path(path).name for path in image_paths(table)] == ["1.png", "", "gone.png"]
