"""Labels to be audited by predictions from elsewhere, whatever framework made them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.folder import Audit
from labelproof.audit.labels import audit_labels
from labelproof.audit.probabilities import Probabilities, admit_probabilities
from labelproof.audit.row_marks import marks_of
from labelproof.data.dataset import Dataset
from labelproof.data.notices import few
from labelproof.data.sample_names import sample_names

__all__ = ["audit_given", "read_given"]


@dataclass(frozen=True)
class _Source:
    name: str
    kind: str
    class_names: tuple[str, ...]
    samples: list[str]
    labels: NDArray[np.int64]


def audit_given(
    probabilities: Probabilities,
    labels: Dataset | NDArray[np.integer],
    *,
    data: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
) -> Audit:
    """Audit labels by probabilities that someone else's model gave.

    Args:
        probabilities: `(N, C)`: a row for each training sample, in the order in which they are
            read; a column for each class, in the order of the class names.
        labels: A dataset, or class indices alone.
        data: Where they were read from.
        options: What is needed to read them again; see `Audit`.

    Raises:
        ValueError: Rows or columns are not as many as samples or classes.

    Example:
        >>> table = np.array([[0.9, 0.1], [0.2, 0.8], [0.8, 0.2], [0.1, 0.9]])
        >>> audit_given(table, np.array([0, 1, 0, 1]), data="labels.npy").samples
        ['0', '1', '2', '3']
    """
    table = admit_probabilities(probabilities)
    source = _look_at(labels, data, classes=table.shape[1])
    if len(source.class_names) != table.shape[1]:
        raise ValueError(
            f"probabilities: expected {len(source.class_names)} columns, one for each class of "
            f"{data} in this order: {few(source.class_names)}; got {table.shape[1]}"
        )
    findings = audit_labels(table, source.labels)
    return Audit(
        name=source.name,
        data=str(data),
        kind=source.kind,
        class_names=source.class_names,
        samples=source.samples,
        index=np.arange(len(table)),
        findings=findings,
        agreement=findings.agreement,
        method={"predictions": "given"},
        marks=None if not isinstance(labels, Dataset) else marks_of(labels, data, source.samples),
        left_out=labels.left_out if isinstance(labels, Dataset) else (),
        options=options or {},
    )


def read_given(path: str | os.PathLike[str]) -> NDArray[np.integer]:
    """Class indices from a `.npy` file.

    Raises:
        ValueError: It holds something else.
    """
    try:
        # Not numpy.load, which opens archives as well and whose errors advise to run what is there.
        with open(path, "rb") as stream:
            labels = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path}: expected class indices as numpy.save writes them ({error})"
        ) from None
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{path}: expected one class index per sample, got {labels.dtype} of shape "
            f"{labels.shape}"
        )
    return labels


def _look_at(
    labels: Dataset | NDArray[np.integer], data: str | os.PathLike[str], *, classes: int
) -> _Source:
    if isinstance(labels, Dataset):
        kind = "rows" if labels.tabular else "images"
        names = sample_names(labels.train, data)
        return _Source(labels.name, kind, labels.class_names, names, labels.train.labels)
    names = [str(index) for index in range(len(labels))]
    numbers = tuple(str(number) for number in range(classes))
    return _Source(Path(data).stem, "unknown", numbers, names, labels.astype(np.int64))
