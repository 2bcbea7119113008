"""The door of the estimator: what `fit` and `predict` are given, checked once and in one form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from labelproof.data.arrays import as_images
from labelproof.data.classes import UnusableSamplesError, report_spellings
from labelproof.data.columns import Columns, are_numbers
from labelproof.data.notices import few, quoted
from labelproof.data.splits import admit_groups
from labelproof.data.table import NO_NAME
from labelproof.tabular.rows import check_class_weight

__all__ = [
    "Admitted",
    "Form",
    "admit_examples",
    "admit_inputs",
    "admit_label_kinds",
    "dimensions",
    "fill_missing",
    "first_text",
    "learn_columns",
    "medians",
    "refuse_absent",
]


def is_frame(data: Any) -> bool:
    """Whether data is a table with named columns, of pandas or alike."""
    return hasattr(data, "columns") and hasattr(data, "dtypes") and hasattr(data, "__array__")


def first_text(features: Any) -> str | None:
    """A text in an array or a list of rows that is no number, or `None` where there is none.

    >>> first_text([["3", "C100"], ["4", "C101"]]), first_text([[3.0, None]])
    ('C100', None)
    """
    try:
        array = np.asarray(features)
    except ValueError:  # rows of different lengths
        return None
    if array.dtype.kind not in "USOT":
        return None
    texts = [cell for cell in array.ravel().tolist() if isinstance(cell, str)]
    numbers = are_numbers(texts)
    return next((text for text, number in zip(texts, numbers, strict=True) if not number), None)


def as_frame(table: Any) -> pd.DataFrame:
    """A table as pandas has it, its columns named by text."""
    frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def learn_columns(table: pd.DataFrame) -> Columns | None:
    """How a table's columns become features, or `None` where all of them are plain numbers.

    >>> learn_columns(pd.DataFrame({"a": [1.0, 2.0]}))
    >>> learn_columns(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})).feature_names
    ('a', ...)
    """
    # Infinity is left to scikit-learn's own check, which says so; only NaN is a missing value.
    if all(pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes) and not table.isna().any(
        axis=None
    ):
        return None
    return Columns.learn(table, place="X")


def medians(rows: NDArray[Any]) -> tuple[float, ...]:
    """What stands for a missing number in each column, as in a table that lacked some.

    >>> medians(np.array([[1.0, 5.0], [2.0, 5.0], [9.0, 6.0]]))
    (2.0, 5.0)
    """
    # One by one: of all columns at once NumPy would copy the whole table.
    return tuple(float(np.median(column)) for column in rows.T)


def fill_missing(rows: NDArray[Any], fills: tuple[float, ...]) -> NDArray[Any]:
    """Put each column's fill where a number is missing; rows that lack none are given back.

    >>> fill_missing(np.array([[np.nan, 1.0]]), (2.0, 5.0))
    array([[2., 1.]])
    """
    missing = np.isnan(rows)
    return np.where(missing, np.asarray(fills, rows.dtype), rows) if missing.any() else rows


def admit_label_kinds(labels: Any) -> None:
    """Refuse missing labels, and labels of different kinds.

    >>> admit_label_kinds(["cat", "", "dog", "nan"])
    Traceback (most recent call last):
        ...
    ValueError: y: expected a value for each row, got none in 2 rows: 1, 3; leave those rows out
    """
    found = np.array(labels, dtype=object) if isinstance(labels, list) else np.asarray(labels)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    refuse_absent("y", found)
    if found.dtype.kind == "O" and found.ndim == 1:
        kinds = {isinstance(value, str): value for value in found.tolist()}
        if len(kinds) > 1:
            raise ValueError(
                f"y: expected labels of one kind, got text and numbers, such as {kinds[True]!r} "
                f"and {kinds[False]!r}; make them all text: [str(label) for label in y]"
            )


def refuse_absent(argument: str, values: NDArray[Any]) -> None:
    """Refuse texts and objects of which some are missing, or are what is written for that."""
    if values.dtype.kind not in "OUT" or values.ndim != 1:
        return
    missing = [str(row) for row, value in enumerate(values.tolist()) if _is_absent(value)]
    if missing:
        raise ValueError(
            f"{argument}: expected a value for each row, got none in {len(missing):,} rows: "
            f"{few(missing)}; leave those rows out"
        )


def _is_absent(label: Any) -> bool:
    if isinstance(label, str):
        return label.strip() in NO_NAME
    try:
        return label is None or bool(label != label)
    except TypeError:  # the missing value of pandas does not say whether it equals itself
        return True


def admit_row_groups(groups: Any, rows: int) -> NDArray[np.int64] | None:
    """A number for each row, the same for rows of one group, or `None` where there are no groups.

    Raises:
        ValueError: There is not one for each row.

    Example:
        >>> admit_row_groups(["ann", "bob", "ann"], 3)
        array([0, 1, 0])
        >>> admit_row_groups(["ann", None, "ann"], 3)
        Traceback (most recent call last):
            ...
        ValueError: groups: expected a value for each row, got none in 1 rows: 1; leave ...
    """
    if groups is None:
        return None
    given = (
        np.array(groups, dtype=object) if isinstance(groups, list | tuple) else np.asarray(groups)
    )
    if given.dtype.kind == "f":  # a column of numbers in which some are missing
        given = given.astype(object)
    refuse_absent("groups", given)
    return admit_groups(given, rows)


_NUMBERS = (np.float64, np.float32)
_validate: Any = validate_data  # whose annotations are guessed from its defaults


@dataclass(frozen=True)
class Form:
    """How inputs came to `fit`, and so must come to `predict`.

    Attributes:
        columns: How a table with text, dates or missing values becomes rows.
        image_shape: Height, width and channels; `None` for rows.
        fills: What stands for a missing number in each column of a table that lacked none: the
            column's median.
    """

    columns: Columns | None = None
    image_shape: tuple[int, int, int] | None = None
    fills: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Admitted:
    """Examples to learn from; those that count nothing are left out.

    Attributes:
        inputs: Rows `(N, F)`, or images `(N, C, H, W)` of uint8.
        form: How they came.
        labels: A class index for each.
        classes: What the indices stand for.
        weight: How much each counts, above 0.
        groups: A number for each, the same for those of one group; `None` where none were given.
    """

    inputs: NDArray[Any]
    form: Form
    labels: NDArray[np.int64]
    classes: NDArray[Any]
    weight: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None


def admit_examples(
    estimator: BaseEstimator,
    features: Any,
    labels: Any,
    sample_weight: Any,
    class_weight: Any,
    *,
    known: Form | None,
    groups: Any = None,
) -> Admitted:
    """What `fit` is given.

    Args:
        estimator: Takes note of the number and names of the features.
        features: Rows, a table or images.
        labels: One for each.
        sample_weight: How much each counts, or `None`.
        class_weight: `"balanced"`, a weight for each class, or `None`.
        known: How the inputs of an earlier `fit` came, which is gone on from.
        groups: What each belongs to, or `None`.

    Raises:
        ValueError: These are no examples that a classifier can be trained on.
    """
    if labels is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    admit_label_kinds(labels)
    inputs, form, given = _admit_both(estimator, features, labels, known)
    _check_one_each(given)
    check_classification_targets(given)
    classes, indices = np.unique(given, return_inverse=True)
    if all(isinstance(name, str) for name in classes):
        report_spellings("y", classes.tolist())
    indices = indices.astype(np.int64)
    weight = _check_sample_weight(sample_weight, inputs, dtype=np.float64, copy=True)
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight: expected no negative weights, got {weight.min():g}; leave rows out "
            "with a weight of 0"
        )
    together = admit_row_groups(groups, len(inputs))
    if class_weight is not None:
        check_class_weight(class_weight)
        weight = weight * compute_sample_weight(class_weight, given)
    counting = weight > 0
    counted = np.unique(indices[counting])
    if len(counted) < 2:
        found = f"the class {str(classes[counted[0]])!r} alone" if len(counted) else "none"
        having = "" if counting.all() else " in rows that count something"
        raise ValueError(
            f"y: expected at least 2 classes to tell apart{having}, got {found}; "
            f"{type(estimator).__name__} learns from one class nothing that predicts another"
        )
    kept = inputs if counting.all() else inputs[counting]
    together = None if together is None else together[counting]
    return Admitted(kept, form, indices[counting], classes, weight[counting], together)


def admit_inputs(estimator: BaseEstimator, features: Any, known: Form) -> NDArray[Any]:
    """What `predict` is given, as it came to `fit`: rows, or images `(N, C, H, W)`.

    Raises:
        ValueError: It is something else than what was learned from.
    """
    if known.image_shape is not None or dimensions(features) > 2:
        return _images(features, known)
    if known.columns is None:
        with _explained(features):
            rows = _validate(
                estimator,
                features,
                reset=False,
                dtype=_NUMBERS,
                ensure_all_finite=_finite(features, known.fills),
            )
        return rows if known.fills is None else fill_missing(rows, known.fills)
    return _encode(estimator, features, known.columns)


def _admit_both(
    estimator: BaseEstimator, features: Any, labels: Any, known: Form | None
) -> tuple[NDArray[Any], Form, NDArray[Any]]:
    reset = known is None
    if dimensions(features) > 2 or (known is not None and known.image_shape is not None):
        images = _images(features, known)
        shape = (*images.shape[2:], images.shape[1])
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = math.prod(shape)  # pyright: ignore[reportAttributeAccessIssue]
        return images, Form(image_shape=shape), _labels(labels, images)
    columns = None if known is None else known.columns
    if reset and is_frame(features):
        with _in_words_of_pandas():
            columns = learn_columns(as_frame(features))
    if columns is None:
        fills = None if known is None else known.fills
        with _explained(features):
            rows, given = _validate(
                estimator,
                features,
                labels,
                reset=reset,
                dtype=_NUMBERS,
                y_numeric=False,
                ensure_all_finite=_finite(features, fills),
            )
        if fills is not None:
            rows = fill_missing(rows, fills)
        elif reset and is_frame(features):
            fills = medians(rows)
        return rows, Form(fills=fills), given
    if reset:
        _validate(estimator, features, skip_check_array=True)
    rows = _encode(estimator, features, columns)
    return rows, Form(columns), _labels(labels, rows)


def _finite(features: Any, fills: tuple[float, ...] | None) -> bool | str:
    """What scikit-learn is to let through: NaN in a table for which there is something to fill."""
    return "allow-nan" if fills is not None and is_frame(features) else True


def _encode(estimator: BaseEstimator, features: Any, columns: Columns) -> NDArray[np.float32]:
    if is_frame(features):
        _validate(estimator, features, reset=False, skip_check_array=True)
        with _in_words_of_pandas():
            return columns.encode(as_frame(features), place="X")
    array = _check(features, ensure_all_finite=False, input_name="X")
    _validate(estimator, array, reset=False, skip_check_array=True)
    names = getattr(estimator, "feature_names_in_", range(array.shape[1]))
    with _in_words_of_pandas():
        return columns.encode(pd.DataFrame(array, columns=list(map(str, names))), place="X")


@contextmanager
def _in_words_of_pandas() -> Iterator[None]:
    """Inside, what cannot be used is refused with advice that whoever has a table can follow."""
    try:
        yield
    except UnusableSamplesError as error:
        raise UnusableSamplesError(
            error.reason,
            'mend them, or make them missing with pandas.to_numeric(X[column], errors="coerce")',
        ) from None


@contextmanager
def _explained(features: Any) -> Iterator[None]:
    """Inside, text and sparse matrices are refused in words that say what takes them."""
    try:
        yield
    except TypeError as error:
        if "sparse" not in str(error).lower():
            raise
        raise TypeError(
            "X: expected a dense array, got sparse data; counts of words are best brought to a few "
            "hundred numbers first, make_pipeline(TfidfVectorizer(), TruncatedSVD(200), "
            "RobustClassifier()), and few columns made dense with X.toarray() or by their encoder "
            "(sparse_output=False)"
        ) from None
    except ValueError:
        text = None if is_frame(features) else first_text(features)
        if text is None:
            raise
        raise ValueError(
            f"X: expected numbers in an array or a list, got the text {quoted(text)}; a table of "
            "pandas may have text, dates and missing values: pandas.DataFrame(X)"
        ) from None


def dimensions(features: Any) -> int:
    """Of an array, a table or a list: 2 for rows."""
    if hasattr(features, "ndim"):
        return int(features.ndim)
    if not isinstance(features, (list, tuple)):
        return 2
    try:
        return np.ndim(features)
    except ValueError:  # rows of different lengths, which scikit-learn says better
        return 2


def _images(features: Any, known: Form | None) -> NDArray[np.uint8]:
    array = np.asarray(features)
    if known is not None and known.image_shape is None:
        raise ValueError(
            f"X: expected rows (N, F), as the classifier was fitted on, got {array.ndim} "
            f"dimensions: {array.shape}"
        )
    shape = None
    if known is not None and known.image_shape is not None:
        height, width, channels = known.image_shape
        shape = channels, height, width
    images = as_images(array, shape, channels=(1, 3, 4))
    if shape is not None and images.shape[1:] != shape:
        raise ValueError(
            f"X: expected images of {shape[1]} x {shape[2]} pixels and {shape[0]} channels, as the "
            f"classifier was fitted on, got {array.shape}"
        )
    return images


def _labels(labels: Any, inputs: NDArray[Any]) -> NDArray[Any]:
    given = _check(labels, ensure_2d=False, ensure_min_samples=0, input_name="y")
    given = column_or_1d(given, warn=True)
    check_consistent_length(inputs, given)
    return given


def _check(array: Any, **options: Any) -> NDArray[Any]:
    """As scikit-learn checks an array, with the numbers or text in it left as they are."""
    untouched: Any = None
    return check_array(array, dtype=untouched, **options)


def _check_one_each(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f" and (labels % 1 != 0).any():
        return  # measurements, which scikit-learn refuses as such
    if len(labels) > 2 and len(np.unique(labels)) == len(labels):
        raise ValueError(
            f"y: expected classes that rows share, got {len(labels):,} different ones in "
            f"{len(labels):,} rows; these look like names of rows, or like measurements"
        )
