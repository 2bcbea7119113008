"""Records of finished runs: a folder of small files, one per run."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from labelproof.experiments.published_data import is_of_published_data
from labelproof.training.configuration import PRECISIONS, Configuration
from labelproof.training.files import read_json, write_text
from labelproof.training.provenance import BEGUN_ON, MODEL
from labelproof.training.record import RECORD, RunRecord
from labelproof.training.run_folder import METRICS

_NEWER = "perhaps a newer labelproof wrote it"
_PARTS = {
    "name": "a text",
    "configuration": "settings by name",
    "noise_rate": "a number",
    "curve": "lists by name",
    "seconds": "a number",
    "versions": "texts by name",
    "data": "values by name",
}
_OF_A_RUN = {BEGUN_ON, METRICS, MODEL}


def find_record_files(folder: Path) -> Iterator[Path]:
    """The files of a folder that should be records, at any depth and in linked folders too.

    What is hidden is passed over; of a run's folder only its record is taken.

    Args:
        folder: Where they are; it need not exist.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> for name in ("a.json", "mnist/b.json", ".old/c.json"):
        ...     (folder / name).parent.mkdir(exist_ok=True)
        ...     (folder / name).touch()
        >>> [path.name for path in find_record_files(folder)]
        ['a.json', 'b.json']
    """
    seen: set[str] = set()
    for parent, folders, files in os.walk(folder, followlinks=True):
        place, is_run = os.path.realpath(parent), not _OF_A_RUN.isdisjoint(files)
        # A link may lead to a folder that it is in itself.
        again = place in seen
        seen.add(place)
        folders[:] = sorted(
            name for name in folders if not (again or is_run or name.startswith("."))
        )
        for name in [] if again else sorted(files):
            of_record = name == RECORD if is_run else name.endswith(".json")
            if of_record and not name.startswith("."):
                yield Path(parent, name)


def read_record_file(path: Path) -> RunRecord:
    """Read a record, and refuse one that no run of this program could have left.

    A setting that came later than the record has its default, which is what was done before.

    Args:
        path: Its file.

    Raises:
        ValueError: It is no record, one of a newer version, or damaged; the message names the file.

    Example:
        >>> path = getfixture("tmp_path") / "a.json"
        >>> _ = path.write_text('{"name": "a"}')
        >>> read_record_file(path)
        Traceback (most recent call last):
            ...
        ValueError: ...a.json: not a record of a run (it has no configuration, noise_rate, curve,
        seconds, versions)
    """
    try:
        record = _make(_parse(path))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not a record of a run ({error})") from None
    try:
        _check_curve(record)
    except ValueError as error:
        raise ValueError(f"{path}: a damaged record ({error})") from None
    return record


def _parse(path: Path) -> dict[str, Any]:
    try:
        values = read_json(path)
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON at line {error.lineno}") from None
    if not isinstance(values, dict):
        raise ValueError("it has no parts with names")
    return values


def _make(values: dict[str, Any]) -> RunRecord:
    unknown = [name for name in values if name not in _PARTS]
    if unknown:
        raise ValueError(f"it has {', '.join(unknown)}, which is unknown here; {_NEWER}")
    needed = [
        field.name
        for field in dataclasses.fields(RunRecord)
        if field.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in needed if name not in values]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    for name, value in values.items():
        if not _is_kind(_PARTS[name], value):
            raise ValueError(f"{name}: expected {_PARTS[name]}, got {_shown(value)}")
    settings = {field.name for field in dataclasses.fields(Configuration)}
    unknown = [name for name in values["configuration"] if name not in settings]
    if unknown:
        raise ValueError(f"unknown setting {', '.join(unknown)}; {_NEWER}")
    try:
        configuration = Configuration.recorded(values["configuration"])
    except (ValueError, TypeError) as error:
        # Of a loss it goes on with a picture of the place, which is not for one line.
        message = str(error).splitlines()[0]
        newer = f"; {_NEWER}" if "unknown" in message else ""
        raise ValueError(f"{message}{newer}") from None
    return RunRecord(**{**values, "configuration": configuration.as_values()})


def _is_kind(kind: str, value: Any) -> bool:
    if kind == "a text":
        return isinstance(value, str)
    return _is_number(value) if kind == "a number" else isinstance(value, Mapping)


def _check_curve(record: RunRecord) -> None:
    epochs = record.configuration["epochs"]
    for metric, values in record.curve.items():
        if not isinstance(values, list):
            raise ValueError(f"{metric}: expected a list, got {_shown(values)}")
        if len(values) != epochs:
            raise ValueError(f"its curve of {metric} has {len(values)} of {epochs} epochs")
        for epoch, value in enumerate(values, start=1):
            # A run whose loss is no number any more leaves no record, but a part of a loss that
            # counts for nothing may be none; an accuracy is a share, and always is.
            if not _is_number(value):
                raise ValueError(f"{metric}: expected a number after epoch {epoch}, got {value!r}")
            if metric.endswith("_accuracy") and not 0 <= value <= 100:
                raise ValueError(
                    f"{metric}: expected a number in [0, 100] after epoch {epoch}, got {value!r}"
                )
    if not math.isfinite(record.noise_rate):
        raise ValueError(f"noise_rate: expected a share, got {record.noise_rate!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


class RecordStore:
    """Records under a folder at any depth, one JSON file each.

    New ones are grouped by dataset; those of other places are merged by copying them into the
    folder, whatever they are called. Two of one configuration and precision are one: where they
    differ, the one counts that lies where `add` would write it, or else the first by its path. No
    time decides, for copying changes it.

    Args:
        folder: Where they are; it need not exist.

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

        One of the published data comes before one of others under their name.
        """
        for record in self._of(configuration):
            if record.configuration["seed"] == configuration.seed:
                return record
        return None

    def seeds(self, configuration: Configuration) -> list[RunRecord]:
        """The records of a configuration with any seed: one for each seed, in their order.

        With precision `auto` a seed that has records of several precisions gives the widest. What
        was trained on other data than the published ones, under their name, is left out.
        """
        found: dict[int, RunRecord] = {}
        for record in self._of(configuration):
            if is_of_published_data(record):
                found.setdefault(record.configuration["seed"], record)
        return [found[seed] for seed in sorted(found)]

    def settled(self, configuration: Configuration) -> list[int]:
        """The seeds for which `seeds` had to choose between records, of several precisions."""
        counts = Counter(
            record.configuration["seed"]
            for record in self._of(configuration)
            if is_of_published_data(record)
        )
        return sorted(seed for seed, count in counts.items() if count > 1)

    def add(self, record: RunRecord) -> Path:
        """Keep a record, in the place of one of the same configuration."""
        path = self._place(record)
        write_text(path, record.as_json())
        self._records = None
        return path

    def _place(self, record: RunRecord) -> Path:
        # Data of one's own are a path, whose last part will do: the name has a hash of it all.
        folder = Path(str(record.configuration["data"])).name or "data"
        return self.folder / folder / f"{record.name}.json"

    def _of(self, configuration: Configuration) -> list[RunRecord]:
        return [
            record
            for record in self._known().get(_key(configuration.as_values()), [])
            if configuration.precision in ("auto", record.configuration["precision"])
        ]

    def _known(self) -> dict[str, list[RunRecord]]:
        if self._records is None:
            read = [(path, read_record_file(path)) for path in find_record_files(self.folder)]
            # What `add` wrote comes first, or a bench that trains anew would never be done.
            read.sort(key=lambda each: each[0] != self._place(each[1]))
            found: dict[tuple[str, int, tuple[bool, int]], RunRecord] = {}
            for _, record in read:
                values = record.configuration
                found.setdefault((_key(values), values["seed"], _rank(record)), record)
            self._records = {}
            for (key, _, _), record in found.items():
                self._records.setdefault(key, []).append(record)
            for records in self._records.values():
                records.sort(key=_rank)
        return self._records


def _rank(record: RunRecord) -> tuple[bool, int]:
    return not is_of_published_data(record), PRECISIONS.index(record.configuration["precision"])


def _key(values: dict[str, Any]) -> str:
    kept = {name: value for name, value in values.items() if name not in ("seed", "precision")}
    return json.dumps(kept, sort_keys=True)
