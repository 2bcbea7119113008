"""`labelproof tune`: choose the loss and its hyperparameters where only noisy labels are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

import labelproof
from labelproof.cli.console import DIVERGED, ending, terminal
from labelproof.cli.options import takes


@takes("tune", settings=("batch_size", "learning_rate", "augmentation"), without=("losses",))
def tune(
    data: str,
    *,
    loss: list[str] | None = None,
    loss_file: list[Path] | None = None,
    folds: int = 0,
    output: Path = Path("tuning.json"),
    **given: Any,
) -> None:
    """Choose the loss and its hyperparameters without clean labels.

    The search holds out some examples with their noisy labels, trains each setting on the rest and
    chooses the one that agrees best with the held-out labels. It starts with settings that are
    known to work and continues with steps from the best and new draws.

        labelproof tune photos/ --trials 20

        labelproof tune photos/ --labels reviewed.csv

    Test it on data with known labels:

        labelproof tune digits --noise symmetric:0.4 --trials 10 --epochs 20

    Ctrl-C prints the best setting so far. The same command resumes from its file, also with more
    --trials.

    Args:
        data: The path of your own data, as 'labelproof fit' takes it, or a dataset's name (digits,
            mnist, cifar10, ...; see 'labelproof data list').
        loss: A loss to try first, such as 'nce+mae'.
        folds: Folds of the cross-validation of each setting; 1 holds out a single part. By default
            3 below 10,000 examples, else 1.
        output: The file of the search, written after every run.
    """
    given |= {"losses": loss or (), "folds": folds or "auto", "output": output}
    reporter = terminal()
    with ending(reporter):
        found = labelproof.tune(data, **given, progress=reporter)
    if found.best is None:
        raise typer.Exit(DIVERGED)
