"""One column of a table: what kind it is, and the features it becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labelproof.data.cell_place import Where
from labelproof.data.cells import (
    Cells,
    Parsed,
    is_missing,
    parse_booleans,
    parse_dates,
    parse_numbers,
    text_of,
)
from labelproof.data.local_forms import (
    date_order,
    looks_like_date,
    marked_numbers,
    parse_ordered_dates,
    short_year,
)
from labelproof.data.notices import count, few, notice
from labelproof.data.number_forms import (
    has_decimal_commas,
    has_thousands_commas,
    parse_local_numbers,
)
from labelproof.data.row_numbers import is_counter_name, numbers_rows
from labelproof.data.unseen_values import unseen

__all__ = ["KINDS", "Column", "LeaveOutError", "learn_column"]

KINDS = ("number", "boolean", "date", "category")
"""What a column can be."""
MOST_VALUES = 50
"""Values of a category that get a feature of their own."""
FEWEST_ROWS = 2
"""Rows that a value must have for it: from a single row nothing general can be learned."""
LARGEST = 1e30
"""Numbers past it count as infinite: their differences would be past what float32 holds."""

_Numeric: TypeAlias = Literal["number", "boolean", "date"]
_PLURALS = {"number": "numbers", "boolean": "true or false", "date": "dates such as 2024-12-31"}


class LeaveOutError(Exception):
    """There is nothing to be learned from a column; the message says why."""


@dataclass(frozen=True)
class Column:
    """What becomes of a column.

    Attributes:
        name: What the column is called.
        kind: What its cells are.
        values: The values of a category that have a feature each.
        other: Whether a feature stands for all other values of a category.
        missing: How many training rows lacked a value; if any did, a feature says so.
        fill: What stands for a missing number: the median of the training rows.
        offset: What is taken off a number, where float32 would otherwise lose its differences.
        comma: Whether text has a comma for the decimal point, and dots between thousands.
        order: What comes first in dates whose year comes last: `"day"` or `"month"`.
        thousands: Whether text has commas between thousands.
        rare: Which share of the training rows with a value had one without a feature of its own.

    Example:
        >>> Column("size", "category", values=("L", "S"), other=True, missing=3).feature_names
        ('size=L', 'size=S', 'size: other', 'size: missing')
    """

    name: str
    kind: Literal["number", "boolean", "date", "category"]
    values: tuple[str, ...] = ()
    other: bool = False
    missing: int = 0
    fill: float = 0.0
    offset: float = 0.0
    comma: bool = False
    order: str = ""
    thousands: bool = False
    rare: float = 0.0

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each of its features."""
        names = [self.name]
        if self.kind == "category":
            names = [f"{self.name}={value}" for value in self.values]
            names += [f"{self.name}: other"] * self.other
        return (*names, *[f"{self.name}: missing"] * bool(self.missing))

    def encode(self, cells: Cells, features: NDArray[np.float32], where: Where) -> None:
        """Write the features of some rows into `(N, F)` zeros."""
        if self.kind == "category":
            self._encode_category(cells, features, where)
            return
        values = checked(self.name, self.kind, cells, self._parse(cells), where)
        absent = np.isnan(values)
        features[:, 0] = np.where(absent, self.fill, values) - self.offset
        if self.missing:
            features[:, 1] = absent

    def _parse(self, cells: Cells) -> Parsed:
        if cells.kind == "text":
            if self.kind == "number":
                return parse_local_numbers(cells.texts, comma=self.comma, thousands=self.thousands)
            if self.kind == "date" and self.order:
                return parse_ordered_dates(cells.texts, self.order)
            return (parse_dates if self.kind == "date" else parse_booleans)(cells.texts)
        if "date" in (self.kind, cells.kind):
            fits = np.full(len(cells), cells.kind == self.kind)
        elif self.kind == "boolean":
            fits = (cells.numbers == 0) | (cells.numbers == 1)
        else:
            fits = np.ones(len(cells), dtype=bool)
        return cells.numbers, np.flatnonzero(~(fits | np.isnan(cells.numbers))).tolist()

    def _encode_category(self, cells: Cells, features: NDArray[np.float32], where: Where) -> None:
        index = {value: number for number, value in enumerate(self.values)}
        nowhere = features.shape[1]
        others = len(self.values) if self.other else nowhere
        index[""] = features.shape[1] - 1 if self.missing else others
        texts = cells.as_texts()
        chosen = np.array([index.get(text, others) for text in texts], dtype=np.intp)
        rows = np.flatnonzero(chosen < nowhere)
        features[rows, chosen[rows]] = 1
        # Columns that were kept without it have others of which no one knows how many.
        if (self.rare or not self.other) and (told := unseen(texts, self.values, rare=self.rare)):
            where.tell(self.name, told)


def learn_column(
    name: str, cells: Cells, where: Where, *, leave_out: bool = True, comma: bool = False
) -> Column:
    """See what kind a column is, and what its training rows say about it.

    Args:
        name: What it is called.
        cells: Its training rows.
        where: How messages name a cell.
        leave_out: Whether a column of numbers that says nothing is left out.
        comma: Whether dots stand between thousands, as other columns tell.

    Raises:
        LeaveOutError: There is nothing to be learned from it.
        ValueError: Its cells are partly of one kind and partly of another.

    >>> learn_column("when", Cells("date", np.array([0.0, 2.0, np.nan])), Where("t", None, "raise"))
    Column(name='when', kind='date', values=(), other=False, missing=1, fill=1.0, offset=0.0, comma=False, order='', thousands=False, rare=0.0)
    """  # noqa: E501
    if cells.kind != "text":
        return _numeric(name, cells.kind, cells, (cells.numbers, []), where, leave_out=leave_out)
    if comma:
        numbers = parse_local_numbers(cells.texts, comma=True)
        column = _numeric(name, "number", cells, numbers, where, comma=True, leave_out=leave_out)
        dotted = next(text for text in cells.texts if "." in text and not is_missing(text))
        notice(
            f"{where.table}: column {name!r}: {dotted!r} taken for {dotted.replace('.', '')}, as "
            "other columns have decimal commas"
        )
        return column
    numbers = parse_numbers(cells.texts)
    if not numbers[1]:
        return _numeric(name, "number", cells, numbers, where, leave_out=leave_out)
    present = [text for text in cells.texts if not is_missing(text)]
    stray = [cells.texts[index] for index in numbers[1]]
    if has_decimal_commas(stray):
        numbers = parse_local_numbers(cells.texts, comma=True)
        return _numeric(name, "number", cells, numbers, where, comma=True)
    if has_thousands_commas(stray):
        numbers = parse_local_numbers(cells.texts, thousands=True)
        return replace(_numeric(name, "number", cells, numbers, where), thousands=True)
    others: tuple[tuple[_Numeric, Callable[[Sequence[str]], Parsed]], ...]
    others = (("boolean", parse_booleans), ("date", parse_dates))
    for kind, parse in others:
        # One cell tells for most columns that they are something else.
        if not parse(present[:1])[1] and not (parsed := parse(cells.texts))[1]:
            return _numeric(name, kind, cells, parsed, where)
    order = date_order(present) if looks_like_date(present[0]) else ""
    if order and not (parsed := parse_ordered_dates(cells.texts, order))[1]:
        column = _numeric(name, "date", cells, parsed, where)
        if "." not in present[0]:
            notice(
                f"{where.table}: column {name!r}: dates such as {present[0]!r} taken with the "
                f"{order} first, as other cells need it"
            )
        return replace(column, order=order)
    if len(numbers[1]) * 2 < len(present):
        if len(set(present)) > min(MOST_VALUES, len(present) / 10):
            return _numeric(name, "number", cells, numbers, where)
        notice(
            f"{where.table}: column {name!r}: numbers and text, as {cells.texts[numbers[1][0]]!r} "
            f"in {where.row(numbers[1][0])}, in {len(set(present))} values; taken for categories"
        )
    elif marked := marked_numbers(dict.fromkeys(present)):
        column = _category(name, present, len(cells) - len(present))
        notice(f"{where.table}: column {name!r}: {marked}; taken for categories")
        return column
    return _category(name, present, len(cells) - len(present))


def checked(
    name: str, kind: str, cells: Cells, parsed: Parsed, where: Where
) -> NDArray[np.float64]:
    """Numbers without what is none and without infinite ones, or an error that names them."""
    values, stray = parsed
    if stray:
        written = cells.texts if cells.kind == "text" else [text_of(v) for v in cells.numbers]
        shown = [f"{written[index]!r} in {where.row(index)}" for index in stray]
        where.complain(name, f"expected {_PLURALS[kind]}, got {few(shown)}")
        values = values.copy()
        values[stray] = np.nan
    infinite = np.flatnonzero(np.abs(values) > LARGEST).tolist()
    if infinite:
        shown = [f"{values[index]:g} in {where.row(index)}" for index in infinite]
        where.complain(name, f"expected numbers of up to {LARGEST:g}, got {few(shown)}")
        values = values.copy()
        values[infinite] = np.nan
    return values


def _numeric(
    name: str,
    kind: _Numeric,
    cells: Cells,
    parsed: Parsed,
    where: Where,
    *,
    comma: bool = False,
    leave_out: bool = True,
) -> Column:
    values = checked(name, kind, cells, parsed, where)
    present = values[~np.isnan(values)]
    missing = len(values) - len(present)
    if leave_out:
        _check_informative(name, kind, present, missing)
    fill = float(np.median(present)) if len(present) else 0.0
    # float32 keeps 7 digits: of seconds since 1970 it would keep steps of two minutes.
    lost = len(present) and np.abs(present).max() * 2.0**-24 > 1e-3 * present.std() > 0
    return Column(
        name=name,
        kind=kind,
        missing=missing,
        fill=fill,
        offset=fill if lost else 0.0,
        comma=comma,
    )


def _check_informative(name: str, kind: str, present: NDArray[np.float64], missing: int) -> None:
    if not len(present):
        raise LeaveOutError("empty")
    if not missing and present.min() == present.max():
        raise LeaveOutError(f"always {'the same' if kind == 'date' else text_of(present[0])}")
    if kind == "number" and numbers_rows(name, present):
        # Where not its name says so, its numbers do.
        span = f", from {text_of(present.min())} to {text_of(present.max())}"
        raise LeaveOutError(f"a number for each row{'' if is_counter_name(name) else span}")


def _category(name: str, present: Sequence[str], missing: int) -> Column:
    counts = Counter(present)
    if len(counts) == 1 and not missing:
        raise LeaveOutError(f"always {present[0]!r}")
    if all(map(looks_like_date, counts)):
        short = next(filter(short_year, counts), None)
        unclear = "where day and month cannot be told apart"
        if short is not None:
            unclear = "whose year has two digits"
        raise LeaveOutError(f"dates such as {(short or present[0])!r}, {unclear}; write 2024-12-31")
    if len(counts) > 1 and len(counts) == len(present):
        different = f"different in every row, such as {present[0]!r:.40}"
        raise LeaveOutError(marked_numbers(counts) or different)
    if len(counts) > MOST_VALUES and len(counts) * 2 > len(present):
        many = f"{count(len(counts), 'value')} in {count(len(present), 'row')}"
        raise LeaveOutError(marked_numbers(counts) or f"{many}, such as {present[0]!r:.40}")
    frequent = [(-rows, value) for value, rows in counts.items() if rows >= FEWEST_ROWS]
    kept = sorted(value for _, value in sorted(frequent)[:MOST_VALUES])
    rest = len(present) - sum(counts[value] for value in kept)
    return Column(
        name=name,
        kind="category",
        values=tuple(kept),
        other=len(kept) < len(counts),
        missing=missing,
        rare=rest / len(present),
    )
