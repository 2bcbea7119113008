"""Tables of text in files: CSV, JSON lines and Parquet."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.data.arrow import import_arrow
from labelproof.data.notices import count, quoted, readable
from labelproof.data.table_files import (
    ENDINGS,
    how_to_convert,
    table_bytes,
    table_kind,
    table_stem,
)

__all__ = ["Table", "TableRow", "read_table"]

_ROWS = 4096
_FIRST_LINE = re.compile(r"[^\S\r\n]*\S[^\r\n]*")


@dataclass(frozen=True)
class TableRow:
    """Some cells of a row, empty where there is nothing; `place` is how a person finds it."""

    place: str
    cells: Sequence[str]


@dataclass(frozen=True)
class Table:
    """The names of the columns, and a way to read some of them row by row.

    Attributes:
        columns: The names.
        read: Reads the columns of some names; what is wrong with a row is said when it is reached.
        numbers: The column of a name as an array, NaN where a number is missing, if the file keeps
            it as numbers; `None` for a column of text, and for any in a file of text.
    """

    columns: Sequence[str]
    read: Callable[[Sequence[str]], Iterator[TableRow]]
    numbers: Callable[[str], NDArray[np.float64] | None] = lambda _: None


def read_table(path: Path) -> Table:
    r"""Open a table, of a kind that is seen from the file's name.

    Args:
        path: A `.csv` in UTF-8 with commas, semicolons or tabs, a `.tsv`, a `.jsonl` with an object
            a line, or a `.parquet`, which needs pyarrow; text may be packed, as in `.csv.gz`.

    Raises:
        ValueError: The file is none of these, or cannot be read; the message names the line. What
            is wrong below the names of the columns is said while it is read.

    Example:
        >>> file = getfixture("tmp_path") / "table.csv"
        >>> _ = file.write_text("file;size;class\n1.png;3;cat\n")
        >>> table = read_table(file)
        >>> list(table.columns), next(table.read(["class", "file"])).cells
        (['file', 'size', 'class'], ['cat', '1.png'])
    """
    place = readable(str(path))
    if not path.exists():
        raise FileNotFoundError(f"{place}: there is no such file")
    readers = {
        ".csv": lambda: _read_csv(path, place, ",;\t"),
        ".tsv": lambda: _read_csv(path, place, "\t"),
        ".jsonl": lambda: _read_json_lines(path, place),
        ".parquet": lambda: _read_parquet(path, place),
    }
    kind = table_kind(path)
    if not kind or path.is_dir():
        raise ValueError(
            f"path: expected a file that ends in {', '.join(ENDINGS)}, got {place}"
            f"{how_to_convert(path)}"
        )
    return readers[kind]()


def _read_text(path: Path, place: str) -> tuple[bytes, str]:
    content = table_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{place}: expected UTF-8, got byte 0x{content[error.start]:02x} in line {line}; save "
            "the table as UTF-8 (in a spreadsheet: 'CSV UTF-8'), or convert it: "
            f"{_conversion(path, content)}"
        ) from None
    if "\0" in text:
        raise ValueError(f"{place}: expected text, got zero bytes; save the table as UTF-8")
    return content, text


def _conversion(path: Path, content: bytes) -> str:
    """The command that writes a table anew as UTF-8."""
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    # What spreadsheets in Western languages write; no byte tells it from others of its kind.
    encoding = "utf-16" if wide else "cp1252"
    new = shlex.quote(readable(f"{table_stem(path)}-utf8{table_kind(path)}"))
    file, convert = shlex.quote(readable(str(path))), f"iconv -f {encoding} -t utf-8"
    if path.suffix.lower() == ".gz":
        return f"gunzip -c {file} | {convert} > {new}"
    return f"{convert} {file} > {new}"


def _read_csv(path: Path, place: str, delimiters: str) -> Table:
    content, text = _read_text(path, place)
    header = _FIRST_LINE.search(text)
    # The one that the first line has most of: spreadsheets write what the country uses.
    delimiter = max(delimiters, key=header[0].count) if header else delimiters[0]

    def parse() -> Iterator[tuple[int, list[str]]]:
        # From the bytes and anew each time: cells take ten times as much memory as the file.
        stream = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        width: int | None = None
        try:
            for row in reader:
                if not any(cell.strip() for cell in row):
                    continue
                width = len(row) if width is None else width
                if len(row) != width:
                    raise ValueError(
                        f"{place}: expected {count(width, 'cell')} in line {reader.line_num}, got "
                        f"{len(row)}"
                    )
                yield reader.line_num, row
        except csv.Error as error:
            raise ValueError(f"{place}: line {reader.line_num}: {error}") from None

    columns = next(parse(), (0, []))[1]

    def read(names: Sequence[str]) -> Iterator[TableRow]:
        chosen = [columns.index(name) for name in names]
        for line, row in itertools.islice(parse(), 1, None):
            yield TableRow(f"line {line}", [row[index].strip() for index in chosen])

    return Table(columns, read)


def _read_json_lines(path: Path, place: str) -> Table:
    entries: list[tuple[int, dict[str, object]]] = []
    # Not splitlines: JSON may hold the line ends of other alphabets as they are.
    for number, line in enumerate(_read_text(path, place)[1].split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{place}: line {number}: {error}") from None
        if not isinstance(entry, dict):
            raise ValueError(f"{place}: line {number}: expected an object, got {quoted(line)}")
        entries.append((number, entry))

    def read(names: Sequence[str]) -> Iterator[TableRow]:
        for number, entry in entries:
            yield TableRow(f"line {number}", [_text(entry.get(name)) for name in names])

    return Table(list(dict.fromkeys(key for _, entry in entries for key in entry)), read)


def _read_parquet(path: Path, place: str) -> Table:
    arrow = import_arrow(f"{place}: reading Parquet")
    parquet = import_arrow(f"{place}: reading Parquet", "pyarrow.parquet")
    try:
        file = parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{place}: cannot be read as Parquet: {error}") from error

    def read(names: Sequence[str]) -> Iterator[TableRow]:
        for name in names:
            kind = file.schema_arrow.field(name).type
            if arrow.types.is_nested(kind) or arrow.types.is_binary(kind):
                raise ValueError(
                    f"{place}: expected text or numbers in the column {name!r}, got {kind}"
                )
        # Some rows at a time: whoever looks at the first few does not wait for all.
        number = 0
        for batch in file.iter_batches(batch_size=_ROWS, columns=list(names)):
            for cells in zip(*(batch[name].to_pylist() for name in names), strict=True):
                yield TableRow(f"row {number}", [_text(cell) for cell in cells])
                number += 1

    def numbers(name: str) -> NDArray[np.float64] | None:
        kind = file.schema_arrow.field(name).type
        if not (arrow.types.is_floating(kind) or arrow.types.is_integer(kind)):
            return None
        return file.read(columns=[name])[name].to_numpy().astype(np.float64)

    return Table(file.schema_arrow.names, read, numbers)


def _text(value: object) -> str:
    if value is None or value != value:  # NaN is how other software keeps a missing number
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # and whole numbers beside missing ones are kept as floats
    return str(value).strip()
