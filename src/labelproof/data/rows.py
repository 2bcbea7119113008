"""A table of numbers and categories, a row for each example, as a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.data.alike_rows import report_alike
from labelproof.data.classes import order_classes
from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset, Rows, Split
from labelproof.data.giveaways import report_giveaways
from labelproof.data.groups import (
    group_values,
    join_groups,
    likely_group,
    report_likely_group,
    report_shared_groups,
)
from labelproof.data.headers import refuse_missing
from labelproof.data.labelled_files import OnError, check_on_error
from labelproof.data.notices import few, readable
from labelproof.data.row_columns import (
    DROPPED,
    GROUPED,
    drop_columns,
    read_columns,
    take_column,
    take_splits,
)
from labelproof.data.row_labels import check_labels, find_label, read_labels
from labelproof.data.table_files import table_stem
from labelproof.data.tables import Table, read_table
from labelproof.data.unseen_values import spelled_otherwise

__all__ = ["dataset_from_rows", "load_rows", "read_features", "row_statistics", "rows_from_table"]

# A spread below it would be zero, or its inverse infinite, in float32.
_SMALLEST = 1e-30


def load_rows(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    on_error: OnError = "raise",
    like: tuple[Columns, Sequence[str]] | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
) -> Dataset:
    r"""Read a table with a row for each example: its features, its label and, if you like, a split.

    What becomes of the columns is learned from the training rows:
    [`Columns`][labelproof.data.Columns] says how. Labels are text or whole numbers. A
    column `split` says which rows are to train on and which to test with; so do `subset`, `set`
    and `partition`, where they have rows of `train`. Without one all rows are to train on.

    Args:
        path: A `.csv` in UTF-8 with commas, semicolons or tabs, a `.tsv`, a `.jsonl` with an
            object a line, or a `.parquet`, which needs pyarrow; packed ones end in `.csv.gz`.
        label: The column of the labels. Without it a usual name is looked for (`label`, `class`,
            `target`, `category`, `y`, `outcome`, `species`, ...), else the last column is taken,
            with a warning.
        on_error: What becomes of rows without a label, and of text and infinite values between
            numbers: `"raise"` refuses the table and names the first few, `"skip"` leaves the rows
            out and takes the cells for missing, with a warning.
        like: Columns and class names that were learned elsewhere, to read a further table of the
            same kind by; some of the classes may be missing here.
        drop: Columns that nothing is to be learned from.
        group: The column by which rows belong together, such as a patient: those that have the same
            in it are never validated on apart. Nothing is learned from it.

    Returns:
        A dataset in memory, with the rows in the table's order. Its labels count as not clean.

    Raises:
        ValueError: The table cannot be read or has nothing to learn from, its labels cannot be
            classes, or it has cells that cannot be used.

    Warns:
        DataWarning: The label was guessed, columns, rows or cells were left out, rows are alike, or
            a column seems to give the label away.

    Example:
        >>> table = getfixture("tmp_path") / "fruit.csv"
        >>> text = "weight,colour,kind\n150,red,apple\n120,yellow,banana\n,red,apple\n"
        >>> _ = table.write_text(text + "110,yellow,banana\n")
        >>> dataset = load_rows(table, label="kind")
        >>> dataset
        Dataset('fruit', train: 4 rows of 4 features, 2 classes: apple, banana)
        >>> dataset.columns.feature_names
        ('weight', 'weight: missing', 'colour=red', 'colour=yellow')
    """
    file = Path(path)
    table = read_table(file)
    return rows_from_table(
        file, table, label=label, on_error=on_error, like=like, drop=drop, group=group
    )


def rows_from_table(
    path: Path,
    source: Table,
    *,
    label: str | None = None,
    on_error: OnError = "raise",
    like: tuple[Columns, Sequence[str]] | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
    features: bool = True,
) -> Dataset:
    """As `load_rows`, of a table that is open already; without `features`, of its labels alone."""
    check_on_error(on_error)
    # Whoever looks at a few rows later has been told of them all before.
    looked_at = on_error == "later"
    if looked_at:
        on_error = "skip"
    place = readable(str(path))
    table, places = read_columns(source, place)
    chosen = find_label(list(table), label, place)
    labels = read_labels(table.pop(chosen), places, chosen, place, on_error)
    splits = take_splits(table, places, place)
    asked = []
    values: Sequence[str] = [""] * len(places)
    if group is not None:
        group, values = take_column(table, group, chosen, place, argument="group")
        asked.append((group, GROUPED))
    asked += [(name, DROPPED) for name in drop_columns(table, drop, chosen, place)]
    if not table and label is None and chosen in labels:
        raise ValueError(
            f"{place}: expected the names of the columns first, got {chosen!r}, which is a label "
            "of other rows too; add a line of names"
        )
    if features and not table:
        raise ValueError(f"{place}: expected columns beside the labels in {chosen!r}, found none")
    kept = [index for index, text in enumerate(labels) if text]
    train = [index for index in kept if splits[index] == "train"]
    copies: list[list[int]] = []
    if not train:
        found = few(sorted({splits[index] for index in kept})) or "rows without a label"
        raise ValueError(f"{place}: expected rows of the split train, got only {found}")
    if like is not None:
        columns, class_names = like[0], list(like[1])
        refuse_missing(columns.names, list(table), place)
        strange = sorted({labels[index] for index in kept} - set(class_names))
        if strange:
            raise ValueError(
                f"{place}: expected labels among {few(class_names)}, got {few(strange)} in the "
                f"column {chosen!r}{spelled_otherwise(strange, class_names)}"
            )
    else:
        class_names = order_classes(labels[index] for index in kept)
        check_labels(
            [labels[index] for index in train], class_names, chosen, place, chosen=label is not None
        )
        columns = None
        if features:
            columns = Columns.learn(
                table,
                [_pick(cells, train) for cells in table.values()],
                place=place,
                places=_pick(places, train),
                on_error=on_error,
            )
            columns = replace(columns, left_out=(*columns.left_out, *asked))
            if not looked_at:
                if group is None:
                    for name in filter(likely_group, table):
                        report_likely_group(place, name, _pick(table[name], train))
                copies = report_alike(
                    place,
                    [_pick(table[name], kept) for name in columns.names],
                    _pick(labels, kept),
                    _pick(splits, kept),
                    _pick(places, kept),
                )
    numbers = {name: number for number, name in enumerate(class_names)}
    contents: dict[str, Split] = {}
    for split in ("train", *sorted({splits[index] for index in kept} - {"train"})):
        chosen_rows = [index for index in kept if splits[index] == split]
        rows = np.empty((len(chosen_rows), 0), np.float32)
        if columns is not None:
            rows = columns.encode(
                columns.names,
                [_pick(table[name], chosen_rows) for name in columns.names],
                place=place,
                places=_pick(places, chosen_rows),
                # Said already of training rows if their columns were learned just now.
                on_error="quiet" if split == "train" and like is None else on_error,
            )
        contents[split] = Split(
            rows,
            np.array([numbers[labels[index]] for index in chosen_rows], dtype=np.int64),
            _pick(places, chosen_rows),
        )
    if group is not None and not looked_at:
        report_shared_groups(place, group, _pick(values, kept), _pick(splits, kept))
    contents["train"] = replace(
        contents["train"], groups=_training_groups(kept, train, copies, values)
    )
    if columns is not None and like is None and not looked_at:
        train_rows, train_labels = contents["train"].array, contents["train"].labels
        report_giveaways(place, columns, train_rows, train_labels, class_names)
    dataset = dataset_from_rows(readable(table_stem(path)), contents, class_names, columns)
    return replace(dataset, group=group)


def read_features(
    path: str | os.PathLike[str], columns: Columns, *, on_error: OnError = "raise"
) -> tuple[Rows, list[str]]:
    r"""Read new rows of a table as a run's columns say; labels are not needed.

    Args:
        path: A table as for `load_rows`.
        columns: How columns become features, learned in training.
        on_error: What becomes of text and infinite values between numbers.

    Returns:
        The rows, `(N, F)`, and how a person finds each of them: `line 2`, `line 3`, ...

    Raises:
        ValueError: The table cannot be read, lacks a column or a row, or has cells of another kind.

    Example:
        >>> columns = Columns.learn(["size"], [np.array([1.0, 2.0, 3.0])])
        >>> table = getfixture("tmp_path") / "new.csv"
        >>> _ = table.write_text("name,size\nfirst,7\nsecond,9\n")
        >>> read_features(table, columns)
        (array([[7.],
               [9.]], dtype=float32), ['line 2', 'line 3'])
    """
    check_on_error(on_error)
    file = Path(path)
    place = readable(str(file))
    table, places = read_columns(read_table(file), place, only=columns.names)
    rows = columns.encode(table, table.values(), place=place, places=places, on_error=on_error)
    return rows, places


def dataset_from_rows(
    name: str,
    splits: Mapping[str, Split],
    class_names: Sequence[str],
    columns: Columns | None,
) -> Dataset:
    """Make a dataset of encoded rows, standardised by those it is trained on.

    Args:
        name: What the dataset is called.
        splits: For each split, its rows and labels; `"train"` is one of them.
        class_names: A name for each class.
        columns: How the rows were made.

    Example:
        >>> rows = np.array([[1, 5], [3, 5]], np.float32)
        >>> train = Split(rows, np.array([0, 1]))
        >>> dataset = dataset_from_rows("two", {"train": train}, "ab", None)
        >>> dataset.mean, dataset.std
        ((2.0, 5.0), (1.0, 1.0))
    """
    mean, std = row_statistics(splits["train"].array)
    return Dataset(
        name=name,
        splits=dict(splits),
        class_names=tuple(class_names),
        mean=mean,
        std=std,
        clean=False,
        columns=columns,
    )


def row_statistics(rows: Rows) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each feature, the latter 1 where it is always the same.

    >>> row_statistics(np.array([[1, 0.1], [5, 0.1]], np.float32))
    ((3.0, 0.10000000149011612), (2.0, 1.0))
    """
    mean = rows.mean(axis=0, dtype=np.float64)
    std = rows.std(axis=0, dtype=np.float64)
    # Not std == 0: rounding gives equal numbers a little spread.
    flat = (rows.max(axis=0) == rows.min(axis=0)) | (std < _SMALLEST)
    return tuple(mean.tolist()), tuple(np.where(flat, 1.0, std).tolist())


def _training_groups(
    kept: Sequence[int],
    train: Sequence[int],
    copies: Sequence[Sequence[int]],
    values: Sequence[str],
) -> NDArray[np.int64] | None:
    """Which training rows belong together: as copies, by their place in `kept`, or by a value."""
    number = {row: index for index, row in enumerate(train)}
    alike = [[number[kept[place]] for place in group if kept[place] in number] for group in copies]
    return join_groups(
        len(train), [each for each in alike if each], group_values(_pick(values, train))
    )


def _pick(cells: Sequence[str], rows: Sequence[int]) -> Sequence[str]:
    return cells if len(rows) == len(cells) else [cells[row] for row in rows]
