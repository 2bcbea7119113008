"""`labelproof tune`: choose the loss and its hyperparameters where only noisy labels are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import labelproof
from labelproof.cli import options
from labelproof.cli.arguments import LossFiles
from labelproof.cli.console import DIVERGED, Terminal, ending
from labelproof.cli.data import Root

__all__ = ["tune"]


def tune(
    data: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="The path of your own data, as 'labelproof fit' takes it, or a dataset's name "
            "(digits, mnist, cifar10, ...; see 'labelproof data list').",
        ),
    ],
    trials: Annotated[int, typer.Option(min=1, help="How many settings to try.")] = 20,
    seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Begin nothing after so long.", show_default="no limit"),
    ] = None,
    loss: Annotated[
        list[str] | None,
        typer.Option(
            help="A loss of your own to try first, such as 'nce+mae'; repeatable.",
            show_default=False,
        ),
    ] = None,
    loss_file: LossFiles = None,
    folds: Annotated[
        int,
        typer.Option(
            min=0,
            help="Parts that are held out in turn, each setting trained once for each; 1 holds out "
            "a single part.",
            show_default="3 below 10,000 examples, 1 from there on",
        ),
    ] = 0,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune/--no-prune",
            rich_help_panel=options.MORE,
            help="Whether settings that are clearly behind are abandoned early.",
        ),
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
        int, typer.Option(min=1, help="Runs at a time, which fill a GPU; more take more memory.")
    ] = 1,
    device: options.Device = "auto",
    output: Annotated[
        Path, typer.Option(help="The file of the search, written after every run.")
    ] = Path("tuning.json"),
    fresh: options.Fresh = False,
    data_root: Root = None,
) -> None:
    """Choose the loss and its hyperparameters for data with wrong labels, without any clean ones.

    A part of the examples is held out with the labels it came with, wrong ones among them. Each
    setting is trained on the rest, and the one that agrees best with the part held out is chosen.
    First come settings that are known to be good, then what Optuna makes of their results, which
    comes with the package's extra 'tune'.

        labelproof tune photos/ --trials 20

        labelproof tune photos/ --labels reviewed.csv

    See how well that works where the truth is known:

        labelproof tune digits --noise symmetric:0.4 --trials 10 --epochs 20

    Stopped by Ctrl-C it says what is best so far, and the same command goes on from its file; so it
    does with more --trials.
    """
    reporter = Terminal()
    with ending(reporter):
        found = labelproof.tune(
            data,
            label,
            trials=trials,
            losses=loss or (),
            folds=folds or "auto",
            seconds=seconds,
            prune=prune,
            at_once=at_once,
            labels=labels,
            drop=drop or (),
            group=group,
            decimal=decimal,
            thousands=thousands,
            noise=noise,
            network=network,
            epochs=epochs,
            seed=seed,
            device=device,
            output=output,
            fresh=fresh,
            data_root=data_root,
            progress=reporter,
            batch_size=batch_size,
            learning_rate=learning_rate,
            augmentation=augmentation,
        )
    if found.best is None:
        raise typer.Exit(DIVERGED)
