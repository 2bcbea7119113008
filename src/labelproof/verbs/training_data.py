"""The data that a run was trained on: where they are now, and whether they are still the same."""

from __future__ import annotations

import hashlib
import os
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.folder import Audit
from labelproof.audit.labels import conclude
from labelproof.audit.predictions import Predictions, predict_trained
from labelproof.data.dataset import Dataset, Split
from labelproof.data.duplicates import find_duplicates
from labelproof.data.images import ImageFiles, OnError
from labelproof.data.load import Reading
from labelproof.data.notices import readable
from labelproof.data.published import is_known, plain_name
from labelproof.fitting.attempts import read_attempts
from labelproof.noise import parse_noise
from labelproof.tabular.run import name_blend, read_held_out
from labelproof.training.configuration import Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.provenance import (
    find_again,
    fingerprint,
    places_of,
    read_note,
)
from labelproof.training.trained_network import TrainedNetwork
from labelproof.verbs.progress import Reporter


class TrainingData:
    """What a run was trained on, as its folder tells."""

    def __init__(self, run: TrainedNetwork, root: str | os.PathLike[str] | None = None):
        self.run = run
        self.root = root
        self.attempts = read_attempts(run.folder)

    @property
    def asked(self) -> Mapping[str, Any]:
        """How the data were read, as the folder has it."""
        return {} if self.attempts is None else self.attempts.asked

    def find(self) -> str:
        """Where the data are: a path that is there, or a dataset's name."""
        data, folder = self.run.configuration.data, self.run.folder
        if is_known(data):
            return data
        noted = None if self.attempts is None else self.attempts.places.get("data")
        found = find_again(data, folder, noted)
        if found is not None:
            return found
        if not noted and not Path(data).suffix and Path(data).name == data:
            return data  # a name that was mistyped, or no place at all: whoever loads it explains
        looked = " and ".join(readable(place) for place in places_of(data, folder, noted))
        raise FileNotFoundError(
            f"{readable(data)}: {folder} was trained on it, and it is not there any more (looked "
            f"for {looked}); start this from where it is now, or name that with --data PATH"
        )

    def find_labels(self) -> Path | None:
        """The file that the run took its labels from; `None` if they are the data's own."""
        labels = self.asked.get("labels")
        if self.attempts is None or not isinstance(labels, str):
            return None
        found = find_again(labels, self.run.folder, self.attempts.places.get("labels"))
        if found is None or not Path(found).is_file():
            raise FileNotFoundError(
                f"the run learned from the labels of {readable(labels)}, which is not there from "
                "here; start this from where it is, or name that with --labels"
            )
        return Path(found)

    def reading(self, labels: Path | None) -> Reading:
        """How the run read its data, with the file of its labels where that is now."""
        label = self.run.description.label
        return replace(Reading.of(self.asked), label=label, labels=labels, root=self.root)

    def is_at(self, place: str) -> bool:
        """Whether a path or name is that of these data."""
        try:
            own = self.find()
        except FileNotFoundError:
            own = self.run.configuration.data
        try:
            return place == own or Path(place).samefile(own)
        except OSError:
            return False

    def is_same(self, dataset: Dataset, *, human: Path | None = None) -> bool | None:
        """Whether data are what the run was trained on; `None` where it has not noted that."""
        # What `fit` noted is of the data as they were read. What the training noted beside is of
        # what it was handed, which for `fit` may be decoded images.
        noted = (
            self.asked.get("fingerprint") if "data" in self.asked else read_note(self.run.folder)
        )
        configuration = self.run.configuration
        people = parse_noise(configuration.noise).kind == "human"
        if noted is None or (people and human is None):
            return None
        given = choose_examples(configuration, dataset, human=human).given if people else None
        return fingerprint(dataset, given=given) == noted

    def differs(self, dataset: Dataset, data: str) -> bool:
        """Whether data are known to be others than the run was trained on."""
        if self.is_same(replace(dataset, group=self.asked.get("group"))) is not False:
            return False
        # To read them again, as they were learned from, takes time, and leaves no doubt.
        try:
            return self.is_same(self._load("skip", data)) is False
        except FileNotFoundError:
            return False
        except ValueError:
            return True

    def count(self, split: Split) -> int | None:
        """How many samples the run has learned from, or validated on; `None` if that is not known.

        Files are the same if their bytes are; images and rows in memory if their numbers are. No
        image is decoded.
        """
        # Of files the list will do: to look at each would take longer than to measure.
        quick = "later" if isinstance(split.images, ImageFiles) else "skip"
        try:
            own = self._load(quick)
            found = _count(split, own.train)
            same = None if found is None else self.is_same(own)
            if found and same is False and quick == "later":
                # What could not be read was listed and never learned from.
                same = self.is_same(self._load("skip"))
        except (OSError, ValueError):
            return None
        # Where its data are others by now, who is among them says nothing; nor does, where nothing
        # was noted, that no one is.
        return found if same or (same is None and found) else None

    def _load(self, on_error: OnError, data: str | None = None) -> Dataset:
        """What the run learned from, read again without a word."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reading = self.reading(self.find_labels())
            return reading.load(data or self.find(), on_error=on_error)


def _count(split: Split, own: Split) -> int | None:
    """How many samples of a split are among others."""
    if isinstance(split.images, ImageFiles) and isinstance(own.images, ImageFiles):
        paths, learned = _paths(split.images), _paths(own.images)
        if paths is None or learned is None:
            return None
        groups = find_duplicates([*paths, *learned])
        return sum(
            index < len(paths) for group in groups if group[-1] >= len(paths) for index in group
        )
    samples, known = split.images, own.images
    if not isinstance(samples, np.ndarray) or not isinstance(known, np.ndarray):
        return None
    if samples.shape[1:] != known.shape[1:] or samples.dtype != known.dtype:
        return None
    digests = {_digest(sample) for sample in known}
    return sum(_digest(sample) in digests for sample in samples)


def _paths(images: ImageFiles) -> list[str] | None:
    """The files of images; `None` where they are stored otherwise, as in an archive."""
    if getattr(images.files, "name_of", None) is not None:  # to ask for one is to read it
        return None
    return [str(images.files[index]) for index in range(len(images))]


def _digest(sample: NDArray[Any]) -> bytes:
    return hashlib.blake2b(sample.tobytes(), digest_size=16).digest()


def data_place(data: str) -> str:
    """The whole path of data, wherever a review is started from; a dataset's name as it is.

    >>> data_place("MNIST"), os.path.isabs(data_place("photos"))
    ('mnist', True)
    """
    return plain_name(data) if is_known(data) else os.path.abspath(Path(data).expanduser())


def audit_run(
    run: TrainedNetwork,
    *,
    human: Path | None = None,
    data_root: str | os.PathLike[str] | None = None,
    reporter: Reporter,
) -> Audit:
    """Read a run's data again, and ask its network about them; refuse other data."""
    trained_on = TrainingData(run, data_root)
    data = trained_on.find()
    reading = trained_on.reading(trained_on.find_labels())
    with reporter.reading():
        dataset = reading.load(data, on_error="skip")
    if trained_on.is_same(dataset, human=human) is False:
        place = shlex.quote(data)
        raise ValueError(
            f"{readable(data)}: not what {run.folder} was trained on: its labels, files or rows "
            f"have changed since, or it is another of the same name; 'labelproof audit {place}' "
            f"audits it as it is, 'labelproof fit {place}' with --fresh or another --output trains "
            "on it"
        )
    place = data_place(data)
    return ask_run(run, dataset, place=place, reading=reading, human=human, reporter=reporter)


def ask_run(
    run: TrainedNetwork,
    dataset: Dataset,
    prepared: Dataset | None = None,
    *,
    place: str,
    reading: Reading,
    reporter: Reporter,
    human: Path | None = None,
) -> Audit:
    """Audit a dataset by what a run that was trained on it says; a blend by held-out labels."""
    configuration = run.configuration
    if run.blended and run.record is not None:
        predictions = read_held_out(run)
        method = {"predictions": "cross-validation", "network": name_blend(run.record.candidates)}
    else:
        with reporter.working("Looking at the training samples"):
            seen = dataset if prepared is None else prepared
            predictions = predict_trained(run, seen, human=human)
        named = {name: getattr(configuration, name) for name in ("network", "loss")}
        method = {"predictions": "run", **named, "epochs": run.epochs}
    return judge(dataset, predictions, configuration, method, place=place, reading=reading)


def judge(
    dataset: Dataset,
    predictions: Predictions,
    configuration: Configuration,
    method: Mapping[str, Any],
    *,
    place: str,
    reading: Reading,
) -> Audit:
    """Audit a dataset by predictions of its samples, and note the noise that was put on it."""
    noise = None if configuration.noise == "none" else configuration.noise
    return conclude(
        dataset,
        predictions,
        data=place,
        method={**method, "noise": noise},
        options=reading.found_in(dataset).options(),
    )
