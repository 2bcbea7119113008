import gzip
from pathlib import Path

import pytest

from labelproof.data import load_dataset, table_files
from labelproof.data.rows import read_features
from labelproof.data.table_files import table_bytes
from labelproof.data.tables import read_table

TABLE = "size,colour,label\n1,red,cat\n2.5,blue,dog\n3,red,cat\n4,blue,dog\n"


@pytest.mark.parametrize("ending", [".csv.gz", ".CSV.GZ", ".tsv.gz"])
def test_a_packed_table_is_the_same_table(ending: str, tmp_path: Path) -> None:
    packed, plain = tmp_path / f"pets{ending}", tmp_path / "pets.csv"
    plain.write_text(TABLE)
    text = TABLE.replace(",", "\t") if "tsv" in ending else TABLE
    packed.write_bytes(gzip.compress(text.encode()))
    found, wanted = load_dataset(packed, label="label"), load_dataset(plain, label="label")
    assert found.name == wanted.name == "pets"
    assert found.columns == wanted.columns
    assert found.columns is not None
    assert found.train.array.tolist() == wanted.train.array.tolist()
    assert read_features(packed, found.columns)[1] == read_features(plain, found.columns)[1]


def test_a_packed_file_that_is_damaged_or_a_bomb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "t.csv.gz"
    for content, said in (
        (gzip.compress(TABLE.encode())[:-9], "the gzip file is cut short or damaged"),
        (TABLE.encode(), "expected a file that is packed with gzip"),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=rf"t\.csv\.gz: {said}"):
            read_table(file)
    monkeypatch.setattr(table_files, "_SMALLEST_ROOM", 1 << 20)
    file.write_bytes(gzip.compress(bytes(2 << 20)))
    with pytest.raises(ValueError, match=r"of at most 1 MB .* unpack it first"):
        table_bytes(file)


@pytest.mark.parametrize("label", [None, "churned"])
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("t.xlsx", "save it as CSV"),
        ("t.ods", "save it as CSV"),
        ("t.csv.zip", "unpack it first"),
        ("t.parquet.gz", "unpack it first"),
    ],
)
def test_other_kinds_of_file_are_refused_with_what_to_do(
    name: str, advice: str, label: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(ValueError, match=rf"expected a folder or a file .*; {advice}"):
        load_dataset(tmp_path / name, label=label)
    with pytest.raises(ValueError, match=rf"expected a file that ends in .*; {advice}"):
        read_table(tmp_path / name)
