"""How columns of a table become features, kept as plain JSON."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.tseries.api import guess_datetime_format

from labelproof.data.notices import count, few, notice, quoted
from labelproof.data.texts import FEWEST_ROWS, encode_texts, shared_terms, terms_of
from labelproof.ranges import choose, suggest, within

Kind: TypeAlias = Literal["number", "boolean", "date", "category", "text"]
Item = TypeVar("Item")
Result = TypeVar("Result")

_CODES = 10  # different texts such as 1,2 up to which they may be codes
MOST_VALUES = 50  # values of a category that get a feature of their own, however few rows they have
_SPACES = 4  # in most of many different values, from which on they are texts and no categories
_MOST_WORDS = 200  # words of longer texts that get a feature of their own
_MOST_IDS = 512  # ids of a text, those of its rarest terms
_MOST_FEATURES = 1000  # values that get a feature of their own in a small table
_MOST_CELLS = 10_000_000
"""Rows times features of all values, above which there are fewer of these."""
_ENOUGH_ROWS = 5  # rows that a value past the most frequent needs for a feature of its own
_SHARED = 0.2  # share of rows whose values have no feature of their own that is a reason to warn
LARGEST = 1e30
"""Numbers past it count as infinite: their differences would not fit into float32."""
_UNSEEN = 0.05  # share of cells with values unseen in training that is no reason to warn
_NUMBERED = "numbers the rows"

_ISO = "ISO8601"
_MOST_DATES = 0.9
"""Share of cells that are dates in a column of dates, at least; the others cannot be used."""
_DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?(?!\d)")
_DAY_FIRST = re.compile(r"(1[3-9]|[23]\d)[./-]")
_ROW_NUMBER = re.compile(
    r"(?i:(?:^|[\s_.-])(?:id|idx|index|no|nr|uuid)\.?$|^Unnamed: )|[a-z\d](?:Id|ID)$"
)
_ANY_DATE = re.compile(
    rf"{_DATE.pattern}|\d\d?([./-])\d\d?\2(\d\d){{1,2}}\b"
    r"|\d\d?\.?[\s-][^\W\d_]{3,9}[.,]?[\s-](\d\d){1,2}\b"
    r"|[^\W\d_]{3,9}\.?\s\d\d?,?\s\d{4}\b"
)
_UNREAD = {
    _ANY_DATE: "dates written as {!r}: write them as 2024-12-31",
    re.compile(r"[+-]?\s*([$€£]\s*\d[\d.,'\s]*|\d[\d.,'\s]*[%$€£])$"): (
        "numbers written as {!r}: remove the % or currency sign"
    ),
    re.compile(r"[+-]?[\d.,'\s]*\d[.,]\d+$"): (
        "numbers written as {!r}; --decimal and --thousands say how to read them"
    ),
}
"""Dates and numbers that are not read as such, and why their columns are left out."""
_PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
_EXPECTED = {"number": "numbers", "boolean": "true or false", "date": "dates such as 2024-12-31"}
_INFERRED: dict[str, Kind] = {
    **dict.fromkeys(["integer", "floating", "mixed-integer-float", "decimal", "empty"], "number"),
    **dict.fromkeys(["date", "datetime", "datetime64"], "date"),
    "timedelta64": "number",
    "boolean": "boolean",
    "categorical": "category",
}
"""Kinds by pandas' names for what a column holds; any other is text."""


def on_threads(work: Callable[[Item], Result], items: Iterable[Item], *, rows: int) -> list[Result]:
    """Apply a function to each item, for many rows on all cores: NumPy releases the GIL."""
    if rows < 50_000:
        return [work(item) for item in items]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


def row_parts(rows: int) -> list[slice]:
    """Slices of some thousand rows, which fit into a processor's cache."""
    return [slice(start, start + 4096) for start in range(0, rows, 4096)]


def _too_many(cells: int, usual: float) -> bool:
    """Two standard deviations above what is usual: a rule for a few cells and for many."""
    return cells > usual + 2 * usual**0.5


class _LeftOutError(ValueError):
    """Raised for a column that is not a feature; the message is the reason."""


@dataclass(frozen=True)
class Column:
    """How a column is encoded as features.

    Attributes:
        name: Its name.
        kind: The type of its cells.
        values: Values of a category or frequent words of texts, one feature each; for dates, the
            cycles (`year`, `week`, `day`), two features each.
        other: Share of training rows with other values of a category; if there are any, one feature
            stands for all of them.
        missing: Number of training rows without a value; if there are any, a feature flags them.
        fill: Replaces a missing number: the median of up to 100,000 training rows.
        offset: Subtracted if float32 would lose the differences between large numbers.
        format: How dates are written, as for `pd.to_datetime`, if not as 2024-12-31.
        terms: Words of texts and pairs of them, the most frequent first. Their ids are their places
            from 1.
        ids: Number of features that hold the ids of a text's terms, 0 where there are no more.
        before: Number of terms of the columns before, which is added to the ids.

    >>> Column("size", "category", values=("L", "S"), other=0.1, missing=3).feature_names
    ('size=L', 'size=S', 'size: other', 'size: missing')
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    other: float = 0.0
    missing: int = 0
    fill: float = 0.0
    offset: float = 0.0
    format: str = _ISO
    terms: tuple[str, ...] = ()
    ids: int = 0
    before: int = 0

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each of its features."""
        if self.kind == "category":
            names = [f"{self.name}={value}" for value in self.values]
            names += [f"{self.name}: other"] * bool(self.other)
        elif self.kind == "text":
            names = [f"{self.name}: {word!r}" for word in self.values]
            names += [f"{self.name}: id {place + 1} of a term" for place in range(self.ids)]
        else:
            turns = [f"{turn} of {cycle}" for cycle in self.values for turn in ("sine", "cosine")]
            names = [self.name, *(f"{self.name}: {turn}" for turn in turns)]
        return (*names, *[f"{self.name}: missing"] * bool(self.missing))

    def encode(
        self, cells: pd.Series, features: NDArray[np.float32], place: str, on_error: str
    ) -> str:
        """Encode cells into `features`, zeros of shape `(N, F)`; returns a warning or `""`."""
        if self.kind in ("category", "text"):
            return self._encode_words(cells, features, place)
        numbers, problem = _numbers(cells, self, place, on_error)
        absent = np.isnan(numbers)
        if absent.any():
            numbers = np.where(absent, self.fill, numbers)
            if self.missing:
                features[:, -1] = absent
            else:
                problem = problem or self._lacking(absent, place)
        features[:, 0] = numbers - self.offset if self.offset else numbers
        for index, cycle in enumerate(self.values):
            phase = 2 * np.pi * numbers / _PERIODS[cycle]
            features[:, 1 + 2 * index] = np.sin(phase)
            features[:, 2 + 2 * index] = np.cos(phase)
        return problem

    def _lacking(self, absent: NDArray[np.bool_], place: str) -> str:
        """A warning if many cells are missing, though no training row lacked one; else `""`."""
        if not _too_many(absent.sum(), _UNSEEN * len(absent)):
            return ""
        lacking = f"{absent.sum():,} of {count(len(absent), 'cell')} are missing"
        return f"{place}: column {self.name!r}: {lacking}, and none was in training"

    def _encode_words(self, cells: pd.Series, features: NDArray[np.float32], place: str) -> str:
        codes, words = text_codes(cells)
        known = {value: feature for feature, value in enumerate(self.values)}
        if self.kind == "text":
            width = len(known) + self.ids
            numbered = {term: self.before + place for place, term in enumerate(self.terms, 1)}
            encoded = encode_texts([*words, ""], known, numbered, self.ids)
            features[:, :width] = encoded[codes]
            features[:, width:] = (codes < 0)[:, None]
            return ""
        # The same code is 1 in a frame of integers, 1.0 in one of floats and 01 in a text.
        alike = Counter(map(_plain, known))
        plain = {
            _plain(word): feature for word, feature in known.items() if alike[_plain(word)] < 2
        }
        others = len(known) if self.other else -1
        found = (known.get(word, plain.get(_plain(word), others)) for word in words)
        index = np.array([*found, others])
        if self.missing:
            index[-1] = len(known) + bool(self.other)
        chosen = index[codes]
        rows = np.flatnonzero(chosen >= 0)
        features[rows, chosen[rows]] = 1
        if not self.missing and (problem := self._lacking(codes < 0, place)):
            return problem
        unseen = codes[(codes >= 0) & (chosen == others)]
        if not _too_many(len(unseen), max(self.other, _UNSEEN) * len(codes)):
            return ""
        examples = few([repr(words[code]) for code in np.unique(unseen)])
        share = f"{len(unseen):,} of {count(len(codes), 'cell')}"
        seen = f"{share} have values unseen or rare in training: {examples}"
        return f"{place}: column {self.name!r}: {seen}"


@dataclass(frozen=True)
class Columns:
    """How the columns of a table are encoded as features.

    A number becomes a feature; if training rows lack it, the median replaces it and a second
    feature flags it. A category becomes a feature for each of the 50 most frequent values that at
    least two training rows have, for each further one that five have, and one for all others.
    `true` and `false` become 1 and 0. A date becomes its number of days, and where it is in the
    year, the week and, with a time, the day. A column has at most 1,000 values; in a large table,
    fewer. Text that differs in (nearly) every row becomes a feature for each of the 200 most
    frequent words that at least three rows have, and the ids of its 512 rarest terms: words and
    pairs of words that two rows have. Columns without information are left out: empty or constant
    ones, text without such words, row numbers and identifiers. So are dates and numbers written in
    a way that is not read.

    Attributes:
        columns: The columns in use, in the order of their features.
        left_out: The names of the others, and why they are left out.
        decimal: The decimal point of numbers in the training file's text.
        thousands: The separator of thousands there.

    >>> table = pd.DataFrame({"age": [31, None, 47, 52], "colour": ["red", "blue"] * 2})
    >>> columns = Columns.learn(table)
    >>> columns.feature_names
    ('age', 'age: missing', 'colour=blue', 'colour=red')
    >>> columns.encode(pd.DataFrame({"colour": ["red", "blue"], "age": [20, None]}))
    array([[20.,  0.,  0.,  1.],
           [47.,  1.,  1.,  0.]], dtype=float32)
    >>> Columns.from_values(columns.as_values()) == columns
    True
    """

    columns: tuple[Column, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    decimal: str = "."
    thousands: str | None = None

    @classmethod
    def learn(cls, table: pd.DataFrame, *, place: str = "table", leave_out: bool = True) -> Columns:
        """Learn the encoding of each column from training rows.

        Text among numbers and infinite values count as missing; `encode` reports them.

        Args:
            table: The training rows, without their labels.
            place: The table's name in messages.
            leave_out: Whether to leave out columns without information.
        """
        of_words = sum(not pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes)
        room = min(_MOST_CELLS // max(len(table) * of_words, 1), _MOST_FEATURES)

        def work(item: tuple[Any, pd.Series]) -> Column | tuple[str, str]:
            try:
                return _learn(item[1], str(item[0]), leave_out, room)
            except _LeftOutError as reason:
                return str(item[0]), str(reason)

        results = on_threads(work, list(table.items()), rows=len(table))
        used = [column for column in results if isinstance(column, Column)]
        before = np.cumsum([0, *(len(column.terms) for column in used)]).tolist()
        used = [replace(each, before=start) for each, start in zip(used, before, strict=False)]
        left_out = [reason for reason in results if not isinstance(reason, Column)]
        listed = few([f"{name} ({reason})" for name, reason in left_out], shown=8)
        if not used:
            raise ValueError(
                f"{place}: expected a column to learn from, got none{listed and ': '}{listed}"
            )
        if left_out:
            total = count(table.shape[1], "column")
            notice(f"{place}: {len(left_out)} of {total} left out: {listed}")
        for column in used:
            if column.other > _SHARED and len(column.values) >= MOST_VALUES:
                kept = f"{len(column.values)} values of {column.name!r} are features"
                notice(f"{place}: {kept}; {column.other:.0%} of the rows share one for all others")
        return cls(tuple(used), tuple(left_out))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in use."""
        return tuple(column.name for column in self.columns)

    @property
    def of_words(self) -> tuple[str, ...]:
        """The names of the columns in use that hold categories or text."""
        return tuple(each.name for each in self.columns if each.kind in ("category", "text"))

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the columns of texts."""
        return tuple(each.name for each in self.columns if each.kind == "text")

    @property
    def ids(self) -> NDArray[np.int64]:
        """The places of the features that hold the ids of terms."""
        return self._places(lambda each: [len(each.values) + place for place in range(each.ids)])

    @property
    def words(self) -> NDArray[np.int64]:
        """The places of the features that stand for words of texts."""
        return self._places(lambda each: range(len(each.values) if each.kind == "text" else 0))

    def hide_ids(self, std: ArrayLike) -> tuple[float, ...]:
        """Standard deviations of all features, those of ids so large that networks see zeros."""
        hidden = np.array(std, np.float64)
        hidden[self.ids] = LARGEST
        return tuple(hidden.tolist())

    def _places(self, of_column: Callable[[Column], Iterable[int]]) -> NDArray[np.int64]:
        first = np.cumsum([0, *(len(column.feature_names) for column in self.columns)])
        pairs = zip(first, self.columns, strict=False)
        found = [start + place for start, column in pairs for place in of_column(column)]
        return np.array(found, np.int64)

    @property
    def row_number(self) -> str | None:
        """The column that numbers or names the training rows, if one was left out as such."""
        for name, reason in self.left_out:
            if reason == _NUMBERED or _ROW_NUMBER.search(name[-40:]):
                return name
        return None

    def encode(
        self, table: pd.DataFrame, *, place: str = "table", on_error: str = "raise"
    ) -> NDArray[np.float32]:
        """Turn a table with the columns in use, in any order, into rows of features, `(N, F)`.

        Text among numbers and infinite values: `on_error="raise"` raises, `"skip"` treats them as
        missing with a warning.
        """
        names = [str(name) for name in table.columns]
        missing = [name for name in self.names if name not in names]
        if missing:
            expected, found = (few([*map(repr, each)], shown=8) for each in (missing, names))
            others = [name for name in names if name not in self.names]
            hint = suggest(missing[0], others) if len(missing) == 1 else ""
            raise ValueError(
                f"{place}: the columns {expected} are missing among {found or 'none'}{hint}"
            )
        cells = [table.iloc[:, names.index(name)] for name in self.names]
        rows = np.zeros((len(table), len(self.feature_names)), np.float32)
        ends = np.cumsum([len(column.feature_names) for column in self.columns])
        problems = on_threads(
            lambda task: task[0].encode(*task[1:], place, on_error),
            zip(self.columns, cells, np.split(rows, ends[:-1], axis=1), strict=True),
            rows=len(table),
        )
        for problem in problems:
            if problem:
                notice(problem)
        return rows

    def as_values(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Columns:
        """The columns that `as_values` describes."""
        try:
            parts: dict[str, Any] = {"left_out": tuple(map(tuple, values["left_out"]))}
            parts["columns"] = tuple(
                Column(**entry | {part: tuple(entry[part]) for part in ("values", "terms")})
                for entry in values["columns"]
            )
            for column in parts["columns"]:
                choose("kind", column.kind, get_args(Kind))
                within("ids", column.ids, 0, _MOST_IDS)
            return cls(**{**values, **parts})
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"columns: expected those of a run, got {error!r}") from None


def _learn(cells: pd.Series, name: str, leave_out: bool, room: int) -> Column:
    """The encoding of a column, with `room` for so many values or words."""
    kind = _INFERRED.get(pd.api.types.infer_dtype(cells, skipna=True), "text")
    written = _ISO
    if kind in ("category", "text"):
        codes, words = text_codes(cells)
        counts = np.bincount(codes[codes >= 0], minlength=len(words)).tolist()
        counted = {word: rows for word, rows in zip(words, counts, strict=True) if rows}
        if kind == "text":
            kind, written = _kind_of_text(counted)
        if kind == "category":
            return _learn_category(counted, len(cells), name, room)
    values, _ = _numbers(cells, Column(name, kind, format=written), "", "skip")
    present = values[~np.isnan(values)]
    missing = len(values) - len(present)
    low, high = present.min(initial=np.inf), present.max(initial=-np.inf)
    if leave_out:
        if not len(present):
            raise _LeftOutError("empty")
        if not missing and low == high:
            raise _LeftOutError("constant")
        if kind == "number" and (reason := _identifies(name, present)):
            raise _LeftOutError(reason)
    fill = float(np.median(present[:: len(present) // 100_000 + 1])) if len(present) else 0.0
    # float32 keeps 7 digits: of seconds since 1970 it would keep steps of two minutes.
    spread = present[:: len(present) // 10_000 + 1].std() if len(present) else 0.0
    lost = spread > 0 and max(abs(low), abs(high)) * 2.0**-24 > 1e-3 * spread
    cycles: tuple[str, ...] = ()
    if kind == "date":
        cycles = ("year", "week", "day") if (present % 1 != 0).any() else ("year", "week")
    offset = fill if lost or kind == "date" else 0.0
    return Column(name, kind, cycles, missing=missing, fill=fill, offset=offset, format=written)


def _learn_category(counted: dict[str, int], cells: int, name: str, room: int) -> Column:
    words = list(counted)
    present = sum(counted.values())
    missing = cells - present
    if not present:
        raise _LeftOutError("empty")
    if len(words) == 1 and not missing:
        raise _LeftOutError("constant")
    # Texts repeat too, where each annotator or export has a row of its own.
    long = len(words) > MOST_VALUES and np.median([w.count(" ") for w in words[:1000]]) >= _SPACES
    differ = long or (len(words) > MOST_VALUES and len(words) * 2 > present)
    differ |= 1 < len(words) == present
    for unread, reason in _UNREAD.items():
        alike = [word[:40] for word in words[:1000] if unread.match(word[:60])]
        if 2 * len(alike) > len(words[:1000]) and (differ or len(alike) > _CODES):
            raise _LeftOutError(reason.format(alike[0]))
    if differ:
        return _learn_text(words, name, missing)
    if group := _identifies_group(name, len(words), present):
        raise _LeftOutError(group)
    # By frequency, then by name, so that the order of the rows does not matter.
    order = sorted(counted, key=lambda word: (-counted[word], word))
    kept = [word for word in order[:MOST_VALUES] if counted[word] >= FEWEST_ROWS]
    kept += [word for word in order[MOST_VALUES:room] if counted[word] >= _ENOUGH_ROWS]
    kept.sort()
    other = (present - sum(counted[word] for word in kept)) / cells
    return Column(name, "category", tuple(kept), other=other, missing=missing)


def _plain(word: str) -> str:
    """One spelling for each number, and for true and false."""
    try:
        return str(float(word))
    except ValueError:
        return word.casefold() if word.casefold() in ("true", "false") else word


def _learn_text(texts: Sequence[str], name: str, missing: int) -> Column:
    """The encoding of texts, of which three have to share a word."""
    shared = shared_terms(texts)
    # Words of more than half of the texts tell little.
    frequent = [
        term for term, rows in shared.items() if 3 <= rows <= len(texts) / 2 and " " not in term
    ]
    if not frequent:
        raise _LeftOutError(f"text that differs from row to row, such as {quoted(texts[0])}")
    most = max(sum(term in shared for term in terms_of(text)) for text in texts)
    values, terms = tuple(sorted(frequent[:_MOST_WORDS])), tuple(shared)
    return Column(name, "text", values, missing=missing, terms=terms, ids=min(most, _MOST_IDS))


def _kind_of_text(counted: Mapping[str, int]) -> tuple[Kind, str]:
    """The kind of a text column, from the number of cells with each text, and how dates look."""
    words, counts = list(counted), np.array(list(counted.values()))
    if not words:
        return "number", _ISO
    numbers = counts[are_numbers(words)].sum() / counts.sum()
    # Some text among many numbers is a typo; among few different ones it may be a code.
    few_different = max(min(MOST_VALUES, counts.sum() / 10), 10)
    if numbers == 1 or (numbers > 0.5 and len(words) > few_different):
        return "number", _ISO
    written = _date_format(words, counts)
    return ("category", _ISO) if written is None else ("date", written)


def _date_format(words: Sequence[str], counts: NDArray[Any]) -> str | None:
    """How the dates of a column are written; `None` if it has others or their order is unclear."""
    if not any(map(_ANY_DATE.match, words[:50])):
        return None
    texts: Any = pd.Series(words, dtype=object)
    found = _dates(texts.where(texts.str.match(_DATE)), _ISO).notna()
    others = texts[~found]
    # Told that the day is first where it has to be, or pandas warns.
    guessed = Counter(
        guess_datetime_format(word.title(), dayfirst=_DAY_FIRST.match(word) is not None) or ""
        for word in others[:50]
        if len(word) < 40 and _ANY_DATE.match(word)
    )
    formats = [written for written, _ in guessed.most_common(1) if written]
    # Whether 02.01. is in January: one order has to read all that the other reads, and more.
    formats += [re.sub("^(%[dm])(.)(%[dm])", r"\3\2\1", written) for written in formats]
    read = {form: _dates(others, form).notna() for form in formats} or {_ISO: others.isna()}
    most = np.logical_or.reduce([*read.values()])
    settled = [form for form in read if (read[form] == most).all()]
    found[~found] = most
    enough = counts[found].sum() >= _MOST_DATES * counts.sum()
    return settled[0] if enough and len(settled) == 1 else None


def are_numbers(words: Sequence[str]) -> NDArray[np.bool_]:
    """Which texts are numbers."""
    numbers = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce")
    return np.asarray(pd.notna(numbers))


def text_codes(cells: pd.Series) -> tuple[NDArray[Any], list[str]]:
    """Index of each cell's text, -1 if missing, and the distinct texts; some may be unused."""
    try:
        if isinstance(cells.dtype, pd.CategoricalDtype):
            codes, different = cells.cat.codes.to_numpy(), cells.cat.categories
        else:
            codes, different = pd.factorize(cells)
    except TypeError:
        raise _LeftOutError("lists or objects") from None
    if pd.api.types.is_float_dtype(different.dtype):
        numbers = np.asarray(different, np.float64)  # pyarrow's have no remainders
        if (np.fmod(numbers, 1, where=np.isfinite(numbers), out=np.ones_like(numbers)) == 0).all():
            different = pd.Index(numbers.astype(np.int64))
    if any(isinstance(cell, bytes) for cell in different[:10]):
        raise _LeftOutError("bytes")
    words = np.array([str(cell).strip() or None for cell in different] + [None], dtype=object)
    again, found = pd.factorize(words)
    # In most columns, no two texts differ only in spaces.
    return codes if len(found) == len(different) else again[codes], [str(word) for word in found]


def _numbers(
    cells: Any, column: Column, place: str, on_error: str
) -> tuple[NDArray[np.float64], str]:
    """A number for each cell, NaN if missing or unusable, and a warning or `""`."""
    kind = column.kind
    found = _days(cells, column.format) if kind == "date" else _floats(cells)
    values = found.to_numpy(np.float64, na_value=np.nan)
    stray = np.isnan(values)
    if stray.any():
        lost = cells[stray]
        absent = lost.isna()
        if not absent.all():  # to look at the text takes a millisecond a column
            absent |= lost.astype("string").str.strip() == ""
        stray[stray] = ~absent.to_numpy(bool)
    if kind == "boolean":
        stray |= ~np.isnan(values) & (values != 0) & (values != 1)
    wrong = stray | (np.abs(values) > LARGEST)
    if not wrong.any():
        return values, ""
    unit = str(cells.index.name or "row")
    shown = few([f"{cell!r} in {unit} {where}" for where, cell in cells[wrong].items()])
    expected = f"{'finite ' * (not stray.any())}{_EXPECTED[kind]}"
    if column.format != _ISO:
        expected += f" or {pd.Timestamp('2024-12-31').strftime(column.format)}"
    reason = f"{place}: column {column.name!r}: expected {expected}, got {shown}"
    if on_error == "raise":
        raise ValueError(f"{reason}; fix them, or use on_error='skip' to treat them as missing")
    return np.where(wrong, np.nan, values), f"{reason}; treated as missing"


def _floats(cells: Any) -> Any:
    if pd.api.types.is_timedelta64_dtype(cells.dtype):
        return cells.dt.total_seconds() / 86400
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return cells
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    if pd.api.types.infer_dtype(cells, skipna=True) == "string":
        cells = cells.str.strip().str.casefold().replace({"true": "1", "false": "0"})
    return pd.to_numeric(cells, errors="coerce")


def _days(cells: pd.Series, written: str) -> Any:
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return pd.Series(np.nan, index=cells.index)  # numbers are not dates
    found = _dates(cells, _ISO)
    if written != _ISO:
        found = found.fillna(_dates(cells, written))
    return (found - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds() / 86400


def _dates(cells: pd.Series, written: str) -> Any:
    return pd.to_datetime(cells, format=written, errors="coerce", utc=True)


def _identifies(name: str, values: NDArray[np.float64]) -> str:
    """Why whole numbers that identify rows, or groups of them, are no feature; else `""`."""
    named = _ROW_NUMBER.search(name[-40:])
    for part in (values[:1000], values):  # the first rows settle it for most columns
        if (part % 1 != 0).any():
            return ""
        if len(np.unique(part)) < len(part):
            return _identifies_group(name, len(np.unique(values)), len(values))
    dense = bool(len(values) >= 50 and np.ptp(values) < 2 * len(values))
    return _NUMBERED if dense or named else ""


def _identifies_group(name: str, different: int, rows: int) -> str:
    """Why a column of ids that rows share is no feature; else `""`."""
    named = _ROW_NUMBER.search(name[-40:])
    # A few values with many rows each, such as those of type_id, are codes.
    codes = different <= min(MOST_VALUES, rows / 20)
    if codes or not named or not named[0].rstrip(".").casefold().endswith("id"):
        return ""
    return f"identifies more than a row: --group {shlex.quote(name)} keeps these together"
