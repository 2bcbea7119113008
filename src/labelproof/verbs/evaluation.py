"""How accurate a run is on labelled data, and which classes it confuses."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.data import Dataset, Split
from labelproof.data.duplicates import find_duplicates
from labelproof.data.images import ImageFiles, OnError
from labelproof.data.load import LabelledData, Reading
from labelproof.data.notices import readable
from labelproof.data.published import is_known
from labelproof.fitting.attempts import Attempts, read_attempts
from labelproof.intervals import wilson_interval
from labelproof.noise import parse_noise
from labelproof.report.audit_words import most_frequent
from labelproof.training.provenance import find_again, fingerprint, places_of, read_note
from labelproof.training.trained_network import TrainedNetwork
from labelproof.verbs.inputs import Request


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The accuracy of a run on labelled samples.

    Attributes:
        run: The run's folder.
        epochs: Number of epochs trained.
        finished: Whether the run is finished.
        data: The name of the data.
        split: The split that was evaluated.
        place: Both in words: the data and, if there are several, the split.
        what: `"images"` or `"rows"`.
        class_names: The run's classes.
        counts: The confusion matrix, `(C, C)`: rows are labels, columns are predictions.
        learned_from_n: How many of the samples the run was trained or validated on, or on equal
            ones; `None` if that is unknown.
    """

    run: str
    epochs: int
    finished: bool
    data: str
    split: str
    place: str
    what: str
    class_names: tuple[str, ...]
    counts: NDArray[np.int64]
    learned_from_n: int | None = None

    def __repr__(self) -> str:
        low, high = self.interval
        share = f"{self.accuracy:.2f}% ({low:.2f} to {high:.2f}) of {self.n:,} {self.what}"
        seen = f", trained on {self.learned_from_n:,} of them" if self.learned_from_n else ""
        return f"Evaluation({share} of {self.place}{seen})"

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.counts.sum())

    @property
    def correct(self) -> int:
        """The number of samples that are predicted as labelled."""
        return int(self.counts.trace())

    @property
    def accuracy(self) -> float:
        """The accuracy in percent."""
        return 100 * self.correct / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the accuracy, in percent."""
        low, high = wilson_interval(self.correct, self.n)
        return 100 * low, 100 * high

    @property
    def classes(self) -> pd.DataFrame:
        """For each class, the number of samples `n` and the `accuracy` in percent."""
        sizes, right = self.counts.sum(axis=1), self.counts.diagonal()
        accuracy = 100 * right / np.where(sizes, sizes, np.nan)
        return pd.DataFrame({"n": sizes, "accuracy": accuracy}, index=list(self.class_names))

    @property
    def confusion(self) -> pd.DataFrame:
        """The confusion matrix: rows are labels, columns are predictions."""
        names = list(self.class_names)
        return pd.DataFrame(self.counts, index=names, columns=names)

    def confusions(self, most: int = 10) -> list[tuple[str, str, int]]:
        """The most frequent mistakes: label, prediction and count."""
        names, pairs = self.class_names, most_frequent(self.counts, most)
        return [(names[i], names[j], int(self.counts[i, j])) for i, j in pairs]

    def as_values(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        names = ("run", "epochs", "finished", "data", "split", "what", "n", "correct", "accuracy")
        classes = self.classes.astype(object).where(self.classes.notna(), None)
        pairs = pd.DataFrame(self.confusions(), columns=["label", "predicted", "n"])
        return {name: getattr(self, name) for name in names} | {
            "interval": list(self.interval),
            "classes": classes.rename_axis("name").reset_index().to_dict("records"),
            "confusions": pairs.to_dict("records"),
            "learned_from_n": self.learned_from_n,
        }


class TrainingData:
    """The training data of a run: `given` in memory, or by the notes in its folder.

    Attributes:
        asked: The noted settings, such as how the data were read.
        places: The noted paths of the data and their labels.
    """

    def __init__(
        self,
        run: TrainedNetwork,
        root: str | os.PathLike[str] | None = None,
        given: LabelledData | None = None,
    ):
        self.run = run
        self.given = given
        notes = read_attempts(run.folder) or Attempts({}, run.configuration.loss)
        self.asked, self.places = notes.asked, notes.places
        noted = self.places.get("data_root")
        self.root = find_again(noted["path"], run.folder, noted) if noted and not root else root

    def find(self) -> str:
        """The path where the data are now, or a dataset's name."""
        data = self.run.configuration.data
        return data if is_known(data) else self._find(data, "data")

    def find_labels(self) -> Path | None:
        """The file that the run took its labels from; `None` if they are the data's own."""
        labels = self.asked.get("labels")
        return Path(self._find(labels, "labels")) if isinstance(labels, str) else None

    def _find(self, path: str, kind: str) -> str:
        noted = self.places.get(kind)
        found = find_again(path, self.run.folder, noted)
        if found is not None:
            return found
        looked = " and ".join(map(readable, places_of(path, self.run.folder, noted)))
        raise FileNotFoundError(
            f"{readable(path)}: {self.run.folder} was trained on it, and it is gone (looked for "
            f"{looked}); run this from the folder where it is now; evaluate takes --{kind} PATH"
        )

    def request(self, **options: Any) -> Request:
        """The run's data, to be read as the run read them."""
        data = self.given
        how = {**vars(Reading.of(self.asked)), "labels": None, "data_root": self.root}
        how["label"] = self.run.description.label
        if data is None:
            data, how["labels"] = self.find(), self.find_labels()
        elif isinstance(data, tuple | Dataset):
            how["label"] = None
        return Request(data, device="cpu", **how, **options)

    def is_same(self, dataset: Dataset) -> bool | None:
        """Whether data are what the run was trained on; `None` if that is not known.

        It is not known of a run on human labels, which come from a file of their own.
        """
        # `fit` notes the fingerprint of the data as read. The training also notes that of the data
        # it is given, which for `fit` may be decoded images.
        noted = (
            self.asked.get("fingerprint") if "data" in self.asked else read_note(self.run.folder)
        )
        by_humans = parse_noise(self.run.configuration.noise).kind == "human"
        return None if noted is None or by_humans else fingerprint(dataset) == noted

    def changed(self, dataset: Dataset) -> bool:
        """Whether the run's data are known to have changed since its training."""
        if self.is_same(replace(dataset, group=self.asked.get("group"))) is not False:
            return False
        # Reading them again as the run did is slow, but leaves no doubt.
        try:
            return self.is_same(self._load("skip")) is False
        except FileNotFoundError:
            return False
        except ValueError:
            return True

    def count(self, split: Split) -> int | None:
        """How many samples are among the run's; `None` if its data are gone or have changed.

        Files are compared by their bytes, images and rows in memory by their values. No image is
        decoded.
        """
        # Files are only listed: opening each would take longer than the evaluation.
        quick = "later" if isinstance(split.images, ImageFiles) else "skip"
        try:
            own = self._load(quick)
            changed = quick == "skip" and self.is_same(own) is False
            return None if changed else _count_among(split, own.train)
        except (OSError, ValueError):
            return None

    def _load(self, on_error: OnError) -> Dataset:
        """Read the run's training data again, without warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.request(on_error=on_error).dataset


def _count_among(split: Split, own: Split) -> int | None:
    """How many samples of a split are among the run's own; `None` if they cannot be compared."""
    samples, known = split.images, own.images
    if isinstance(samples, ImageFiles) and isinstance(known, ImageFiles):
        paths = [file for file in (*samples.files, *known.files) if isinstance(file, str)]
        if len(paths) < len(samples) + len(known):
            return None  # images within other files: comparing them means reading them
        new, trained = np.split(find_duplicates(paths), [len(samples)])
        return int(np.isin(new[new >= 0], trained).sum())
    if not isinstance(samples, np.ndarray) or not isinstance(known, np.ndarray):
        return None
    hashes = {hash(sample.tobytes()) for sample in known}
    return sum(hash(sample.tobytes()) in hashes for sample in samples)
