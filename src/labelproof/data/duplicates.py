"""Images and rows that occur more than once, which matters most where their labels differ."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.data.columns import on_threads, row_parts
from labelproof.data.notices import count, few, notice

_TAIL = 4096
_FEWEST = 20  # among fewer rows, equal ones may be chance
_COMMON = 0.5
"""Share of distinct rows below which columns are so coarse that rows are equal by chance."""
_LARGEST = (10, 0.02)
"""Equal rows are copies up to this number, or this share of all; more are common values."""


def find_duplicates(paths: Sequence[str]) -> NDArray[np.int64]:
    """The group of each file, `(N)`, the same for identical ones; -1 for a file without a copy.

    Only files of equal size and equal last bytes are read whole, so this costs little more than
    listing a folder. Empty and unreadable files have no duplicates.
    """
    groups = [list(range(len(paths)))]
    # The end of a file is pixels; its beginning may be the camera's header, the same in all.
    for key in (os.path.getsize, lambda path: _digest(path, last=_TAIL), _digest):
        parts: dict[object, list[int]] = defaultdict(list)
        for number, group in enumerate(groups):
            for index in group:
                with suppress(OSError):
                    if value := key(paths[index]):
                        parts[number, value].append(index)
        groups = [part for part in parts.values() if len(part) > 1]
    found = np.full(len(paths), -1)
    for number, group in enumerate(sorted(groups)):
        found[group] = number
    return found


def _digest(path: str, last: int | None = None) -> bytes:
    with open(path, "rb") as stream:
        stream.seek(0 if last is None else max(os.path.getsize(path) - last, 0))
        digest = hashlib.blake2b(digest_size=16)
        while block := stream.read(1 << 20):
            digest.update(block)
        return digest.digest()


def report_duplicates(place: str, splits: Mapping[str, Any]) -> dict[str, NDArray[np.int64]]:
    """Warn of identical files; returns the group of each by split, -1 without a copy."""
    files = [
        (file, split, label)
        for split, content in splits.items()
        for file, label in zip(content.files, content.labels, strict=True)
        if isinstance(file, str)  # and not an image within another file
    ]
    groups = find_duplicates([file for file, _, _ in files])
    # As objects: file names need not be valid UTF-8.
    table: Any = pd.DataFrame(files, columns=["name", "split", "label"], dtype=object)
    table["group"] = groups
    report_copies(place, "image", table[groups >= 0])
    return {str(split): part.to_numpy() for split, part in table.groupby("split")["group"]}


def find_duplicate_rows(
    rows: NDArray[Any], cells: pd.DataFrame | None = None, texts: Iterable[str] = ()
) -> NDArray[np.int64]:
    """The group of each row, `(N)`, the same for copies; -1 for a row without a copy.

    With `cells`, these must be equal, too: different cells may have equal features. `texts` are the
    columns of text.
    """
    alone = np.full(len(rows), -1)
    if len(rows) < _FEWEST:
        return alone
    flat = rows.reshape(len(rows), -1)
    weights = np.random.default_rng(0).normal(size=flat.shape[1])
    # Not a matrix product, which may round equal rows differently.
    sums = on_threads(
        lambda part: np.einsum("ij,j->i", flat[part], weights), row_parts(len(flat)), rows=len(flat)
    )
    hashes = (np.concatenate(sums) + 0.0).view(np.int64)
    ordered = np.sort(hashes)
    if (ordered[1:] != ordered[:-1]).all():
        return alone
    again = pd.Series(hashes).duplicated(keep=False).to_numpy()
    exact = pd.DataFrame(flat[again]) if cells is None else cells[again]
    hash_rows: Any = pd.util.hash_pandas_object  # pyright: ignore[reportAttributeAccessIssue]
    hashes[again] = hash_rows(exact, index=False).to_numpy().view(np.int64)
    codes, different = pd.factorize(hashes)
    if len(different) == len(rows) or len(different) < _COMMON * len(rows):
        return alone
    sizes, most = np.bincount(codes), max(_LARGEST[0], int(_LARGEST[1] * len(rows)))
    if cells is not None:
        # Rows of few coarse columns are equal by chance; copies make ten times as many equal. Rows
        # that share a rare text are copies in any case.
        coded = {name: pd.factorize(cells[name])[0] + 1 for name in cells}
        if 10 * np.prod([_pairs(each) for each in coded.values()]) >= _pairs(codes):
            own = [np.bincount(coded[name])[coded[name]] <= most for name in texts]
            sizes = np.bincount(codes, np.any([codes < 0, *own], axis=0))
    copied = (sizes > 1) & (sizes <= most)
    return np.where(copied, np.cumsum(copied) - 1, -1)[codes]


def _pairs(codes: NDArray[np.intp]) -> float:
    """The share of all pairs of rows that are equal."""
    sizes = np.bincount(codes).astype(np.float64)
    return float((sizes * (sizes - 1)).sum() / (len(codes) * (len(codes) - 1)))


def report_copies(place: str, word: str, table: Any) -> None:
    """Warn of copies: `table` has the name, split, label and group of each."""
    if not len(table):
        return
    by_group = table.groupby("group")
    labels, splits = by_group["label"].nunique(), by_group["split"].nunique()
    for chosen, where, why in (
        (labels > 1, "with more than one label", "at most one of the labels is right"),
        (splits > 1, "in more than one split", "accuracy on them says little"),
        (
            (labels == 1) & (splits == 1),
            "more than once in the same class",
            "all are kept, on one side of every split",
        ),
    ):
        groups = chosen.index[chosen]
        if len(groups):
            differs = table[table["group"] == groups[0]].drop_duplicates(["label", "split"])
            shown = (differs if len(differs) > 1 else by_group.get_group(groups[0]))["name"]
            pair = " and ".join(few([name]) for name in shown[:2])
            notice(f"{place}: {count(len(groups), word)} found {where}, such as {pair}; {why}")
