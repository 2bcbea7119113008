"""What `labelproof fit` refuses before it begins: files, folders and data that would not do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer

from labelproof.cli.output_folder import refuse_foreign
from labelproof.data.dataset import Dataset
from labelproof.data.holdout import hold_out
from labelproof.data.notices import count
from labelproof.fitting.attempts import go_on
from labelproof.training.checkpoint import LaterFormatError, check_newest
from labelproof.training.description import read_description
from labelproof.training.ownership import refuse_file

__all__ = ["check_enough", "check_folder", "check_whole", "tell_of_another"]


def check_folder(folder: Path) -> None:
    """Refuse a place where no run can be kept, before the data are decoded for it."""
    refuse_file(folder)
    refuse_foreign(folder, kind="a run")


def check_whole(folder: Path) -> None:
    """Refuse a finished run whose network cannot be used any more, which its record does not tell.

    Raises:
        ValueError: A file that is needed is damaged or missing; the message names it.
    """
    try:
        read_description(folder)
        check_newest(folder / "checkpoint")
    except (ValueError, FileNotFoundError) as error:
        raise ValueError(
            f"{folder} was finished and is damaged since: {error}; bring it back from a copy, or "
            "start anew with --fresh"
        ) from None
    except LaterFormatError as error:
        raise ValueError(str(error)) from None


def tell_of_another(folder: Path, asked: dict[str, Any], loss: str) -> None:
    """Say of a recipe that a fit would refuse it for the run that is in its folder."""
    try:
        go_on(folder, asked, loss)
    except ValueError as error:
        typer.echo(f"# without --dry-run: {error}")


def check_enough(dataset: Dataset, share: float) -> None:
    """Refuse data of which nothing could be held out, before there is a folder for them."""
    train = dataset.train
    if len(hold_out(train.labels, share, seed=0, groups=train.groups).validation):
        return
    if train.groups is not None and dataset.group is not None:
        number = count(len(np.unique(train.groups)), "group")
        raise ValueError(
            f"--group: {number} by {dataset.group} cannot be cut so that every class is learned "
            "from and some are validated on; name a column with more of them, or none"
        )
    what = count(len(dataset.train), "row" if dataset.tabular else "image")
    raise ValueError(
        f"--validation: {share:g} of {what} leaves none to validate on; hold out a larger share, "
        "or add examples"
    )
