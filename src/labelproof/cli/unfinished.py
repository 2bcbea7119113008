"""A run that was stopped, or is still under way, is not used as if it were finished."""

from __future__ import annotations

from labelproof.cli.lines import warn
from labelproof.data.notices import count
from labelproof.training.saved import SavedRun

__all__ = ["warn_if_unfinished"]


def warn_if_unfinished(run: SavedRun) -> None:
    """Say on the error stream that a run has epochs before it; of a finished one, nothing.

    Its weights are those of a checkpoint, and may be good for little. They can be used all the
    same, by someone who knows.

    Args:
        run: The one that is about to be used.
    """
    if run.record is not None:
        return
    epochs = count(run.configuration.epochs, "epoch")
    warn(
        f"{run.folder} is not finished: it has trained {run.epochs:,} of {epochs}; the same "
        "command that began it goes on"
    )
