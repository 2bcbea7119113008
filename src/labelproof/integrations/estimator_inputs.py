"""What `fit` and `predict` are given, checked once and brought to one form."""

from __future__ import annotations

import math
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
from labelproof.data.columns import Columns
from labelproof.data.dataset import check_classes
from labelproof.data.notices import count, few
from labelproof.data.splits import admit_groups
from labelproof.data.table import NO_NAME
from labelproof.tabular.rows import check_class_weight

__all__ = ["Admitted", "Form", "admit_examples", "admit_inputs", "dimensions"]

_NUMBERS = (np.float64, np.float32)
# Their annotations are guessed from their defaults.
_validate: Any = validate_data
_check: Any = check_array


@dataclass(frozen=True)
class Form:
    """How inputs came to `fit`, and so must come to `predict`.

    Attributes:
        columns: How a table with text, dates or missing values becomes rows.
        image_shape: Height, width and channels; `None` for rows.
        fills: The median of each column of a table without missing values, to fill later gaps.
    """

    columns: Columns | None = None
    image_shape: tuple[int, int, int] | None = None
    fills: NDArray[Any] | None = None


@dataclass(frozen=True)
class Admitted:
    """Examples to learn from, without those of weight 0.

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
    """What `fit` is given; the estimator notes the number and names of the features.

    `known` is how the inputs of an earlier `fit` came, whose training a warm start resumes.
    """
    if labels is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    _refuse_missing("y", labels)
    inputs, form = _admit_features(estimator, features, known)
    given = _check(labels, dtype=None, ensure_2d=False, ensure_min_samples=0, input_name="y")
    given = column_or_1d(given, warn=True)
    check_consistent_length(inputs, given)
    if given.dtype == object and len({isinstance(label, str) for label in given}) > 1:
        raise ValueError("y: expected labels of one kind, got text and numbers")
    check_classification_targets(given)
    classes, indices = np.unique(given, return_inverse=True)
    weight = _check_sample_weight(sample_weight, inputs, dtype=np.float64, copy=True)
    if (weight < 0).any():
        raise ValueError(f"sample_weight: expected no negative weights, got {weight.min():g}")
    if class_weight is not None:
        check_class_weight(class_weight)
        weight = weight * compute_sample_weight(class_weight, given)
    together = None
    if groups is not None:
        _refuse_missing("groups", groups)
        together = admit_groups(np.asarray(groups), len(inputs))
    used = np.flatnonzero(weight > 0)
    names = [str(name) for name in classes[np.unique(indices[used])]]
    check_classes(f"y ({count(len(used), 'sample')})", names, num_images=len(used))
    return Admitted(
        inputs if len(used) == len(inputs) else inputs[used],
        form,
        indices[used].astype(np.int64),
        classes,
        weight[used],
        None if together is None else together[used],
    )


def admit_inputs(estimator: BaseEstimator, features: Any, known: Form) -> NDArray[Any]:
    """What `predict` is given, as it came to `fit`: rows, or images `(N, C, H, W)`."""
    if known.image_shape is not None or dimensions(features) > 2:
        return _images(features, known)
    if known.columns is not None:
        return _encode(estimator, features, known.columns)
    fills = known.fills if _is_frame(features) else None
    finite = True if fills is None else "allow-nan"
    rows = _validate(estimator, features, reset=False, dtype=_NUMBERS, ensure_all_finite=finite)
    return rows if fills is None else np.where(np.isnan(rows), fills, rows)


def dimensions(features: Any) -> int:
    """Of an array, a table or a list: 2 for rows."""
    if not isinstance(features, (list, tuple)):
        return int(getattr(features, "ndim", 2))
    try:
        return np.ndim(features)
    except ValueError:  # rows of different lengths, which scikit-learn says better
        return 2


def _admit_features(
    estimator: BaseEstimator, features: Any, known: Form | None
) -> tuple[NDArray[Any], Form]:
    if known is not None:
        return admit_inputs(estimator, features, known), known
    if dimensions(features) > 2:
        images = _images(features, None)
        shape = (*images.shape[2:], images.shape[1])
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = math.prod(shape)  # pyright: ignore[reportAttributeAccessIssue]
        return images, Form(image_shape=shape)
    if not _is_frame(features):
        return _validate(estimator, features, dtype=_NUMBERS), Form()
    frame = _as_frame(features)
    numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)
    if numeric and not frame.isna().any(axis=None):
        rows = _validate(estimator, features, dtype=_NUMBERS)
        return rows, Form(fills=np.median(rows, axis=0))
    columns = Columns.learn(frame, place="X")
    _validate(estimator, features, skip_check_array=True)
    return _encode(estimator, features, columns), Form(columns)


def _is_frame(data: Any) -> bool:
    """Whether data is a table with named columns, of pandas, Polars or alike."""
    return hasattr(data, "columns") and hasattr(data, "dtypes") and hasattr(data, "__array__")


def _as_frame(table: Any) -> pd.DataFrame:
    frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _encode(estimator: BaseEstimator, features: Any, columns: Columns) -> NDArray[np.float32]:
    _validate(estimator, features, reset=False, skip_check_array=True)
    if not _is_frame(features):
        features = pd.DataFrame(features, columns=getattr(estimator, "feature_names_in_", None))
    return columns.encode(_as_frame(features), place="X")


def _images(features: Any, known: Form | None) -> NDArray[np.uint8]:
    array = np.asarray(features)
    if known is None:
        return as_images(array, channels=(1, 3, 4))
    wanted = "rows (N, F)"
    if known.image_shape is not None:
        height, width, channels = known.image_shape
        images = as_images(array, (channels, height, width), channels=(1, 3, 4))
        if images.shape[1:] == (channels, height, width):
            return images
        wanted = f"images of {height} x {width} pixels and {channels} channels"
    raise ValueError(f"X: expected {wanted}, as the classifier was fitted on, got {array.shape}")


def _refuse_missing(argument: str, values: Any) -> None:
    # A list as objects: NumPy would write its missing values as text.
    found = np.array(values, dtype=object) if isinstance(values, list) else np.asarray(values)
    missing = pd.isna(found.ravel())
    if found.dtype.kind in "OUT":
        missing |= np.array([str(value).strip() in NO_NAME for value in found.ravel()], bool)
    rows = [str(row) for row in np.flatnonzero(missing)]
    if rows:
        raise ValueError(
            f"{argument}: expected a value for each row, got none in {count(len(rows), 'row')}: "
            f"{few(rows)}; leave those rows out"
        )
