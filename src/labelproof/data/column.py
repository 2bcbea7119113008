"""One column of a table: what kind it is, and the features it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from labelproof.data.cell_place import Where
from labelproof.data.cells import (
    Cells,
    Parsed,
    parse_booleans,
    parse_dates,
    parse_numbers,
    text_of,
)
from labelproof.data.local_forms import parse_ordered_dates
from labelproof.data.notices import count, few
from labelproof.data.number_forms import (
    commas_alone,
    has_decimal_commas,
    has_decimal_points,
    has_thousands_commas,
    parse_local_numbers,
    unclear_number,
)
from labelproof.data.training_range import far_outside
from labelproof.data.unseen_values import unseen

__all__ = ["KINDS", "Column", "checked"]

KINDS = ("number", "boolean", "date", "category")
"""What a column can be."""
LARGEST = 1e30
"""Numbers past it count as infinite: their differences would be past what float32 holds."""

_PLURALS = {"number": "numbers", "boolean": "true or false", "date": "dates such as 2024-12-31"}


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
        low: The smallest number of the training rows; `None` where they are too few.
        high: The largest.

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
    low: float | None = None
    high: float | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each of its features."""
        names = [self.name]
        if self.kind == "category":
            names = [f"{self.name}={value}" for value in self.values]
            names += [f"{self.name}: other"] * self.other
        return (*names, *[f"{self.name}: missing"] * bool(self.missing))

    def encode(
        self,
        cells: Cells,
        features: NDArray[np.float32],
        where: Where,
        *,
        clear: bool = False,
        points: bool = False,
    ) -> None:
        """Write the features of some rows into `(N, F)` zeros.

        Args:
            cells: The column.
            features: What is written to.
            where: How messages name a cell.
            clear: Whether other columns tell that commas mean here what they meant in training.
            points: Whether other columns have decimal points.
        """
        if self.kind == "category":
            self._encode_category(cells, features, where)
            return
        values = checked(self.name, self.kind, cells, self._parse(cells), where)
        if self.kind == "number":
            self._doubt(cells, values, where, clear=clear, points=points)
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

    def tells_commas(self, cells: Cells) -> bool:
        """Whether new cells show that commas mean what they meant in training."""
        if cells.kind != "text" or not (self.comma or self.thousands):
            return False
        stray = [cells.texts[index] for index in parse_numbers(cells.texts)[1]]
        return (has_decimal_commas if self.comma else has_thousands_commas)(stray)

    def tells_points(self, cells: Cells) -> bool:
        """Whether new cells have decimal points."""
        return self.kind == "number" and cells.kind == "text" and has_decimal_points(cells.texts)

    def _doubt(
        self,
        cells: Cells,
        values: NDArray[np.float64],
        where: Where,
        *,
        clear: bool,
        points: bool,
    ) -> None:
        """Tell of numbers that may mean something else than what they are taken for."""
        if cells.kind == "text" and (self.comma or self.thousands) and not clear:
            text, why = self._unclear(cells.texts, points=points)
            if text:
                taken = text_of(values[cells.texts.index(text)])
                marks = "decimal commas" if self.comma else "commas between thousands"
                where.tell(
                    self.name, f"{text!r} taken for {taken}, as training rows have {marks}; {why}"
                )
        far = far_outside(values, self.low, self.high)
        if len(far):
            shown = few([f"{text_of(values[index])} in {where.row(index)}" for index in far])
            where.tell(
                self.name,
                f"{count(len(far), 'number')} far outside of {text_of(self.low)} to "
                f"{text_of(self.high)}, what training rows had: {shown}; are they written in "
                "another way, or in another unit?",
            )

    def _unclear(self, texts: Sequence[str], *, points: bool) -> tuple[str, str]:
        """A number that may be meant otherwise than in training, if there is one, and why."""
        if not (self.comma and commas_alone(texts)):
            return unclear_number(texts, comma=self.comma), "nothing in these rows tells"
        # 4,970 is as in training, unless a decimal point beside it speaks for thousands.
        first = next(text for text in texts if "," in text) if points else ""
        return first, "but other columns of these rows have decimal points"

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
