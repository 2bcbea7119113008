"""A table of numbers and categories, a row for each example, as a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from labelproof.data.alike_rows import report_alike
from labelproof.data.classes import order_classes
from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset, Rows, Split
from labelproof.data.giveaways import report_giveaways
from labelproof.data.groups import if_cuttable
from labelproof.data.headers import refuse_missing
from labelproof.data.labelled_files import OnError, check_on_error
from labelproof.data.labelled_rows import LabelledRows, pick, read_labelled_rows
from labelproof.data.notices import few, readable
from labelproof.data.row_columns import read_columns
from labelproof.data.row_labels import check_labels
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
    drop: str | Sequence[str] = (),
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
    dropped = (drop,) if isinstance(drop, str) else drop
    return rows_from_table(
        file, table, label=label, on_error=on_error, like=like, drop=dropped, group=group
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
    rows = read_labelled_rows(
        source, place, label=label, drop=drop, group=group, on_error=on_error, features=features
    )
    if like is not None:
        columns, class_names = like[0], list(like[1])
        _check_like(rows, columns, class_names)
    else:
        class_names = order_classes(rows.labels[index] for index in rows.kept)
        training = [rows.labels[index] for index in rows.train]
        check_labels(training, class_names, rows.column, place, chosen=label is not None)
        columns = _learn_columns(rows, on_error) if features else None
    numbers = {name: number for number, name in enumerate(class_names)}
    contents: dict[str, Split] = {}
    for split in rows.parts:
        chosen = rows.of(split)
        encoded = np.empty((len(chosen), 0), np.float32)
        places = pick(rows.places, chosen)
        if columns is not None:
            encoded = columns.encode(
                columns.names,
                rows.cells(columns.names, chosen),
                place=place,
                places=places,
                # Said already of training rows if their columns were learned just now.
                on_error="quiet" if split == "train" and like is None else on_error,
            )
        labels = np.array([numbers[rows.labels[index]] for index in chosen], dtype=np.int64)
        contents[split] = Split(encoded, labels, places)
    copies: Sequence[Sequence[int]] = ()
    if columns is not None and like is None and not looked_at:
        copies = _report(rows, columns, contents["train"], class_names)
    together = rows.training_groups(copies)
    if rows.group is None:
        together = if_cuttable(together, contents["train"].labels)
    contents["train"] = replace(contents["train"], groups=together)
    dataset = dataset_from_rows(readable(table_stem(path)), contents, class_names, columns)
    return replace(dataset, group=rows.group, grouping=rows.grouping)


def _check_like(rows: LabelledRows, columns: Columns, class_names: Sequence[str]) -> None:
    """Refuse a further table that has other columns or labels."""
    refuse_missing(columns.names, list(rows.table), rows.place)
    strange = sorted({rows.labels[index] for index in rows.kept} - set(class_names))
    if strange:
        raise ValueError(
            f"{rows.place}: expected labels among {few(class_names)}, got {few(strange)} in the "
            f"column {rows.column!r}{spelled_otherwise(strange, class_names)}"
        )


def _learn_columns(rows: LabelledRows, on_error: OnError) -> Columns:
    columns = Columns.learn(
        rows.table,
        rows.cells(list(rows.table), rows.train),
        place=rows.place,
        places=pick(rows.places, rows.train),
        on_error=on_error,
    )
    return replace(columns, left_out=(*columns.left_out, *rows.left_out))


def _report(
    rows: LabelledRows, columns: Columns, train: Split, class_names: Sequence[str]
) -> list[Sequence[int]]:
    """Warn of what makes results look better than they are; groups of rows that are copies."""
    rows.report_groups()
    copies = report_alike(
        rows.place,
        rows.cells(columns.names, rows.kept),
        *(pick(each, rows.kept) for each in (rows.labels, rows.splits, rows.places)),
    )
    report_giveaways(rows.place, columns, train.array, train.labels, class_names)
    return copies


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
