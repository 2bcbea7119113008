"""Compare runs: their settings and their accuracy over seeds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from labelproof.data.notices import count, few, notice
from labelproof.experiments.records import find_record_files, read_record_file
from labelproof.fitting.attempts import read_attempts
from labelproof.models.blend import BLEND
from labelproof.training.files import read_json
from labelproof.training.provenance import FINGERPRINT
from labelproof.training.record import RECORD, RunRecord

_FIRST = ("data", "data version", "noise", "imbalance", "algorithm", "loss")
"""Settings that are listed first, if they differ."""
_METRICS = {"test": "test_accuracy", "validation": "validation_accuracy"}
_VERSION = "data version"
"""Distinguishes runs that differ only in the contents of their data: labels, rows or columns."""
_OF_BLEND = ("data", _VERSION, "noise", "imbalance", "class_weight", "network", "loss")
"""The settings that a blend has; others in its record are of networks."""


@dataclass(frozen=True)
class Compared:
    """Runs that differ only in their seeds.

    Attributes:
        settings: The settings in which runs differ, by name; always the loss.
        measured_on: `"test"`, or `"validation"` for data without a test split: held-out labels,
            which may be wrong themselves.
        accuracies: By seed, in percent, after the last epoch.
        noise_rate: The mean share of wrong training labels; `None` if the truth is unknown.
        difference: Mean and standard deviation of the difference to the best on the same data,
            noise and held-out labels, over common seeds; `None` for the best itself, and without
            common seeds.
    """

    settings: Mapping[str, Any]
    measured_on: str
    accuracies: Mapping[int, float]
    noise_rate: float | None
    difference: tuple[float, float | None] | None = None

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return fmean(self.accuracies.values())

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds; `None` for one."""
        return _deviation(list(self.accuracies.values()))


def read_records(*folders: str | os.PathLike[str]) -> list[RunRecord]:
    """The records of finished runs in some folders, at any depth; other JSON files are ignored.

    Args:
        *folders: Runs, or folders of runs or records.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: A record is damaged.

    Example:
        >>> read_records(getfixture("tmp_path"))
        []
    """
    for folder in folders:
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"{folder}: there is no such folder")
    files = {file.resolve(): file for folder in folders for file in find_record_files(Path(folder))}
    return [_read(file) for file in files.values() if file.name == RECORD or _is_record(file)]


def _read(file: Path) -> RunRecord:
    record, noted = read_record_file(file), read_attempts(file.parent)
    if noted is None or "fingerprint" not in noted.asked:
        return record
    # That of the data as read; the run's own is of its decoded images, which depend on the crop.
    return replace(record, data={**record.data, "fingerprint": noted.asked["fingerprint"]})


def _is_record(file: Path) -> bool:
    """Whether a JSON file, of which others may lie beside runs, is meant to be a record."""
    try:
        return "configuration" in read_json(file)
    except (ValueError, TypeError):
        return False


def find_unfinished(*folders: str | os.PathLike[str]) -> list[Path]:
    """Folders of unfinished runs in some folders, at any depth."""
    return [
        Path(parent)
        for folder in folders
        for parent, _, files in sorted(os.walk(folder))
        if FINGERPRINT in files and RECORD not in files
    ]


def compare_runs(records: Iterable[RunRecord]) -> list[Compared]:
    """Group runs that differ only in their seeds, and name the settings in which groups differ.

    Groups with the same data and noise are adjacent, the most accurate first. Duplicate runs count
    once. Different versions of data with the same name, as before and after a review, are numbered
    in the order of the records.

    Args:
        records: Of finished runs, from `read_records`.

    Raises:
        ValueError: No run was tested or validated.

    Warns:
        DataWarning: Some runs were not, and are left out.

    Example:
        >>> from labelproof.training import Configuration
        >>> def made(loss, seed, accuracy):
        ...     values = Configuration("digits", loss=loss, seed=seed, epochs=1).as_values()
        ...     return RunRecord("a", values, 0.2, {"test_accuracy": [accuracy]}, 1.0, {})
        >>> runs = [made("ce", 1, 80.0), made("ce", 2, 82.0), made("gce(q=0.5)", 2, 85.0)]
        >>> for each in compare_runs(runs):
        ...     print(each.settings, each.mean, each.difference)
        {'loss': 'gce(q=0.5)'} 85.0 None
        {'loss': 'ce'} 81.0 (-3.0, None)
    """
    groups: dict[str, tuple[dict[str, Any], str, dict[int, RunRecord]]] = {}
    for record, version, measured_on in _measured(records):
        settings = {**record.configuration, _VERSION: version}
        seed = int(settings.pop("seed"))
        if settings["network"] == BLEND:
            settings["loss"] = BLEND  # its classifiers have losses of their own
            settings = {name: settings.get(name, "") for name in _OF_BLEND}
        # Accuracies on test labels and on held-out ones are never averaged.
        key = json.dumps([settings, measured_on], sort_keys=True)
        groups.setdefault(key, (settings, measured_on, {}))[2].setdefault(seed, record)
    every = [settings for settings, _, _ in groups.values()]
    names = dict.fromkeys([*_FIRST, *(name for settings in every for name in settings)])
    values = {
        name: {
            str(settings.get(name, ""))
            for settings in every
            if name in settings or settings["loss"] != BLEND
        }
        for name in names
    }
    compared = [
        Compared(
            {n: settings.get(n, "") for n in names if n == "loss" or len(values[n]) > 1},
            measured_on,
            {seed: runs[seed].curve[_METRICS[measured_on]][-1] for seed in sorted(runs)},
            _mean_rate(runs.values()),
        )
        for settings, measured_on, runs in groups.values()
    ]
    places = {_task(each): number for number, each in reversed(list(enumerate(compared)))}
    compared.sort(key=lambda each: (places[_task(each)], -each.mean))
    best: dict[tuple[str, ...], Compared] = {}
    return [_with_difference(each, best.setdefault(_task(each), each)) for each in compared]


def _measured(records: Iterable[RunRecord]) -> list[tuple[RunRecord, int, str]]:
    """The runs that can be compared, the version of their data, and what they were measured on."""
    marks: dict[str, list[str]] = {}
    comparable, unmeasured = [], []
    for record in records:
        measured = [name for name, metric in _METRICS.items() if record.curve.get(metric)]
        if not measured:
            unmeasured.append(record.name)
            continue
        known = marks.setdefault(str(record.configuration["data"]), [])
        mark = record.data.get("fingerprint")
        if mark and str(mark) not in known:
            known.append(str(mark))
        # Old records have no fingerprint of their data.
        comparable.append((record, known.index(str(mark)) + 1 if mark else 1, measured[0]))
    if unmeasured:
        message = (
            f"{count(len(unmeasured), 'run')} left out, neither tested nor validated: "
            f"{few(unmeasured)}; train with a share to validate on (--validation 0.1), or on "
            "data with a test part"
        )
        if not comparable:
            raise ValueError(message)
        notice(message)
    return comparable


def _task(compared: Compared) -> tuple[str, ...]:
    """The settings that runs must share for their accuracies to be compared."""
    names = ["data", "noise", "imbalance"]
    task = [compared.measured_on]
    if compared.measured_on == "validation":
        # Other data or another share have other held-out labels, and a blend holds out all of them.
        names += [_VERSION, "validation"]
        task.append(str(compared.settings["loss"] == BLEND))
    return (*task, *(str(compared.settings.get(name, "")) for name in names))


def _with_difference(each: Compared, best: Compared) -> Compared:
    seeds = sorted(best.accuracies.keys() & each.accuracies.keys())
    # By seed, so that the effect of the same noise and initial weights cancels out.
    differences = [each.accuracies[seed] - best.accuracies[seed] for seed in seeds]
    if best is each or not differences:
        return each
    return replace(each, difference=(fmean(differences), _deviation(differences)))


def _mean_rate(runs: Iterable[RunRecord]) -> float | None:
    known = [run.wrong_labels for run in runs if run.wrong_labels is not None]
    return fmean(known) if known else None


def _deviation(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None
