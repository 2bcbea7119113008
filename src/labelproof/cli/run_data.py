"""The data that a run was trained on: where they are now, and whether they are still the same."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelproof.data.catalogue import is_known
from labelproof.data.dataset import Dataset
from labelproof.data.fingerprint import fingerprint
from labelproof.data.notices import readable
from labelproof.data.reading import Reading
from labelproof.fitting.attempts import Attempts
from labelproof.fitting.whereabouts import find_again, places_of
from labelproof.noise import parse_noise
from labelproof.training.begun_on import mark_data, read_note
from labelproof.training.examples import choose_examples
from labelproof.training.saved import SavedRun

__all__ = ["differs", "find_data", "find_labels", "reading_of", "same_data"]


def find_data(run: SavedRun, attempts: Attempts | None, *, advice: str) -> str:
    """Where the data of a run are: a path that is there, or a dataset's name.

    Args:
        run: The run.
        attempts: What its folder tells of how they were read.
        advice: What can be done where they are not found.

    Raises:
        FileNotFoundError: They are nowhere; the message says where they were looked for.
    """
    data = run.configuration.data
    noted = None if attempts is None else attempts.places.get("data")
    if is_known(data):
        return data
    found = find_again(data, run.folder, noted)
    if found is not None:
        return found
    if not noted and not Path(data).suffix and Path(data).name == data:
        return data  # a name that was mistyped, or no place at all: whoever loads it explains
    looked = " and ".join(readable(place) for place in places_of(data, run.folder, noted))
    raise FileNotFoundError(
        f"{readable(data)}: {run.folder} was trained on it, and it is not there any more (looked "
        f"for {looked}); {advice}"
    )


def find_labels(run: SavedRun, attempts: Attempts | None, *, advice: str) -> Path | None:
    """The file that a run took its labels from; `None` if they are the data's own.

    Raises:
        FileNotFoundError: It is nowhere.
    """
    labels = None if attempts is None else attempts.asked.get("labels")
    if attempts is None or not isinstance(labels, str):
        return None
    found = find_again(labels, run.folder, attempts.places.get("labels"))
    if found is None or not Path(found).is_file():
        raise FileNotFoundError(
            f"the run learned from the labels of {readable(labels)}, which is not there from here; "
            f"{advice}"
        )
    return Path(found)


def reading_of(attempts: Attempts | None, labels: Path | None, root: Path | None) -> Reading:
    """How a run read its data, as far as its folder tells.

    Args:
        attempts: What the folder tells.
        labels: The file of its labels, where that is now.
        root: Where datasets are that have a name.
    """
    reading = Reading(labels=labels, root=root)
    if attempts is None:
        return reading
    asked = replace(Reading.of(attempts.asked), labels=labels, root=root)
    # The column that was found, where none was asked for.
    return replace(asked, label=asked.label or attempts.label_column)


def same_data(
    run: SavedRun, attempts: Attempts | None, dataset: Dataset, *, human: Path | None = None
) -> bool | None:
    """Whether data are what a run was trained on; `None` where it has not noted that.

    Args:
        run: The run.
        attempts: What its folder tells of how they were read.
        dataset: The data, read in the same way.
        human: The file of human labels, for noise such as `human:worse`.
    """
    asked: Mapping[str, Any] = {} if attempts is None else attempts.asked
    # What `fit` noted is of the data as they were read. What the training noted beside is of what
    # it was handed, which for `fit` may be decoded images, and for `train` is the data as well.
    noted = asked.get("fingerprint") if "data" in asked else read_note(run.folder)
    if noted is None:
        return None
    people = parse_noise(run.configuration.noise).kind == "human"
    if people and human is None:
        return None
    if not people:
        return fingerprint(dataset) == noted
    examples = choose_examples(run.configuration, dataset, human=human)
    return mark_data(run.configuration, examples) == noted


def differs(
    run: SavedRun, attempts: Attempts | None, dataset: Dataset, data: str, root: Path | None
) -> bool | None:
    """Whether data are others than a run was trained on; `None` where that cannot be known.

    Args:
        run: The run.
        attempts: What its folder tells of how they were read.
        dataset: The data as they are measured: perhaps by other labels than were learned from.
        data: Where they were read from.
        root: Where datasets are that have a name.
    """
    group = None if attempts is None else attempts.asked.get("group")
    same = same_data(run, attempts, replace(dataset, group=group))
    if same is None or same:
        return None if same is None else False
    # To read them again, as they were learned from, takes time, and leaves no doubt.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = find_labels(run, attempts, advice="")
            read = reading_of(attempts, labels, root).load(data, on_error="skip")
    except FileNotFoundError:
        return None
    except ValueError:
        return True
    return not same_data(run, attempts, read)
