"""`labelproof fit`: train on your own data, given its path."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelproof.cli import options
from labelproof.cli.main import loading
from labelproof.cli.options import option


def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A folder of images with a folder for each class, a table of image files and "
            "labels, a table of features with a label column (.csv, .tsv, .jsonl, .csv.gz, "
            ".parquet, .xlsx), a file of arrays (.npz), or a dataset's name.",
        ),
    ],
    label: options.Label = None,
    labels: options.Labels = None,
    drop: options.Drop = None,
    group: options.Group = None,
    decimal: options.Decimal = ".",
    thousands: options.Thousands = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="The loss, such as ce, 'gce(q=0.7)' or ce+sr; 'labelproof losses' lists all. auto "
            "tries several on held-out labels, which takes many times as long (see 'labelproof "
            "tune').",
            show_default="of a network: ce+sr, adapted to the data and the number of epochs",
        ),
    ] = None,
    loss_file: options.LossFiles = None,
    trials: Annotated[
        int | None,
        option("With --loss auto: how many settings to try.", min=1, default="12", more=True),
    ] = None,
    network: options.Network = None,
    weights: Annotated[
        Path | None,
        option(
            "A safetensors file of weights for --network. It keeps them, and only its last layer "
            "is trained. On a CPU, a pretrained network is used so without --epochs.",
            more=True,
        ),
    ] = None,
    epochs: options.Epochs = None,
    batch_size: options.BatchSize = None,
    learning_rate: options.LearningRate = None,
    l1: Annotated[
        float | None,
        option("Weight of an l1 penalty on the weights, in place of weight decay.", more=True),
    ] = None,
    augmentation: options.Augmentation = None,
    balanced: Annotated[
        bool, option("Give every class the same total weight.", "--balanced", more=True)
    ] = False,
    validation: options.Validation = None,
    noise: options.Rehearsal = None,
    seed: options.Seed = None,
    device: options.Device = "auto",
    workers: options.Workers = None,
    image_memory: options.ImageMemory = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="About how long images may take on a CPU: by the first steps, a network, the size "
            "of its images and the epochs are chosen. --epochs decides instead.",
            show_default="10",
        ),
    ] = None,
    audit: Annotated[
        bool,
        option(
            "At the end, flag labels that look wrong, and write a report.", "--audit/--no-audit"
        ),
    ] = True,
    output: Annotated[
        Path | None, option("The run's folder.", default="DATA-fit; DATA-LABELS-fit")
    ] = None,
    fresh: options.Fresh = False,
    strict: options.Strict = False,
    data_root: options.Root = None,
    dry_run: Annotated[
        bool,
        option(
            "Train nothing; print the recipe as a file that 'labelproof train' reads.", "--dry-run"
        ),
    ] = False,
) -> None:
    """Train on your own data, when an unknown share of its labels is wrong.

    A folder of images, or a table:

        labelproof fit photos/

        labelproof fit customers.csv --label churned --drop comment

        labelproof fit photos/ --labels reviewed.csv

    On a table, classifiers are compared on held-out labels, and the best are blended; that takes
    seconds. On images, or with any option about a network or its training, a network is trained
    with a robust loss, and a tenth of the examples is held out for validation. At the end, labels
    that look wrong are flagged in a report. Use the folder it leaves to predict and to review:

        labelproof predict photos-fit new-photos/

        labelproof review photos-fit

    If interrupted, the same command resumes from the last checkpoint; a blend starts over.
    """
    given = options.arguments(**locals())
    with loading(f"Reading {data} ..."):
        from labelproof.cli.console import Terminal, ending
        from labelproof.data.published import plain_name
        from labelproof.verbs.fit import FitPlan
        from labelproof.verbs.summaries import stem_of

    given["output"] = output or Path(f"{stem_of(plain_name(data), labels)}-fit")
    reporter = Terminal()
    plan = FitPlan(**given, progress=reporter)
    if dry_run:
        plan.preview()
        return
    with ending(reporter):
        plan.run()
