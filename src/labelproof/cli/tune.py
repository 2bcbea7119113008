"""`labelproof tune`: choose the loss and its hyperparameters where only noisy labels are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import labelproof
from labelproof.cli import options
from labelproof.cli.console import DIVERGED, Terminal, ending
from labelproof.cli.options import option


def tune(
    data: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="The path of your own data, as 'labelproof fit' takes it, or a dataset's name "
            "(digits, mnist, cifar10, ...; see 'labelproof data list').",
        ),
    ],
    trials: Annotated[int, option("How many settings to try.", min=1)] = 20,
    seconds: Annotated[
        float | None, option("Start no run after this time.", min=0, default="no limit")
    ] = None,
    loss: Annotated[
        list[str] | None,
        option("A loss to try first, such as 'nce+mae'; repeatable.", default=False),
    ] = None,
    loss_file: options.LossFiles = None,
    folds: Annotated[
        int,
        option(
            "Folds of the cross-validation of each setting; 1 holds out a single part.",
            min=0,
            default="3 below 10,000 examples, else 1",
        ),
    ] = 0,
    prune: Annotated[
        bool,
        option("Stop settings early that are clearly behind.", "--prune/--no-prune", more=True),
    ] = True,
    label: options.Label = None,
    labels: options.Labels = None,
    drop: options.Drop = None,
    group: options.Group = None,
    decimal: options.Decimal = ".",
    thousands: options.Thousands = None,
    network: options.Network = None,
    epochs: options.Epochs = None,
    batch_size: options.BatchSize = None,
    learning_rate: options.LearningRate = None,
    augmentation: options.Augmentation = None,
    noise: options.Rehearsal = None,
    seed: options.Seed = None,
    at_once: Annotated[
        int, option("Runs at a time, to fill a GPU; more need more memory.", min=1)
    ] = 1,
    device: options.Device = "auto",
    output: Annotated[Path, option("The file of the search, written after every run.")] = Path(
        "tuning.json"
    ),
    fresh: options.Fresh = False,
    data_root: options.Root = None,
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
    """
    given = options.arguments(**locals()) | {"losses": loss or (), "folds": folds or "auto"}
    del given["loss"]
    reporter = Terminal()
    with ending(reporter):
        found = labelproof.tune(**given, progress=reporter)
    if found.best is None:
        raise typer.Exit(DIVERGED)
