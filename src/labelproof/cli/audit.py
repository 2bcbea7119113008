"""`labelproof audit`: which labels are wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from labelproof.audit import read_labels
from labelproof.cli import options
from labelproof.cli.arguments import LossFiles
from labelproof.cli.console import Terminal, ending
from labelproof.cli.data import Root
from labelproof.data.load import Reading
from labelproof.verbs.audit import default_folder, plan_audit

__all__ = ["audit"]


def audit(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH|RUN",
            help="Data of any kind that 'labelproof fit' takes; or the folder of a run, whose own "
            "network is then asked about its training data.",
        ),
    ],
    probabilities: Annotated[
        Path | None,
        typer.Option(
            help="Predictions of a model of your own that was not trained on the label of the "
            "sample it predicts: a table with a column for each class, or a .npy or .npz file of "
            "(samples, classes) with the columns in the order of the class names. Rows are in the "
            "order of the data, unless --id names a column. PATH may then be labels alone: a .npy "
            "or .txt file of names or class indices, or a table with a column of them.",
            show_default="networks are trained",
        ),
    ] = None,
    class_names: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=options.MORE,
            metavar="FILE|NAMES",
            help="With --probabilities: the class of each column, where the labels do not have "
            "all classes; a file with a name a line, or names with commas between.",
            show_default="the classes, sorted by name",
        ),
    ] = None,
    identify: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="With --probabilities: the column of the table of predictions that names the "
            "sample of each row, as the column of the same name does in the data, or as the audit "
            "calls the samples ('line 7', or a path within the folder).",
            show_default="rows are in the order of the data",
        ),
    ] = None,
    label: options.Label = None,
    labels: options.Labels = None,
    drop: options.Drop = None,
    group: options.Group = None,
    decimal: options.Decimal = ".",
    thousands: options.Thousands = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Parts the data are cut into; each is predicted by a network that was trained on "
            "the others.",
            show_default="5 below 10,000 samples, else 3",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="What the networks minimise; 'labelproof losses' lists all.",
            show_default="gce, set for the number of classes",
        ),
    ] = None,
    loss_file: LossFiles = None,
    network: options.Network = None,
    epochs: options.Epochs = None,
    batch_size: options.BatchSize = None,
    learning_rate: options.LearningRate = None,
    augmentation: options.Augmentation = None,
    noise: options.Rehearsal = None,
    seed: options.Seed = None,
    device: options.Device = "auto",
    workers: options.Workers = None,
    image_memory: options.ImageMemory = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The audit's folder.",
            show_default="NAME-OF-THE-DATA-audit; RUN/audit",
        ),
    ] = None,
    fresh: options.Fresh = False,
    strict: options.Strict = False,
    human_labels: options.HumanLabels = None,
    data_root: Root = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Write nothing; say what would be done and, on a CPU, how long it may take.",
        ),
    ] = False,
) -> None:
    """Find out which labels are wrong, how many, and which classes are confused.

    From a folder of images, or a table:

        labelproof audit photos/

        labelproof audit customers.csv --label churned

    Networks are trained by cross-validation with a loss that wrong labels do not mislead, so each
    sample is judged by one that has not seen its label. Quicker, since nothing is trained: the word
    of a network that 'labelproof fit' left, or of a model of any other framework:

        labelproof audit photos-fit

        labelproof audit photos/ --probabilities predictions.csv

    What comes out: suspects.csv, and report.html to look at. 'labelproof review' then goes through
    the suspects one by one. Stopped in the middle, the same command goes on.
    """
    reporter = Terminal()
    plan = plan_audit(
        path,
        Reading(label, labels, tuple(drop or ()), group, decimal, thousands, data_root),
        {
            "network": network,
            "epochs": epochs,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "augmentation": augmentation,
            "noise": noise,
            "seed": seed,
        },
        probabilities=probabilities,
        class_names=_read_names(class_names),
        id=identify,
        folds=folds,
        loss=loss,
        device=device,
        workers=workers,
        image_memory=image_memory,
        human=human_labels,
        folder=output or default_folder(path, labels),
        fresh=fresh,
        on_error="raise" if strict else "skip",
        reporter=reporter,
    )
    if dry_run:
        plan.preview(fresh=fresh, reporter=reporter)
        return
    with ending(reporter):
        plan.run(fresh=fresh, reporter=reporter)


def _read_names(names: str | None) -> list[str] | None:
    """Class names: a file with a name a line, or names with commas between."""
    if names is None:
        return None
    file = os.path.expanduser(names)
    if os.path.isfile(file):
        return read_labels(file).astype(str).tolist()
    return [name.strip() for name in names.split(",")]
