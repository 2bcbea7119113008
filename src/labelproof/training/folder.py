"""A run's folder: metrics as they come, checkpoints to go on from, the record when it is done.

metrics.jsonl     a line for each epoch; the same bytes whether or not the run was interrupted
timing.jsonl      seconds and images per second of each epoch, which never are the same twice
fingerprint.json  which data it was begun on
checkpoint/       the last two
predictions.npz   the test images' logits
record.json       written last
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from labelproof.training.configuration import Configuration
from labelproof.training.description import Description, write_description
from labelproof.training.record import RECORD, RunRecord, read_record, write_arrays, write_text
from labelproof.training.run import Run

__all__ = ["History", "OtherConfigurationError", "RunFolder"]

METRICS = "metrics.jsonl"
TIMING = "timing.jsonl"
PREDICTIONS = "predictions.npz"


class OtherConfigurationError(ValueError):
    """A folder holds a run of another configuration."""


@dataclass
class History:
    """What the epochs so far came to, and the seconds that the next one has taken already."""

    metrics: list[dict[str, float]] = field(default_factory=list)
    timing: list[dict[str, float]] = field(default_factory=list)
    begun: float = 0.0

    @property
    def seconds(self) -> float:
        """Of all epochs."""
        return sum(entry["seconds"] for entry in self.timing)

    @property
    def curve(self) -> dict[str, list[float]]:
        """For each metric, its value at every epoch."""
        names = self.metrics[0] if self.metrics else {}
        return {name: [entry[name] for entry in self.metrics] for name in names}


class RunFolder:
    """Where one run keeps what it has.

    Args:
        path: The folder; made when something is written.
    """

    def __init__(self, path: Path):
        self.path = path

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints are."""
        return self.path / "checkpoint"

    def record(self, configuration: Configuration) -> RunRecord | None:
        """The record of exactly this configuration, if it is finished.

        The precision of the record is resolved; `auto` is taken for whatever it came to.
        """
        record = read_record(self.path)
        if record is None:
            return None
        self._check(configuration, record.configuration)
        return record

    def resume(
        self, run: Run, *, on_problem: Callable[[str], None], writes: bool = True
    ) -> History:
        """Put a run back to its last checkpoint, if there is one, and give what it had.

        Args:
            run: It is changed in place.
            on_problem: Called with a sentence for each checkpoint that is not whole.
            writes: Whether this process is the one that writes.

        Raises:
            OtherConfigurationError: The checkpoint is of another configuration.
        """
        checkpoint = load_checkpoint(self.checkpoints, on_problem=on_problem)
        if checkpoint is None:
            return History()
        self._check(run.configuration, checkpoint.values["configuration"])
        run.restore(checkpoint)
        values = checkpoint.values
        history = History(values["metrics"], values["timing"], values.get("begun", 0.0))
        # Lines of epochs after the checkpoint are of a course that is run again.
        if writes:
            self._write_lines(METRICS, history.metrics)
            self._write_lines(TIMING, history.timing)
        return history

    def start(self, description: Description) -> None:
        """Begin anew: what is trained, and empty files of metrics."""
        write_description(self.path, description)
        self._write_lines(METRICS, [])
        self._write_lines(TIMING, [])

    def add(self, metrics: Mapping[str, float], timing: Mapping[str, float]) -> None:
        """Append an epoch."""
        for name, entry in ((METRICS, metrics), (TIMING, timing)):
            try:
                with (self.path / name).open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(entry) + "\n")
            except OSError as error:
                # On a full disk this may be what fails first, and Python's message has no place.
                explained = type(error)(
                    f"{self.path / name}: cannot be written ({error.strerror}); the run can go on "
                    f"from its last checkpoint in {self.checkpoints}, if there is one"
                )
                explained.errno = error.errno
                raise explained from error

    def save(self, checkpoint: Checkpoint, history: History) -> None:
        """Write a run's checkpoint, with what it has come to so far."""
        values = checkpoint.values | {
            "metrics": history.metrics,
            "timing": history.timing,
            "begun": history.begun,
        }
        complete = Checkpoint(checkpoint.weights, checkpoint.state, values)
        name = f"{values['epoch']:05}-{values['step']:07}"
        save_checkpoint(self.checkpoints, name, complete)

    def finish(self, record: RunRecord, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Write the predictions and, last of all, the record."""
        if arrays:
            write_arrays(self.path / PREDICTIONS, arrays)
        write_text(self.path / RECORD, record.as_json())

    def _check(self, configuration: Configuration, found: Mapping[str, Any]) -> None:
        wanted = configuration.as_values()
        # What was kept before there was a setting had its default.
        found = {name: getattr(Configuration, name, None) for name in wanted} | dict(found)
        different = [
            name
            for name in wanted
            if found.get(name) != wanted[name]
            and not (name == "precision" and wanted[name] == "auto")
        ]
        if different:
            told = "; ".join(f"{name}: {found.get(name)!r} there" for name in different)
            asked = ", ".join(f"{name}={wanted[name]!r}" for name in different)
            raise OtherConfigurationError(
                f"{self.path} holds a run of another configuration ({told}; asked for {asked}); "
                "choose another folder, or start it anew: with --fresh, or by removing the folder"
            )

    def _write_lines(self, name: str, entries: Sequence[Mapping[str, float]]) -> None:
        write_text(self.path / name, "".join(json.dumps(entry) + "\n" for entry in entries))
