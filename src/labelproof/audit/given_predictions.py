"""Predictions by someone else's model, from an array file or a table."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.audit.named_tables import column_names
from labelproof.audit.prediction_table import read_prediction_table
from labelproof.audit.probabilities import Probabilities, admit_table, read_probabilities
from labelproof.data.array_files import DAMAGED, decode_text, why_unreadable
from labelproof.data.loading import TABLES
from labelproof.data.notices import count, few, readable

__all__ = ["GivenPredictions", "read_predictions", "take_predictions"]

_PROBABILITIES = ("probabilities", "pred_probs", "predictions", "probs", "arr_0")
_CLASS_NAMES = ("class_names", "classes")


@dataclass(frozen=True)
class GivenPredictions:
    """What a model says, and what its columns and rows are called, where that is known.

    Attributes:
        probabilities: `(N, C)`, as they came.
        class_names: The class of each column.
        ids: What each row is about.
        id_column: What the column of those is called.
        place: The file.
        sources: The files that the ids are within, where they are lines or places of those.
    """

    probabilities: Probabilities
    class_names: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    id_column: str = ""
    place: str = "probabilities"
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = self.class_names
        if names is None or np.ndim(self.probabilities) != 2:
            return
        columns = np.shape(self.probabilities)[1]
        if len(names) != columns:
            raise ValueError(
                f"class names: expected one for each of {count(columns, 'column')} of {self.place},"
                f" got {len(names)}: {few(names)}"
            )
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise ValueError(f"class names: expected each once, got {few(twice)} again")


def take_predictions(probabilities: ArrayLike) -> GivenPredictions:
    """Predictions that are in memory, with the names of their columns where they have some.

    Args:
        probabilities: `(N, C)`: an array, or a table whose columns are called by their class.

    Example:
        >>> take_predictions([[0.9, 0.1]]).class_names
    """
    names = column_names(probabilities)
    return GivenPredictions(admit_table(probabilities), names)


def read_predictions(path: str | os.PathLike[str]) -> GivenPredictions:
    r"""Read predictions from a file, without running anything in it.

    Args:
        path: An array file (`.npy`); an archive (`.npz`) with the arrays `probabilities` and, if
            you like, `class_names`; or a table (`.csv`, `.tsv`, `.jsonl`, `.parquet`) with a column
            for each class, called by its name, and perhaps one that says which sample a row is of.

    Raises:
        ValueError: The file is something else; the message says what.

    Example:
        >>> file = getfixture("tmp_path") / "predictions.csv"
        >>> _ = file.write_text("id,cat,dog\na,0.9,0.1\nb,0.2,0.8\n")
        >>> found = read_predictions(file)
        >>> found.class_names, found.ids, found.probabilities.tolist()
        (('cat', 'dog'), ('a', 'b'), [[0.9, 0.1], [0.2, 0.8]])
    """
    file = Path(path)
    place = readable(str(file))
    if file.suffix.lower() in TABLES:
        if not file.exists():
            raise FileNotFoundError(f"{place}: there is no such file")
        table = read_prediction_table(file)
        return GivenPredictions(
            table.probabilities,
            table.class_names,
            table.ids,
            table.id_column,
            place,
            sources=table.sources,
        )
    if file.suffix.lower() == ".npz" and file.is_file():
        return _read_archive(file, place)
    return GivenPredictions(read_probabilities(file), place=place)


def _read_archive(file: Path, place: str) -> GivenPredictions:
    named: str | None = None
    names: NDArray[Any] | None = None
    try:
        # Opened here: of what is no archive, numpy.load would leave the file open.
        with file.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                return GivenPredictions(archive, place=place)
            # An archive may hold the features too; only what is needed is unpacked.
            found = _find(archive.files, _PROBABILITIES)
            if found is None and len(archive.files) == 1:
                found = archive.files[0]
            if found is None:
                raise ValueError(
                    f"expected an array called probabilities, found {few(archive.files, shown=8)}"
                )
            table: NDArray[Any] = archive[found]
            named = _find(archive.files, _CLASS_NAMES)
            if named is not None:
                names = archive[named]
    except DAMAGED as error:
        advice = "save plain numbers, and names with class_names=np.array(names, dtype=str)"
        reason = why_unreadable(error, advice=advice)
        raise ValueError(f"{place}: cannot be read as predictions: {reason}") from None
    if names is None:
        return GivenPredictions(table, place=place)
    if names.ndim != 1 or names.dtype.kind not in "USiu":
        raise ValueError(
            f"{place}: expected {named!r} to name each class, got {names.dtype} of shape "
            f"{names.shape}"
        )
    words = decode_text(names).tolist()
    return GivenPredictions(table, tuple(str(word).strip() for word in words), place=place)


def _find(names: list[str], wanted: tuple[str, ...]) -> str | None:
    folded = {name.casefold(): name for name in reversed(names)}
    return next((folded[word] for word in wanted if word in folded), None)
