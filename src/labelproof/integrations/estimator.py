"""The inputs of the estimator, checked and converted, and the network that it trains."""

from __future__ import annotations

import copy
import math
import re
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from labelproof.data import Columns, Dataset, Split, hold_out
from labelproof.data.arrays import as_images
from labelproof.data.dataset import refuse_classes, report_similar
from labelproof.data.images import Statistics, channel_statistics
from labelproof.data.notices import count
from labelproof.data.splits import admit_groups
from labelproof.data.table import refuse_missing
from labelproof.fitting.recipe import complete_loss
from labelproof.losses import Loss, format_loss
from labelproof.models import make_network
from labelproof.tabular.rows import (
    check_class_weight,
    keep_together,
    merge_rows,
    row_statistics,
    standardize_rows,
)
from labelproof.training import Configuration, Examples, Execution, Trainer
from labelproof.training.augmentation import prepare_images
from labelproof.training.batches import ResidentInputs
from labelproof.tuning.collapse import Watch, back_off

_NUMBERS = (np.float64, np.float32)
_HINTS = {
    "NaN|string": "Text and missing values are for a table: pass pandas.DataFrame(X)",
    "Sparse": "For texts, pass a DataFrame with a column of text, instead of word counts",
}
# Their types are inferred from their defaults, which is wrong.
_validate: Any = validate_data
_check: Any = check_array


@dataclass(frozen=True)
class Form:
    """The form of the inputs of `fit`, which those of `predict` must have too.

    Attributes:
        columns: How a table with text, dates or missing values becomes rows.
        image_shape: Height, width and channels; `None` for rows.
        fills: The median of each column of a table without missing values, to fill those of later
            inputs.
    """

    columns: Columns | None = None
    image_shape: tuple[int, int, int] | None = None
    fills: NDArray[Any] | None = None


@dataclass(frozen=True)
class Admitted:
    """Training examples, without those of weight 0.

    Attributes:
        inputs: Rows `(N, F)`, or images `(N, C, H, W)` of uint8.
        form: Their form before conversion.
        labels: Class indices, `(N)`.
        classes: The class of each index.
        weight: Of each example, `(N)`, above 0.
        groups: The group of each example, `(N)`; `None` if none were given.
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
    """Check the arguments of `fit`; set the number and names of features on the estimator.

    `known` is the form of the inputs of an earlier `fit`, whose training a warm start resumes.
    """
    if labels is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    refuse_missing("y", labels)
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
    check_class_weight(class_weight)
    weight = weight * compute_sample_weight(class_weight, given)
    together = None
    if groups is not None:
        refuse_missing("groups", groups)
        together = admit_groups(np.asarray(groups), len(inputs))
    used = np.flatnonzero(weight > 0)
    names = [str(name) for name in classes[np.unique(indices[used])]]
    refuse_classes(f"y ({count(len(used), 'sample')})", names, len(used))
    report_similar("y", names)
    return Admitted(
        inputs if len(used) == len(inputs) else inputs[used],
        form,
        indices[used].astype(np.int64),
        classes,
        weight[used],
        None if together is None else together[used],
    )


def admit_inputs(estimator: BaseEstimator, features: Any, known: Form) -> NDArray[Any]:
    """The inputs of `predict`, in the form of those of `fit`: rows, or images `(N, C, H, W)`."""
    if known.image_shape is not None or dimensions(features) > 2:
        return _images(features, known)
    if known.columns is not None:
        return _encode(estimator, features, known.columns)
    fills = known.fills if _is_frame(features) else None
    finite = True if fills is None else "allow-nan"
    rows = _validate(estimator, features, reset=False, dtype=_NUMBERS, ensure_all_finite=finite)
    return rows if fills is None else np.where(np.isnan(rows), fills, rows)


def dimensions(features: Any) -> int:
    """The number of dimensions of an array, a table or a list: 2 for rows."""
    if isinstance(features, (list, tuple)):
        return np.ndim(features)
    return getattr(features, "ndim", 2)


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
        try:
            return _validate(estimator, features, dtype=_NUMBERS), Form()
        except (TypeError, ValueError) as error:
            for sign, hint in _HINTS.items():
                if re.search(sign, str(error)):
                    raise type(error)(f"{error}\n{hint}") from None
            raise
    frame = _as_frame(features)
    numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)
    if numeric and not frame.isna().any(axis=None):
        rows = _validate(estimator, features, dtype=_NUMBERS)
        return rows, Form(fills=np.median(rows, axis=0))
    columns = Columns.learn(frame, place="X")
    _validate(estimator, features, skip_check_array=True)
    return _encode(estimator, features, columns), Form(columns)


def _is_frame(data: Any) -> bool:
    """Whether data is a table with named columns, of pandas, Polars or similar."""
    return hasattr(data, "columns") and hasattr(data, "dtypes") and hasattr(data, "__array__")


def _as_frame(table: Any) -> pd.DataFrame:
    frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _encode(estimator: BaseEstimator, features: Any, columns: Columns) -> NDArray[np.float32]:
    _validate(estimator, features, reset=False, skip_check_array=True)
    if not _is_frame(features):
        features = pd.DataFrame(features, columns=getattr(estimator, "feature_names_in_", None))
    try:
        return columns.encode(_as_frame(features), place="X")
    except ValueError as error:
        raise ValueError(str(error).replace("use on_error='skip'", "set them to NaN")) from None


def _images(features: Any, known: Form | None) -> NDArray[np.uint8]:
    array = np.asarray(features)
    if known is None:
        return as_images(array, channels=(1, 3, 4))
    expected = "rows (N, F)"
    if known.image_shape is not None:
        height, width, channels = known.image_shape
        images = as_images(array, (channels, height, width), channels=(1, 3, 4))
        if images.shape[1:] == (channels, height, width):
            return images
        expected = f"images of {height} x {width} pixels and {channels} channels"
    raise ValueError(f"X: expected {expected}, as the classifier was fitted on, got {array.shape}")


Weights = dict[str, NDArray[np.generic]]
"""A network's parameters and buffers by name."""


@dataclass
class Trained:
    """The result of training.

    Attributes:
        loss: The loss that was minimised, as text if possible.
        weights: Of the best epoch with early stopping, else of the last.
        losses: Mean loss of each epoch.
        scores: Accuracy on the held-out labels, epoch by epoch, with early stopping.
        collapsed: Why the network counts as collapsed, or `None`.
    """

    loss: str | Loss
    weights: Weights = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    collapsed: str | None = None


_CHUNK = 4096
"""Number of inputs predicted at a time."""


def predict_logits(
    network: str,
    weights: Weights,
    inputs: NDArray[Any],
    statistics: Statistics,
    num_classes: int,
    device: torch.device,
) -> NDArray[np.float64]:
    """The logits of rows `(N, F)` or images `(N, C, H, W)`."""
    images = inputs.ndim > 2
    # In float64 if that costs little, so that the prediction of a row is the same to the last
    # digits whether it comes alone or among others.
    dtype = torch.float64 if not images and device.type == "cpu" else torch.float32
    mean, std = map(torch.tensor, statistics)
    # Its own generator, so that the initial weights, soon overwritten, leave the global one alone.
    model = make_network(
        network,
        num_classes=num_classes,
        input_shape=inputs.shape[1:],
        generator=torch.Generator(),
        pretrained=False,
    )
    model.load_state_dict(_as_tensors(weights), strict=False)
    model = model.to(device, dtype).eval()
    logits = [np.zeros((0, num_classes))]
    with torch.no_grad():
        for start in range(0, len(inputs), _CHUNK):
            chunk = inputs[start : start + _CHUNK]
            if images:
                batch = torch.from_numpy(chunk).permute(0, 2, 3, 1)
                batch = prepare_images(batch, mean=mean, std=std)
            else:
                batch = torch.from_numpy(standardize_rows(chunk, statistics))
            logits.append(model(batch.to(device, dtype)).double().cpu().numpy())
    return np.concatenate(logits)


def _as_tensors(weights: Weights) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in weights.items()}


def _take_weights(run: Trainer) -> Weights:
    run.synchronize()
    state = run.evaluated.state_dict()
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in state.items()}


_EVALUATED = 512
"""Most training examples that are evaluated after every epoch, to detect a collapse."""


def make_examples(
    admitted: Admitted,
    *,
    statistics: Statistics | None,
    validation: float,
    seed: int,
    tuned: bool = False,
) -> tuple[Examples, Statistics]:
    """Standardise the inputs, hold out a part, and weight the rest.

    Args:
        admitted: The arguments of `fit`.
        statistics: The mean and deviation of an earlier fit, which a warm start keeps.
        validation: Share to hold out; with 0, some training examples are evaluated every epoch.
        seed: Random seed of the held-out part.
        tuned: Whether the loss will be chosen by validation.
    """
    inputs, labels, weight = admitted.inputs, admitted.labels, admitted.weight
    # If nothing is held out, groups change nothing, not even which rows are merged.
    cut = bool(validation) or tuned
    groups = admitted.groups if cut else None
    if admitted.form.image_shape is not None:
        together = keep_together(inputs, groups) if cut else None
        statistics = normal = statistics or channel_statistics(inputs)
    else:
        rows, labels, weight, together, _ = merge_rows(inputs, labels, weight, groups)
        together = together if cut else None
        statistics = statistics or row_statistics(rows, weight)
        if admitted.form.columns is not None:
            statistics = statistics[0], admitted.form.columns.hide_ids(statistics[1])
        inputs = standardize_rows(rows, statistics)
        normal = ((0.0,) * inputs.shape[1], (1.0,) * inputs.shape[1])
    names = tuple(str(name) for name in admitted.classes)
    train = Split(inputs, labels, groups=together)
    dataset = Dataset("X", {"train": train}, names, *normal, clean=False)
    used = np.arange(len(labels))
    # In even steps, since rows may be sorted by class.
    held = np.unique(np.linspace(0, len(labels) - 1, min(len(labels), _EVALUATED)).round())
    if validation:
        used, held = hold_out(labels, validation, seed=seed, groups=together)
        if not len(held):
            left = f"{validation:g} of {len(labels)} examples"
            raise ValueError(f"validation_fraction: {left} leaves none to validate on")
    share = weight / weight[used].mean()
    alike = bool((weight == weight[0]).all())
    weights = None if alike else share.astype(np.float32)
    return Examples(dataset, used, labels, None, 0.0, held.astype(np.int64), weights), statistics


_MILDER = "another loss, such as sr with a smaller lambda0 or a rho nearer to 1"


class CollapseWarning(UserWarning):
    """A network predicts one class for everything."""


def train_backing_off(
    loss: str | Loss,
    setting: Configuration,
    examples: Examples,
    execution: Execution,
    *,
    start: Weights | None,
    patience: int | None,
    verbose: bool,
) -> Trained:
    """Train; if the network collapses under a default penalty, train again with half of it.

    Args:
        loss: As the user gave it.
        setting: All settings but the loss.
        examples: The training data; held-out examples are evaluated after every epoch.
        execution: The device and how to use it.
        start: Weights to start from.
        patience: Epochs without a better held-out score after which to stop; `None`: never.
        verbose: Print a line for every epoch.

    Warns:
        CollapseWarning: All predictions became one class.
    """
    inputs = ResidentInputs(examples.dataset, execution.device)
    first, module = _written(loss, setting.epochs)
    bare = isinstance(loss, str) and complete_loss(loss, epochs=1) != loss
    chosen = replace(setting, loss=first)
    before = chosen.loss
    while True:
        weaker = back_off(chosen.loss) if bare else None
        # A copy of the loss: the user's own keeps its epoch and device.
        trainer = Trainer(chosen, examples, inputs, execution, loss=copy.deepcopy(module))
        if start is not None:
            # Not strict: batch norm's count of batches is not kept.
            trainer.networks[0].load_state_dict(_as_tensors(start), strict=False)
        trained = Trained(chosen.loss if module is None else module)
        _train(trainer, trained, patience, verbose=verbose, stop_at_collapse=weaker is not None)
        if trained.collapsed is None or weaker is None:
            break
        chosen = replace(chosen, loss=weaker)
    if trained.collapsed is not None:
        _warn(f"the network collapsed: {trained.collapsed}; use a lower learning_rate or {_MILDER}")
    elif chosen.loss != before:
        _warn(f"with loss={first!r} the network collapsed, so {chosen.loss} was used")
    return trained


def _train(
    trainer: Trainer,
    trained: Trained,
    patience: int | None,
    *,
    verbose: bool,
    stop_at_collapse: bool,
) -> None:
    trainer.prepare()
    watch = Watch(trainer.examples, trainer.configuration)
    best, best_epoch = -1.0, 0
    while not trainer.finished:
        trainer.begin()
        while not trainer.advance():
            pass
        metrics = trainer.collect(trainer.end())
        trained.losses.append(metrics["train_loss"])
        score = metrics["validation_accuracy"] / 100
        if verbose:
            scored = f", validation accuracy {score:.4f}" if patience is not None else ""
            print(f"epoch {trainer.epoch}, loss {trained.losses[-1]:.6f}{scored}")
        trained.collapsed = watch.look(metrics)
        if trained.collapsed is not None and stop_at_collapse:
            return
        if patience is not None:
            trained.scores.append(score)
            if score > best:
                best, best_epoch, trained.weights = score, trainer.epoch, _take_weights(trainer)
            elif trainer.epoch - best_epoch >= patience:
                break
    trainer.refuse_unsound()
    if patience is None:
        trained.weights = _take_weights(trainer)


def _written(loss: str | Loss, epochs: int) -> tuple[str, Loss | None]:
    """The loss as text for the configuration; and the loss itself, if no text expresses it."""
    if isinstance(loss, str):
        return complete_loss(loss, epochs=epochs), None
    if loss.reduction != "mean":
        raise ValueError(f"loss: expected the reduction 'mean', got {loss.reduction!r}")
    parts = [part for part in loss.modules() if isinstance(part, Loss)]
    if any(part.class_weight is not None or part.ignore_index != -100 for part in parts):
        return Configuration.loss, loss  # a text would lack them
    try:
        return format_loss(loss), None
    except ValueError:  # such as one with the user's own schedule
        return Configuration.loss, loss


def _warn(message: str) -> None:
    # Three levels up is the line that called fit.
    warnings.warn(message, CollapseWarning, stacklevel=4)
