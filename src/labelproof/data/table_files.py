"""Files of tables: which kind one is by its name, what is in a packed one, and others' kinds."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from labelproof.data.notices import readable

__all__ = [
    "ENDINGS",
    "TABLES",
    "how_to_convert",
    "table_bytes",
    "table_kind",
    "table_stem",
]

_PACKED = ".gz"
TABLES = (".csv", ".tsv", ".jsonl", ".parquet", _PACKED)
"""Last endings of the files that are taken for tables; `.gz` is that of a packed one."""
ENDINGS = (*TABLES[:-1], ".csv.gz", ".tsv.gz", ".jsonl.gz")
"""How the names of tables end that are read."""

_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
_ARCHIVES = (".zip", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz", _PACKED)
_SMALLEST_ROOM = 64 << 20
_LARGEST_ROOM = 2 << 30
_RATIO = 100
"""How many times its size a packed table may be; text that people wrote is some ten times."""


def table_kind(path: Path) -> str:
    """The ending that tells how a table is read, without that of a packed file; `""` if none does.

    >>> [table_kind(Path(name)) for name in ("a.CSV", "a.tsv.gz", "a.parquet.gz", "photos")]
    ['.csv', '.tsv', '', '']
    """
    ending = "".join(path.suffixes[-2:]).lower()
    if ending.endswith(_PACKED):
        return ending.removesuffix(_PACKED) if ending in ENDINGS else ""
    return path.suffix.lower() if path.suffix.lower() in ENDINGS else ""


def table_stem(path: Path) -> str:
    """What a table is called, without its endings.

    >>> table_stem(Path("data/customers.csv.gz")), table_stem(Path("v1.2.csv"))
    ('customers', 'v1.2')
    """
    inner = path.with_suffix("") if path.suffix.lower() == _PACKED and table_kind(path) else path
    return inner.stem


def table_bytes(path: Path) -> bytes:
    r"""What is in a file, unpacked if it is packed.

    Raises:
        ValueError: It is damaged, or so much larger than it looks that it is no table.

    Example:
        >>> file = getfixture("tmp_path") / "table.csv.gz"
        >>> _ = file.write_bytes(gzip.compress(b"size,kind\n3,cat\n"))
        >>> table_bytes(file)
        b'size,kind\n3,cat\n'
    """
    if path.suffix.lower() != _PACKED:
        return path.read_bytes()
    place = readable(str(path))
    room = min(max(_RATIO * path.stat().st_size, _SMALLEST_ROOM), _LARGEST_ROOM)
    try:
        with gzip.open(path) as stream:
            content = stream.read(room + 1)
    except gzip.BadGzipFile:
        raise ValueError(
            f"{place}: expected a file that is packed with gzip, by its name, got another; if it "
            "is plain text, rename it without .gz"
        ) from None
    except (EOFError, zlib.error) as error:
        raise ValueError(
            f"{place}: the gzip file is cut short or damaged ({error}); pack or fetch it again"
        ) from None
    if len(content) > room:
        raise ValueError(
            f"{place}: expected a table of at most {room >> 20:,} MB in a packed file of this "
            "size, got more; if it is your own, unpack it first"
        )
    return content


def how_to_convert(path: Path) -> str:
    """What to do with a file that holds a table in a form that is not read; `""` if unknown.

    >>> how_to_convert(Path("customers.xlsx"))
    "; save it as CSV (in a spreadsheet: 'CSV UTF-8')"
    >>> how_to_convert(Path("customers.zip"))
    '; unpack it first'
    """
    if path.suffix.lower() in _SPREADSHEETS:
        return "; save it as CSV (in a spreadsheet: 'CSV UTF-8')"
    return "; unpack it first" if path.suffix.lower() in _ARCHIVES else ""
