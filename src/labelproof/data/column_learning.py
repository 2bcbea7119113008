"""What kind a column of a table is, seen from its training rows, and what they say about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
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
from labelproof.data.column import Column, checked
from labelproof.data.local_forms import (
    date_order,
    looks_like_date,
    marked_numbers,
    parse_ordered_dates,
    short_year,
)
from labelproof.data.notices import count, notice, quoted
from labelproof.data.number_forms import (
    has_decimal_commas,
    has_thousands_commas,
    parse_local_numbers,
)
from labelproof.data.row_numbers import is_counter_name, numbers_rows

__all__ = ["LeaveOutError", "learn_column"]

MOST_VALUES = 50
"""Values of a category that get a feature of their own."""
FEWEST_ROWS = 2
"""Rows that a value must have for it: from a single row nothing general can be learned."""
FEWEST_NUMBERS = 20
"""Numbers that tell between which bounds others are to be expected."""

_Numeric: TypeAlias = Literal["number", "boolean", "date"]


class LeaveOutError(Exception):
    """There is nothing to be learned from a column; the message says why."""


def learn_column(
    name: str, cells: Cells, where: Where, *, leave_out: bool = True, comma: bool = False
) -> Column:
    """See what kind a column is, and what its training rows say about it.

    Args:
        name: What it is called.
        cells: Its training rows.
        where: How messages name a cell.
        leave_out: Whether a column of numbers that says nothing is left out.
        comma: Whether commas are decimal ones, and dots stand between thousands, as other columns
            tell.

    Raises:
        LeaveOutError: There is nothing to be learned from it.
        ValueError: Its cells are partly of one kind and partly of another.

    >>> learn_column("when", Cells("date", np.array([0.0, 2.0, np.nan])), Where("t", None, "raise"))
    Column(name='when', kind='date', values=(), other=False, missing=1, fill=1.0, offset=0.0, comma=False, order='', thousands=False, rare=0.0, low=None, high=None)
    """  # noqa: E501
    if cells.kind != "text":
        return _numeric(name, cells.kind, cells, (cells.numbers, []), where, leave_out=leave_out)
    if comma:
        numbers = parse_local_numbers(cells.texts, comma=True)
        column = _numeric(name, "number", cells, numbers, where, comma=True, leave_out=leave_out)
        index, marked = next(
            (index, text)
            for index, text in enumerate(cells.texts)
            if ("." in text or "," in text) and not is_missing(text)
        )
        notice(
            f"{where.table}: column {name!r}: {marked!r} taken for {text_of(numbers[0][index])}, "
            "as other columns have decimal commas"
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
        low=float(present.min()) if len(present) >= FEWEST_NUMBERS else None,
        high=float(present.max()) if len(present) >= FEWEST_NUMBERS else None,
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
        different = f"different in every row, such as {quoted(present[0])}"
        raise LeaveOutError(marked_numbers(counts) or different)
    if len(counts) > MOST_VALUES and len(counts) * 2 > len(present):
        many = f"{count(len(counts), 'value')} in {count(len(present), 'row')}"
        raise LeaveOutError(marked_numbers(counts) or f"{many}, such as {quoted(present[0])}")
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
