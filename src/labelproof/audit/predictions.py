"""Predictions of any model: read, checked, and matched with the labels."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray

from labelproof.data.arrays import admit_labels, as_words, read_arrays, refuse_other_index
from labelproof.data.dataset import Dataset, refuse_other_classes
from labelproof.data.image_table import image_paths
from labelproof.data.images import file_names, sample_names
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.table import (
    TableSource,
    as_text,
    find_column,
    is_table,
    read_table,
    row_names,
)
from labelproof.training.batches import CHUNK
from labelproof.training.examples import choose_examples
from labelproof.training.trained_network import TrainedNetwork

CACHED = 1 << 19
"""Numbers processed at a time: they fit into the cache of one core."""
_SUM_TOLERANCE = 0.01
"""How far a row's sum may be from 1: half precision loses as much over a thousand classes."""
_SMALLEST = 1e-12
"""Smaller probabilities are raised to this: a probability of 0 would rule a class out."""

PredictionSource: TypeAlias = ArrayLike | pd.DataFrame | str | os.PathLike[str]
"""An array `(N, C)`, a DataFrame with a column for each class, or the path of a file."""


class LogProbabilities(NamedTuple):
    """Probabilities as logits: `read_part` takes the logarithm of what it reads."""

    probabilities: NDArray[np.floating]

    @property
    def shape(self) -> tuple[int, ...]:
        """Samples and classes."""
        return self.probabilities.shape


Table: TypeAlias = NDArray[np.floating] | LogProbabilities
"""Numbers `(N, C)`, which may be read part by part."""


def read_part(
    table: Table, rows: slice | NDArray[np.int64], out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """A float32 copy of some rows; nothing else of a mapped file stays in memory.

    >>> read_part(LogProbabilities(np.array([[1.0, 0.0]])), slice(1)).round(1)
    array([[  0. , -27.6]], dtype=float32)
    """
    source = table.probabilities if isinstance(table, LogProbabilities) else table
    chosen = source[rows]
    part = np.empty(chosen.shape, np.float32) if out is None else out
    with np.errstate(over="ignore"):  # below the range of float32, a logit becomes -inf
        np.copyto(part, chosen, casting="unsafe")
    if source is not table:
        torch.from_numpy(part).clamp_(min=_SMALLEST).log_()
    _release(source)
    return part


def _release(source: NDArray[np.floating]) -> None:
    """Pages of a mapped file count as memory of the process until they are released."""
    pages = source.base if isinstance(source, np.memmap) and source.mode == "r" else None
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def read_parts(
    table: Table, numbers: int, *, copy: bool = True, share: tuple[int, int] = (0, 1)
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """All rows, in parts of about so many numbers; each may overwrite the one before.

    Without `copy`, parts are not to be changed, and are copies only where they have to be. A
    `share` of `(1, 3)` is the second of every three parts.
    """
    samples, classes = table.shape
    step, (first, every) = max(numbers // classes, 1), share
    # Fresh memory for each part would take as long as the copy itself.
    part = np.empty((min(step, samples), classes), np.float32)
    source = None if copy or isinstance(table, LogProbabilities) else table
    for start in range(first * step, samples, every * step):
        rows = slice(start, min(start + step, samples))
        if source is None or source.dtype != part.dtype:
            yield rows, read_part(table, rows, part[: rows.stop - start])
        else:
            yield rows, source[rows]
            _release(source)


@dataclass(frozen=True)
class Predictions:
    """The predictions of samples.

    Attributes:
        logits: `(N, C)`, float32.
        index: Each sample's index in the training split, `(N)`, rising.
        given: The given labels, `(N)`.
        unseen: Which samples a run has held out, `(N)`; `None` if all were predicted out of sample.
    """

    logits: NDArray[np.float32]
    index: NDArray[np.int64]
    given: NDArray[np.int64]
    unseen: NDArray[np.bool_] | None = None


class MatchedPredictions(NamedTuple):
    """Probabilities `(N, C)`, the column of each sample's label `(N)`, and each column's class.

    `ids` are those of the samples by the data's own table, where it has them.
    """

    probabilities: NDArray[np.floating]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    ids: Sequence[str] = ()


def match_predictions(
    probabilities: PredictionSource,
    labels: Dataset | ArrayLike,
    *,
    data: str | os.PathLike[str] = "labels",
    id: str | None = None,
    class_names: Sequence[str] | None = None,
) -> MatchedPredictions:
    """Match the columns of predictions with classes, and their rows with samples.

    Args:
        probabilities: `(N, C)`: an array, a DataFrame, or a file: `.npy`, `.npz` (`probabilities`
            and perhaps `class_names`) or a table. The columns of an array are the classes in
            order. In a table, the columns named as the classes hold the probabilities (or
            `p(class)`, as `labelproof predict --all` writes them); other columns are ignored.
        labels: A dataset, or labels: class names, or class indices counted from 0.
        data: Where the labels were read from.
        id: The column of a table of predictions that says which sample a row is about: by the
            column of the same name in the data's table or, without one, by the sample's name or
            the path of its image. Without `id`, by a column of text that holds the names of all
            samples; else rows are in the order of the data, those that were left out included.
        class_names: The class of each column, where the labels do not have all of them.

    Warns:
        DataWarning: Every number is 0 or 1, or rows are about samples that are not in the data.

    Example:
        >>> table = pd.DataFrame({"dog": [0.9, 0.2], "cat": [0.1, 0.8], "key": ["1", "0"]})
        >>> match_predictions(table, ["cat", "dog"], id="key").probabilities
        array([[0.8, 0.2],
               [0.1, 0.9]])
    """
    if isinstance(probabilities, str | os.PathLike):
        probabilities, named = _read_predictions(probabilities, id)
        class_names = named if class_names is None else class_names
    elif id is None:
        refuse_other_index(probabilities, labels, "probabilities")
    class_names = None if class_names is None else [str(name) for name in class_names]
    source = _named_or_array(probabilities)
    table, given, names = _match_columns(source, labels, class_names, "probabilities")
    _check_probabilities(table)
    rows, ids = _match_samples(source, labels, data, id, len(table))
    table = table if rows is None else table[rows]
    return MatchedPredictions(table, _check_labels(given, table, "probabilities"), names, ids)


def _match_samples(
    source: Any,
    labels: Dataset | ArrayLike,
    data: str | os.PathLike[str],
    id: str | None,
    rows: int,
) -> tuple[NDArray[np.int64] | None, list[str]]:
    """The row of each sample, or `None` if they are in the same order; and the samples' ids."""
    ids, place, named = list[str](), readable(str(data)), isinstance(source, pd.DataFrame)
    if id is None and not named and table_of(labels, data) is None:
        return None, ids  # a million names take as long to write as the predictions to check
    samples = name_samples(labels, data)
    cells: pd.Series | None = None
    if id is not None:
        if not named:
            raise ValueError(f"id: expected a table of predictions with a column {id!r}")
        id = find_column(source.columns, id, place="the predictions", argument="id")
        cells = source[id]
        with suppress(ValueError):  # without such a column, ids are the names of samples
            ids = sample_ids(labels, data, id)[samples].tolist()
    elif named:
        cells = _find_names(source, samples, data)
    if cells is not None:
        known = ids or samples
        return _match_rows(_as_samples(cells, known, data), known, place, str(cells.name)), ids
    if rows != len(samples) and table_of(labels, data) is not None:
        # By the rows of the data, of which some were left out.
        numbers: Any = _table_rows(labels, data)
        if len(numbers) == rows:
            return numbers.groupby(level=0).first()[samples].to_numpy(np.int64), ids
    return None, ids


def _find_names(
    table: pd.DataFrame, samples: Sequence[str], data: str | os.PathLike[str]
) -> pd.Series | None:
    """The column of text, or the index, that holds the names of all samples, each once."""
    texts = table.reset_index(names="index", allow_duplicates=True).select_dtypes(exclude="number")
    for _, cells in texts.items():
        rows = _as_samples(cells, samples, data) if cells.is_unique else []
        if len(rows) >= len(samples) and set(samples) <= set(rows):
            return cells
    return None


def _as_samples(
    cells: pd.Series, samples: Sequence[str], data: str | os.PathLike[str]
) -> list[str]:
    """Cells as names of samples; paths of images, as `labelproof predict` writes them, too."""
    rows, known = list(as_text(cells)), set(samples)
    names = rows if known.issuperset(rows) else file_names(rows, data)
    return [
        name if name in known and row not in known else row
        for row, name in zip(rows, names, strict=True)
    ]


def name_samples(labels: Dataset | ArrayLike, data: str | os.PathLike[str]) -> list[str]:
    """The samples' names: a path in a folder, `line 7` of a file of lines, else the index."""
    if isinstance(labels, Dataset):
        return sample_names(labels.train, data)
    size = len(np.asarray(labels))
    lines = Path(data).suffix.lower() == ".txt"
    return [f"line {n + 1}" for n in range(size)] if lines else list(map(str, range(size)))


def table_of(labels: Dataset | ArrayLike, data: str | os.PathLike[str]) -> TableSource | None:
    """The DataFrame or the file of a dataset that was read from a table, or `None`."""
    if not isinstance(labels, Dataset) or labels.frame is not None:
        return labels.frame if isinstance(labels, Dataset) else None
    path = Path(data).expanduser()
    return path if is_table(path) and path.is_file() else None


def sample_ids(labels: Any, data: str | os.PathLike[str], column: str) -> pd.Series:
    """The cells of a column of the data's table, indexed by sample name."""
    return _table_rows(labels, data, column).groupby(level=0).first()


def _table_rows(labels: Any, data: str | os.PathLike[str], column: str | None = None) -> pd.Series:
    """The cells of a column of the data's table, or the row numbers, with the name of each row."""
    place, source = readable(str(data)), table_of(labels, data)
    if source is None:
        raise ValueError(f"--id: expected a column of a table, got {column!r} of {place}")
    table = read_table(source, text=[] if column is None else [column], on_error="skip")
    if column is not None:
        column = find_column(table.columns, column, place=place, argument="--id")
    cells = range(len(table)) if column is None else as_text(table[column])
    return pd.Series([*cells], name_rows(table, data, tabular=labels.tabular), dtype=object)


def name_rows(table: pd.DataFrame, data: str | os.PathLike[str], *, tabular: bool) -> list[str]:
    """The names of the samples in the rows of a table: of features, or of paths of images."""
    return [*(row_names(table) if tabular else file_names(image_paths(table), data))]


def read_probabilities(path: str | os.PathLike[str]) -> NDArray[np.floating]:
    """Map a `.npy` file into memory, without reading it yet and without running anything in it.

    >>> file = getfixture("tmp_path") / "predictions.npy"
    >>> np.save(file, np.eye(2))
    >>> read_probabilities(file).shape
    (2, 2)
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        message = f"{path}: expected an array of numbers in a .npy file: {error}"
        raise ValueError(readable(message)) from None


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    r"""Labels from a `.npy` file, or from a text file with a label a line.

    Whole numbers are class indices, anything else is the name of a class.

    Example:
        >>> file = getfixture("tmp_path") / "labels.txt"
        >>> _ = file.write_text("cat\ndog\ncat\n")
        >>> read_labels(file).tolist()
        ['cat', 'dog', 'cat']
    """
    place = readable(str(path))
    if Path(path).suffix.lower() == ".npy":
        return admit_labels(read_arrays(path).get("", np.array(None)), place)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}: expected text in UTF-8 ({error})") from None
    lines = [line.strip() for line in text.rstrip("\n\r").split("\n")]
    whole = all(line.isascii() and line.isdigit() and len(line) < 18 for line in lines)
    return admit_labels(np.array(lines).astype(np.int64) if whole else lines, place)


def _read_predictions(
    path: str | os.PathLike[str], id: str | None
) -> tuple[ArrayLike | pd.DataFrame, tuple[str, ...] | None]:
    if is_table(path):
        return read_table(path, text=() if id is None else (id,)), None
    if Path(path).suffix.lower() != ".npz":
        return read_probabilities(path), None
    arrays = read_arrays(path)
    names = arrays.get("class_names")
    if "probabilities" not in arrays:
        raise ValueError(
            f"{readable(str(path))}: expected an array probabilities, got {few(list(arrays))}"
        )
    return arrays["probabilities"], None if names is None else as_words(names)


def _named_or_array(table: Any) -> Any:
    """A DataFrame with named columns; one with the columns 0, 1, 2, ... becomes an array."""
    columns = list(getattr(table, "columns", ()))
    if columns == list(range(len(columns))):
        return table.to_numpy() if columns else table
    return read_table(table)


def _match_columns(
    table: Any, labels: Dataset | ArrayLike, class_names: Sequence[str] | None, what: str
) -> tuple[NDArray[Any], NDArray[np.int64], tuple[str, ...]]:
    """Numbers `(N, C)`, the column of each label, and the class of each column."""
    array = None if isinstance(table, pd.DataFrame) else _admit_array(table, what)
    if isinstance(labels, Dataset):
        given, words, codes = None, labels.class_names, labels.train.labels
    else:
        given = admit_labels(labels)
        if given.dtype.kind == "i" and array is not None and class_names is None:
            return array, given, tuple(map(str, range(array.shape[1])))
        words = tuple(map(str, np.unique(given).tolist()))  # as in `model.classes_`
        codes = pd.Index(words, dtype=object).get_indexer(given.astype(str).astype(object))
    names = pd.Index(words if class_names is None else class_names, dtype=object)
    if not names.is_unique:
        raise ValueError(f"class_names: expected each class once, got {few(list(names), shown=9)}")
    if array is None:
        array = _choose_columns(table, list(names), what)
    if len(names) != array.shape[1]:
        raise ValueError(
            f"{what}: expected {len(names)} columns, one for each class ({few(list(names))}), got "
            f"{array.shape[1]}; name the class of each column with class_names (--class-names)"
        )
    columns = names.get_indexer(pd.Index(words, dtype=object))
    if (columns >= 0).all():
        return array, columns[codes], tuple(names)
    if given is not None and given.dtype.kind == "i":
        return array, given, tuple(names)  # indices of the classes that class_names lists
    unknown = [word for word, index in zip(words, columns, strict=True) if index < 0]
    raise ValueError(f"labels: expected classes among {few(list(names))}, got {few(unknown)}")


def _choose_columns(table: pd.DataFrame, names: Sequence[str], what: str) -> NDArray[np.float64]:
    columns = [name if name in table else f"p({name})" for name in names]
    missing = [name for name, column in zip(names, columns, strict=True) if column not in table]
    if missing:
        raise ValueError(
            f"{what}: expected a column for each class, got none for {few(missing)}; the columns "
            f"are {few(list(table.columns), shown=8)}"
        )
    # A cell that is not a number becomes NaN, which is refused later.
    return table[columns].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)


def _match_rows(
    row_ids: Sequence[str], ids: Sequence[str], place: str, column: str
) -> NDArray[np.int64]:
    """The row of each sample, which has the same id."""
    rows, samples = pd.Index(row_ids, dtype=object), pd.Index(ids, dtype=object)
    for where, index in {"the probabilities": rows, place: samples}.items():
        repeated = index[index.duplicated()].unique()
        if len(repeated):
            raise ValueError(
                f"id: expected each {column!r} once in {where}, got {few(list(repeated))} again"
            )
    order = rows.get_indexer(samples)
    if (order < 0).any():
        raise ValueError(
            f"id: expected a row of the probabilities for each sample of {place}, got none for "
            f"{few(list(samples[order < 0]))}; their {column!r} are {few(list(rows))}"
        )
    if len(rows) > len(samples):
        more = count(len(rows) - len(samples), "row")
        notice(f"probabilities: {more} about samples that are not in {place} ignored")
    return order


def _admit_array(table: ArrayLike, what: str) -> NDArray[Any]:
    array = np.asanyarray(table)
    if array.ndim != 2 or array.shape[1] < 2 or not len(array) or array.dtype.kind not in "fiu":
        raise ValueError(
            f"{what}: expected numbers of shape (samples, classes), at least two classes, got "
            f"{array.dtype} of shape {array.shape}"
        )
    return array


def _check_probabilities(table: NDArray[Any]) -> None:
    decided, ones = True, np.ones(table.shape[1], np.float32)
    for rows, chunk in read_parts(table, CACHED, copy=False):
        with np.errstate(over="ignore"):  # an infinite sum is refused below
            sums = chunk @ ones
        wrong = ~(np.abs(sums - 1) <= _SUM_TOLERANCE)  # NaN is not less
        if wrong.any() or not chunk.min() >= 0:
            row = int((wrong | (chunk < 0).any(axis=1)).argmax())
            raise ValueError(
                f"probabilities: expected rows of numbers from 0 to 1 with a sum of 1, got the "
                f"smallest {chunk[row].min():g} and the sum {sums[row]:.4g} in row "
                f"{rows.start + row}; apply a softmax to logits; divide percentages by 100; name "
                "classes that no label has with class_names (--class-names)"
            )
        decided = decided and bool(((chunk == 0) | (chunk == 1)).all())
    if decided:
        notice(
            "probabilities: every number is 0 or 1, so these are decisions without a confidence; "
            "the estimated share of wrong labels will be too high"
        )


def admit_logits(
    logits: LogProbabilities | ArrayLike, given: ArrayLike
) -> tuple[Table, NDArray[np.int64]]:
    """Return logits `(N, C)` and the column of each label, as `match_predictions` finds it.

    A mapped file is read part by part and not copied. Minus infinity rules a class out.
    """
    if isinstance(logits, LogProbabilities):
        return logits, _check_labels(admit_labels(given), logits, "logits")
    refuse_other_index(logits, given, "logits")
    table, labels, _ = _match_columns(_named_or_array(logits), given, None, "logits")
    for rows, chunk in read_parts(table, CACHED, copy=False):
        # The maximum of a row with NaN is NaN.
        wrong = rows.start + np.flatnonzero(~np.isfinite(chunk.max(axis=1)))
        if len(wrong):
            raise ValueError(
                f"logits: expected numbers, and -inf for some classes at most, got "
                f"{table[wrong[0]].max():g} in row {wrong[0]}"
            )
    return table, _check_labels(labels, table, "logits")


def _check_labels(given: NDArray[np.int64], table: Table, what: str) -> NDArray[np.int64]:
    samples, classes = table.shape
    if len(given) != samples:
        raise ValueError(
            f"labels: expected one for each of {count(samples, 'row')} of the {what}, got "
            f"{len(given):,}"
        )
    outside = np.flatnonzero((given < 0) | (given >= classes))
    if len(outside):
        raise ValueError(
            f"labels: expected 0 to {classes - 1}, one of the {classes} columns of the {what}, got "
            f"{given[outside[0]]} for sample {outside[0]}; if these are names, name the class of "
            "each column with class_names (--class-names)"
        )
    return given


def predict_trained(
    run: TrainedNetwork, dataset: Dataset, *, human: str | os.PathLike[str] | None = None
) -> Predictions:
    """Predict a run's own training samples, and those it held out.

    The network has seen most of their labels. With a robust loss it has not memorised the wrong
    ones; any that it has look right, which cross-validation rules out.

    The noise of the run's configuration is applied to the labels again; `human` is the file of
    human labels, for noise such as `human:worse`.
    """
    refuse_other_classes(dataset, run.description.class_names, str(run.folder))
    examples = choose_examples(run.configuration, dataset, human=human)
    index = np.sort(np.concatenate([examples.used, examples.held]))
    logits = np.concatenate([batch.numpy() for batch in run.logits(dataset.train.images, CHUNK)])
    unseen = np.isin(index, examples.held)
    return Predictions(logits[index], index, examples.given[index], unseen)
