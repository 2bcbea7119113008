"""The folder of a run.

metrics.jsonl     a line for each epoch; the same bytes whether or not the run was interrupted
timing.jsonl      seconds and images per second of each epoch
fingerprint.json  the fingerprint of the data
model.json        the network, its inputs and its classes
checkpoint/       the last two checkpoints
predictions.npz   logits of the test and held-out examples
record.json       the record, written last
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import filelock
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from labelproof.training import files, provenance
from labelproof.training.checkpoint import Checkpoint, newest_whole, save_checkpoint
from labelproof.training.configuration import Configuration
from labelproof.training.record import RECORD, RunRecord, read_record
from labelproof.training.trainer import Trainer

METRICS = "metrics.jsonl"
TIMING = "timing.jsonl"
PREDICTIONS = "predictions.npz"
ATTEMPTS = "fit.json"
"""The request and the attempts of `labelproof fit`."""
SEARCH = "tuning.json"
"""The search for a loss."""

_NOTES = (provenance.FINGERPRINT, provenance.MODEL, ATTEMPTS, SEARCH)
_FILES = (RECORD, PREDICTIONS, METRICS, TIMING, *_NOTES)
_FOLDERS = ("checkpoint", "tensorboard")


class OtherConfigurationError(ValueError):
    """The folder holds a run of another configuration."""


@dataclass
class History:
    """Metrics and timing of the finished epochs, and the seconds spent on the current one."""

    metrics: list[dict[str, float]] = field(default_factory=list)
    timing: list[dict[str, float]] = field(default_factory=list)
    current_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """Duration of all finished epochs."""
        return sum(entry["seconds"] for entry in self.timing)

    @property
    def curve(self) -> dict[str, list[float]]:
        """For each metric, its value at every epoch."""
        names = self.metrics[0] if self.metrics else {}
        return {name: [entry[name] for entry in self.metrics] for name in names}


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = path / "checkpoint"

    def record(self, configuration: Configuration) -> RunRecord | None:
        """The record of this configuration, if the run is finished.

        The precision `auto` matches any recorded precision.
        """
        record = read_record(self.path)
        if record is None:
            return None
        self._check(configuration, record.configuration)
        return record

    def resume(self, run: Trainer, *, writes: bool = True) -> tuple[History, list[str]]:
        """Restore a run from its last checkpoint, if there is one.

        Returns:
            The history of the run, and a message for each newer checkpoint that is corrupted.

        Raises:
            OtherConfigurationError: The checkpoint is of another configuration.
        """
        name, checkpoint, problems = newest_whole(self.checkpoints)
        if checkpoint is None:
            return History(), [f"{each}; the training starts anew" for each in problems]
        self._check(run.configuration, checkpoint.values["configuration"])
        run.restore(checkpoint)
        values = checkpoint.values
        history = History(values["metrics"], values["timing"], values.get("begun", 0.0))
        # Epochs after the checkpoint are trained again, so their lines are removed.
        if writes:
            self._write_lines(METRICS, history.metrics)
            self._write_lines(TIMING, history.timing)
        return history, [f"{each}; checkpoint {name} is used instead" for each in problems]

    def start(self, description: provenance.Description) -> None:
        """Write the description and empty files of metrics."""
        provenance.write_description(self.path, description)
        self._write_lines(METRICS, [])
        self._write_lines(TIMING, [])

    def add(self, metrics: Mapping[str, float], timing: Mapping[str, float]) -> None:
        """Append an epoch."""
        for name, entry in ((METRICS, metrics), (TIMING, timing)):
            with self._writing(), (self.path / name).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(entry) + "\n")

    def save(self, checkpoint: Checkpoint, history: History) -> None:
        """Write a run's checkpoint, with its metrics so far."""
        values = checkpoint.values | {
            "metrics": history.metrics,
            "timing": history.timing,
            "begun": history.current_seconds,
        }
        name = f"{values['epoch']:05}-{values['step']:07}"
        with self._writing():
            save_checkpoint(self.checkpoints, name, replace(checkpoint, values=values))

    def finish(self, record: RunRecord, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Write the predictions and, last, the record.

        Everything else is synced to disk before, so a run with a record is complete even after a
        power cut.
        """
        with self._writing():
            if arrays:
                files.write_arrays(self.path / PREDICTIONS, arrays)
            for name in (METRICS, TIMING):
                files.sync(self.path / name)
            files.sync(self.path.parent)
            files.write_text(self.path / RECORD, record.as_json())

    def write(
        self,
        description: provenance.Description,
        weights: dict[str, Tensor],
        history: History,
        record: RunRecord,
        arrays: Mapping[str, NDArray[np.generic]],
    ) -> None:
        """Write a run that was not trained epoch by epoch, all files at once."""
        values = {"configuration": record.configuration, "epoch": len(history.metrics), "step": 0}
        with owning(self.path):
            self.start(description)
            provenance.note_data(self.path, record.data["fingerprint"])
            for metrics, timing in zip(history.metrics, history.timing, strict=True):
                self.add(metrics, timing)
            self.save(Checkpoint(weights, {}, values), history)
            self.finish(record, arrays)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(
                error.errno,
                f"{self.path}: cannot be written ({error}); the run can resume from its last "
                f"checkpoint in {self.checkpoints}, if there is one",
            ) from error

    def _check(self, configuration: Configuration, recorded: Mapping[str, Any]) -> None:
        requested = configuration.as_values()
        # A setting added since then had its default.
        found = {name: getattr(Configuration, name, None) for name in requested} | dict(recorded)
        different = [
            name
            for name in requested
            if found.get(name) != requested[name]
            and not (name == "precision" and requested[name] == "auto")
        ]
        if different:
            there = "; ".join(f"{name}: {found.get(name)!r} there" for name in different)
            asked = ", ".join(f"{name}={requested[name]!r}" for name in different)
            raise OtherConfigurationError(
                f"{self.path} holds a run of another configuration ({there}; asked for {asked}); "
                "choose another folder, or start it anew: with --fresh, or by removing the folder"
            )

    def _write_lines(self, name: str, entries: Sequence[Mapping[str, float]]) -> None:
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        files.write_text(self.path / name, lines)


LOCK = ".lock"
"""The lock file of a folder in which a process trains or has trained."""


class FolderInUseError(ValueError):
    """Another process holds the lock of a folder."""


@contextlib.contextmanager
def owning(folder: Path) -> Iterator[None]:
    """Lock a folder, so that only this process writes there.

    The lock ends with the process. File systems without locks are not checked. Temporary files of
    killed processes are removed.

    Raises:
        FolderInUseError: Another process holds the lock.
    """
    refuse_file(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    # A folder from elsewhere may have a link there, and writing to its target would be unsafe.
    if path.is_symlink() or (path.exists() and (path.stat().st_nlink > 1 or path.is_dir())):
        raise ValueError(
            f"{path}: expected labelproof's own lock file, got something else; remove it"
        )
    lock = filelock.FileLock(path, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        pid = path.read_text(errors="replace").strip() if path.is_file() else ""
        raise FolderInUseError(
            f"another process{f' (pid {pid})' if pid else ''} is at work in {folder}; wait for it "
            "to end, or choose another folder"
        ) from None
    except NotImplementedError:  # a file system without locks
        pass
    try:
        files.clear_litter(folder)
        # Only for the message above in another process, so a full disk is no error.
        with contextlib.suppress(OSError):
            path.write_text(f"{os.getpid()}\n")
        yield
    finally:
        lock.release()


def refuse_file(folder: Path) -> None:
    """Refuse a path that is a file, not a folder."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(
            f"{folder}: expected a folder to write into, got a file; choose another folder"
        )


def check_removable(folder: Path) -> None:
    """Refuse a folder that is not a run's, so that no other files are removed."""
    if not folder.exists():
        return
    known = {*_FILES, *_FOLDERS, LOCK}
    if folder.is_dir():
        names = {path.name for path in folder.iterdir()}
        if {name for name in names if not files.is_litter(name)} <= known:
            return
    try:
        provenance.read_description(folder)
    except (OSError, ValueError):
        raise ValueError(
            f"{folder}: not the folder of a run, so nothing in it is removed; choose another one"
        ) from None


def remove_run(folder: Path, *, keep: Collection[str] = ()) -> None:
    """Remove the files of a run from its folder, and no others.

    Args:
        folder: The run's folder.
        keep: Names of files that stay, such as the attempts of a fit.
    """
    check_removable(folder)
    files.clear_litter(folder)
    # The record first: a run that lacks other files must not seem finished.
    for name in _FILES:
        if name not in keep:
            (folder / name).unlink(missing_ok=True)
    for name in _FOLDERS:
        if (folder / name).is_dir():
            files.remove_folder(folder / name)
