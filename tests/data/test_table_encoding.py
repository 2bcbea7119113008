"""A table that is not in UTF-8 is refused with the command that makes it so."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from labelproof.data.tables import read_table

TEXT = "größe,label\n3,süß\n4,sauer\n"


@pytest.mark.parametrize(
    ("name", "encoding", "command"),
    [
        ("t.csv", "cp1252", "iconv -f cp1252 -t utf-8 t.csv > t-utf8.csv"),
        ("my table.csv", "cp1252", "iconv -f cp1252 -t utf-8 'my table.csv' > 'my table-utf8.csv'"),
        ("t.csv.gz", "cp1252", "gunzip -c t.csv.gz | iconv -f cp1252 -t utf-8 > t-utf8.csv"),
        ("t.csv", "utf-16", "iconv -f utf-16 -t utf-8 t.csv > t-utf8.csv"),
    ],
)
def test_the_command_converts_it(
    name: str, encoding: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = TEXT.encode(encoding)
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(ValueError, match=r"expected UTF-8, got byte 0x.* in line 1") as refused:
        read_table(Path(name))
    assert str(refused.value).endswith(
        f"save the table as UTF-8 (in a spreadsheet: 'CSV UTF-8'), or convert it: {command}"
    )
    if shutil.which("iconv") and shutil.which("gunzip"):
        subprocess.run(command, shell=True, check=True)  # noqa: S602
        (converted,) = Path().glob("*-utf8.csv")
        assert list(read_table(converted).columns) == ["größe", "label"]
