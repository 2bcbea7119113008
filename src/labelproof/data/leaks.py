"""Columns that leak the label: from one of them alone, nearly all labels can be predicted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.columns import Columns
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
    place: str, columns: Columns, rows: NDArray[Any], labels: NDArray[Any], names: Sequence[str]
) -> None:
    """Warn of columns that leak the label: a small decision tree on one alone predicts it."""
    sizes = np.bincount(labels)
    rest = len(labels) - int(sizes.max())
    if len(labels) < _FEWEST_ROWS or rest < _FEWEST_OF_REST:
        return
    # Imported here: scikit-learn takes as long as torch.
    from sklearn.tree import DecisionTreeClassifier

    if len(labels) > _MOST_ROWS:
        chosen = np.random.default_rng(0).choice(len(labels), _MOST_ROWS, replace=False)
        rows, labels = rows[chosen], labels[chosen]
        rest = len(labels) - int(np.bincount(labels).max())
    allowed = min(_EXCEPTIONS * len(labels), _EXCEPTIONS_OF_REST * rest)
    classes = int((sizes > 0).sum())
    found: dict[str, str] = {}
    ends = np.cumsum([len(column.feature_names) for column in columns.columns])
    for column, features in zip(columns.columns, np.split(rows, ends[:-1], axis=1), strict=True):
        if set(column.values) <= set(names) and len(column.values) > 1:
            indices = np.array([names.index(value) for value in column.values])
            copied = indices[features[:, : len(indices)].argmax(axis=1)]
            filled = features[:, : len(indices)].any(axis=1)
            agrees = (copied == labels)[filled]
            if len(agrees) and agrees.mean() > _SAME_NAMES:
                where = (
                    f"where {column.name!r} is filled, in {100 * filled.mean():.3g}% of the rows"
                )
                found[column.name] = f"{where}, it agrees in {agrees.mean():.0%}"
                continue
        # Many words of a text may tell its class, as they should; one or two words leak it.
        leaves = max(2 * classes, 0 if column.kind == "text" else features.shape[1] + 1)
        # A tree with a leaf for every few rows predicts anything.
        if leaves * 10 > len(labels):
            continue
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
        # First on an eighth of the rows: too many exceptions there are too many overall.
        for part in (slice(None, None, 8), slice(None)):
            # The checks of scikit-learn would take longer than the tree.
            tree.fit(features[part], labels[part], check_input=False)
            wrong = tree.predict(features[part], check_input=False) != labels[part]
            if wrong.sum() > allowed:
                break
        else:
            found[column.name] = "one column predicts it in 99% of the rows"
    if found:
        flags = " ".join(f"--drop {shlex.quote(readable(name))}" for name in [*found][:8])
        verb = "leaks" if len(found) == 1 else "leak"
        notice(
            f"{place}: {few([*map(repr, found)], shown=8)} {verb} the label: "
            f"{few([*dict.fromkeys(found.values())])}. Results look better than they are, and "
            "wrong labels are not found. Unless new rows have it too, leave it out with "
            f"{flags} (drop=...)"
        )
