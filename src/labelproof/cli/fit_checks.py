"""What `labelproof fit` refuses before it begins: files, folders and data that would not do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from labelproof.cli.output_folder import refuse_foreign
from labelproof.data.dataset import Dataset
from labelproof.data.holdout import hold_out
from labelproof.data.notices import count
from labelproof.fitting.attempts import go_on
from labelproof.training.ownership import refuse_file

__all__ = ["check_enough", "check_folder", "tell_of_another"]


def check_folder(folder: Path) -> None:
    """Refuse a place where no run can be kept, before the data are decoded for it."""
    refuse_file(folder)
    refuse_foreign(folder, kind="a run")


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
    what = count(len(dataset.train), "row" if dataset.tabular else "image")
    raise ValueError(
        f"--validation: {share:g} of {what} leaves none to validate on; hold out a larger share, "
        "or add examples"
    )
