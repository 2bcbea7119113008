"""Finished runs on disk: a directory with a record, written whole or not at all."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.version import __version__

__all__ = ["RunRecord", "read_record", "remove_unfinished", "save_run", "versions", "write_text"]

RECORD = "record.json"
_UNFINISHED = ".unfinished-"


@dataclass(frozen=True)
class RunRecord:
    """What a run was and what it came to; everything a table or a figure needs.

    Attributes:
        name: The run's directory.
        configuration: All that decides the outcome, as plain values.
        noise_rate: The share of wrong training labels, as it came out.
        curve: For each metric, its value at every epoch.
        seconds: Of the whole run.
        versions: What it was run with, and on.
    """

    name: str
    configuration: dict[str, Any]
    noise_rate: float
    curve: dict[str, list[float]]
    seconds: float
    versions: dict[str, str]

    @property
    def final_accuracy(self) -> float:
        """Accuracy of the last epoch, never of the best."""
        return self.curve["test_accuracy"][-1]


def save_run(folder: Path, record: RunRecord, arrays: Mapping[str, NDArray[Any]]) -> Path:
    """Write a run's directory under `folder` and rename it into place, so that it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
    try:
        if arrays:
            np.savez_compressed(unfinished / "predictions.npz", allow_pickle=False, **arrays)
        write_text(unfinished / RECORD, json.dumps(asdict(record), indent=1))
        unfinished.chmod(0o777 & ~_umask())
        finished = folder / record.name
        if finished.exists():
            shutil.rmtree(finished)
        unfinished.rename(finished)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return finished


def read_record(run: Path) -> RunRecord | None:
    """The record of a finished run, or `None` where there is none that can be read."""
    try:
        return RunRecord(**json.loads((run / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def remove_unfinished(folder: Path) -> None:
    """Remove what runs that were stopped in the middle of writing left behind."""
    for leftover in folder.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: a temporary name, a sync, a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o666 & ~_umask())  # temporary files are for their owner alone
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def versions() -> dict[str, str]:
    """What decides a number besides the configuration: software and machine."""
    return {
        "labelproof": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
    }


def _umask() -> int:
    """What the user takes away from new files; the system tells only by setting another one."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
