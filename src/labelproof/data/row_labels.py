"""The labels of a table's rows: which column they are in, and whether they can be classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from labelproof.data.cells import parse_numbers
from labelproof.data.classes import check_classes
from labelproof.data.labelled_files import OnError
from labelproof.data.notices import count, few, notice
from labelproof.data.tables import Table
from labelproof.data.unseen_values import spelled_otherwise
from labelproof.data.unusable import UnusableSamplesError
from labelproof.data.whole_numbers import is_whole, plain_number
from labelproof.ranges import suggest

__all__ = [
    "MISSING",
    "check_labels",
    "find_column",
    "find_label",
    "plain_labels",
    "read_labels",
    "written_column",
]

# The first that a table has is taken.
_USUAL = (
    *("label", "class", "target", "category", "class_name", "label_name", "labels", "classes"),
    *("y", "outcome", "species", "diagnosis", "variety", "response", "result", "survived"),
)
# Fewer words than for features: NA, none and - are names that people give to classes.
MISSING = frozenset({"", "?", "nan", "null", "n/a", "#n/a", "<na>"})
"""What is written where there is no label, in lower case."""
_WHOLE = re.compile(r"[+-]?\d+\.0+")
_FEW_CLASSES = 20
_FEW_ROWS = 10


def find_column(names: Sequence[str], wanted: str, place: str, *, argument: str) -> str:
    """The column that is meant, in upper or lower case.

    Args:
        names: All columns.
        wanted: The one that was asked for.
        place: What the table is called in messages.
        argument: What it was asked for as.

    >>> find_column(["Age", "comment"], "age", "t.csv", argument="drop")
    'Age'
    >>> find_column(["Age", "comment"], "coment", "t.csv", argument="drop")
    Traceback (most recent call last):
        ...
    ValueError: drop: expected a column of t.csv, found 'Age', 'comment', got 'coment'; did you ...
    """
    word = wanted.strip()
    exact = [name for name in names if name == word]
    found = exact or [name for name in names if name.casefold() == word.casefold()]
    if len(found) != 1:
        listed = few([repr(name) for name in names], shown=8)
        raise ValueError(
            f"{argument}: expected a column of {place}, found {listed}, got {wanted!r}"
            f"{suggest(word, names)}"
        )
    return found[0]


def written_column(table: Table, wanted: str, place: str, *, argument: str) -> str:
    """As `find_column`, by the name as the table writes it, spaces and all, to read it by.

    Args:
        table: The table.
        wanted: The one that was asked for.
        place: What the table is called in messages.
        argument: What it was asked for as.

    >>> written_column(Table([" Age", "label"], lambda _: iter(())), "age", "t.csv", argument="id")
    ' Age'
    """
    written = {name.strip(): name for name in table.columns}
    return written[find_column(list(written), wanted, place, argument=argument)]


def find_label(names: Sequence[str], label: str | None, place: str) -> str:
    """The column that holds the labels.

    Args:
        names: All columns.
        label: The one that was asked for, in upper or lower case; without it a usual name, else
            the last column, and a warning says which where it is not plain.
        place: What the table is called in messages.

    >>> find_label(["Species", "length"], None, "iris.csv")
    'Species'
    >>> find_label(["length", "kind"], "kinds", "iris.csv")
    Traceback (most recent call last):
        ...
    ValueError: label: expected a column of iris.csv, found 'length', 'kind', got 'kinds'; did ...
    """
    if label is not None:
        return find_column(names, label, place, argument="label")
    folded = {name.casefold(): name for name in reversed(names)}
    usual = [folded[word] for word in _USUAL if word in folded]
    if len(usual) == 1:
        return usual[0]
    taken = usual[0] if usual else names[-1]
    why = f"of {' and '.join(repr(name) for name in usual)}" if usual else "the last column"
    notice(
        f"{place}: the labels are taken from {taken!r}, {why}; if they are in another, say --label "
        "NAME (label='NAME')"
    )
    return taken


def read_labels(
    cells: Sequence[str], places: Sequence[str], name: str, place: str, on_error: OnError
) -> list[str]:
    """The classes as they are written, whole numbers in one way; empty where there is none.

    Args:
        cells: The column.
        places: How a person finds each row.
        name: The column's name.
        place: What the table is called in messages.
        on_error: Whether missing labels are refused.

    >>> read_labels(["1.0", "2", "1"], ["line 2", "line 3", "line 4"], "y", "t.csv", "raise")
    ['1', '2', '1']
    """
    texts = ["" if cell.casefold() in MISSING else cell for cell in cells]
    missing = [place for place, text in zip(places, texts, strict=True) if not text]
    if missing:
        message = (
            f"{place}: {len(missing):,} of {count(len(texts), 'row')} without a label in the "
            f"column {name!r}: {few(missing)}"
        )
        if on_error == "raise":
            raise UnusableSamplesError(message, "mend them, or leave them out with on_error='skip'")
        notice(f"{message}; left out")
    return plain_labels(
        texts,
        f"{place}: expected classes in the column {name!r}",
        "write the classes as whole numbers or words, or choose another column with --label NAME "
        "(label='NAME')",
    )


def plain_labels(texts: Sequence[str], expected: str, advice: str) -> list[str]:
    """Labels with whole numbers written in one way, empty ones as they are.

    Args:
        texts: A label each.
        expected: Where they are from and what is taken, the beginning of the message.
        advice: What to do about numbers that are none of a class.

    >>> plain_labels(["1.0", "cat"], "t.csv: expected classes", "write words")
    ['1', 'cat']
    >>> plain_labels(["1.5", "2"], "t.csv: expected classes", "write words")
    Traceback (most recent call last):
        ...
    ValueError: t.csv: expected classes, got 1.5, which looks like a measurement (regression); ...
    """
    values, stray = parse_numbers(texts)
    present = [text for text in texts if text]
    if present and len(stray) == 0 and np.isfinite(values).sum() == len(present):
        broken = [value for value in values.tolist() if value == value and value % 1]
        if broken:
            raise ValueError(
                f"{expected}, got {broken[0]:g}, which looks like a measurement (regression); "
                f"{advice}"
            )
        return [_whole(text) if text else "" for text in texts]
    return [text.split(".")[0] if _WHOLE.fullmatch(text) else text for text in texts]


def _whole(text: str) -> str:
    plain = plain_number(text.strip())
    if is_whole(plain.removeprefix("-")):
        return plain
    return str(int(float(text.replace(",", "."))))


def check_labels(
    labels: Sequence[str], names: Sequence[str], column: str, place: str, *, chosen: bool
) -> None:
    """Refuse labels of training rows that no classifier can be trained on; warn of doubtful ones.

    Args:
        labels: The label of each training row.
        names: All classes, also those of other splits.
        column: The column they are from.
        place: What the table is called in messages.
        chosen: Whether a person chose the column.

    >>> check_labels(["a", "b", "c", "d"], ["a", "b", "c", "d"], "id", "t.csv", chosen=True)
    Traceback (most recent call last):
        ...
    ValueError: t.csv: expected labels that rows share in the column 'id', got 4 different ones ...
    """
    counts = Counter(labels)
    check_classes(place, sorted(counts), num_images=None)
    other = "choose another column with --label NAME (label='NAME')"
    numeric = not parse_numbers(list(counts))[1]
    if len(counts) >= max(len(labels), 3) or len(counts) > max(len(labels) / 2, 5):
        looks = "names of single rows" + (" or measurements (regression)" if numeric else "")
        raise ValueError(
            f"{place}: expected labels that rows share in the column {column!r}, got "
            f"{len(counts):,} different ones in {count(len(labels), 'row')} "
            f"({few(list(counts))}); these look like {looks}; {other}"
        )
    if numeric and len(counts) > _FEW_CLASSES and len(labels) < _FEW_ROWS * len(counts):
        message = (
            f"{place}: the column {column!r} has {len(counts):,} different numbers in "
            f"{count(len(labels), 'row')}, which looks like a measurement (regression) and not "
            "like classes"
        )
        if not chosen:
            raise ValueError(f"{message}; {other}, or name this one if they are classes")
        notice(message)
    unlearned = [name for name in names if name not in counts]
    if unlearned:
        notice(
            f"{place}: {count(len(unlearned), 'class', 'classes')} without a training row: "
            f"{few(unlearned)}; nothing can be learned about what is not shown"
            f"{spelled_otherwise(unlearned, list(counts))}"
        )
    single = [name for name in names if counts[name] == 1]
    if single:
        notice(
            f"{place}: {count(len(single), 'class', 'classes')} with a single training row: "
            f"{few(single)}; whether its label is right cannot be seen from others"
        )
