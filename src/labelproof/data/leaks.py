"""Columns of a table that leak the label: copies of it, and what was made from it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labelproof.data.columns import Columns
from labelproof.data.dataset import Rows
from labelproof.data.notices import few, notice, readable

_EXCEPTIONS = 0.01
"""Share of rows that a leaking column may get wrong: a single measurement hardly ever predicts 99%
of the labels, and some of these are wrong."""
_EXCEPTIONS_OF_REST = 0.05  # share of the rows outside the largest class that it may get wrong
_SAME_NAMES = 0.8  # share of rows above which a column of class names is a copy of the label
_FEWEST_ROWS = 150  # in fewer a measurement predicts the class by chance, as the petals of iris do
_FEWEST_OF_REST = 20
_MOST_ROWS = 2000


def report_leaks(
    place: str, columns: Columns, rows: Rows, labels: NDArray[np.int64], class_names: Sequence[str]
) -> None:
    """Warn of columns that leak the label, given the training rows."""
    found = find_leaks(columns, rows, labels, class_names)
    if found:
        flags = " ".join(f"--drop {shlex.quote(readable(name))}" for name in found[:8])
        verb = "leaks" if len(found) == 1 else "leak"
        notice(
            f"{place}: {few([repr(name) for name in found], shown=8)} {verb} the label: one column "
            "predicts it in 99% of the rows. Results look better than they are, and wrong labels "
            f"are not found. Unless new rows have it too, leave it out with {flags} (drop=...)"
        )


def find_leaks(
    columns: Columns, rows: Rows, labels: NDArray[np.int64], class_names: Sequence[str]
) -> list[str]:
    """The columns that a small decision tree predicts the label from, one column at a time.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": np.arange(180) * 0.07 % 9, "age": np.arange(180) % 50})
    >>> columns = Columns.learn(table)
    >>> find_leaks(columns, columns.encode(table), (table["size"] > 5).to_numpy(int), "ab")
    ['size']
    """
    sizes = np.bincount(labels)
    rest = len(labels) - int(sizes.max())
    if len(labels) < _FEWEST_ROWS or rest < _FEWEST_OF_REST:
        return []
    # Late: it takes as long to import as torch.
    from sklearn.tree import DecisionTreeClassifier

    if len(labels) > _MOST_ROWS:
        chosen = np.random.default_rng(0).choice(len(labels), _MOST_ROWS, replace=False)
        rows, labels = rows[chosen], labels[chosen]
        rest = len(labels) - int(np.bincount(labels).max())
    allowed = min(_EXCEPTIONS * len(labels), _EXCEPTIONS_OF_REST * rest)
    classes = int((sizes > 0).sum())
    found = []
    ends = np.cumsum([len(column.feature_names) for column in columns.columns])
    for column, features in zip(columns.columns, np.split(rows, ends[:-1], axis=1), strict=True):
        if set(column.values) <= set(class_names) and len(column.values) > 1:
            said = np.array([class_names.index(value) for value in column.values])
            told = said[features[:, : len(said)].argmax(axis=1)]
            agrees = (told == labels)[features[:, : len(said)].any(axis=1)]
            if len(agrees) and agrees.mean() > _SAME_NAMES:
                found.append(column.name)
                continue
        leaves = max(2 * classes, features.shape[1] + 1)
        # A tree with a leaf for every few rows predicts anything.
        if leaves * 10 > len(labels):
            continue
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
        # First on an eighth of the rows: exceptions that are too many there are too many in all.
        for part in (slice(None, None, 8), slice(None)):
            # The checks of scikit-learn would take longer than the tree.
            tree.fit(features[part], labels[part], check_input=False)
            wrong = tree.predict(features[part], check_input=False) != labels[part]
            if wrong.sum() > allowed:
                break
        else:
            found.append(column.name)
    return found
