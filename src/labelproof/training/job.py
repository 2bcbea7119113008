"""A run to be done, and what is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelproof.training.configuration import Configuration

__all__ = ["Event", "Job"]


@dataclass(frozen=True)
class Job:
    """A run to be done.

    Attributes:
        configuration: What to train.
        folder: Where it keeps what it has; `None` keeps nothing.
    """

    configuration: Configuration
    folder: Path | None = None


@dataclass(frozen=True)
class Event:
    """Something that happened to a run.

    Attributes:
        job: Which run.
        kind: `"started"`, `"epoch"`, `"finished"`, `"stopped"`, `"failed"`, `"abandoned"` or
            `"notice"`.
        value: The number of epochs done already; an epoch's metrics and timing; the record; the
            epochs and the steps of the next that are kept; the error; the number of epochs that
            were done; a sentence.
    """

    job: Job
    kind: str
    value: Any
