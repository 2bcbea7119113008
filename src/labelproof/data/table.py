"""Tables of numbers and categories, from files or DataFrames, as datasets."""

from __future__ import annotations

import codecs
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.data.annotators import consensus, vote_indices
from labelproof.data.cifar import read_gzip
from labelproof.data.columns import (
    Columns,
    are_numbers,
    on_threads,
    row_parts,
    text_codes,
)
from labelproof.data.dataset import (
    Dataset,
    Split,
    are_text,
    as_indices,
    order_classes,
    report_classes,
)
from labelproof.data.duplicates import find_duplicate_rows, report_copies
from labelproof.data.images import OnError
from labelproof.data.leaks import report_leaks
from labelproof.data.notices import count, few, leave_out, notice, readable
from labelproof.data.splits import joined_groups, report_shared_groups, split_name, splittable
from labelproof.npz import check_room
from labelproof.ranges import choose, suggest

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx", ".csv.gz", ".tsv.gz", ".jsonl.gz")
"""Extensions of table files."""
LABELS = ("label", "labels", "class", "target", "category", "y", "outcome", "species")
"""Usual names of the label column, if none is given."""

NO_NAME = ("", "?", "nan", "NaN", "NULL", "n/a", "N/A", "#N/A", "<NA>")
"""Cells that stand for a missing value in every column."""
MISSING = (*NO_NAME, "NA", "na", "None", "none", "null", "-", ".", "-nan", "-NaN")
"""Cells that stand for a missing measurement; classes may well be called NA, null (zero) or -."""

DROPPED = "dropped as asked"
"""The reason recorded for a column that the caller drops."""
GROUPED = "says which rows belong together"
"""The reason recorded for the group column."""

_LARGEST = 4 << 30  # bytes that a gzipped table may unpack to
_SMALLEST_SPREAD = 1e-30
"""A standard deviation below it would be 0, or its inverse infinite, in float32."""

TableSource: TypeAlias = str | os.PathLike[str] | pd.DataFrame
"""The path of a file, or a DataFrame."""


class RowNames(Sequence[str]):
    """The name of each row, `line 2`, `line 3`, ..., made on access."""

    def __init__(self, word: str, numbers: NDArray[Any]):
        self.word, self.numbers = word, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int | np.integer):
            return f"{self.word} {self.numbers[index]}"
        return RowNames(self.word, self.numbers[index])


def row_names(table: pd.DataFrame) -> RowNames:
    """The names of a table's rows: by line in a text file, else by the index."""
    return RowNames(str(table.index.name or "row"), table.index.to_numpy())


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file has the extension of a table."""
    return os.fspath(path).lower().endswith(ENDINGS)


def table_stem(path: str | os.PathLike[str]) -> str:
    """The name of a table, without its extension."""
    name = Path(path).name
    return Path(name[:-3] if name.lower().endswith(".gz") else name).stem


def read_table(
    source: TableSource,
    *,
    text: Iterable[str] = (),
    categories: Iterable[str] = (),
    decimal: str = ".",
    thousands: str | None = None,
    missing: Sequence[str] = NO_NAME,
    on_error: OnError = "raise",
) -> pd.DataFrame:
    r"""Read a table with pandas.

    Args:
        source: A `.csv` with commas, semicolons, tabs or bars, a `.tsv`, a `.jsonl` with an object
            a line, a `.parquet` (needs pyarrow) or an `.xlsx` (needs openpyxl); text may be
            gzipped, as in `.csv.gz`. Or a DataFrame of pandas or polars.
        text: Columns to read as text, such as identifiers. The usual names of labels always are.
        categories: Columns to read as text, with the missing values of all other columns.
        decimal: The decimal point of numbers in text.
        thousands: The separator of thousands in text.
        missing: Cells that stand for a missing value in the columns of `text`.
        on_error: For lines with too many cells: `"raise"` raises, `"skip"` leaves them out with a
            warning. In shorter lines, the last cells are missing.

    Returns:
        A DataFrame. Its index is the position of each row in the file, counted in the unit that is
        the index's name: `line` for a text file, else `row`. `attrs["path"]` is the file.

    >>> file = getfixture("tmp_path") / "table.csv"
    >>> _ = file.write_text("size;class\n3,5;cat\n\n4,0;NA\n")
    >>> table = read_table(file, decimal=",")
    >>> table["size"].tolist(), table["class"].tolist(), table.index.tolist()
    ([3.5, 4.0], ['cat', 'NA'], [2, 4])
    """
    if not isinstance(source, str | os.PathLike):
        return _admit_frame(source)
    path = Path(source).expanduser()
    place = readable(str(path))
    if not path.is_file():
        raise FileNotFoundError(f"{place}: there is no such file")
    if not is_table(path):
        raise ValueError(f"path: expected a file that ends in {', '.join(ENDINGS)}, got {place}")
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    content = b""
    if path.suffix.lower() == ".gz":
        content = read_gzip(path, min(_LARGEST, 64 << 20 | 100 * path.stat().st_size))
    elif kind in (".csv", ".tsv", ".jsonl"):
        content = path.read_bytes()
    try:
        if kind in (".csv", ".tsv"):
            words = dict.fromkeys((name.casefold() for name in categories), MISSING)
            words |= dict.fromkeys((name.casefold() for name in (*text, *LABELS)), missing)
            separators = (",;\t|" if kind == ".csv" else "\t").replace(decimal, "")
            bad = "error" if on_error == "raise" else "warn"
            options = {"decimal": decimal, "thousands": thousands, "on_bad_lines": bad}
            table = _read_csv(_as_utf8(content, place), place, separators, words, **options)
        elif kind == ".jsonl":
            table = pd.read_json(BytesIO(content), lines=True, dtype=False)  # pyright: ignore[reportArgumentType]
            table.index = pd.RangeIndex(1, len(table) + 1, name="line")
        elif kind == ".parquet":
            from pyarrow import parquet

            arrow = parquet.read_table(path)
            arrow.validate(full=True)  # or invalid UTF-8 raises only on access
            table = arrow.to_pandas()
        else:
            check_room(path)
            with pd.ExcelFile(path) as book:
                table, unread = pd.read_excel(book), [*map(str, book.sheet_names[1:])]
            if unread:
                notice(f"{place}: only the first sheet is read, not {few(unread)}")
            table.index = pd.RangeIndex(2, len(table) + 2, name="row")  # as the spreadsheet shows
    except ImportError as error:
        raise ImportError(f"{place}: {error}") from None
    except Exception as error:  # corrupted files make the readers raise almost anything
        raise ValueError(f"{place}: cannot be read as {kind[1:]}: {str(error)[:500]}") from None
    table = _admit_frame(table)
    table.attrs["path"] = str(path)
    return table


def table_place(table: pd.DataFrame) -> str:
    """The name of a table in messages: its path, if it was read from a file."""
    return readable(table.attrs.get("path", "table"))


def _admit_frame(table: Any) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame):
        if not hasattr(table, "to_pandas"):
            raise TypeError(f"data: expected a path or a DataFrame, got {type(table).__name__}")
        table = table.to_pandas()
    names = [str(name).strip() for name in table.columns]
    _check_names(names, "table")
    return table.set_axis(names, axis=1)


def _read_csv(
    content: bytes, place: str, separators: str, na_values: Mapping[str, Any], **options: Any
) -> pd.DataFrame:
    start = content.lstrip()
    if not start:
        raise ValueError("expected names of columns, but the file is empty")
    blank = content.count(b"\n", 0, len(content) - len(start))
    first = start.partition(b"\n")[0].decode("utf-8", "replace")
    # Some files have a space after each comma.
    options |= {"sep": max(separators, key=first.count), "skiprows": blank}
    options |= {"keep_default_na": False, "skipinitialspace": True}
    head: Any = pd.read_csv(
        BytesIO(content), header=None, dtype=str, nrows=1, **{**options, "on_bad_lines": "skip"}
    )
    names = [str(name).strip() or f"Unnamed: {at}" for at, name in enumerate(head.iloc[0])]
    _check_names(names, place)
    if are_numbers(names).mean() > 0.5 and any("." in name for name in names):
        raise ValueError(f"expected the names of the columns in the first line, got {few(names)}")
    words = [name for name in names if name.casefold() in na_values]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = pd.read_csv(
            BytesIO(content),
            header=0,
            names=names,
            index_col=False,
            dtype=dict.fromkeys(words, str),
            na_values={name: na_values.get(name.casefold(), MISSING) for name in names},
            skip_blank_lines=False,
            low_memory=False,
            **options,
        )
    messages = " ".join(str(each.message) for each in caught)
    if "Length of header" in messages:
        raise ValueError(f"expected {count(len(names), 'cell')} a line, got more")
    if bad := re.findall(r"line (\d+):", messages):
        notice(f"{place}: {count(len(bad), 'line')} with too many cells left out: {few(bad)}")
    # A line break in a cell or a skipped line shifts the lines below it: then count rows.
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    by_line = lines == blank + 1 + len(table)
    word, first_row = ("line", 2 + blank) if by_line else ("row", 1)
    table.index = pd.RangeIndex(first_row, first_row + len(table), name=word)
    return table.dropna(how="all")


def _as_utf8(content: bytes, place: str) -> bytes:
    if b"\0" in content:
        save = "save the file as UTF-8 (in Excel: CSV UTF-8)"
        raise ValueError(f"expected text in UTF-8, got zero bytes, as in UTF-16; {save}")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{content[error.start]:02x} in line {line}"
        notice(f"{place}: not UTF-8 ({byte}); read as Windows-1252, so check accented letters")
        return content.decode("cp1252", "replace").encode()
    return content.removeprefix(codecs.BOM_UTF8)


def _check_names(names: Sequence[str], place: str) -> None:
    twice = sorted(name for name, times in Counter(names).items() if name and times > 1)
    if twice:
        raise ValueError(
            f"{place}: expected different columns, got more than one called {few(twice)}"
        )


BESIDE_ROWS = "labels beside their rows are given as fit((X, y))"


def column_name(argument: str, value: Any) -> str | None:
    """The name of a column as text, which all names are once a table is read."""
    if value is None or isinstance(value, str | int | np.integer):
        return None if value is None else str(value)
    got = f"{type(value).__name__}; {BESIDE_ROWS}"
    raise TypeError(f"{argument}: expected the name of a column, got {got}")


def find_column(names: Iterable[str], requested: str, *, place: str, argument: str) -> str:
    """The column with the requested name, ignoring case if there is no exact match."""
    names = list(names)
    if requested in names:
        return requested
    found = [name for name in names if name.casefold() == requested.strip().casefold()]
    if len(found) != 1:
        got = f"{requested!r}{suggest(requested, names)}"
        raise ValueError(
            f"{argument}: expected a column of {place} ({few(names, shown=8)}), got {got}"
        )
    return found[0]


def find_label(names: Iterable[str], label: str | None, *, place: str) -> str:
    """The label column: the requested one, or the only one with a usual name."""
    names = list(names)
    if label is not None:
        return find_column(names, label, place=place, argument="label")
    usual = [name for name in names if name.casefold() in LABELS]
    if len(usual) != 1:
        named = few(usual or names, shown=20)
        raise ValueError(f"label: name the label column of {place} with --label (label=): {named}")
    return usual[0]


def as_text(column: pd.Series, missing: Sequence[str] = NO_NAME) -> pd.Series:
    """Cells as text, whole numbers without a point; missing ones are empty."""
    try:
        codes, words = text_codes(column)
    except ValueError as error:
        raise ValueError(f"column {column.name!r}: expected text or numbers, got {error}") from None
    cells = ["" if word in missing else word for word in words]
    # How pandas writes whole numbers in a column with missing values.
    if all(re.fullmatch(r"-?\d+\.0", cell) for cell in cells if cell):
        cells = [cell[:-2] for cell in cells]
    return pd.Series(np.array([*cells, ""], dtype=object)[codes], index=column.index, dtype=object)


def refuse_missing(argument: str, values: Any) -> None:
    """Refuse missing values, and text that stands for them."""
    # A list as objects: NumPy would convert its missing values to text.
    array = np.array(values, dtype=object) if isinstance(values, list) else np.asarray(values)
    missing = pd.isna(array.ravel())
    if array.dtype.kind in "OUT":
        missing |= np.array([str(value).strip() in NO_NAME for value in array.ravel()], bool)
    rows = [str(row) for row in np.flatnonzero(missing)]
    if rows:
        raise ValueError(f"{argument}: expected a value for each row, got none in row {few(rows)}")


class LabelledTable(NamedTuple):
    """The rows of a table that have a label, and what its columns say of each.

    Without `annotators` there are no `votes`, and without a `group` no `groups`. Without a `label`
    column, `words` are the labels that the annotators make most probable.
    """

    rows: Any
    place: str
    label: str | None
    group: str | None
    words: pd.Series
    splits: NDArray[np.object_]
    groups: pd.Series | None
    votes: pd.DataFrame | None
    whole: pd.DataFrame
    """The rows with those without a label."""

    def describe(self, dataset: Dataset) -> Dataset:
        """The dataset, with the columns that it was read by."""
        grouping = ""
        if self.groups is not None:
            words = "\0".join(self.groups[self.splits == "train"])
            grouping = f"{zlib.crc32(words.encode('utf-8', 'surrogateescape')):08x}"
        annotators = () if self.votes is None else tuple(self.votes)
        columns: Any = {"label": self.label, "group": self.group, "annotators": annotators}
        given = self.label is not None and "path" not in self.rows.attrs
        text = given and are_text(self.rows[self.label])
        return replace(dataset, grouping=grouping, text_labels=text, **columns)


def read_labelled(
    source: TableSource,
    *,
    label: str | None,
    group: str | None,
    annotators: Sequence[str],
    on_error: OnError,
    **reading: Any,
) -> LabelledTable:
    """Read a table, and find its labels, splits and groups; the arguments are `load_table`'s."""
    label, group = column_name("label", label), column_name("group", group)
    named = [name for name in (label, group, *annotators) if name is not None]
    table: Any = read_table(source, text=named, on_error=on_error, **reading)
    place = table_place(table)
    votes: Any = None
    words: Any
    if not table.index.is_unique:
        notice(f"{place}: its index repeats, so rows are named by their position")
        table = table.reset_index(drop=True)
    if annotators:
        votes = _read_votes(table, annotators, place)
        table = table.drop(columns=list(votes))
    if votes is not None and label is None:
        words = consensus(votes)
    else:
        label = find_label(table.columns, label, place=place)
        words = as_text(table[label])
    if group is not None:
        group = find_column(table.columns, group, place=place, argument="group")
        if group == label:
            raise ValueError(f"group: expected a column beside the labels, got {group!r}")
    whole, unlabelled = table, words == ""
    if unlabelled.all():
        raise ValueError(f"{place}: expected rows with labels, found none")
    if unlabelled.any():
        share = f"{unlabelled.sum():,} of {count(len(table), 'row')}"
        rows = few(list(row_names(table[unlabelled])))
        leave_out(f"{place}: {share} without a label: {rows}", on_error)
        table, words = table[~unlabelled], words[~unlabelled]
        votes = None if votes is None else votes[~unlabelled]
    if votes is not None:
        lost = votes.to_numpy()[~votes.isin(["", *words.unique()])].tolist()
        if lost:
            classes = f"for classes that no row has: {few(sorted(set(lost)))}"
            notice(f"{place}: {count(len(lost), 'vote')} left out, {classes}")
    for name in sorted({*MISSING}.intersection(words)):
        empty = "empty these cells if they mean that there is no label"
        notice(f"{place}: {name!r} is taken as a class; {empty}")
    groups = None
    if group is not None:
        groups = as_text(table[group])
        groups = groups.mask(groups.isin(MISSING), "")
    splits = _split_names(table, place)
    return LabelledTable(table, place, label, group, words, splits, groups, votes, whole)


def _read_votes(table: pd.DataFrame, columns: Sequence[str], place: str) -> pd.DataFrame:
    """The cells of the annotators' columns as text; empty for no label."""
    if len(set(columns)) < 2:
        raise ValueError(f"annotators: expected two columns of labels or more, got {columns}")
    find = partial(find_column, table.columns, place=place, argument="annotators")
    return pd.DataFrame({name: as_text(table[name]) for name in map(find, columns)})


def load_table(
    source: TableSource,
    *,
    label: str | None = None,
    on_error: OnError = "raise",
    like: tuple[Columns, Sequence[str]] | None = None,
    drop: str | Sequence[str] = (),
    group: str | None = None,
    annotators: Sequence[str] = (),
    decimal: str = ".",
    thousands: str | None = None,
    features: bool = True,
) -> Dataset:
    r"""Read a table with a row for each example: its features, its label and perhaps a split.

    [`Columns`][labelproof.data.Columns] are learned from the training rows. A column `split` says
    which rows are for training and which for testing; without one all rows are for training.

    Args:
        source: A file or a DataFrame, as for [`read_table`][labelproof.data.read_table].
        label: As for [`load_dataset`][labelproof.data.load_dataset].
        on_error: For rows without a label, and text and infinite values among numbers: `"raise"`
            raises and names the first few, `"skip"` leaves the rows out and treats the cells as
            missing, with a warning.
        like: Columns and class names learned elsewhere, to read further rows of the same kind; some
            of the classes may be missing here.
        drop: Columns that are not features.
        group: The group column: rows of one group are never split apart. It is not a feature.
        annotators: As for `load_dataset`.
        decimal: As for `read_table`.
        thousands: Likewise.
        features: Whether to read features; if not, rows have only labels and names.

    Returns:
        A dataset in memory, with the rows in the table's order. Its labels count as not clean.

    >>> table = getfixture("tmp_path") / "fruit.csv"
    >>> text = "weight,colour,kind\n150,red,apple\n120,yellow,banana\n,red,apple\n"
    >>> _ = table.write_text(text + "110,yellow,banana\n")
    >>> dataset = load_table(table, label="kind")
    >>> dataset
    Dataset('fruit', train: 4 rows of 4 features, 2 classes: apple, banana)
    >>> dataset.columns.feature_names
    ('weight', 'weight: missing', 'colour=red', 'colour=yellow')
    """
    if like is not None:
        decimal, thousands = like[0].decimal, like[0].thousands
    choose("on_error", on_error, get_args(OnError))
    numbers: dict[str, Any] = {"decimal": decimal, "thousands": thousands}
    how: Any = {"group": group, "annotators": annotators, "on_error": on_error, **numbers}
    how["categories"] = () if like is None else like[0].of_words
    given = read_labelled(source, label=label, **how)
    table, place, words, splits = given.rows, given.place, given.words, given.splits
    dropped = [
        find_column(table.columns, str(name), place=place, argument="drop")
        for name in ((drop,) if isinstance(drop, str) else drop)
    ]
    if given.label in dropped:
        raise ValueError(f"drop: expected a column beside the labels, got {given.label!r}")
    parts = split_parts(splits, place)
    left_out = dict.fromkeys(dropped, DROPPED)
    if given.group is not None:
        left_out[given.group] = GROUPED
    kept = [
        name
        for name in table.columns
        if name != given.label and name not in left_out and name.casefold() != "split"
    ]
    columns, class_names = like or (None, order_classes(words))
    labels = as_indices(words, class_names)
    if (labels < 0).any():
        got = few(sorted(set(words[labels < 0])))
        raise ValueError(f"{place}: expected labels {few(class_names)}, got {got}")
    if like is None:
        usual = label is None and given.label is not None
        _check_labels(labels[parts["train"]], class_names, place, usual=usual)
        if features:
            columns = Columns.learn(table[kept].iloc[parts["train"]], place=place)
            columns = replace(columns, left_out=(*columns.left_out, *left_out.items()), **numbers)
    rows = np.empty((len(table), 0), np.float32)
    if columns is not None:
        rows = columns.encode(table, place=place, on_error=on_error)
    places, in_train, together, groups = row_names(table), parts["train"], None, given.groups
    # When rows are read again, these warnings have been given already.
    if on_error != "later" and like is None:
        copies = None
        if columns is not None:
            texts = [each.name for each in columns.columns if each.kind == "text"]
            copies = find_duplicate_rows(rows, table[list(columns.names)], texts)
            again = np.flatnonzero(copies >= 0)
            found = {"split": splits[again], "label": labels[again], "group": copies[again]}
            found["name"] = [places[row] for row in again.tolist()]
            report_copies(place, "row", pd.DataFrame(found))
            report_leaks(place, columns, rows[in_train], labels[in_train], class_names)
        if groups is not None:
            report_shared_groups(place, str(given.group), groups, splits)
        known = [np.asarray(each)[in_train] for each in (groups, copies) if each is not None]
        together = joined_groups(*known)
        if groups is None:
            together = splittable(together, labels[in_train])
    contents = {
        split: Split(rows[part], labels[part], places[part]) for split, part in parts.items()
    }
    votes = None if given.votes is None else vote_indices(given.votes.iloc[in_train], class_names)
    contents["train"] = replace(contents["train"], groups=together, votes=votes)
    frame, name = given.whole, "table"
    if "path" in table.attrs:
        frame, name = None, readable(table_stem(table.attrs["path"]))
    dataset = dataset_from_rows(name, contents, class_names, columns)
    return given.describe(replace(dataset, frame=frame))


def _split_names(table: pd.DataFrame, place: str) -> NDArray[np.object_]:
    """The split of each row from the column `split`; without such a column, `train` for all."""
    column = next((name for name in table.columns if name.casefold() == "split"), None)
    if column is None:
        return np.full(len(table), "train", object)
    words = as_text(table[column])
    if (words == "").any():
        where = row_names(table)[int((words == "").argmax())]
        raise ValueError(f"{place}: expected a split such as train in {where}, got nothing")
    known = {word: split_name(word) or word.casefold() for word in words.unique()}
    return words.map(known).to_numpy(object)


def split_parts(splits: NDArray[np.object_], place: str) -> dict[str, Any]:
    """The rows of each split, those of `train` first."""
    if (splits == "train").all():
        return {"train": slice(len(splits))}  # a slice copies nothing
    found = sorted(set(splits), key=lambda split: (split != "train", split))
    if "train" not in found:
        got = f"got only {few(found)}; rename the column split if it is a feature"
        raise ValueError(f"{place}: expected rows of the split train, {got}")
    return {split: np.flatnonzero(splits == split) for split in found}


def _check_labels(
    labels: NDArray[np.int64], names: Sequence[str], place: str, *, usual: bool
) -> None:
    """Refuse labels that cannot be classes, and warn of doubtful classes.

    Many numbers with few rows each are not taken for classes, and fewer so if the column only has
    a `usual` name of labels. Nor are many texts that mostly have a row each.
    """
    classes, least = len(np.unique(labels)), 10 if usual else 4
    what = ""
    if are_numbers(names).all() and len(labels) < least * classes:
        what = "numbers, as in regression"
    elif 2 * (np.bincount(labels) == 1).sum() > classes:
        what = "texts, most of them in a single row"
    if what and classes > 20:
        instead = "name another column with --label (label=), or group the labels into classes"
        found = f"{count(len(labels), 'row')} have {classes:,} different labels"
        raise ValueError(f"{place}: {found}: {what}; {instead}")
    report_classes(place, labels, names, fewest=2)


def dataset_from_rows(
    name: str, splits: Mapping[str, Split], class_names: Sequence[str], columns: Columns | None
) -> Dataset:
    """A dataset of encoded rows, with mean and standard deviation of the training rows."""
    rows = splits["train"].array
    first = rows[0].astype(np.float64)

    def sums(part: slice) -> NDArray[np.float64]:
        # Relative to the first row, so that a constant feature has a spread of exactly 0.
        moved = rows[part] - first
        return np.stack([moved.sum(axis=0), np.square(moved).sum(axis=0)])

    parts = on_threads(sums, row_parts(len(rows)), rows=len(rows))
    shift, squares = np.sum(parts, axis=0) / len(rows)
    std = np.sqrt(np.maximum(squares - shift**2, 0))
    std = np.where(std < _SMALLEST_SPREAD, 1.0, std)
    return Dataset(
        name=name,
        splits=dict(splits),
        class_names=tuple(class_names),
        mean=tuple((first + shift).tolist()),
        std=tuple(std.tolist()) if columns is None else columns.hide_ids(std),
        clean=False,
        columns=columns,
    )
