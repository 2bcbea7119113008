"""How the columns of a table become features, learned from training rows and kept with a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.cell_place import Where
from labelproof.data.cells import Cells, parse_numbers, read_cells
from labelproof.data.column import KINDS, Column
from labelproof.data.column_learning import LeaveOutError, learn_column
from labelproof.data.headers import refuse_missing, refuse_twice
from labelproof.data.notices import count, few, notice
from labelproof.data.number_forms import (
    commas_alone,
    dots_between_thousands,
    has_decimal_commas,
    has_decimal_points,
)

__all__ = ["Columns"]


@dataclass(frozen=True)
class Columns:
    """What becomes of each column of a table.

    A number becomes a feature; where training rows lacked it, it is filled with their median and
    a second feature says so. A category becomes a feature for each value that at least two
    training rows have, the 50 most frequent at most, and one for all others where there were such.
    A value that training rows did not have counts among those others; where there are none, all
    features of its column are 0, since nothing could be learned about a feature that never was.
    Where such values are many, a warning says so. `true` and `false` become 1 and 0. A date becomes
    its number of days since 1970: with the year first as in `2024-12-31`, with dots and the day
    first as in `31.12.2024`, or with slashes if some cell of the column tells the day from the
    month. Columns that say nothing are left out: those that are empty or always the same, text that
    is different in (nearly) every row, row numbers whatever they are called, and dates in which day
    and month cannot be told apart.

    Empty cells and `NA`, `N/A`, `NaN`, `null`, `None`, `?`, `-` and `.` are missing values.

    Attributes:
        columns: The columns that are used, in the order of their features.
        left_out: The names of those that are not, and why.

    Example:
        >>> table = {"age": ["31", "", "47", "52"], "colour": ["red", "blue", "red", "blue"]}
        >>> columns = Columns.learn(list(table), list(table.values()))
        >>> columns.feature_names
        ('age', 'age: missing', 'colour=blue', 'colour=red')
        >>> columns.encode(["colour", "age"], [["red", "green"], [20, None]])
        array([[20.,  0.,  0.,  1.],
               [47.,  1.,  0.,  0.]], dtype=float32)
        >>> Columns.from_values(columns.as_values()) == columns
        True
    """

    columns: tuple[Column, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    @classmethod
    def learn(
        cls,
        names: Iterable[object],
        columns: Iterable[Any],
        *,
        place: str = "table",
        places: Sequence[str] | None = None,
        on_error: str = "raise",
        leave_out: bool = True,
    ) -> Columns:
        """Learn from training rows what becomes of each column.

        Args:
            names: A name for each column.
            columns: For each column its cells: a sequence of text or numbers, a NumPy array, or a
                column of pandas.
            place: What the table is called in messages.
            places: How a person finds each row; `row 0`, `row 1`, ... where it is not given.
            on_error: What becomes of text between numbers and of infinite values: `"raise"`
                refuses them, `"skip"` takes them for missing, with a warning, `"quiet"` without.
            leave_out: Whether columns that say nothing are left out. Without it only columns of
                numbers are taken, and all of them are kept.

        Raises:
            ValueError: A name occurs twice, a column mixes numbers and text or has an infinite
                value, columns differ in length, or no column can be used.

        Warns:
            DataWarning: Columns are left out, or cells were taken for missing.
        """
        contents = _by_name(names, columns, place)
        num_rows = _num_rows(contents, place)
        where = Where(place, places, on_error)
        local = _commas_by_others(contents)
        used: list[Column] = []
        left_out: list[tuple[str, str]] = []
        for name, content in contents.items():
            try:
                used.append(
                    learn_column(name, content, where, leave_out=leave_out, comma=name in local)
                )
            except LeaveOutError as reason:
                left_out.append((name, str(reason)))
        listed = few([f"{name} ({reason})" for name, reason in left_out], shown=8)
        if not used:
            found = f": {listed}" if listed else ""
            raise ValueError(
                f"{place}: expected a column to learn from in {count(num_rows, 'row')}, got "
                f"none{found}"
            )
        if left_out:
            total = count(len(contents), "column")
            notice(f"{place}: {len(left_out)} of {total} left out: {listed}")
        return cls(tuple(used), tuple(left_out))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are used."""
        return tuple(column.name for column in self.columns)

    def encode(
        self,
        names: Iterable[object],
        columns: Iterable[Any],
        *,
        place: str = "table",
        places: Sequence[str] | None = None,
        on_error: str = "raise",
    ) -> NDArray[np.float32]:
        """Turn a table into rows of features.

        Args:
            names: A name for each column, in any order; columns that are not used are ignored.
            columns: As for `learn`.
            place: What the table is called in messages.
            places: How a person finds each row.
            on_error: As for `learn`.

        Returns:
            `(N, F)`, finite.

        Raises:
            ValueError: A column is not there, or a cell is not of its column's kind.

        Warns:
            DataWarning: Many values were not seen in training, numbers lie far outside of what was
                seen, nothing tells what a dot or a comma in them means, or cells were taken for
                missing.
        """
        contents = _by_name(names, columns, place, only=self.names)
        refuse_missing(self.names, list(contents), place)
        num_rows = _num_rows({name: contents[name] for name in self.names}, place)
        rows = np.zeros((num_rows, len(self.feature_names)), np.float32)
        where = Where(place, places, on_error)
        start = 0
        clear = any(column.tells_commas(contents[column.name]) for column in self.columns)
        points = any(column.tells_points(contents[column.name]) for column in self.columns)
        for column in self.columns:
            stop = start + len(column.feature_names)
            cells = contents[column.name]
            column.encode(cells, rows[:, start:stop], where, clear=clear, points=points)
            start = stop
        return rows

    def as_values(self) -> dict[str, Any]:
        """The same as plain values, as JSON keeps them."""
        return {
            "columns": [{**asdict(column), "values": [*column.values]} for column in self.columns],
            "left_out": [list(entry) for entry in self.left_out],
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Columns:
        """What `as_values` was made of.

        Raises:
            ValueError: These are not such values.

        >>> Columns.from_values({"columns": [{"name": "age", "sort": "number"}]})
        Traceback (most recent call last):
            ...
        ValueError: columns: expected what as_values gives, got {'columns': [{'name': 'age',...
        """
        known = {field.name for field in fields(Column)}
        try:
            entries = values["columns"]
            if any(set(entry) - known or entry["kind"] not in KINDS for entry in entries):
                raise KeyError
            return cls(
                tuple(
                    Column(**{**entry, "values": tuple(entry.get("values", ()))})
                    for entry in entries
                ),
                tuple((str(name), str(reason)) for name, reason in values.get("left_out", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError(
                f"columns: expected what as_values gives, got {str(values)[:28]}..."
            ) from None


def _by_name(
    names: Iterable[object],
    columns: Iterable[Any],
    place: str,
    *,
    only: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The cells of each column; those that are not wanted are not read."""
    words, contents = [str(name).strip() for name in names], list(columns)
    if len(words) != len(contents):
        raise ValueError(
            f"{place}: expected a name for each of {count(len(contents), 'column')}, "
            f"got {len(words)}"
        )
    wanted = set(words if only is None else only)
    refuse_twice(words, place, only=wanted)
    return {
        word: read_cells(word, content) if word in wanted else None
        for word, content in zip(words, contents, strict=True)
    }


def _num_rows(contents: Mapping[str, Cells], place: str) -> int:
    sizes = {name: len(content) for name, content in contents.items()}
    if len(set(sizes.values())) > 1:
        listed = few([f"{size:,} in {name!r}" for name, size in sizes.items()])
        raise ValueError(f"{place}: expected columns of one length, got {listed}")
    return next(iter(sizes.values()), 0)


def _commas_by_others(contents: Mapping[str, Cells]) -> set[str]:
    """Columns whose commas are decimal ones, as those of other columns tell.

    By itself, 3.237 or 3,237 could be either; who writes 0,5 beside it means thousands by the first
    and a little more than three by the second.
    """
    texts = {name: cells.texts for name, cells in contents.items() if cells.kind == "text"}
    open_ones = {
        name
        for name, column in texts.items()
        if dots_between_thousands(column) or commas_alone(column)
    }
    telling = texts.keys() - open_ones
    if not open_ones or any(has_decimal_points(texts[name]) for name in telling):
        return set()
    for name in telling:
        stray = parse_numbers(texts[name])[1]
        if has_decimal_commas([texts[name][index] for index in stray]):
            return open_ones
    return set()
