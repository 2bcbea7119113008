"""The cells of one column: numbers, true or false, dates or text, and what counts as missing."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labelproof.data.array_files import decode_text

__all__ = [
    "Cells",
    "Parsed",
    "folded",
    "is_missing",
    "parse_booleans",
    "parse_dates",
    "parse_numbers",
    "read_cells",
    "text_of",
]

_MISSING = frozenset({"", "?", "-", ".", "na", "n/a", "#n/a", "nan", "nat", "<na>", "null", "none"})
_DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))? ?(?:(Z)|([+-])(\d\d):?(\d\d))?)?"
)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_BOOLEANS = {"true": 1.0, "false": 0.0}

Parsed: TypeAlias = tuple[NDArray[np.float64], list[int]]
"""A number a cell, NaN where there is none, and which cells hold something else."""


@dataclass(frozen=True)
class Cells:
    """A column as it came, before anything is made of its text.

    Attributes:
        kind: What the cells are. Dates are days since 1970.
        numbers: A number a row, NaN where missing; for text there are none.
        texts: A text a row, of a word such as `NA` where missing; only for text.
    """

    kind: Literal["number", "boolean", "date", "text"]
    numbers: NDArray[np.float64]
    texts: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.texts) if self.kind == "text" else len(self.numbers)

    def as_texts(self) -> Sequence[str]:
        """The cells as they would be written, empty where missing.

        >>> read_cells("children", [0, 2.5, None]).as_texts()
        ['0', '2.5', '']
        """
        if self.kind == "text":
            return ["" if is_missing(text) else text for text in self.texts]
        values: list[Any] = self.numbers.tolist()
        if self.kind == "boolean":
            return ["" if value != value else str(bool(value)) for value in values]
        return ["" if value != value else text_of(value) for value in values]


def folded(text: str) -> str:
    """What two texts that differ only in case or spaces have in common.

    >>> folded("Net Price ") == folded("net price") == folded("NETPRICE")
    True
    """
    return "".join(text.split()).casefold()


def is_missing(text: str) -> bool:
    """Whether a cell says that there is no value.

    >>> [is_missing(text) for text in ("", "NaN", "n/a", "?", "0")]
    [True, True, True, True, False]
    """
    return text.casefold() in _MISSING


def text_of(value: object) -> str:
    """A value as a table of text would have it, whole numbers without a point.

    >>> text_of(3.0), text_of(" red "), text_of(True)
    ('3', 'red', 'True')
    """
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def read_cells(name: str, column: Any) -> Cells:
    """Tell what a column holds by the types of its values, not yet by what its text says.

    Args:
        name: The column's name, for the message.
        column: A sequence of text or numbers, a NumPy array, or a column of pandas.

    Raises:
        TypeError: A value is a list or another container.

    Example:
        >>> read_cells("age", [31, None, 47.5]).numbers
        array([31. ,  nan, 47.5])
        >>> read_cells("when", np.array(["1970-01-03"], dtype="datetime64[D]"))
        Cells(kind='date', numbers=array([2.]), texts=())
    """
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise ValueError(f"columns: expected one cell a row in {name!r}, got {column.shape}")
        kind = column.dtype.kind
        if kind in "iuf":
            return Cells("number", column.astype(np.float64))
        if kind == "b":
            return Cells("boolean", column.astype(np.float64))
        if kind == "M":
            return Cells("date", _days(column))
        if kind == "m":
            return Cells("number", _days(column.astype("timedelta64[us]").view("datetime64[us]")))
        if kind not in "USOT":
            raise TypeError(f"columns: expected numbers or text in {name!r}, got {column.dtype}")
        column = decode_text(column).tolist()
    return _read_objects(name, list(column))


def parse_numbers(texts: Sequence[str], *, comma: bool = False) -> Parsed:
    """Read text as numbers.

    Args:
        texts: The cells.
        comma: Whether the comma is the decimal point, as spreadsheets write in many countries.

    >>> parse_numbers(["1.5", "NA", "about 3"])
    (array([1.5, nan, nan]), [2])
    >>> parse_numbers(["1,5", "2"], comma=True)
    (array([1.5, 2. ]), [])
    """
    # Python reads 12_3 as 123, but in a table it is a code.
    if "_" not in "".join(texts):
        try:
            return np.fromiter(map(float, texts), np.float64, len(texts)), []
        except ValueError:
            pass  # Some cell is no number: they are looked at one by one.

    def one(text: str) -> float | None:
        if comma and _DECIMAL_COMMA.fullmatch(text):
            text = text.replace(",", ".")
        try:
            return None if "_" in text else float(text)
        except ValueError:
            return None

    return _parse(texts, one)


def parse_booleans(texts: Sequence[str]) -> Parsed:
    """Read `true` and `false` as 1 and 0.

    >>> parse_booleans(["True", "false", ""])
    (array([ 1.,  0., nan]), [])
    """
    return _parse(texts, lambda text: _BOOLEANS.get(text.casefold()))


def parse_dates(texts: Sequence[str]) -> Parsed:
    """Read dates as days since 1970, and their times of day as the fractions.

    Only the international form is a date, with the year first: in `03/04/2024` nobody can tell
    the day from the month. A time without a zone is taken as it is.

    >>> parse_dates(["1970-01-02", "1970-01-02 12:00", "1970-01-02T13:00:00+01:00", "1/2/1970"])
    (array([1. , 1.5, 1.5, nan]), [3])
    """
    return _parse(texts, _date)


def _date(text: str) -> float | None:
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, _, sign, zone_hours, zone_minutes = match.groups()
    if int(hour or 0) > 23 or int(minute or 0) > 59 or float(second or 0) >= 61:
        return None
    try:
        days = datetime.date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        return None
    minutes = int(hour or 0) * 60 + int(minute or 0) + float(second or 0) / 60
    if sign:
        ahead = int(zone_hours) * 60 + int(zone_minutes)
        minutes += -ahead if sign == "+" else ahead
    return days + minutes / 1440


def _parse(texts: Sequence[str], one: Callable[[str], float | None]) -> Parsed:
    values = np.full(len(texts), np.nan)
    stray: list[int] = []
    for index, text in enumerate(texts):
        value = one(text)
        if value is not None:
            values[index] = value
        elif not is_missing(text):
            stray.append(index)
    return values, stray


def _days(moments: NDArray[Any]) -> NDArray[np.float64]:
    whole = moments.astype("datetime64[us]")
    days = whole.astype(np.int64) / 86_400e6
    days[np.isnat(whole)] = np.nan
    return days


def _read_objects(name: str, values: list[Any]) -> Cells:
    if set(map(type, values)) <= {str}:
        return Cells("text", np.empty(0), list(map(str.strip, values)))
    absent = [_is_absent(value) for value in values]
    present = [value for value, gone in zip(values, absent, strict=True) if not gone]
    for value in present:
        if isinstance(value, (list, tuple, dict, set, np.ndarray)):
            raise TypeError(
                f"columns: expected numbers or text in {name!r}, got {value!r:.60} "
                f"({type(value).__name__})"
            )
    if present and all(isinstance(value, (bool, np.bool_)) for value in present):
        return Cells("boolean", _filled(present, absent))
    if present and all(_is_number(value) for value in present):
        return Cells("number", _filled(present, absent))
    if present and all(isinstance(value, (datetime.date, np.datetime64)) for value in present):
        days, _ = parse_dates([_moment(value) for value in present])
        return Cells("date", _filled(days.tolist(), absent))
    texts = ["" if gone else text_of(value) for value, gone in zip(values, absent, strict=True)]
    return Cells("text", np.empty(0), texts)


def _is_absent(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (str, list, tuple, dict, set, np.ndarray)):
        return False
    try:
        return bool(value != value)
    except TypeError:  # the missing value of pandas does not say whether it equals itself
        return True


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_))


def _moment(value: Any) -> str:
    """A moment as `_date` reads it, whichever library it is from."""
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[us]"))
    return str(value.isoformat())


def _filled(present: Sequence[Any], absent: Sequence[bool]) -> NDArray[np.float64]:
    values = np.full(len(absent), np.nan)
    values[~np.array(absent, dtype=bool)] = [float(value) for value in present]
    return values
