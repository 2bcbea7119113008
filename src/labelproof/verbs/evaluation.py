"""How accurate a run is on labelled data, and which classes it confuses."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from labelproof.data.arrays import load_arrays
from labelproof.data.dataset import Dataset
from labelproof.data.images import OnError
from labelproof.data.labels_file import relabel
from labelproof.data.load import ARRAYS, Reading, load_dataset
from labelproof.data.notices import readable
from labelproof.data.table import is_table, load_table
from labelproof.intervals import wilson_interval
from labelproof.ranges import suggest
from labelproof.training.trained_network import TrainedNetwork
from labelproof.verbs.inputs import LabelledData, read_data, with_labels
from labelproof.verbs.training_data import TrainingData


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What a run comes to on labelled samples.

    Attributes:
        run: Its folder.
        epochs: How many it has trained.
        finished: Whether these are all.
        data: What the data are called.
        split: Which part of them was measured.
        place: The same for a person: the data and, where there are several, the part.
        what: `"images"` or `"rows"`.
        clean: Whether the labels are known to be right.
        class_names: The run's classes.
        counts: How often a label, the row, is predicted as a class, the column, `(C, C)`.
        learned_from: Whether the run has learned from most of these samples; `None` where that
            cannot be known.
        learned_from_n: How many of them it has learned from, where they were compared.
    """

    run: str
    epochs: int
    finished: bool
    data: str
    split: str
    place: str
    what: str
    clean: bool
    class_names: tuple[str, ...]
    counts: NDArray[np.int64]
    learned_from: bool | None = None
    learned_from_n: int | None = None

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Evaluation({self.accuracy:.2f}% ({low:.2f} to {high:.2f}) of {self.n:,} {self.what} "
            f"of {self.place})"
        )

    @property
    def n(self) -> int:
        """How many samples there are."""
        return int(self.counts.sum())

    @property
    def correct(self) -> int:
        """How many are predicted as they are labelled."""
        return int(self.counts.trace())

    @property
    def accuracy(self) -> float:
        """The same as a percentage."""
        return 100 * self.correct / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95% of the accuracy, in percent."""
        low, high = wilson_interval(self.correct, self.n)
        return 100 * low, 100 * high

    @property
    def classes(self) -> pd.DataFrame:
        """For each class, the samples labelled so, `n`, and the `accuracy` on them in percent."""
        sizes, right = self.counts.sum(axis=1), self.counts.diagonal()
        accuracy = 100 * right / np.where(sizes, sizes, np.nan)
        return pd.DataFrame({"n": sizes, "accuracy": accuracy}, index=list(self.class_names))

    @property
    def confusion(self) -> pd.DataFrame:
        """How often a label, the row, is predicted as a class, the column."""
        names = list(self.class_names)
        return pd.DataFrame(self.counts, index=names, columns=names)

    def confusions(self, most: int = 10) -> list[tuple[str, str, int]]:
        """The most frequent mistakes: the label, what is predicted, and how often."""
        wrong = self.counts.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:most]
        pairs = [divmod(int(cell), len(wrong)) for cell in order]
        names = self.class_names
        return [(names[i], names[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]

    def as_values(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        names = ("run", "epochs", "finished", "data", "split", "what", "n", "correct", "accuracy")
        classes = zip(self.class_names, self.classes["n"], self.classes["accuracy"], strict=True)
        return {name: getattr(self, name) for name in names} | {
            "interval": list(self.interval),
            "classes": [
                {"name": name, "n": int(size), "accuracy": float(accuracy) if size else None}
                for name, size, accuracy in classes
            ],
            "confusions": [
                {"label": label, "predicted": predicted, "n": n}
                for label, predicted, n in self.confusions()
            ],
            "learned_from": self.learned_from,
            "learned_from_n": self.learned_from_n,
        }


def evaluate_run(
    run: TrainedNetwork,
    data: LabelledData | None,
    reading: Reading,
    *,
    split: str = "test",
    on_error: OnError = "raise",
) -> Evaluation:
    """Measure a run, as [`Run.evaluate`][labelproof.verbs.run.Run.evaluate] does."""
    label, labels, data_root = reading.label, reading.labels, reading.root
    trained_on = TrainingData(run, data_root)
    given = data is not None
    if data is None:
        data = trained_on.find()
        # What a run has learned from is read as the run read it.
        if trained_on.attempts is not None:
            on_error = "skip"
        if labels is None and split == "train":
            labels = trained_on.find_labels()
    name = os.fspath(data) if isinstance(data, str | os.PathLike) else None
    if label is None and (name is None or is_table(name)):
        label = run.description.label
    dataset = _read(run, data, label=label, on_error=on_error, root=data_root)
    # Before they are corrected: to a class of the run that these data do not have otherwise.
    dataset = dataset.in_classes(run.description.class_names)
    if labels is not None:
        dataset = relabel(dataset, name or "table", labels, few_classes=True)
    if given and split == "test" and "test" not in dataset.splits:
        split = "train"  # all there is in a file that was made to measure on
    _check(run, dataset, split)
    counts = _count(run, dataset, split)
    own = name is not None and trained_on.is_at(name)
    other = own and name is not None and trained_on.differs(dataset, name)
    if other and not given:
        warnings.warn(
            f"{readable(name or '')}: not what {run.folder} was trained on: its labels, files or "
            "rows have changed since, or it is another of the same name; name what is measured on "
            "with --data PATH",
            stacklevel=3,
        )
    learned: bool | None = None if other else split == "train"
    among = None
    if not own:
        chosen = dataset.splits[split]
        among = trained_on.count(chosen)
        # Some rows of a table are the same by chance.
        partly = dataset.tabular and among is not None and 0 < among < len(chosen)
        learned = None if among is None or partly else bool(among)
    # A part has a name where there are others, and not in a file that was made to measure on.
    alone = given and len(dataset.splits) == 1
    return Evaluation(
        run=str(run.folder),
        epochs=run.epochs,
        finished=run.record is not None,
        data=dataset.name,
        split=split,
        place=readable(name or dataset.name) if alone else f"{dataset.name}, {split}",
        what="rows" if dataset.tabular else "images",
        clean=dataset.clean,
        class_names=run.description.class_names,
        counts=counts,
        learned_from=learned,
        learned_from_n=among,
    )


def _read(
    run: TrainedNetwork,
    data: LabelledData,
    *,
    label: str | None,
    on_error: OnError,
    root: str | os.PathLike[str] | None,
) -> Dataset:
    """The data, rows by the run's own columns: what they hold decides nothing about these."""
    if run.tabular and isinstance(data, tuple):
        data, label = with_labels(*data)
    like = (run.columns, run.description.class_names) if run.tabular else None
    if isinstance(data, Dataset | tuple):
        return read_data(data, Reading())
    if isinstance(data, str | os.PathLike):
        if run.tabular and is_table(data):
            return load_table(data, label=label, on_error=on_error, like=like)
        # An array with a label column is refused with all else that has no columns.
        if run.tabular and Path(data).suffix.lower() in ARRAYS and label is None:
            return load_arrays(data, on_error=on_error, like=like)
        return load_dataset(data, root=root, on_error=on_error, label=label, few_classes=True)
    return load_table(data, label=label, on_error=on_error, like=like)


def _check(run: TrainedNetwork, dataset: Dataset, split: str) -> None:
    if split == "test" and split not in dataset.splits:
        new = "NEW.csv" if dataset.tabular else "NEW-IMAGES"
        raise ValueError(
            f"{dataset.name} has no test part to measure on, only {', '.join(dataset.splits)}; "
            f"measure on data that are new to the run with --data {new}, or on those it was "
            "trained on with --split train"
        )
    if split not in dataset.splits:
        raise ValueError(
            f"split: expected one of {', '.join(dataset.splits)}, which {dataset.name} has, got "
            f"{split!r}{suggest(split, list(dataset.splits))}"
        )
    if run.tabular != dataset.tabular:
        kinds = ("images", "rows of a table")
        raise ValueError(
            f"data: expected {kinds[run.tabular]}, as the run was trained on, {dataset.name} has "
            f"{kinds[dataset.tabular]}"
        )


def _count(run: TrainedNetwork, dataset: Dataset, split: str) -> NDArray[np.int64]:
    chosen, classes = dataset.splits[split], len(run.description.class_names)
    predicted = torch.cat([logits.argmax(dim=1) for logits in run.logits(chosen.images)]).numpy()
    cells = np.bincount(chosen.labels * classes + predicted, minlength=classes * classes)
    return cells.reshape(classes, classes)
