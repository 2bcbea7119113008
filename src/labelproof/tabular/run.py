"""A run on a table that trains a blend of classifiers instead of a network."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.audit.predictions import Predictions
from labelproof.data.dataset import Dataset
from labelproof.data.notices import count, notice
from labelproof.models.blend import BLEND, Blend
from labelproof.npz import read_npz
from labelproof.tabular.rows import LabelledRows, label_rows
from labelproof.training.batches import CHUNK
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples, choose_examples
from labelproof.training.provenance import describe, mark_data
from labelproof.training.record import RunRecord, sizes, versions
from labelproof.training.run_folder import PREDICTIONS, History, RunFolder
from labelproof.training.trained_network import TrainedNetwork

# Classifiers are imported where they are fitted: scikit-learn takes as long as torch.
if TYPE_CHECKING:
    from labelproof.tabular.committee import Committee


_OF_DATA = ("class_weight", "imbalance", "noise", "seed")
"""Settings of the data; all others are of a network and its training."""


def blend_configuration(
    dataset: Dataset,
    data: str,
    settings: dict[str, Any],
    *,
    human: str | os.PathLike[str] | None = None,
) -> Configuration | None:
    """The configuration of a blend; `None` if a network is requested or has to be trained instead.

    Any setting of a network or its training requests a network. So do images and too few rows.

    Args:
        dataset: The data.
        data: Their name.
        settings: Of `Configuration`; `None` leaves one open.
        human: The file of human labels, for noise such as `human:worse`.

    Example:
        >>> from labelproof.data import load_digits
        >>> blend_configuration(load_digits(), "digits", {}) is None  # images
        True
    """
    given = {name: value for name, value in settings.items() if value is not None}
    network = given.pop("network", BLEND)
    if not dataset.tabular or network != BLEND or any(name not in _OF_DATA for name in given):
        return None
    groups = dataset.train.groups
    if dataset.group is not None and groups is not None and len(np.unique(groups)) < 2:
        return None  # one group cannot be cut; training the network raises the error
    configuration = Configuration(data, network=BLEND, epochs=1, **given)
    # With a handful of rows, none can be held out to compare classifiers; copies stay together.
    examples, rows = blend_rows(configuration, dataset, human=human)
    if not rows.too_few:
        return configuration
    if (different := len(np.unique(rows.rows, axis=0))) < len(examples.used):
        few = f"only {count(different, 'row')} that differ from each other, too few"
        notice(f"{dataset.name}: {few} to compare classifiers; training a network")
    return None


def blend_rows(
    configuration: Configuration, dataset: Dataset, *, human: str | os.PathLike[str] | None = None
) -> tuple[Examples, LabelledRows]:
    """The training data of a blend: examples with given labels, and their rows cut into folds."""
    examples = choose_examples(configuration, dataset, human=human)
    train, used = dataset.train, examples.used
    balanced = configuration.class_weight == "balanced"
    rows = label_rows(
        train.array[used],
        examples.given[used],
        np.arange(dataset.num_classes),
        class_weight="balanced" if balanced else None,
        groups=None if train.groups is None else train.groups[used],
        columns=dataset.columns,
        seed=configuration.seed,
    )
    return examples, rows


def fit_blend(
    examples: Examples, rows: LabelledRows, *, seed: int
) -> tuple[Committee, Predictions]:
    """Compare and blend classifiers; also their out-of-sample predictions of each row."""
    from labelproof.tabular.committee import choose_candidates, fit_committee

    committee = fit_committee(choose_candidates(rows, seed=seed, n_jobs=None), rows)
    logits = np.log(committee.held_out)
    return committee, Predictions(logits, examples.used, examples.given[examples.used])


def train_blend(configuration: Configuration, dataset: Dataset, folder: Path) -> RunRecord:
    """Fit a blend and write the folder of a run, the record last.

    A stopped run does not resume but starts again: it takes seconds.
    """
    started = time.perf_counter()
    examples, rows = blend_rows(configuration, dataset)
    mark = mark_data(configuration, examples)
    committee, predictions = fit_blend(examples, rows, seed=configuration.seed)
    tensors = committee.tensors()
    predicted = predictions.logits.argmax(axis=1)
    metrics = {"validation_accuracy": 100 * float(np.mean(predicted == predictions.given))}
    arrays: dict[str, NDArray[Any]] = {
        "held": predictions.index,
        "held_logits": predictions.logits,
        "held_labels": predictions.given.astype(np.int32),
    }
    if "test" in dataset.splits:
        test = dataset.test
        arrays |= {"logits": _predict(Blend(tensors), test.array), "labels": test.labels}
        right = arrays["logits"].argmax(axis=1) == test.labels
        metrics["test_accuracy"] = 100 * float(right.mean())
    seconds = round(time.perf_counter() - started, 3)
    history = History([metrics], [{"seconds": seconds}])
    record = RunRecord(
        name=configuration.name,
        configuration=configuration.as_values(),
        noise_rate=examples.noise_rate,
        curve=history.curve,
        seconds=seconds,
        versions=versions(),
        data=sizes(dataset) | {"fingerprint": mark},
        candidates=committee.scores,
    )
    # A blend takes rows that are not standardised: trees compare them with thresholds.
    scale = {"mean": (0.0,) * dataset.input_shape[0], "std": (1.0,) * dataset.input_shape[0]}
    description = replace(describe(configuration, dataset), **scale)
    RunFolder(folder).write(description, tensors, history, record, arrays)
    return record


def _predict(blend: Blend, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    with torch.no_grad():
        return torch.cat([blend(part) for part in torch.from_numpy(rows).split(CHUNK)]).numpy()


def read_held_out(run: TrainedNetwork) -> Predictions:
    """The out-of-sample predictions of a blend.

    Raises:
        FileNotFoundError: The run's file of predictions is missing.
        ValueError: It is damaged.
    """
    names = ("held", "held_logits", "held_labels")
    index, logits, labels = read_npz(run.folder / PREDICTIONS, names).values()
    classes = len(run.description.class_names)
    fits = logits.shape == (len(labels), classes) and index.shape == labels.shape
    if not fits or not np.isfinite(logits).all() or not np.isin(labels, range(classes)).all():
        raise ValueError(f"{run.folder / PREDICTIONS}: damaged, or of another run; use --fresh")
    return Predictions(logits.astype(np.float32), index.astype(np.int64), labels.astype(np.int64))


def name_blend(candidates: dict[str, dict[str, float]]) -> str:
    """The kinds of classifiers in a blend, the largest weight first.

    >>> name_blend({"forest (leaf=1)": {"weight": 0.2}, "linear (C=1)": {"weight": 0.1},
    ...     "linear (C=9)": {"weight": 0.7}, "kernel": {"weight": 0}})
    'blend of linear 80%, forest 20%'
    """
    weights: defaultdict[str, float] = defaultdict(float)
    for name, scores in candidates.items():
        weights[name.partition(" ")[0]] += scores.get("weight", 0.0)
    order = sorted(weights, key=lambda name: -weights[name])
    shares = [f"{name} {weights[name]:.0%}" for name in order if weights[name] > 0]
    return f"{BLEND} of {', '.join(shares)}" if shares else BLEND
