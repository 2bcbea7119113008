"""How the columns of a table become features, learned from training rows and kept with a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.cells import Cells, read_cells
from labelproof.data.column import KINDS, Column, LeaveOutError, Where, learn_column
from labelproof.data.headers import refuse_twice
from labelproof.data.notices import count, few, notice
from labelproof.ranges import suggest

__all__ = ["Columns"]


@dataclass(frozen=True)
class Columns:
    """What becomes of each column of a table.

    A number becomes a feature; where training rows lacked it, it is filled with their median and
    a second feature says so. A category becomes a feature for each value that at least two
    training rows have, the 50 most frequent at most, and one for all others where there were such.
    A value that training rows did not have counts among those others; where there are none, all
    features of its column are 0, since nothing could be learned about a feature that never was.
    `true` and `false` become 1 and 0. A date becomes its number of days since 1970: with the year
    first as in `2024-12-31`, with dots and the day first as in `31.12.2024`, or with slashes if
    some cell of the column tells the day from the month. Columns that say nothing are left out:
    those that are empty or always the same, text that is different in (nearly) every row, row
    numbers, and dates in which day and month cannot be told apart.

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
        used: list[Column] = []
        left_out: list[tuple[str, str]] = []
        for name, content in contents.items():
            try:
                used.append(learn_column(name, content, where, leave_out=leave_out))
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
        """
        contents = _by_name(names, columns, place, only=self.names)
        missing = [name for name in self.names if name not in contents]
        if missing:
            hint = suggest(missing[0], list(contents)) if len(missing) == 1 else ""
            raise ValueError(
                f"{place}: expected the {'columns' if len(missing) > 1 else 'column'} "
                f"{few([repr(name) for name in missing], shown=8)}, found "
                f"{few([repr(name) for name in contents], shown=8) or 'none'}{hint}"
            )
        num_rows = _num_rows({name: contents[name] for name in self.names}, place)
        rows = np.zeros((num_rows, len(self.feature_names)), np.float32)
        where = Where(place, places, on_error)
        start = 0
        for column in self.columns:
            stop = start + len(column.feature_names)
            column.encode(contents[column.name], rows[:, start:stop], where)
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
