"""The flag for losses of the user's own, of every command that takes a loss."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from labelproof.losses.names import LOSS_FILES, known_losses

__all__ = ["LossFiles"]


def _make_known(context: typer.Context, files: list[Path] | None) -> list[Path] | None:
    """Name the files in the environment while the command runs; its workers find them there."""
    if not files or context.resilient_parsing:
        return files
    before = os.environ.get(LOSS_FILES)
    named = [str(file.expanduser().resolve()) for file in files]
    os.environ[LOSS_FILES] = os.pathsep.join([*named, *([before] if before else [])])
    context.call_on_close(lambda: _restore(before))
    try:
        known_losses()  # a mistake in a file is told before anything is begun
    except ValueError:
        _restore(before)  # nothing is closed that has not begun
        raise
    return files


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(LOSS_FILES, None)
    else:
        os.environ[LOSS_FILES] = before


LossFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--loss-file",
        metavar="FILE",
        help="A Python file with losses of your own by name, LOSSES = {'mine': MyLoss}, which can "
        "then be written like any other. Its code is run. Several times for several files; "
        f"{LOSS_FILES} in the environment does the same.",
        show_default=False,
        callback=_make_known,
        is_eager=True,
    ),
]
"""Files with losses; commands take it and need not look at it."""
