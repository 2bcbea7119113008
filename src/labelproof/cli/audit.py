"""`labelproof audit`: which labels are wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from labelproof.audit import read_labels
from labelproof.cli import options
from labelproof.cli.console import Terminal, ending
from labelproof.cli.options import option
from labelproof.verbs.audit import default_folder, plan_audit


def audit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="PATH|RUN",
            help="Data as for 'labelproof fit'; or a run's folder, to let its network judge its "
            "training labels.",
        ),
    ],
    probabilities: Annotated[
        Path | None,
        typer.Option(
            help="Out-of-sample predictions of your own model: a table with a column per class, "
            "or a .npy or .npz file of shape (samples, classes) with columns in the order of the "
            "class names. Rows are in the order of the data, unless --id names a column. PATH may "
            "then be labels only: a .npy or .txt file of names or class indices, or a table.",
            show_default="train models",
        ),
    ] = None,
    class_names: Annotated[
        str | None,
        typer.Option(
            rich_help_panel="More options",
            metavar="FILE|NAMES",
            help="With --probabilities: the class of each column, if labels lack some classes; a "
            "file with one name per line, or names separated by commas.",
            show_default="the classes, sorted by name",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="With --probabilities: the column of the predictions that identifies the sample, "
            "by the column of the same name in the data, or by the audit's sample names ('line 7', "
            "or a path within the folder).",
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
        option("Folds of the cross-validation.", min=2, default="5 below 10,000 samples, else 3"),
    ] = None,
    loss: Annotated[
        str | None,
        option(
            "The loss; 'labelproof losses' lists all.", default="gce, adapted to the class sizes"
        ),
    ] = None,
    loss_file: options.LossFiles = None,
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
        option("The audit's folder.", default="NAME-OF-THE-DATA-audit; RUN/audit"),
    ] = None,
    fresh: options.Fresh = False,
    strict: options.Strict = False,
    human_labels: options.HumanLabels = None,
    data_root: options.Root = None,
    dry_run: Annotated[
        bool,
        option("Write nothing; print the plan and, on a CPU, the estimated time.", "--dry-run"),
    ] = False,
) -> None:
    """Find out which labels are wrong, how many, and which classes are confused.

    From a folder of images, or a table:

        labelproof audit photos/

        labelproof audit customers.csv --label churned

    Each label is judged by a model that has not seen it: on a table by a blend of classifiers, in
    seconds; on images, or with any option about a network or its training, by networks trained by
    cross-validation with a robust loss. Without training: a run of 'labelproof fit', or the
    predictions of any other model:

        labelproof audit photos-fit

        labelproof audit photos/ --probabilities predictions.csv

    It writes suspects.csv and report.html. Go through the suspects with 'labelproof review'. If
    interrupted, the same command resumes.
    """
    given = options.arguments(**locals())
    given["output"] = output or default_folder(data, labels)
    given["class_names"] = _read_names(class_names)
    reporter = Terminal()
    plan = plan_audit(**given, progress=reporter)
    if dry_run:
        plan.preview()
        return
    with ending(reporter):
        plan.run()


def _read_names(names: str | None) -> list[str] | None:
    """Class names: a file with one name per line, or names separated by commas."""
    if names is None:
        return None
    file = os.path.expanduser(names)
    if os.path.isfile(file):
        return read_labels(file).astype(str).tolist()
    return [name.strip() for name in names.split(",")]
