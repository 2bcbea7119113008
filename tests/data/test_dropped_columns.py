from pathlib import Path

import pytest
from made_images import write_images

from labelproof.data import load_dataset
from labelproof.data.row_ids import id_of, read_ids
from labelproof.data.rows import load_rows

TABLE = "size,Comment,colour,label\n1,x,red,cat\n2.5,y,blue,dog\n3,x,red,cat\n4,y,blue,dog\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(TABLE)
    return tmp_path / "t.csv"


def test_a_column_that_is_dropped_is_not_learned_from_and_noted(table: Path) -> None:
    dataset = load_dataset(table, label="label", drop=["comment", "colour", "colour"])
    assert dataset.columns is not None
    assert dataset.columns.names == ("size",)
    asked = "as was asked for"
    assert dataset.columns.left_out == (("Comment", asked), ("colour", asked))


def test_what_cannot_be_dropped_is_explained(table: Path) -> None:
    with pytest.raises(ValueError, match=r"drop: .*got 'coment'; did you mean 'Comment'\?"):
        load_rows(table, label="label", drop=["coment"])
    with pytest.raises(ValueError, match=r"drop: expected columns beside the labels .*'label'"):
        load_rows(table, drop=["label"])
    with pytest.raises(ValueError, match="expected columns beside the labels in 'label', found"):
        load_rows(table, label="label", drop=["size", "Comment", "colour"])
    with pytest.raises(ValueError, match=r"drop: expected a table of features, .* got digits"):
        load_dataset("digits", drop=["size"])


def test_a_list_of_images_has_nothing_to_drop(tmp_path: Path) -> None:
    write_images(tmp_path / "photos", ["cat/0.png", "dog/0.png"])
    list_of = tmp_path / "list.csv"
    list_of.write_text("path,label,size\nphotos/cat/0.png,cat,1\nphotos/dog/0.png,dog,2\n")
    with pytest.raises(
        ValueError, match=r"drop: expected a table of features, .* a list of images"
    ):
        load_dataset(list_of, drop=["size"])


def test_ids_are_read_in_the_order_of_the_rows(table: Path) -> None:
    assert read_ids(table, "comment") == ["x", "y", "x", "y"]
    with pytest.raises(ValueError, match=r"id: expected a column of .*; did you mean 'colour'\?"):
        read_ids(table, "color")


def test_the_column_that_names_rows_is_found_among_those_left_out(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    lines = [f"C{number},{number % 7},{'ab'[number % 2]}" for number in range(60)]
    file.write_text("\n".join(["customer_id,size,label", *lines]))
    with pytest.warns(UserWarning, match="customer_id"):
        dataset = load_rows(file)
    assert dataset.columns is not None
    assert id_of(dataset.columns) == "customer_id"


def test_labels_in_another_case_are_named_as_such(table: Path) -> None:
    dataset = load_rows(table)
    assert dataset.columns is not None
    table.write_text(TABLE.replace("dog", "DOG"))
    with pytest.raises(ValueError, match=r"got DOG in .*; 'DOG' differs from 'dog' only in case"):
        load_rows(table, like=(dataset.columns, dataset.class_names))


def test_a_class_of_the_test_rows_alone_in_another_case_is_named_as_such(tmp_path: Path) -> None:
    rows = ["1,cat,train", "2,dog,train", "3,cat,train", "5,dog,train", "4,Dog,test"]
    (tmp_path / "t.csv").write_text("\n".join(["size,label,split", *rows]))
    with pytest.warns(UserWarning, match="without a training row: Dog; .*'Dog' differs from 'dog'"):
        load_rows(tmp_path / "t.csv")
