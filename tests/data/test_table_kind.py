from pathlib import Path

import pytest
from made_images import write_images

from labelproof.data import DataWarning, load_dataset


def write(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


ROWS = ["1,4,a", "2,4,b", "1,3,a", "2,3,b"]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("size", ["1", "2", "3", "5"]),
        ("image", ["yes", "no", "yes", "no"]),
        ("image", ["1", "2", "7", "9"]),
        ("file", ["", "a", "a", ""]),
        ("filename", ["blues.00000.wav", "blues.00001.wav", "rock.00000.wav", "rock.00001.wav"]),
        ("photo", ["1.png", "2.png", "3.png", "4.png"]),
        ("path", ["bad\0name", "b/c", "b/c", "../.."]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_table_of_examples_may_have_such_columns(
    name: str, cells: list[str], tmp_path: Path
) -> None:
    rows = [f"{cell},{row}" for cell, row in zip(cells, ROWS, strict=True)]
    text = "\n".join([f"{name},x,z,label", *rows]).replace("\0", "\x01")
    assert load_dataset(write(tmp_path, text)).tabular


@pytest.mark.parametrize(
    "text",
    [
        "image,label\na.png,cat\nb.png,dog\n",
        "file,x,z,label\na.png,1,2,cat\nb.png,1,3,dog\n",
        "path,label\n0a1b,cat\n2c3d,dog\n",
        "path,label,split\n0a1b,cat,train\n2c3d,dog,train\n",
        "file,x,z,label\na.png,1,2,cat\n,1,3,dog\n",
    ],
)
def test_a_list_of_images_that_are_all_gone_says_so(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 of 2 rows without a file") as caught:
        load_dataset(write(tmp_path, text))
    hint = "if the examples are the rows and not images, drop the column 'file'"
    assert (hint in str(caught.value)) == (",x,z," in text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,label\n", "expected a row for each image, got none"),
        ("path,x,y,label\n", "expected a row for each image, got none"),
        ("picture,label\n1.png,cat\n2.png,dog\n", "2 of 2 rows without a file"),
        ("path,tag\n1.png,cat\n2.png,dog\n", "2 of 2 rows without a file"),
        ("path,tag,who\n1.png,cat,x\n2.png,dog,y\n", "expected a column label .or class"),
    ],
)
def test_a_list_of_images_that_lacks_something_says_so(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        load_dataset(write(tmp_path, text))


def test_files_that_are_there_are_images_whatever_they_are_called(tmp_path: Path) -> None:
    write_images(tmp_path, ["1.png", "2.png"])
    for number in "12":
        (tmp_path / f"{number}.png").rename(tmp_path / f"{number}.scan")
    text = "image,age,label\n1.scan,3,cat\n2.scan,4,dog\n"
    assert not load_dataset(write(tmp_path, text)).tabular


def test_a_label_is_chosen_only_where_there_are_columns_to_choose_from(tmp_path: Path) -> None:
    write_images(tmp_path, ["1.png", "2.png"])
    path = write(tmp_path, "image,kind,Label\n1.png,u,cat\n2.png,v,dog\n")
    assert load_dataset(path, label="label").class_names == ("cat", "dog")
    assert load_dataset(path, label="KIND").class_names == ("u", "v")
    with pytest.raises(ValueError, match=r"label: expected a column of .*table.csv, found 'image'"):
        load_dataset(path, label="kinds")
    with pytest.raises(ValueError, match=r"label: expected a table whose columns .* got digits"):
        load_dataset("digits", label="kind")
    with pytest.raises(ValueError, match="label: expected a table whose columns"):
        load_dataset(tmp_path, label="kind")
    path = write(tmp_path, "kind,x,label\nu,1,a\nv,3,b\nu,4,a\nv,2,b\n")
    assert load_dataset(path, label="kind").class_names == ("u", "v")
    assert load_dataset(path).class_names == ("a", "b")


def test_images_whose_accents_are_stored_in_another_way_are_here(tmp_path: Path) -> None:
    names = [f"K\u00e4tzchen{number}.png" for number in range(4)]
    write_images(tmp_path, names)
    cells = [
        f"{name.replace(chr(0xE4), 'a' + chr(0x308))},{'ab'[n % 2]}" for n, name in enumerate(names)
    ]
    path = write(tmp_path, "file,label\n" + "\n".join(cells) + "\n")
    # Labels alone will do here, but images that are found are shown.
    assert not load_dataset(path, features=False).tabular


def test_columns_may_be_called_as_people_call_them(tmp_path: Path) -> None:
    write_images(tmp_path / "Bilder", [f"{number}.png" for number in range(4)])
    rows = [f"Bilder/{number}.png,{'Katze' if number % 2 else 'Hund'},J." for number in range(4)]
    path = write(tmp_path, "Bild,Tier\n" + "\n".join(row[:-3] for row in rows) + "\n")
    assert load_dataset(path).class_names == ("Hund", "Katze")
    # Labels that could be in any of several columns have to be named.
    path = write(tmp_path, "Bild,Tier,Fotograf\n" + "\n".join(rows) + "\n")
    with pytest.warns(DataWarning, match="the column 'Bild' names images, which are learned from"):
        dataset = load_dataset(path, label="Tier")
    assert not dataset.tabular
    assert dataset.train.labels.tolist() == [0, 1, 0, 1]
    with (
        pytest.warns(DataWarning, match="the column 'Bild' names images"),
        pytest.raises(ValueError, match=r"found 'Bild', 'Tier', 'Fotograf'; the argument label"),
    ):
        load_dataset(path)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_without_its_column_of_images_a_list_is_a_table_of_features(tmp_path: Path) -> None:
    write_images(tmp_path, [f"{number}.png" for number in range(4)])
    rows = [f"{number}.png,{row}" for number, row in enumerate(ROWS)]
    path = write(tmp_path, "file,x,z,label\n" + "\n".join(rows) + "\n")
    assert not load_dataset(path).tabular
    dataset = load_dataset(path, drop=["File"])
    assert dataset.tabular
    with pytest.raises(ValueError, match="drop: expected a table of features"):
        load_dataset(path, drop=["x"])


@pytest.mark.filterwarnings("ignore:.*left out")
def test_what_is_dropped_does_not_make_a_feature_a_list(tmp_path: Path) -> None:
    rows = [f"{'yes' if number % 3 else 'no'},{row}" for number, row in enumerate(ROWS)]
    path = write(tmp_path, "image,x,z,label\n" + "\n".join(rows) + "\n")
    assert load_dataset(path, drop=["x", "z"]).tabular


def test_a_column_with_another_name_that_is_no_file_does_not_hide_the_images(
    tmp_path: Path,
) -> None:
    write_images(tmp_path, ["1.png", "2.png"])
    path = write(tmp_path, "file,scan,label\nA/7,1.png,cat\nA/9,2.png,dog\n")
    with pytest.warns(DataWarning, match="'scan' names images"):
        assert not load_dataset(path).tabular
