"""Predictions in a table: which columns are classes, and which says what a row is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.data.cells import Parsed, parse_numbers
from labelproof.data.headers import check_header
from labelproof.data.notices import count, few, readable
from labelproof.data.table_kind import COLUMNS
from labelproof.data.tables import Table, read_table

__all__ = ["PredictionTable", "read_prediction_table"]

_IDS = (
    *("id", "sample", "sample_id", "index", "row", "line", "name", "key", "uid", "uuid"),
    *(*COLUMNS["path"], "image_id", ""),
)
"""What columns that name samples are usually called, the first that is there counts; nothing is
what pandas calls the numbers of rows."""

_WRITTEN = re.compile(r"p\((.*)\)", re.DOTALL)
"""A class as `labelproof predict --all` writes it; beside it stand a label and more."""

_BLOCK = 4096
"""Rows whose text is in memory at a time: as text, numbers take many times as much."""


@dataclass(frozen=True)
class PredictionTable:
    """What a table of predictions says.

    Attributes:
        probabilities: `(N, C)`, float64.
        class_names: The names of their columns.
        ids: What each row is about, where a column says so.
        id_column: That column.
        sources: The files that ids of rows are within, as `labelproof predict` writes them.
    """

    probabilities: NDArray[np.float64]
    class_names: tuple[str, ...]
    ids: tuple[str, ...] | None
    id_column: str
    sources: tuple[str, ...] = ()


def read_prediction_table(path: Path) -> PredictionTable:
    r"""Read a table with a column for each class, called by its name.

    One column may say which sample a row is about: one that is called `id`, `sample`, `path` or the
    like and holds whole numbers, or the only one that holds text.

    Args:
        path: A `.csv`, `.tsv`, `.jsonl` or `.parquet`.

    Raises:
        ValueError: A cell is no number, or a column can be neither; the message names it.

    Example:
        >>> file = getfixture("tmp_path") / "predictions.csv"
        >>> _ = file.write_text("cat,dog\n0.9,0.1\n0.2,most\n")
        >>> read_prediction_table(file)
        Traceback (most recent call last):
            ...
        ValueError: ...predictions.csv: expected a probability in line 3, column 'dog', got 'most'
    """
    place = readable(str(path))
    table = read_table(path)
    names = [name.strip() for name in table.columns]
    check_header(names, place, of="classes")
    # As they are written in the file.
    spelled = dict(zip(names, table.columns, strict=True))
    written = {name: match[1] for name in names if (match := _WRITTEN.fullmatch(name))}
    sources: tuple[str, ...] = ()
    if len(written) > 1:
        chosen = list(written)
        ids = next((name for name in ("row", "index", "path") if name in spelled), None)
        parsed = _parse_columns(table, {name: spelled[name] for name in chosen}, place)
        if ids in ("row", "index") and "path" in spelled:
            sources = tuple(dict.fromkeys(_texts(table, spelled["path"])))
    else:
        parsed = _parse_columns(table, spelled, place)
        ids = _find_ids(table, spelled, parsed, place)
        # Beside a name for each row, their numbers are of no use.
        chosen = [name for name in names if name and name != ids]
    if len(chosen) < 2:
        raise ValueError(
            f"{place}: expected a column for each of two classes or more, got "
            f"{few([repr(name) for name in chosen]) or 'none'}"
        )
    for name in chosen:
        values, stray = parsed[name]
        bad = [*stray[:1], *np.flatnonzero(np.isnan(values))[:1].tolist()]
        if bad:
            row = next(islice(table.read([spelled[name]]), min(bad), None))
            got = repr(row.cells[0][:40]) if row.cells[0] else "nothing"
            raise ValueError(
                f"{place}: expected a probability in {row.place}, column {name!r}, got {got}"
            )
    return PredictionTable(
        np.stack([parsed[name][0] for name in chosen], axis=1),
        tuple(written.get(name, name) for name in chosen),
        None if ids is None else tuple(_texts(table, spelled[ids])),
        ids or "",
        sources,
    )


def _parse_columns(table: Table, columns: Mapping[str, str], place: str) -> dict[str, Parsed]:
    """Columns as numbers, without keeping the text of all of them."""
    kept: dict[str, Parsed] = {}
    for name, written in columns.items():
        numbers = table.numbers(written)
        if numbers is not None:
            kept[name] = numbers, []
    rest = [name for name in columns if name not in kept]
    values: dict[str, list[NDArray[np.float64]]] = {name: [] for name in rest}
    strays: dict[str, list[int]] = {name: [] for name in rest}
    begin = 0
    rows = table.read([columns[name] for name in rest])
    while rest and (block := [row.cells for row in islice(rows, _BLOCK)]):
        for name, cells in zip(rest, zip(*block, strict=True), strict=True):
            numbers, stray = _parse(cells)
            values[name].append(numbers)
            strays[name] += [begin + row for row in stray]
        begin += len(block)
    kept |= {name: (np.concatenate(values[name]), strays[name]) for name in rest if begin}
    if not any(len(numbers) for numbers, _ in kept.values()):
        raise ValueError(f"{place}: expected a row for each sample, got none")
    return kept


def _parse(cells: Sequence[str]) -> Parsed:
    if all(cell.rstrip().endswith("%") for cell in cells):
        values, stray = _parse([cell.rstrip()[:-1] for cell in cells])
        return values / 100, stray
    values, stray = parse_numbers(cells)
    # Beside semicolons, spreadsheets write a comma for the point.
    return parse_numbers(cells, comma=True) if stray else (values, stray)


def _texts(table: Table, column: str) -> Iterator[str]:
    return (row.cells[0] for row in table.read([column]))


def _find_ids(
    table: Table, spelled: Mapping[str, str], parsed: Mapping[str, Parsed], place: str
) -> str | None:
    # A column of probabilities with a slip in it is not yet one of names.
    texts = [name for name, (values, stray) in parsed.items() if 2 * len(stray) > len(values)]
    if len(texts) > 1:
        usual = [name for name in texts if name.casefold() in _IDS]
        others = [name for name in texts if name not in usual[:1]]
        raise ValueError(
            f"{place}: expected numbers in a column for each class, got text in "
            f"{count(len(others), 'column')}: {few([repr(name) for name in others])}; remove "
            f"{'it' if len(others) == 1 else 'them'}"
        )
    if texts:
        name = texts[0]
        counts = Counter(_texts(table, spelled[name]))
        again = [text for text, times in counts.items() if times > 1]
        if again and name.casefold() not in _IDS:
            raise ValueError(
                f"{place}: expected a probability in each row of the column {name!r}, or a name "
                f"of its own, got {again[0]!r} more than once; remove the column, or name it id"
            )
        return name
    folded = {name.casefold(): name for name in reversed(list(parsed))}
    for word in _IDS:
        if word in folded and (parsed[folded[word]][0] % 1 == 0).all():
            return folded[word]
    return None
