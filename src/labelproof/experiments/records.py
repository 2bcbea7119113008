"""Records of finished runs: a folder of small files, one per run."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from labelproof.data.dataset import Dataset
from labelproof.data.published import DATASETS
from labelproof.training.configuration import PRECISIONS, Configuration
from labelproof.training.files import read_fields, read_json, write_text
from labelproof.training.provenance import FINGERPRINT, MODEL
from labelproof.training.record import RECORD, RunRecord, sizes
from labelproof.training.run_folder import METRICS

_RUN_FILES = {FINGERPRINT, METRICS, MODEL}


def find_record_files(folder: Path) -> Iterator[Path]:
    """The files of a folder that should be records, at any depth.

    Hidden files and folders are skipped; of a run's folder only its record counts. The folder need
    not exist.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> for name in ("a.json", "mnist/b.json", ".old/c.json"):
        ...     (folder / name).parent.mkdir(exist_ok=True)
        ...     (folder / name).touch()
        >>> [path.name for path in find_record_files(folder)]
        ['a.json', 'b.json']
    """
    for parent, folders, files in os.walk(folder):
        is_run = not _RUN_FILES.isdisjoint(files)
        folders[:] = sorted(name for name in folders if not (is_run or name.startswith(".")))
        for name in sorted(files):
            of_record = name == RECORD if is_run else name.endswith(".json")
            if of_record and not name.startswith("."):
                yield Path(parent, name)


def read_record_file(path: Path) -> RunRecord:
    """Read a record, and refuse one that no run of this program could have written.

    A setting that is newer than the record has its default, which is how runs behaved before.

    Raises:
        ValueError: It is not a record, is of a newer version, or damaged; the message names the
            file.

    Example:
        >>> path = getfixture("tmp_path") / "a.json"
        >>> _ = path.write_text('{"name": "a"}')
        >>> read_record_file(path)
        Traceback (most recent call last):
            ...
        ValueError: ...a.json: not a record of a run, or one of a newer labelproof (... missing ...)
    """
    try:
        record = read_fields(RunRecord, read_json(path))
        configuration = Configuration.recorded(record.configuration)
        for metric, values in record.curve.items():
            if len(values) != configuration.epochs:
                raise ValueError(f"curve: expected {configuration.epochs} values of {metric}")
    except (ValueError, TypeError) as error:
        # Only the first line: in the error of a loss, the others point at its position.
        message = str(error).splitlines()[0]
        raise ValueError(
            f"{path}: not a record of a run, or one of a newer labelproof ({message})"
        ) from None
    return dataclasses.replace(record, configuration=configuration.as_values())


class RecordStore:
    """Records under a folder at any depth, one JSON file each.

    New ones are grouped by dataset. To merge records from elsewhere, copy them into the folder,
    under any name. Of several with the same configuration and precision only one counts: the one at
    the path where `add` would write it, or else the first by its path. File times do not matter,
    since copying changes them.

    Args:
        folder: The folder; it need not exist.

    Example:
        >>> store = RecordStore(getfixture("tmp_path"))
        >>> run = Configuration("digits", epochs=1)
        >>> store.find(run) is None
        True
        >>> values = {**run.as_values(), "precision": "bf16"}
        >>> record = RunRecord(run.name, values, 0.0, {"test_accuracy": [91.5]}, 1.0, {})
        >>> print(store.add(record).relative_to(store.folder).as_posix())
        digits/digits-ce-s1-...json
        >>> [found.final_accuracy for found in store.seeds(run)]
        [91.5]
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._records: dict[str, list[RunRecord]] | None = None

    def __iter__(self) -> Iterator[RunRecord]:
        for records in self._known().values():
            yield from records

    def find(self, configuration: Configuration) -> RunRecord | None:
        """The record of exactly this configuration; with precision `auto`, of any precision.

        Records of the published data come before those of other data under the same name.
        """
        same = (r for r in self._of(configuration) if r.configuration["seed"] == configuration.seed)
        return next(same, None)

    def seeds(self, configuration: Configuration) -> list[RunRecord]:
        """The records of a configuration with any seed: one for each seed, in their order.

        With precision `auto`, of several records of a seed the widest precision counts. Runs on
        other data under the name of published ones are left out.
        """
        records: dict[int, RunRecord] = {}
        for record in self._of(configuration):
            if is_of_published_data(record):
                records.setdefault(record.configuration["seed"], record)
        return [records[seed] for seed in sorted(records)]

    def add(self, record: RunRecord) -> Path:
        """Write a record; it replaces one of the same configuration."""
        path = self._path(record)
        write_text(path, record.as_json())
        self._records = None
        return path

    def _path(self, record: RunRecord) -> Path:
        # The user's own data are a path. Its last part is enough: the name has a hash of it all.
        folder = Path(str(record.configuration["data"])).name or "data"
        return self.folder / folder / f"{record.name}.json"

    def _of(self, configuration: Configuration) -> list[RunRecord]:
        return [
            record
            for record in self._known().get(settings_key(configuration.as_values()), [])
            if configuration.precision in ("auto", record.configuration["precision"])
        ]

    def _known(self) -> dict[str, list[RunRecord]]:
        if self._records is None:
            read = [(path, read_record_file(path)) for path in find_record_files(self.folder)]
            # What `add` wrote comes first, or a bench that trains again would never finish.
            read.sort(key=lambda each: each[0] != self._path(each[1]))
            grouped: dict[str, dict[tuple[int, tuple[bool, int]], RunRecord]] = {}
            for _, record in read:
                same = grouped.setdefault(settings_key(record.configuration), {})
                same.setdefault((record.configuration["seed"], _rank(record)), record)
            self._records = {key: sorted(same.values(), key=_rank) for key, same in grouped.items()}
        return self._records


def _rank(record: RunRecord) -> tuple[bool, int]:
    return not is_of_published_data(record), PRECISIONS.index(record.configuration["precision"])


def settings_key(values: Mapping[str, Any]) -> str:
    """A key that is the same for runs that differ only in their seeds and precisions."""
    kept = {name: value for name, value in values.items() if name not in ("seed", "precision")}
    return json.dumps(kept, sort_keys=True)


def _has_published_size(name: str, counts: Mapping[str, int]) -> bool:
    """Whether a dataset has as many images as the one published under its name.

    A data root may hold a part of a dataset under its name, for a quick try. Unpublished data pass,
    and so do WebVision, some of whose images are no longer available, and splits of unknown size.
    """
    known = DATASETS[name].counts if name in DATASETS else {}
    return all(counts.get(split, size) == size for split, size in known.items())


def is_of_published_data(record: RunRecord) -> bool:
    """Whether a run was trained on the published data; an old record without sizes passes.

    >>> is_of_published_data(RunRecord("a", {"data": "mnist"}, 0.0, {}, 1.0, {}, {"train": 20}))
    False
    """
    return _has_published_size(str(record.configuration["data"]), record.data)


def explain_other_size(dataset: Dataset) -> str:
    """A warning about data that are not of the published size, or an empty text.

    >>> from dataclasses import replace
    >>> from labelproof.data import load_digits
    >>> explain_other_size(load_digits())
    ''
    >>> print(explain_other_size(replace(load_digits(), name="mnist")))
    mnist has 1,347 training and 450 test images here, where 60,000 and 10,000 were published: what
    is trained on these is in no table or figure
    """
    here = sizes(dataset)
    if _has_published_size(dataset.name, here):
        return ""
    there = DATASETS[dataset.name].counts
    return (
        f"{dataset.name} has {here['train']:,} training and {here.get('test', 0):,} test images "
        f"here, where {there['train']:,} and {there['test']:,} were published: what is trained on "
        "these is in no table or figure"
    )
