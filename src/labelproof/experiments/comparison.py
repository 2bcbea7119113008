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
from labelproof.training.provenance import BEGUN_ON
from labelproof.training.record import RECORD, RunRecord

_FIRST = ("data", "data version", "noise", "imbalance", "algorithm", "loss")
"""Settings that are read first, where they differ."""
_METRICS = {"test": "test_accuracy", "validation": "validation_accuracy"}
_VERSION = "data version"
"""What tells runs apart that differ in what was in the data alone: labels, rows or columns."""


@dataclass(frozen=True)
class Compared:
    """Runs that differ only in their seeds.

    Attributes:
        settings: The settings in which runs differ, by name; always the loss.
        measured_on: `"test"`, or `"validation"` for data without a test split: held-out labels,
            which may be wrong themselves.
        accuracies: By seed, in percent, after the last epoch.
        noise_rate: The mean share of wrong training labels, if the truth is known.
        difference: Mean and standard deviation of the difference to the best on the same data and
            noise, over common seeds; `None` for the best itself, and without common seeds.
    """

    settings: Mapping[str, Any]
    measured_on: str
    accuracies: Mapping[int, float]
    noise_rate: float
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
    """The records of finished runs in some folders, at any depth.

    Args:
        *folders: Runs, or folders of runs or records.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: A file is no record.

    Example:
        >>> read_records(getfixture("tmp_path"))
        []
    """
    for folder in folders:
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"{folder}: there is no such folder")
    found = {file.resolve(): file for folder in folders for file in find_record_files(Path(folder))}
    return [read_record_file(file) for file in found.values()]


def find_unfinished(*folders: str | os.PathLike[str]) -> list[Path]:
    """Folders of unfinished runs in some folders, at any depth."""
    return [
        Path(parent)
        for folder in folders
        for parent, _, files in sorted(os.walk(folder))
        if BEGUN_ON in files and RECORD not in files
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
    groups: dict[str, dict[int, RunRecord]] = {}
    for record in _with_versions(_measured(records)):
        # Another measure is another group: of test labels and of held-out ones there is no mean.
        values = {name: value for name, value in record.configuration.items() if name != "seed"}
        key = json.dumps([values, _measured_on(record)], sort_keys=True)
        groups.setdefault(key, {}).setdefault(int(record.configuration["seed"]), record)
    runs = [list(group.values()) for group in groups.values()]
    different = _different([group[0].configuration for group in runs])
    compared = [_compared(group, different) for group in runs]
    places = {_place(each): number for number, each in reversed(list(enumerate(compared)))}
    compared.sort(key=lambda each: (places[_place(each)], -each.mean))
    best: dict[tuple[str, ...], Compared] = {}
    return [_with_difference(each, best.setdefault(_place(each), each)) for each in compared]


def _measured(records: Iterable[RunRecord]) -> list[RunRecord]:
    """The runs that can be compared; of the others it is told."""
    found, unmeasured = [], []
    for record in records:
        measured = any(record.curve.get(metric) for metric in _METRICS.values())
        (found if measured else unmeasured).append(record)
    if unmeasured:
        said = (
            f"{count(len(unmeasured), 'run')} left out, neither tested nor validated: "
            f"{few([record.name for record in unmeasured])}; train with a share to validate on "
            "(validation=0.1), or on data with a test part"
        )
        if not found:
            raise ValueError(said)
        notice(said)
    return found


def _with_versions(records: Sequence[RunRecord]) -> list[RunRecord]:
    """The records, with the version of their data as a setting."""
    marks: dict[str, list[str]] = {}
    found = []
    for record in records:
        known = marks.setdefault(str(record.configuration.get("data")), [])
        mark = record.data.get("fingerprint")
        if mark and str(mark) not in known:
            known.append(str(mark))
        version = known.index(str(mark)) + 1 if mark else 1  # an old record does not say
        values = {**record.configuration, _VERSION: version}
        found.append(replace(record, configuration=values))
    return found


def _measured_on(record: RunRecord) -> str:
    return next(name for name, metric in _METRICS.items() if record.curve.get(metric))


def _different(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of settings that are not the same in all, and the loss."""
    names = dict.fromkeys([*_FIRST, *(name for each in configurations for name in each)])
    return [
        name
        for name in names
        if name == "loss"
        or (name != "seed" and len({str(each.get(name, "")) for each in configurations}) > 1)
    ]


def _compared(runs: Sequence[RunRecord], different: Sequence[str]) -> Compared:
    measured_on = _measured_on(runs[0])
    accuracies = {
        int(run.configuration["seed"]): run.curve[_METRICS[measured_on]][-1] for run in runs
    }
    return Compared(
        {name: runs[0].configuration.get(name, "") for name in different},
        measured_on,
        dict(sorted(accuracies.items())),
        fmean(run.noise_rate for run in runs),
    )


def _place(compared: Compared) -> tuple[str, ...]:
    """What runs have to have in common to be compared by their accuracy."""
    names = ["data", "noise", "imbalance"]
    if compared.measured_on == "validation":
        names.append(_VERSION)  # other data have other labels that were held out
    return (compared.measured_on, *(str(compared.settings.get(name, "")) for name in names))


def _with_difference(each: Compared, best: Compared) -> Compared:
    seeds = sorted(best.accuracies.keys() & each.accuracies.keys())
    # By seed: the same noise and first weights, so that what they share is no part of it.
    ahead = [each.accuracies[seed] - best.accuracies[seed] for seed in seeds]
    if best is each or not ahead:
        return each
    return replace(each, difference=(fmean(ahead), _deviation(ahead)))


def _deviation(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None
