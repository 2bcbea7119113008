"""Replace labels of the data by those from a file, such as a review's."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from labelproof.data.dataset import Dataset, as_indices
from labelproof.data.images import sample_names, select_samples
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.table import as_text, read_table

_GONE = 0.1
"""Largest share of samples that may have been removed since the file was made."""
_CORRECTED = 1 / 2
"""Most labels that may have changed since the file was made, as a share of those that would differ
if rows were in random order: where 6% are fraud that is 11%, and of ten equal classes 90%."""


def relabel(
    dataset: Dataset, data: str | os.PathLike[str], file: str | os.PathLike[str]
) -> Dataset:
    r"""Replace the labels of training samples by those of a file.

    The file is a table with the columns `sample` and `label`, such as a review's. A sample with an
    empty label is left out: the reviewer was unsure. A sample that is not in the file keeps its
    label. Samples are named relative to `data`, the path the dataset was read from.

    Rows are named by line, so the file is refused if the labels in its column `given` differ from
    those of the data in more than half as many samples as they would in random order. If fewer
    differ, these keep their present label: they were edited since, or rows have moved.

    >>> from labelproof.data import load_digits
    >>> file = getfixture("tmp_path") / "reviewed.csv"
    >>> _ = file.write_text("sample,label\n0,1\n1,\n")
    >>> digits = load_digits()
    >>> corrected = relabel(digits, "digits", file)
    >>> int(digits.train.labels[0]), int(corrected.train.labels[0])
    (7, 1)
    >>> len(digits.train), len(corrected.train)
    (1347, 1346)
    """
    place = readable(os.fspath(file))
    # Only an empty label is left out: classes may be called nan or ?, as a folder may.
    table = read_table(file, text=["sample", "label", "given"], missing=[""])
    folded = {name: name.casefold() for name in table.columns}
    table = table.rename(columns={a: b for a, b in folded.items() if b not in folded})
    if not {"sample", "label"} <= {*table.columns}:
        raise ValueError(
            f"{place}: expected the columns sample and label, as 'labelproof review --export' "
            f"writes them, got {few(list(table.columns), shown=8)}"
        )
    used = [name for name in ("sample", "label", "given") if name in table]
    rows: Any = table[used].apply(as_text, missing=[""])
    names = [readable(name).strip() for name in sample_names(dataset.train, data)]
    rows["index"] = pd.Index(names).get_indexer(pd.Index(rows["sample"]))
    if (gone := rows["index"] < 0).any():
        missing = list(dict.fromkeys(rows.loc[gone, "sample"]))
        what = f"{count(len(missing), 'sample')} not in {readable(str(data))}: {few(missing)}"
        if gone.mean() > _GONE:
            raise ValueError(f"{place}: {what}; is it of other data, or have files moved?")
        notice(f"{place}: {what}")
        rows = rows[~gone]
    ambiguous = rows.groupby("sample")["label"].transform("nunique") > 1
    if ambiguous.any():
        samples = few(rows["sample"][ambiguous].unique().tolist())
        raise ValueError(f"{place}: expected one label for each sample, got more for {samples}")
    classes = [readable(name).strip() for name in dataset.class_names]
    unknown = sorted(set(rows["label"]) - set(classes) - {""})
    if unknown:
        raise ValueError(f"{place}: expected labels among {few(classes)}, got {few(unknown)}")
    before = dataset.train.labels
    if "given" in rows:
        now: Any = pd.Series(np.array(classes, dtype=object)[before])
        given = rows["given"][rows["given"] != ""]
        differs = given[given != now[rows["index"][given.index]].to_numpy()].index
        changed = rows["sample"][differs].tolist()
        problem = f"{place}: {len(changed):,} of {count(len(given), 'sample')} had another label "
        problem += f"when the file was made, such as {few(changed)}"
        # Where a class is rare, most labels agree in any order.
        by_chance = (1 - given.map(now.value_counts(normalize=True)).fillna(0)).sum()
        if len(changed) > _CORRECTED * by_chance:
            raise ValueError(
                f"{problem}: are rows in another order, or is it of other data? Use the data as "
                "they were audited, or remove the column 'given' if only labels were corrected"
            )
        if changed:
            notice(f"{problem}; these keep their present label")
            rows = rows.drop(differs)
    labels = before.copy()
    labels[rows["index"]] = as_indices(rows["label"], classes)
    kept = labels >= 0  # -1 is an empty label
    if empty := [classes[label] for label in np.setdiff1d(before, labels[kept])]:
        number = count(len(empty), "class", "classes")
        notice(f"{place}: {number} left without any training sample: {few(empty)}")
    left_out = tuple(compress(names, ~kept))
    # Published labels stay known: against them the file's labels are right or wrong.
    relabelled = replace(dataset.train, labels=labels, truth=dataset.truth)
    split = select_samples(relabelled, np.flatnonzero(kept))
    return replace(
        dataset, splits={**dataset.splits, "train": split}, left_out=(*dataset.left_out, *left_out)
    )
