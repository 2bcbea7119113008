import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from notices import told

from labelproof.data import Dataset, load_dataset
from labelproof.data.columns import Columns
from labelproof.data.notices import DataWarning
from labelproof.data.table import load_table, read_table, row_names

TABLE = "size,colour,label\n1,red,cat\n2.5,blue,dog\n3,red,cat\n4,blue,dog\n"


def write(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def warned(source: Any, **options: Any) -> tuple[Dataset, str]:
    dataset, messages = told(load_table, source, **options)
    return dataset, "\n".join(messages)


def test_rows_become_features_in_their_order(tmp_path: Path) -> None:
    dataset = load_table(write(tmp_path, TABLE))
    assert (dataset.name, dataset.label, dataset.class_names) == ("table", "label", ("cat", "dog"))
    assert dataset.tabular
    assert not dataset.clean
    assert dataset.train.labels.tolist() == [0, 1, 0, 1]
    assert dataset.train.labels.dtype == np.int64
    assert dataset.columns is not None
    assert dataset.columns.feature_names == ("size", "colour=blue", "colour=red")
    wanted = [[1, 0, 1], [2.5, 1, 0], [3, 0, 1], [4, 1, 0]]
    assert dataset.train.array.tolist() == wanted
    np.testing.assert_allclose(dataset.mean, np.mean(wanted, axis=0))
    np.testing.assert_allclose(dataset.std, np.std(wanted, axis=0))
    assert list(dataset.train.places or ()) == ["line 2", "line 3", "line 4", "line 5"]


def test_every_kind_of_table_is_the_same_dataset(tmp_path: Path) -> None:
    wanted = load_table(write(tmp_path, TABLE, "wanted.csv"))
    frame = pd.read_csv(tmp_path / "wanted.csv")
    frame.to_parquet(tmp_path / "table.parquet")
    frame.to_excel(tmp_path / "table.xlsx", index=False)
    frame.to_json(tmp_path / "table.jsonl", orient="records", lines=True)
    local = TABLE.replace(",", ";").replace(".", ",").replace("\n", "\r\n")
    sources: dict[Any, dict[str, str]] = {
        tmp_path / "table.parquet": {},
        tmp_path / "table.xlsx": {},
        tmp_path / "table.jsonl": {},
        write(tmp_path, TABLE.replace(",", "\t"), "table.tsv"): {},
        write(tmp_path, TABLE.replace(",", "|"), "bars.csv"): {},
        write(tmp_path, "\ufeff" + local, "local.csv"): {"decimal": ","},
        write(tmp_path, gzip.compress(TABLE.encode()), "packed.csv.gz"): {},
    }
    for source, options in sources.items():
        dataset = load_dataset(source, **options)  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(dataset.train.array, wanted.train.array, err_msg=str(source))
        assert dataset.class_names == wanted.class_names
    excel = load_dataset(tmp_path / "table.xlsx")
    assert list(excel.train.places or ())[:2] == ["row 2", "row 3"]  # as a spreadsheet numbers them
    polars = pytest.importorskip("polars").from_pandas(frame)
    for given in (frame, frame.convert_dtypes(), frame.astype({"colour": "category"}), polars):
        dataset = load_dataset(given)
        np.testing.assert_array_equal(dataset.train.array, wanted.train.array)
        assert next(iter(dataset.train.places or ())) == "row 0"


def test_features_are_learned_from_training_rows_only(tmp_path: Path) -> None:
    text = "size,colour,label,split\n1,red,a,train\n3,blue,b,train\n,red,a,Training\n"
    text += "5,blue,b,train\n900,red,a,test\n1000,green,b,test\n"
    dataset, said = warned(write(tmp_path, text))
    assert {name: len(split) for name, split in dataset.splits.items()} == {"train": 4, "test": 2}
    assert dataset.columns is not None
    assert dataset.columns.feature_names == ("size", "size: missing", "colour=blue", "colour=red")
    assert dataset.train.array[2].tolist() == [3, 1, 0, 1]
    assert dataset.test.array[1].tolist() == [1000, 0, 0, 0]
    assert dataset.mean[0] == 3
    assert not said


def test_labels_are_named_text_or_whole_numbers(tmp_path: Path) -> None:
    text = "size,Kind,note\n1,a,x\n2,b,y\n3,a,x\n4,b,y\n"
    file = write(tmp_path, text)
    assert load_table(file, label="kind").label == "Kind"
    with pytest.raises(ValueError, match="--label"):
        load_table(file)
    with pytest.raises(ValueError, match=r"label: .*Kind.*class|label: .*class.*label"):
        load_table(write(tmp_path, "class,label,x\na,b,1\nb,a,2\n", "two.csv"))
    with pytest.raises(ValueError, match=r"label: .*'kinds'.*Kind"):
        load_table(file, label="kinds")
    for cells, wanted in {
        "1,0,1,0": ("0", "1"),
        "1.0,0.0,,1.0": ("0", "1"),
        "NA,none,-,NA": ("-", "NA", "none"),
        "True,False,True,False": ("False", "True"),
        "10,9,2,10": ("2", "9", "10"),
        " a,b ,a,b": ("a", "b"),
    }.items():
        rows = [f"{size},{cell}" for size, cell in enumerate(cells.split(","))]
        file = write(tmp_path, "size,label\n" + "\n".join([*rows, *rows]) + "\n")
        dataset, said = warned(file, on_error="skip")
        assert dataset.class_names == wanted, cells
        assert ("'NA' is taken as a class" in said) == ("NA" in cells)
    numbers = pd.DataFrame({"size": [1, 2, 3, 4], "label": [1.0, 2.0, None, 1.0]})
    assert warned(numbers, on_error="skip")[0].class_names == ("1", "2")


def test_labels_that_cannot_be_classes_and_rows_without_one_are_named(tmp_path: Path) -> None:
    file = write(tmp_path, "size,label\n1,a\n2,\n3,b\n4,?\n5,a\n6,b\n")
    with pytest.raises(ValueError, match=r"2 of 6 rows without a label.*line 3, line 5"):
        load_table(file)
    dataset, said = warned(file, on_error="skip")
    assert list(dataset.train.places or ()) == ["line 2", "line 4", "line 6", "line 7"]
    assert "line 3, line 5; left out" in said
    with pytest.raises(ValueError, match="found none"):
        load_table(write(tmp_path, "size,label\n1,\n2,\n"))

    def table(labels: list[Any]) -> pd.DataFrame:
        return pd.DataFrame({"x": np.arange(len(labels)) % 7, "y": labels})

    quarters = [number % 25 / 4 for number in range(110)]
    for options in ({}, {"label": "y"}):
        with pytest.raises(ValueError, match="regression"):
            load_table(table(quarters[:60]), **options)
    assert load_table(table(quarters), label="y").num_classes == 25
    comments = [f"comment {max(row, 30)}" for row in range(60)]
    with pytest.raises(ValueError, match=r"60 rows have 30 different labels: texts.*--label"):
        load_table(table(comments))
    assert load_table(table(comments * 2)).num_classes == 30
    _, said = warned(table(["apple", "apple", "b", "b", "aple"]))
    assert "1 class with at most a single training sample: aple (apple?)" in said


def test_lines_are_counted_as_by_an_editor_and_missing_cells_are_known(tmp_path: Path) -> None:
    blank = read_table(write(tmp_path, "\n\nsize,label\n1,a\n\n2,b\n,,\n3,a\n".replace(",,", ",")))
    assert list(row_names(blank)) == ["line 4", "line 6", "line 8"]
    broken = read_table(write(tmp_path, 'note,label\n"a\nb",a\nc,b\n'))
    assert list(row_names(broken)) == ["row 1", "row 2"]
    assert read_table(write(tmp_path, '{"x": 1}\n{"x": 2}\n', "t.jsonl")).index.tolist() == [1, 2]
    words = ["", "NA", "n/a", "NaN", "null", "None", "?", "-", ".", "#N/A", "<NA>"]
    rows = [f"{number},{word}" for number, word in enumerate(words)]
    table = read_table(write(tmp_path, "number,size\n" + "\n".join([*rows, "99,3"]) + "\n"))
    assert table["size"].isna().tolist() == [True] * len(words) + [False]


def test_malformed_tables_are_refused_with_a_reason(tmp_path: Path) -> None:
    cases: dict[str, tuple[str | bytes, str]] = {
        "wide.csv": ("a,label\n1,x,2\n", "got more"),
        "some.csv": ("a,label\n1,x\n1,x,2\n", "line 3"),
        "first.csv": ("a,label\n1,x,2\n1,x\n3,y\n", "got more"),
        "open.csv": ('a,label\n"1,x\n', "EOF|quote"),
        "twice.csv": ("a,a,label\n1,2,x\n", "more than one called a"),
        "bare.csv": ("1.5,2.5,3.5\n4.5,5.5,6.5\n", "names of the columns"),
        "empty.csv": ("", "empty"),
        "zero.csv": (b"a,label\n1,\0\n", "zero bytes"),
        "wide characters.csv": ("a,label\n1,x\n".encode("utf-16"), "UTF-16.*CSV UTF-8"),
        "lines.jsonl": ("{]\n", "jsonl"),
        "no.parquet": (b"PAR1 no", "parquet"),
        "no.xlsx": (b"no", "xlsx"),
        "no.csv.gz": (b"no", "gzip"),
    }
    for name, (content, reason) in cases.items():
        with pytest.raises(ValueError, match=reason):
            read_table(write(tmp_path, content, name))
    with pytest.raises(ValueError, match=r"path: .*\.csv"):
        read_table(write(tmp_path, "", "notes.txt"))
    with pytest.raises(FileNotFoundError, match="gone"):
        read_table(tmp_path / "gone.csv")
    with pytest.raises(TypeError, match="data"):
        read_table([1, 2])  # pyright: ignore[reportArgumentType]


def test_what_a_file_is_read_as_is_said(tmp_path: Path) -> None:
    file = write(tmp_path, "size,label\n1,a\n2,b,c\n3,b\n4,a\n")
    table, messages = told(read_table, file, on_error="skip")
    assert table["size"].tolist() == [1, 3, 4]
    assert messages == [f"{file}: 1 line with too many cells left out: 3"]
    file = write(tmp_path, "drink,label\ncafé,a\n".encode("cp1252"))
    table, (message,) = told(read_table, file)
    assert table["drink"].tolist() == ["café"]
    assert "0xe9 in line 2" in message
    table = pd.DataFrame({"size": [1, 2, 3, 4], "kind": list("abab")})
    book = tmp_path / "book.xlsx"
    with pd.ExcelWriter(book) as writer:
        for sheet in ("2024", "2023", "notes"):
            table.to_excel(writer, sheet_name=sheet, index=False)
    assert "only the first sheet is read, not 2023, notes" in warned(book, label="kind")[1]


def test_columns_are_dropped_and_grouped_by_name(tmp_path: Path) -> None:
    text = "Age,Patient,note,label\n" + "".join(
        f"{20 + row % 7 + row},{'pqrs'[row // 6]},{row % 2},{'ab'[row % 2]}\n" for row in range(24)
    )
    file = write(tmp_path, text)
    dataset, _ = warned(file, drop="NOTE", group="patient")
    assert dataset.columns is not None
    assert dataset.columns.names == ("Age",)
    assert dict(dataset.columns.left_out).keys() == {"note", "Patient"}
    assert dataset.group == "Patient"
    other, _ = warned(write(tmp_path, text.replace(",q,", ",p,")), drop="note", group="Patient")
    assert other.grouping != dataset.grouping
    for argument, name in (("drop", "label"), ("group", "label"), ("drop", "q"), ("group", "q")):
        options: dict[str, Any] = {argument: name}
        with pytest.raises(ValueError, match=f"{argument}: .*{name}"):
            load_table(file, **options)


def test_columns_may_be_named_by_numbers_and_labels_beside_them_are_refused() -> None:
    table = pd.DataFrame({0: [1.0, 2, 3, 4], 1: [5.0, 7, 6, 8], 2: [1, 1, 2, 2], 3: list("abab")})
    loads: Any = (load_table, load_dataset)
    for load in loads:
        dataset = load(table, label=3, group=2, drop=[1])
        assert dataset.columns is not None
        assert (dataset.columns.names, dataset.label, dataset.group) == (("0",), "3", "2")
        for labels in (table[3], table[3].to_numpy()):
            with pytest.raises(TypeError, match=r"^label: .*fit\(\(X, y\)\)"):
                load(table, label=labels)


def test_duplicates_are_warned_of_and_stay_together() -> None:
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.normal(size=(40, 3)).round(3), columns=list("uvw"))
    table["label"] = ["a", "b"] * 20
    table["split"] = "train"
    table.loc[40] = [*table.loc[0, list("uvw")], "a", "train"]
    table.loc[41] = [*table.loc[1, list("uvw")], "a", "train"]
    table.loc[42] = [*table.loc[2, list("uvw")], "a", "test"]
    dataset, said = warned(table)
    assert "1 row found with more than one label" in said
    assert "row 1 and row 41" in said
    assert "in more than one split" in said
    assert dataset.train.groups is not None
    assert (dataset.train.groups[[0, 1]] == dataset.train.groups[[40, 41]]).all()
    many = pd.concat([table.iloc[:40], *[table.iloc[[4]]] * 30])
    assert warned(many)[0].train.groups is None, "a row that is so frequent is no copy"
    coarse = pd.DataFrame({"yes": [0, 1] * 30, "label": list("aabb") * 15})
    assert warned(coarse)[0].train.groups is None
    texts = pd.DataFrame({"said": [f"call {n} or {n % 7 + 70}" for n in range(90)]})
    texts = pd.concat([texts, texts[:30], texts[:12] * 0], ignore_index=True)
    texts["label"] = ["a"] * 90 + ["b"] * 42
    assert "30 rows found with more than one label" in warned(texts)[1]


def test_a_column_that_leaks_the_label_is_warned_of() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 600)
    table = pd.DataFrame(
        {
            "weak": labels + generator.normal(size=600),
            "code": np.array(["x", "y", "z"])[labels],
            "score": labels * 10 + generator.random(600),
            "rater": np.array(list("abc"))[np.where(generator.random(600) < 0.1, 0, labels)],
            "label": np.array(list("abc"))[labels],
        }
    )
    said = warned(table)[1]
    assert "'code', 'score', 'rater' leak the label" in said
    assert "--drop code --drop score --drop rater" in said
    assert "leak" not in warned(table, drop=["code", "score", "rater"])[1]
    assert "leak" not in warned(table.head(100))[1]
    # What is said of a column that is mostly empty is what was measured.
    checked = table[["weak", "label"]].assign(check=table["label"].where(table.index < 18))
    said = warned(checked)[1]
    assert "where 'check' is filled, in 3% of the rows, it agrees in 100%" in said
    assert "99%" not in said


def test_further_rows_are_read_as_the_first_ones_were(tmp_path: Path) -> None:
    train = load_table(
        write(tmp_path, "size;colour;label\n1,5;red;cat\n2,5;blue;dog\n;red;cat\n4;blue;dog\n"),
        decimal=",",
    )
    assert train.columns is not None
    file = write(tmp_path, "colour;size\nred;9,5\nblue;\n", "new.csv")
    columns = Columns.from_values(train.columns.as_values())
    rows = columns.encode(read_table(file, decimal=columns.decimal))
    assert rows.tolist() == [[9.5, 0, 0, 1], [2.5, 1, 1, 0]]
    test = write(tmp_path, "label;size;colour\ndog;3,5;red\n", "test.csv")
    dataset = load_table(test, like=(train.columns, train.class_names))
    assert dataset.train.labels.tolist() == [1]
    assert dataset.train.array.tolist() == [[3.5, 0, 0, 1]]
    for text, reason in {
        "label;size;colour\nbird;3;red\n": "cat, dog.*bird",
        "label;SIZES;colour\ncat;3;red\n": "'size'",
        "label;size;colour\ncat;big;red\n": "size.*'big' in line 2",
    }.items():
        with pytest.raises(ValueError, match=reason):
            load_table(write(tmp_path, text, "bad.csv"), like=(train.columns, train.class_names))


def test_categories_stay_text_in_a_file_without_the_cell_that_made_them_so(tmp_path: Path) -> None:
    cells = ["1.0", "2.0", "NA", "01"] * 5
    lines = ["n.v.,3,cat"] + [
        f"{z},{row},{'dog' if row % 2 else 'cat'}" for row, z in enumerate(cells)
    ]
    train = load_table(write(tmp_path, "\n".join(["z,size,label", *lines])), drop="size")
    assert train.columns is not None
    new = write(tmp_path, "\n".join(["z,size,label", *lines[1:]]), "new.csv")
    test = load_table(new, like=(train.columns, train.class_names))
    assert test.train.array.tolist() == train.train.array[1:].tolist()


def test_true_and_false_are_read_in_any_case(tmp_path: Path) -> None:
    train = load_table(write(tmp_path, "flag,label\nTRUE,cat\nFALSE,dog\n,cat\nTRUE,dog\n"))
    assert train.columns is not None
    assert train.columns.columns[0].kind == "boolean"
    new = read_table(write(tmp_path, "flag,size\nTRUE,1\nunknown,2\n,3\nfalse,4\n", "new.csv"))
    with pytest.raises(ValueError, match="got 'unknown' in line 3; fix"):
        train.columns.encode(new)
    with pytest.warns(DataWarning, match="got 'unknown' in line 3; treated"):
        rows = train.columns.encode(new, on_error="skip")
    assert rows.tolist() == [[1, 0], [1, 1], [1, 1], [0, 0]]


def test_labels_alone_need_no_features(tmp_path: Path) -> None:
    file = write(tmp_path, "text,label\nlong,a\nlonger,b\nshort,a\nother,b\n")
    dataset = load_dataset(file, features=False)
    assert dataset.train.array.shape == (4, 0)
    assert dataset.columns is None
    with pytest.raises(ValueError, match="column to learn from"):
        load_table(write(tmp_path, "label\na\nb\na\nb\n"))


def test_labels_stay_as_written_however_far_text_and_numbers_are_apart(tmp_path: Path) -> None:
    many = 300_000  # more than pandas reads in a piece
    for first, rest in (("cat", "007"), ("007", "cat"), ("True", "007"), ("?", "1.0")):
        file = tmp_path / "table.csv"
        file.write_text(f"x,label\n1,{first}\n" + f"2,{rest}\n" * many)
        labels = read_table(file)["label"]
        assert labels.dropna().unique().tolist() == [word for word in (first, rest) if word != "?"]
        assert len(labels) == many + 1
