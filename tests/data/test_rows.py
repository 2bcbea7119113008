import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelproof.data import Dataset, load_dataset
from labelproof.data.columns import Columns
from labelproof.data.notices import DataWarning
from labelproof.data.rows import load_rows, read_features

TABLE = "size,colour,label\n1,red,cat\n2.5,blue,dog\n3,red,cat\n4,blue,dog\n"


def write(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def told(path: Path, **options: Any) -> tuple[Dataset, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = load_rows(path, **options)
    assert all(issubclass(entry.category, DataWarning) for entry in caught)
    return dataset, [str(entry.message).replace(f"{path}: ", "") for entry in caught]


def csv(**columns: Any) -> str:
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_rows_become_features_in_their_order(tmp_path: Path) -> None:
    dataset = load_rows(write(tmp_path, TABLE))
    assert dataset.name == "table"
    assert dataset.tabular
    assert not dataset.clean
    assert dataset.class_names == ("cat", "dog")
    assert dataset.train.labels.tolist() == [0, 1, 0, 1]
    assert dataset.train.labels.dtype == np.int64
    assert dataset.columns is not None
    assert dataset.columns.feature_names == ("size", "colour=blue", "colour=red")
    wanted = [[1, 0, 1], [2.5, 1, 0], [3, 0, 1], [4, 1, 0]]
    assert dataset.train.array.tolist() == wanted
    np.testing.assert_allclose(dataset.mean, np.mean(wanted, axis=0))
    np.testing.assert_allclose(dataset.std, np.std(wanted, axis=0))


@pytest.mark.parametrize("kind", ["csv", "semicolons", "tsv", "jsonl", "parquet"])
def test_every_kind_of_file_is_the_same_table(kind: str, tmp_path: Path) -> None:
    wanted = load_rows(write(tmp_path, TABLE, "wanted.csv"))
    values = {
        "size": [1, 2.5, 3, 4],
        "colour": ["red", "blue"] * 2,
        "label": ["cat", "dog"] * 2,
    }
    if kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        path = tmp_path / "table.parquet"
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(values), path)
    elif kind == "jsonl":
        lines = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        path = write(tmp_path, "\n".join(map(json.dumps, lines)), "table.jsonl")
    elif kind == "tsv":
        path = write(tmp_path, TABLE.replace(",", "\t"), "table.tsv")
    else:
        path = write(
            tmp_path, "\ufeff" + TABLE.replace(",", ";").replace(".", ",").replace("\n", "\r\n")
        )
    dataset = load_dataset(path)
    np.testing.assert_array_equal(dataset.train.array, wanted.train.array)
    assert dataset.class_names == wanted.class_names


def test_features_are_learned_from_training_rows_only(tmp_path: Path) -> None:
    text = csv(
        size=[1, 3, "", 900, 1000],
        colour=["red", "red", "blue", "pink", "pink"],
        label=["a", "b", "a", "b", "a"],
        Split=["train", "TRAIN", "training", "test", "val"],
    )
    dataset, messages = told(write(tmp_path, text))
    assert len(messages) == 1
    assert "1 class with a single training row: b" in messages[0]
    assert list(dataset.splits) == ["train", "test", "validation"]
    assert dataset.columns is not None
    names = ("size", "size: missing", "colour=red", "colour: other")
    assert dataset.columns.feature_names == names
    assert dataset.train.array.tolist() == [[1, 0, 1, 0], [3, 0, 1, 0], [2, 1, 0, 1]]
    assert dataset.test.array.tolist() == [[900, 0, 0, 1]]
    assert dataset.test.labels.tolist() == [1]
    np.testing.assert_allclose(dataset.mean[0], 2)


def test_a_set_may_be_a_feature(tmp_path: Path) -> None:
    text = csv(set=["a", "a", "b", "b"], label=["x", "y", "x", "y"])
    dataset = load_rows(write(tmp_path, text))
    assert list(dataset.splits) == ["train"]
    assert dataset.columns is not None
    assert dataset.columns.names == ("set",)
    text = csv(set=["train", "train", "test"], size=[1, 2, 3], label=["x", "y", "x"])
    assert list(told(write(tmp_path, text))[0].splits) == ["train", "test"]


@pytest.mark.parametrize(
    ("names", "label", "taken", "notices"),
    [
        ("a,b,Class", None, "Class", []),
        ("species,a,b", None, "species", []),
        ("a,b,kind", None, "kind", ["taken from 'kind', the last column; if they are in another"]),
        ("a,y,target", None, "target", ["taken from 'target', of 'target' and 'y'; if"]),
        ("a,kind,b", "kind", "kind", []),
        ("a,Kind,label", " kind ", "Kind", []),
        ("Kind,kind,b", "kind", "kind", []),
    ],
)
def test_the_label_is_found_or_chosen(
    names: str, label: str | None, taken: str, notices: list[str], tmp_path: Path
) -> None:
    cells = {name: ["1", "2", "5", "9", "7", "8"] for name in names.split(",")}
    cells[taken] = ["u", "u", "v", "v", "u", "v"]
    dataset, messages = told(write(tmp_path, csv(**cells)), label=label)
    assert dataset.class_names == ("u", "v")
    assert len(messages) == len(notices)
    for message, wanted in zip(messages, notices, strict=True):
        assert wanted in message
        assert message.endswith("say --label NAME (label='NAME')")


def test_a_whole_number_is_one_class_however_it_is_written(tmp_path: Path) -> None:
    text = csv(size=range(6), label=["1.0", "1", "10", "2", "01", "2.00"])
    dataset, _ = told(write(tmp_path, text))
    assert dataset.class_names == ("1", "2", "10")
    assert dataset.train.labels.tolist() == [0, 0, 2, 1, 0, 1]
    text = csv(size=range(6), label=["1.0", "1", "b", "b", "v1.0", "v1.0"])
    assert told(write(tmp_path, text))[0].class_names == ("1", "b", "v1.0")
    text = csv(size=range(4), label=["-1", "1", "-1.0", "+1"])
    assert load_rows(write(tmp_path, text)).train.labels.tolist() == [0, 1, 0, 1]
    text = csv(size=range(4), label=["none", "NA", "none", "NA"])
    assert load_rows(write(tmp_path, text)).class_names == ("NA", "none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a row for each example, got an empty file"),
        ("\n\n", "expected a row for each example, got an empty file"),
        ("size,label\n", "expected a row for each example, got only the names of the columns"),
        ("label\na\nb\na\nb\n", "expected columns beside the labels in 'label', found none"),
        (TABLE.replace("dog", "cat"), "expected at least two classes, got only 'cat'"),
        (
            TABLE.replace("blue,dog", "blue,"),
            "2 of 4 rows without a label in the column 'label': line 3, line 5; mend them, or",
        ),
        (csv(size=range(20), label=[f"n{i}" for i in range(20)]), "20 different ones in 20 rows"),
        (
            csv(size=range(20), label=[f"n{max(i, 8)}" for i in range(20)]),
            r"12 different ones in 20 rows \(n8, n9, n10 and 9 more\); these look like names of "
            "single rows; choose another column with --label NAME",
        ),
        (
            csv(size=range(20), label=[i * i for i in range(20)]),
            r"names of single rows or measurements .regression.; choose another column",
        ),
        (
            csv(size=range(90), label=[100 + i // 3 for i in range(90)]),
            r"'label' has 30 different numbers in 90 rows, which looks like a measurement .regress",
        ),
        (csv(size=range(4), label=[0.5, 1, 0.5, 1]), r"got 0.5, which looks like a measurement"),
        (
            csv(size=[1, 2, "x", 4, "y"], label=list("abaab")),
            "column 'size': expected numbers, got 'x' in line 4, 'y' in line 6; mend them",
        ),
        (
            csv(size=[1, "inf", 3, 4], label=list("abab")),
            r"column 'size': expected numbers of up to 1e\+30, got inf in line 3",
        ),
        (
            csv(name=["p", "q", "r", "s"], same=[1] * 4, label=list("abab")),
            "expected a column to learn from in 4 rows, got none: name .different in every row, "
            r"such as 'p'., same .always 1.",
        ),
        ("size,size,label\n1,2,a\n3,4,b\n", "different names, got more than one called 'size'"),
        ("size, size,label\n1,2,a\n3,4,b\n", "different names, got more than one called 'size'"),
        (
            "5.1,3.5,a\n4.9,3,a\n7,3.2,b\n",
            "names of the columns first, got 5.1, 3.5, a, which look",
        ),
        ("5,0,0,0\n3,0,0,1\n5,1,0,0\n", "names of the columns first, got 5, 0, 0 and 1 more"),
        ("size,split,label\n1,0,a\n3,1,b\n", "rows of the split train, got only 0, 1"),
        ("size,split,label\n1,train,a\n3,,b\n", "expected a split in line 3, such as train"),
        ("size,label\n1,a\n3\n", "expected 2 cells in line 3, got 1"),
        (
            csv(size=[1, 2, 3, "big"], split=["train"] * 3 + ["test"], label=list("abab")),
            "column 'size': expected numbers, got 'big' in line 5",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_explained(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        told(write(tmp_path, text))


def test_a_label_that_is_not_there_is_explained(tmp_path: Path) -> None:
    path = write(tmp_path, TABLE)
    with pytest.raises(
        ValueError, match=r"label: expected a column of .* 'label', got 'labels'; did"
    ):
        load_rows(path, label="labels")
    with pytest.raises(
        ValueError, match="on_error: expected 'raise', 'skip' or 'later', got 'ignore'"
    ):
        load_rows(path, on_error="ignore")  # type: ignore[arg-type]


def test_rows_and_cells_that_cannot_be_used_can_be_skipped(tmp_path: Path) -> None:
    text = csv(size=[1, "x", "inf", 4, 5], label=["a", "b", "a", "b", "?"])
    dataset, messages = told(write(tmp_path, text), on_error="skip")
    assert len(dataset.train) == 4
    assert dataset.train.array.tolist() == [[1, 0], [2.5, 1], [2.5, 1], [4, 0]]
    assert "1 of 5 rows without a label in the column 'label': line 6; left out" in messages
    wanted = "column 'size': expected numbers, got 'x' in line 3; taken for missing"
    assert messages.count(wanted) == 1
    assert any("got inf in line 4; taken for missing" in message for message in messages)
    nothing = csv(size=[1, 2], label=["", ""])
    with pytest.raises(ValueError, match="of the split train, got only rows without a label"):
        told(write(tmp_path, nothing), on_error="skip")


def test_many_numbers_are_classes_if_they_were_chosen(tmp_path: Path) -> None:
    path = write(
        tmp_path, csv(size=[i / 2 for i in range(90)], label=[100 + i // 3 for i in range(90)])
    )
    dataset, messages = told(path, label="label")
    assert dataset.num_classes == 30
    assert len(messages) == 1
    assert "looks like a measurement" in messages[0]


def test_doubtful_classes_are_named(tmp_path: Path) -> None:
    text = csv(size=range(5), label=["a", "b", "a", "b", "c"])
    assert "1 class with a single training row: c" in told(write(tmp_path, text))[1][0]
    text = csv(size=range(5), split=["train"] * 4 + ["test"], label=["a", "b", "a", "b", "c"])
    dataset, messages = told(write(tmp_path, text))
    assert dataset.num_classes == 3
    assert len(messages) == 1
    assert "1 class without a training row: c; nothing can be learned" in messages[0]
    text = csv(size=range(4), label=["a", "A", "a", "A"])
    assert "differ only in case or spaces" in told(write(tmp_path, text))[1][0]


def test_columns_without_a_name_are_left_out(tmp_path: Path) -> None:
    text = ",size,label,\n0,1,a,\n1,5,b,\n2,3,a,\n3,4,b,\n"
    dataset, messages = told(write(tmp_path, text))
    assert messages == ["2 columns without a name left out"]
    assert dataset.train.array.tolist() == [[1], [5], [3], [4]]


def test_numbers_may_be_names(tmp_path: Path) -> None:
    text = "0,1,2\n3,7,a\n4,8,b\n5,6,a\n1,1,b\n"
    dataset = load_rows(write(tmp_path, text), label="2")
    assert dataset.columns is not None
    assert dataset.columns.names == ("0", "1")


def test_new_rows_are_read_as_the_training_rows_were(tmp_path: Path) -> None:
    dataset = load_rows(write(tmp_path, TABLE))
    assert dataset.columns is not None
    rows, places = read_features(tmp_path / "table.csv", dataset.columns)
    np.testing.assert_array_equal(rows, dataset.train.array)
    new = write(tmp_path, "x,x,colour,\n\n,,blue,\n", "no-size.csv")
    with pytest.raises(
        ValueError, match=r"no-size\.csv: expected the column 'size', found 'x', 'x', 'colo"
    ):
        read_features(new, dataset.columns)
    new = write(tmp_path, "SIZE,Colour\n1,red\n", "capitals.csv")
    with pytest.raises(ValueError, match="rename 'SIZE' to 'size', 'Colour' to 'colour': they dif"):
        read_features(new, dataset.columns)
    new = write(tmp_path, "SIZE,colour,label\n1,red,cat\n", "labelled.csv")
    with pytest.raises(ValueError, match="rename 'SIZE' to 'size': it differs only in case"):
        load_rows(new, like=(dataset.columns, dataset.class_names))
    new = write(tmp_path, "x,x,colour, size \n\n,,blue,7\n,,pink,\n", "new.csv")
    rows, places = read_features(new, dataset.columns)
    assert rows.tolist() == [[7, 1, 0], [2.75, 0, 0]]
    assert places == ["line 3", "line 4"]
    with pytest.raises(ValueError, match="'size': expected numbers, got 'big' in line 2"):
        read_features(write(tmp_path, "size,colour\nbig,red\n"), dataset.columns)
    with pytest.raises(ValueError, match="got only the names of the columns"):
        read_features(write(tmp_path, "size,colour\n"), dataset.columns)
    with pytest.raises(ValueError, match="more than one called 'size'"):
        read_features(write(tmp_path, "size,colour,size\n1,red,2\n"), dataset.columns)


def test_columns_of_a_run_read_the_same_after_json(tmp_path: Path) -> None:
    columns = load_rows(write(tmp_path, TABLE)).columns
    assert columns is not None
    kept = Columns.from_values(json.loads(json.dumps(columns.as_values())))
    rows, _ = read_features(tmp_path / "table.csv", kept)
    np.testing.assert_array_equal(rows, load_rows(tmp_path / "table.csv").train.array)


def test_cells_that_cannot_be_used_are_named_in_a_further_table_too(tmp_path: Path) -> None:
    dataset = load_rows(write(tmp_path, "size,class\n1,a\n3,b\n5,a\n3,b\n"))
    assert dataset.columns is not None
    like = (dataset.columns, dataset.class_names)
    further = write(tmp_path, "size,class\nbig,a\n4,b\n", "further.csv")
    with pytest.raises(ValueError, match="'size': expected numbers, got 'big' in line 2"):
        load_rows(further, like=like)
    found, messages = told(further, like=like, on_error="skip")
    assert found.train.array.tolist() == [[3], [4]]
    assert messages == ["column 'size': expected numbers, got 'big' in line 2; taken for missing"]


def test_a_table_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: there is no such file$"):
        load_rows(tmp_path / "gone.csv")
