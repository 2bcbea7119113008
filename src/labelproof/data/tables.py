"""Tables of text in files: CSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelproof.data.arrow import import_arrow
from labelproof.data.notices import count, readable

__all__ = ["Table", "TableRow", "read_table"]


@dataclass(frozen=True)
class TableRow:
    """Some cells of a row, empty where there is nothing; `place` is how a person finds it."""

    place: str
    cells: Sequence[str]


@dataclass(frozen=True)
class Table:
    """The names of the columns, and a way to read some of them row by row."""

    columns: Sequence[str]
    read: Callable[[Sequence[str]], Iterator[TableRow]]


def read_table(path: Path) -> Table:
    r"""Open a table, of a kind that is seen from the file's name.

    Args:
        path: A `.csv` in UTF-8 with commas, semicolons or tabs, a `.tsv`, a `.jsonl` with an object
            a line, or a `.parquet`, which needs pyarrow.

    Raises:
        ValueError: The file is none of these, or cannot be read; the message names the line.

    Example:
        >>> file = getfixture("tmp_path") / "table.csv"
        >>> _ = file.write_text("file;size;class\n1.png;3;cat\n")
        >>> table = read_table(file)
        >>> list(table.columns), next(table.read(["class", "file"])).cells
        (['file', 'size', 'class'], ['cat', '1.png'])
    """
    place = readable(str(path))
    if not path.exists():
        raise FileNotFoundError(f"path: expected a table, got {place}: there is none")
    readers = {
        ".csv": lambda: _read_csv(path, place, ",;\t"),
        ".tsv": lambda: _read_csv(path, place, "\t"),
        ".jsonl": lambda: _read_json_lines(path, place),
        ".parquet": lambda: _read_parquet(path, place),
    }
    if path.suffix.lower() not in readers or path.is_dir():
        raise ValueError(f"path: expected a file that ends in {', '.join(readers)}, got {place}")
    return readers[path.suffix.lower()]()


def _read_text(path: Path, place: str) -> str:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{place}: expected UTF-8, got byte 0x{content[error.start]:02x} in line {line}; save "
            "the table as UTF-8 (in a spreadsheet: 'CSV UTF-8')"
        ) from None
    if "\0" in text:
        raise ValueError(f"{place}: expected text, got zero bytes; save the table as UTF-8")
    return text


def _read_csv(path: Path, place: str, delimiters: str) -> Table:
    text = _read_text(path, place)
    header = next((line for line in text.splitlines() if line.strip()), "")
    # The one that the first line has most of: spreadsheets write what the country uses.
    delimiter = max(delimiters, key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"{place}: line {reader.line_num}: {error}") from None
    columns = rows[0][1] if rows else []
    for line, row in rows:
        if len(row) != len(columns):
            raise ValueError(
                f"{place}: expected {count(len(columns), 'cell')} in line {line}, got {len(row)}"
            )

    def read(names: Sequence[str]) -> Iterator[TableRow]:
        chosen = [columns.index(name) for name in names]
        for line, row in rows[1:]:
            yield TableRow(f"line {line}", [row[index].strip() for index in chosen])

    return Table(columns, read)


def _read_json_lines(path: Path, place: str) -> Table:
    entries: list[tuple[int, dict[str, object]]] = []
    # Not splitlines: JSON may hold the line ends of other alphabets as they are.
    for number, line in enumerate(_read_text(path, place).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{place}: line {number}: {error}") from None
        if not isinstance(entry, dict):
            raise ValueError(f"{place}: line {number}: expected an object, got {line[:40]!r}")
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
        columns = file.read(columns=list(names))
        values = [columns[name].to_pylist() for name in names]
        for number, cells in enumerate(zip(*values, strict=True)):
            yield TableRow(f"row {number}", [_text(cell) for cell in cells])

    return Table(file.schema_arrow.names, read)


def _text(value: object) -> str:
    if value is None or value != value:  # NaN is how other software keeps a missing number
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # and whole numbers beside missing ones are kept as floats
    return str(value).strip()
