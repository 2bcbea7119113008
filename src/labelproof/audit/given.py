"""Labels to be audited by predictions from elsewhere, whatever framework made them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.audit.folder import Audit
from labelproof.audit.given_labels import admit_labels
from labelproof.audit.given_predictions import GivenPredictions, take_predictions
from labelproof.audit.labels import audit_logits
from labelproof.audit.matching import match_classes
from labelproof.audit.named_tables import refuse_other_index
from labelproof.audit.probabilities import (
    LogProbabilities,
    Probabilities,
    admit_given,
    admit_probabilities,
    admit_table,
    are_decisions,
)
from labelproof.audit.row_marks import marks_of
from labelproof.audit.row_matching import RowIds, match_rows
from labelproof.audit.sample_ids import find_files, known_ids, name_files
from labelproof.data.classes import order_classes
from labelproof.data.dataset import Dataset
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.sample_names import sample_names

__all__ = ["MatchedLabels", "audit_given", "match_given"]


@dataclass(frozen=True)
class MatchedLabels:
    """Labels and predictions in one order, and what they are called.

    Attributes:
        table: `(N, C)`, probabilities in the order of the samples.
        labels: The column of each sample's label, `(N)`.
        class_names: The class of each column.
        samples: What each sample is called.
    """

    table: Probabilities
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    samples: list[str]


def audit_given(
    probabilities: ArrayLike | GivenPredictions,
    labels: Dataset | ArrayLike,
    *,
    data: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
) -> Audit:
    """Audit labels by probabilities that someone else's model gave.

    Args:
        probabilities: `(N, C)`: a row for each training sample, in the order in which they are
            read; a column for each class, in the order of the class names. Where columns or rows
            have names, as `read_predictions` finds them, they may be in any order; so may columns
            of a table, as of pandas, that are called by their class.
        labels: A dataset, or labels alone: class indices, which may be floats, or names of classes.
            Where they and the probabilities have an index, it has to be the same.
        data: Where they were read from.
        options: What is needed to read them again; see `Audit`.

    Raises:
        ValueError: Rows or columns cannot be matched with samples or classes, or a label is
            missing.

    Warns:
        DataWarning: They were matched by a guess; it says which.

    Example:
        >>> table = np.array([[0.9, 0.1], [0.2, 0.8], [0.8, 0.2], [0.1, 0.9]])
        >>> audit_given(table, np.array([0, 1, 0, 1]), data="labels.npy").samples
        ['0', '1', '2', '3']
        >>> audit_given(table, np.array(["cat", "dog", "cat", "dog"]), data="x.npy").class_names
        ('cat', 'dog')
    """
    matched = match_given(probabilities, labels, data=data)
    # Not audit_labels, which would look through all of a mapped file once more.
    findings = audit_logits(LogProbabilities(matched.table), matched.labels)
    dataset = labels if isinstance(labels, Dataset) else None
    kind = "unknown" if dataset is None else "rows" if dataset.tabular else "images"
    return Audit(
        name=Path(data).stem if dataset is None else dataset.name,
        data=str(data),
        kind=kind,
        class_names=matched.class_names,
        samples=matched.samples,
        index=np.arange(len(matched.labels)),
        findings=findings,
        agreement=findings.agreement,
        method={"predictions": "given"},
        marks=None if dataset is None else marks_of(dataset, data, matched.samples),
        left_out=() if dataset is None else dataset.left_out,
        options=options or {},
    )


def match_given(
    probabilities: ArrayLike | GivenPredictions,
    labels: Dataset | ArrayLike,
    *,
    data: str | os.PathLike[str],
) -> MatchedLabels:
    """Bring predictions and labels together, or say why they do not belong together.

    Args:
        probabilities: As for `audit_given`.
        labels: Likewise.
        data: Likewise.

    Example:
        >>> given = GivenPredictions(np.array([[0.9, 0.1], [0.2, 0.8]]), ("dog", "cat"))
        >>> match_given(given, np.array(["cat", "dog"]), data="labels.txt").labels
        array([1, 0])
    """
    if isinstance(probabilities, GivenPredictions):
        given = probabilities
        admit_table(given.probabilities)
    else:
        given = take_predictions(probabilities)
        if not isinstance(labels, Dataset):
            refuse_other_index(probabilities, labels)
    place = readable(str(data))
    if not isinstance(labels, Dataset):
        labels = admit_labels(labels, place=place)
    samples = _names_of(labels, data)
    # Before the numbers are looked at: where a class has no column, rows do not sum to 1 either.
    numbers, class_names = _classes_of(labels, given, place)
    table = admit_probabilities(given.probabilities)
    if are_decisions(table):
        notice(
            f"{given.place}: every number is 0 or 1, which is what a model decided and not how "
            "sure it is; every label that differs passes for wrong, and the rate comes out too high"
        )
    if given.ids is not None:
        rows = RowIds(given.ids, given.id_column, given.place)
        order, samples = _order_of(rows, labels, samples, data)
        if order is not None and not np.array_equal(order, np.arange(len(table))):
            table = table[order]
        others = [name for name in given.sources if Path(name).name != Path(place).name]
        if order is not None and others and isinstance(labels, Dataset):
            # The same data may well be in two files, but line 7 is in any.
            notice(
                f"{given.place}: its rows are about {few(others)}, and taken for those of {place}"
            )
    if isinstance(labels, Dataset):
        _check_left_out(labels, len(table), place)
    admitted = admit_given(numbers, samples=len(table), classes=table.shape[1])
    return MatchedLabels(table, admitted, class_names, samples)


def _order_of(
    rows: RowIds,
    labels: Dataset | NDArray[Any],
    samples: list[str],
    data: str | os.PathLike[str],
) -> tuple[NDArray[np.int64] | None, list[str]]:
    """The row of each sample, `None` where they have the same order, and what samples are called.

    Raises:
        ValueError: The data have such ids too, and they are others.
    """
    place = readable(str(data))
    if not isinstance(labels, Dataset):
        order = match_rows(rows, samples, labels=place)
        if order is not None:
            return order, samples
        named = len(set(rows.ids)) == len(samples) == len(rows.ids)
        notice(
            f"{place} does not say which sample a label is of; rows of {rows.place} are matched by "
            f"their order, and {'called by' if named else 'nothing is made of'} {rows.where}"
        )
        return None, list(rows.ids) if named else samples
    known = known_ids(labels, samples, rows.column, data)
    files = find_files(labels, data, rows.place)
    order = match_rows(rows, samples, labels=place, known=known, files=files)
    if order is not None:
        return order, samples
    if known or (files is not None and name_files(rows.column, rows.ids)):
        ours = known[0] if known else samples
        raise ValueError(
            f"probabilities: expected names of samples of {place}, such as {few(ours)}, in "
            f"{rows.where}, got {few(rows.ids)}; mend them, or remove the column to match rows by "
            "their order"
        )
    notice(f"{rows.where} names no sample of {place}; rows are matched by their order")
    return None, samples


def _check_left_out(dataset: Dataset, rows: int, place: str) -> None:
    if dataset.left_out and len(dataset.train) != rows:
        raise ValueError(
            f"labels: expected one for each of {count(rows, 'row')} of the probabilities, got "
            f"{len(dataset.train):,}; {count(len(dataset.left_out), 'sample')} of {place} left out "
            f"by the file of labels (--labels): {few(dataset.left_out)}; leave the same out of the "
            "probabilities, or give them as a table that names the sample of each row"
        )


def _names_of(labels: Dataset | NDArray[Any], data: str | os.PathLike[str]) -> list[str]:
    """What each sample is called."""
    if isinstance(labels, Dataset):
        return sample_names(labels.train, data)
    if Path(data).suffix.lower() == ".txt":
        return [f"line {number}" for number in range(1, len(labels) + 1)]
    return [str(number) for number in range(len(labels))]


def _classes_of(
    labels: Dataset | NDArray[Any], given: GivenPredictions, place: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The column of each sample's label, and the class of each column."""
    columns, names = given.probabilities.shape[1], given.class_names
    if isinstance(labels, Dataset):
        vocabulary, codes = labels.class_names, labels.train.labels
    elif labels.dtype.kind in "iu" and names is None:
        # Indices are what they are: those that have no column are refused by whoever counts them.
        return labels.astype(np.int64), tuple(str(number) for number in range(columns))
    else:
        texts = [str(label) for label in labels.tolist()]
        vocabulary = order_classes(texts)
        places = {name: place for place, name in enumerate(vocabulary)}
        codes = np.array([places[text] for text in texts], dtype=np.int64)
    found = match_classes(
        vocabulary,
        columns=columns,
        names=names,
        labels=place,
        predictions=given.place,
        numbered=not isinstance(labels, Dataset) or labels.tabular,
    )
    if isinstance(labels, Dataset) or names is None:
        # Data that are read again are to be found under the names that they give to their classes.
        return found.columns[codes], found.names
    return found.columns[codes], names
