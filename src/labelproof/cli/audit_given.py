"""An audit by predictions that someone else's model gave."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from labelproof.audit import Samples
from labelproof.audit.given import audit_given, match_given
from labelproof.audit.given_labels import SUFFIXES, read_given, read_names
from labelproof.audit.given_predictions import GivenPredictions, read_predictions
from labelproof.cli.audit_keeping import refuse_trained, replace_audit
from labelproof.cli.audit_places import data_place
from labelproof.cli.audit_words import describe_folder, describe_given
from labelproof.cli.lines import say, told
from labelproof.data.dataset import Dataset
from labelproof.data.reading import Reading
from labelproof.data.unusable import UnusableSamplesError

__all__ = ["audit_predictions", "holds_labels_alone"]


def holds_labels_alone(path: str) -> bool:
    """Whether a path is taken for a file of labels, with nothing to look at.

    >>> holds_labels_alone("labels.txt"), holds_labels_alone("photos")
    (True, False)
    """
    place = Path(path).expanduser()
    return place.suffix.lower() in SUFFIXES and not place.is_dir()


def audit_predictions(
    path: str,
    probabilities: Path,
    folder: Path,
    *,
    class_names: str | None,
    reading: Reading,
    fresh: bool,
    dry_run: bool,
    console: Console,
) -> None:
    """Audit the labels of data, or labels alone, and keep what was found.

    Args:
        path: The data, or a file of labels.
        probabilities: The file of the predictions.
        folder: The audit's.
        class_names: What the columns are called: a file with a name a line, or names and commas.
        reading: How the data are read.
        fresh: Whether an earlier audit is removed first.
        dry_run: Whether it is only said what would be done.
        console: Where to say it.
    """
    refuse_trained(folder, fresh=fresh)
    place = data_place(path)
    with told():
        predictions = _named(read_predictions(probabilities), class_names)
        given = (
            read_given(Path(path).expanduser())
            if holds_labels_alone(path)
            else _load_all(path, reading, named=predictions.ids is not None)
        )
        if dry_run:
            matched = match_given(predictions, given, data=place)
            say(console, describe_given(matched.class_names, len(matched.samples), probabilities))
            say(console, describe_folder(folder, fresh=fresh))
            return
        found = audit_given(predictions, given, data=place, options=reading.options())
    dataset = given if isinstance(given, Dataset) else None
    replace_audit(console, folder, found, Samples.of(found, dataset), fresh=fresh)


def _named(predictions: GivenPredictions, class_names: str | None) -> GivenPredictions:
    """Predictions with the names that their columns are said to have."""
    if class_names is None:
        return predictions
    # Not Path.is_file, which raises of many names that they are too long for one.
    file = os.path.expanduser(class_names)
    named = read_names(file) if os.path.isfile(file) else class_names.split(",")
    names = tuple(name.strip() for name in named)
    if predictions.class_names is not None and predictions.class_names != names:
        raise ValueError(
            f"--class-names: the columns of {predictions.place} have names of their own: "
            f"{', '.join(predictions.class_names[:6])}"
        )
    return replace(predictions, class_names=names)


def _load_all(path: str, reading: Reading, *, named: bool) -> Dataset:
    """Data of which nothing is left out where rows are matched by their order."""
    on_error = "skip" if named else "raise"
    try:
        return reading.load(path, on_error=on_error, features=False)
    except UnusableSamplesError as error:
        raise UnusableSamplesError(
            error.reason,
            "mend the data, or leave such samples out of them and of --probabilities, whose rows "
            "are matched with the data by their order",
        ) from None
