"""Saved runs as commands open them: what is not as it should be is told."""

from __future__ import annotations

from pathlib import Path

from labelproof.cli.lines import told, warn
from labelproof.data.notices import count
from labelproof.training.record import RECORD
from labelproof.training.saved import SavedRun, load_run

__all__ = ["open_run"]


def open_run(folder: Path, device: str = "cpu") -> SavedRun:
    """Load a run, and say on the error stream where it is damaged or has epochs before it.

    The weights of one that is not finished are those of a checkpoint, and may be good for little.
    They can be used all the same, by someone who knows.

    Args:
        folder: The run's.
        device: Where its network is to be.
    """
    with told():
        run = load_run(folder, device)
    if run.record is not None:
        return run
    if (folder / RECORD).exists():
        warn(f"{folder / RECORD} cannot be read; the command that trained the run writes it anew")
        return run
    epochs = count(run.configuration.epochs, "epoch")
    warn(
        f"{folder} is not finished: it has trained {run.epochs:,} of {epochs}; the same command "
        "that began it goes on"
    )
    return run
