"""The rows of a table as they are written, apart from what is no feature: labels and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from labelproof.data.groups import (
    group_values,
    join_groups,
    likely_group,
    mark_grouping,
    report_likely_group,
    report_shared_groups,
)
from labelproof.data.labelled_files import OnError
from labelproof.data.notices import few
from labelproof.data.row_columns import (
    DROPPED,
    GROUPED,
    drop_columns,
    read_columns,
    take_column,
    take_splits,
)
from labelproof.data.row_labels import find_label, read_labels
from labelproof.data.tables import Table

__all__ = ["LabelledRows", "pick", "read_labelled_rows"]


@dataclass(frozen=True)
class LabelledRows:
    """Cells by column, and what is known of each row.

    Attributes:
        place: What the table is called in messages.
        table: The cells of the columns that may be learned from.
        places: How a person finds each row.
        column: The column of the labels.
        labels: The label of each row; empty where there is none.
        splits: The split of each row.
        group: The column by which rows belong together, if one was named.
        belonging: Its cells; empty ones where none was named.
        left_out: Columns that nothing is learned from because it was asked for, and why.
    """

    place: str
    table: dict[str, Sequence[str]]
    places: Sequence[str]
    column: str
    labels: Sequence[str]
    splits: Sequence[str]
    group: str | None
    belonging: Sequence[str]
    left_out: tuple[tuple[str, str], ...] = field(default=())

    @cached_property
    def kept(self) -> list[int]:
        """The rows that have a label."""
        return [index for index, text in enumerate(self.labels) if text]

    @cached_property
    def train(self) -> list[int]:
        """Those of them that are learned from."""
        return self.of("train")

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The splits there are, the one that is learned from first."""
        return ("train", *sorted({self.splits[index] for index in self.kept} - {"train"}))

    @property
    def grouping(self) -> str:
        """What tells whether other training rows belong together; empty where no column says so."""
        return "" if self.group is None else mark_grouping(pick(self.belonging, self.train))

    def of(self, split: str) -> list[int]:
        """The rows of a split that have a label."""
        return [index for index in self.kept if self.splits[index] == split]

    def cells(self, names: Sequence[str], rows: Sequence[int]) -> list[Sequence[str]]:
        """The cells of some columns and rows."""
        return [pick(self.table[name], rows) for name in names]

    def report_groups(self) -> None:
        """Warn of groups on both sides, or of a column that may say what belongs together."""
        if self.group is not None:
            values, splits = pick(self.belonging, self.kept), pick(self.splits, self.kept)
            report_shared_groups(self.place, self.group, values, splits)
            return
        for name in filter(likely_group, self.table):
            report_likely_group(self.place, name, pick(self.table[name], self.train))

    def training_groups(self, copies: Sequence[Sequence[int]]) -> NDArray[np.int64] | None:
        """Which training rows belong together: by the column, or as copies, by places in `kept`."""
        number = {row: index for index, row in enumerate(self.train)}
        alike = (
            [number[self.kept[place]] for place in group if self.kept[place] in number]
            for group in copies
        )
        values = group_values(pick(self.belonging, self.train))
        return join_groups(len(self.train), filter(None, alike), values)


def read_labelled_rows(
    source: Table,
    place: str,
    *,
    label: str | None,
    drop: Sequence[str],
    group: str | None,
    on_error: OnError,
    features: bool,
) -> LabelledRows:
    """Read a table's rows and take apart what is no feature.

    Args:
        source: The table.
        place: What it is called in messages.
        label: The column of the labels; without it, it is found.
        drop: Columns that nothing is to be learned from.
        group: The column by which rows belong together.
        on_error: What becomes of rows without a label.
        features: Whether there has to be something to learn from.

    Raises:
        ValueError: There is no such column, nothing to learn from, or no row to train on.
    """
    table, places = read_columns(source, place)
    column = find_label(list(table), label, place)
    labels = read_labels(table.pop(column), places, column, place, on_error)
    splits = take_splits(table, places, place)
    left_out: list[tuple[str, str]] = []
    belonging: Sequence[str] = [""] * len(places)
    if group is not None:
        group, belonging = take_column(table, group, column, place, argument="group")
        left_out.append((group, GROUPED))
    left_out += [(name, DROPPED) for name in drop_columns(table, drop, column, place)]
    if not table and label is None and column in labels:
        raise ValueError(
            f"{place}: expected the names of the columns first, got {column!r}, which is a label "
            "of other rows too; add a line of names"
        )
    if features and not table:
        raise ValueError(f"{place}: expected columns beside the labels in {column!r}, found none")
    rows = LabelledRows(
        place, table, places, column, labels, splits, group, belonging, tuple(left_out)
    )
    if not rows.train:
        found = few(list(rows.parts[1:])) or "rows without a label"
        raise ValueError(f"{place}: expected rows of the split train, got only {found}")
    return rows


def pick(cells: Sequence[str], rows: Sequence[int]) -> Sequence[str]:
    """The cells of some rows, themselves where they are all.

    >>> pick(["a", "b", "c"], [0, 2])
    ['a', 'c']
    """
    return cells if len(rows) == len(cells) else [cells[row] for row in rows]
