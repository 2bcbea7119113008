"""`labelproof audit`: which labels are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelproof.audit import Samples, audit_loss
from labelproof.audit.folder import INSIDE, remove_audit
from labelproof.cli import flags
from labelproof.cli.audit_course import choose_folds, cross_validate, is_begun
from labelproof.cli.audit_forecast import forecast
from labelproof.cli.audit_given import audit_predictions, holds_labels_alone
from labelproof.cli.audit_keeping import present, refuse_trained, replace_audit
from labelproof.cli.audit_run import audit_run
from labelproof.cli.audit_words import (
    describe_course,
    describe_folder,
    describe_plan,
    describe_rehearsal,
    describe_run,
)
from labelproof.cli.data import Root
from labelproof.cli.fit_words import stem_of
from labelproof.cli.lines import say, told
from labelproof.cli.loss_file import LossFiles
from labelproof.cli.output_folder import refuse_foreign
from labelproof.data.catalogue import plain_name
from labelproof.data.fingerprint import fingerprint
from labelproof.data.reading import Reading
from labelproof.fitting.recipe import choose_recipe, look_at
from labelproof.training.description import FILE as MODEL
from labelproof.training.execution import choose_execution
from labelproof.training.ownership import FolderInUseError, owning
from labelproof.training.stopping import StopRequest

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
            help="Predictions by a model of your own, each by one that has not seen that sample's "
            "label: a table with a column for each class, called by its name, and perhaps an id "
            "for each row; or a .npy or .npz file of (samples, classes), rows in the order of the "
            "data, columns in the order of the class names. PATH may then be labels alone: a .npy "
            "or .txt file of names or class indices, or a table with a column of them.",
            show_default="networks are trained",
        ),
    ] = None,
    class_names: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAMES",
            help="With --probabilities: which class each column is, if the file does not say; a "
            "file with a name a line, or names with commas between.",
            show_default="the classes, sorted by name",
        ),
    ] = None,
    label: flags.Label = None,
    labels: flags.Labels = None,
    drop: flags.Drop = None,
    group: flags.Group = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Parts the data are cut into; each is predicted by a network that was trained on "
            "the others.",
            show_default="5 below 10,000 samples, else 3",
            rich_help_panel="What is trained",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="What the networks minimise; 'labelproof losses' lists all.",
            show_default="gce, set for the number of classes",
            rich_help_panel="What is trained",
        ),
    ] = None,
    loss_file: LossFiles = None,
    network: flags.RecipeNetwork = None,
    epochs: flags.RecipeEpochs = None,
    batch_size: flags.RecipeBatchSize = None,
    learning_rate: flags.RecipeLearningRate = None,
    augmentation: flags.RecipeAugmentation = None,
    noise: flags.Rehearsal = None,
    seed: flags.Seed = None,
    device: flags.Device = "auto",
    workers: flags.Workers = None,
    image_memory: flags.ImageMemory = None,
    output: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=flags.HOW,
            help="The audit's folder.",
            show_default="NAME-OF-THE-DATA-audit; RUN/audit",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            rich_help_panel=flags.HOW,
            help="Remove the audit that is in the folder, but for the decisions of a review; "
            "start anew.",
        ),
    ] = False,
    strict: flags.Strict = False,
    human_labels: flags.HumanLabels = None,
    data_root: Root = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            rich_help_panel=flags.HOW,
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
    console = Console()
    learns = {"--folds": folds, "--loss": loss, "--drop": drop or None, "--group": group}
    settings = {
        "--network": network,
        "--epochs": epochs,
        "--batch-size": batch_size,
        "--learning-rate": learning_rate,
        "--augmentation": augmentation,
        "--noise": noise,
        "--seed": seed,
    }
    computing = {
        "--device": None if device == "auto" else device,
        "--workers": workers,
        "--image-memory": image_memory,
        "--human-labels": human_labels,
    }
    of_run = (Path(path) / MODEL).exists()
    if of_run or probabilities is not None:
        why = "of a run" if of_run else "with --probabilities"
        # A run's own network is asked, on some device; predictions that are there need none.
        idle = {} if of_run else computing
        for flag, value in (learns | settings | idle).items():
            if value is not None:
                raise ValueError(f"{flag}: nothing is trained for an audit {why}")
    if strict and probabilities is not None:
        raise ValueError("--strict: means nothing for an audit with --probabilities")
    if of_run and probabilities is not None:
        raise ValueError(f"--probabilities: {path} is a run, which says itself what it thinks")
    if class_names is not None and probabilities is None:
        raise ValueError("--class-names: expected with --probabilities, got it without")
    alone = probabilities is not None and holds_labels_alone(path)
    for flag, value in {"--label": label, "--labels": labels}.items():
        if value is not None and of_run:
            raise ValueError(f"{flag}: {path} is a run, which knows the labels it was trained on")
        if value is not None and alone:
            raise ValueError(f"{flag}: {path} is taken for the labels themselves")
    if of_run:
        folder = output if output is not None else Path(path) / INSIDE
        refuse_trained(folder, fresh=fresh)
        if dry_run:
            say(console, describe_run(Path(path)))
            say(console, describe_folder(folder, fresh=fresh))
            return
        found, samples = audit_run(
            Path(path), device=device, human=human_labels, data_root=data_root, console=console
        )
        replace_audit(console, folder, found, samples, fresh=fresh)
        return
    folder = output if output is not None else Path(f"{stem_of(plain_name(path), labels)}-audit")
    reading = Reading(label, labels, tuple(drop or ()), group, data_root)
    if probabilities is not None:
        audit_predictions(
            path,
            probabilities,
            folder,
            class_names=class_names,
            reading=reading,
            fresh=fresh,
            dry_run=dry_run,
            console=console,
        )
        return
    execution = choose_execution(device, workers=workers)
    with told():
        dataset = reading.load(path, on_error="raise" if strict else "skip")
    reading = reading.found_in(dataset)
    if epochs is None and network is None and execution.device.type == "cpu":
        # Several trainings instead of one, and a loss that learns at once what is to be learned.
        settings["--epochs"] = max(choose_recipe(dataset).epochs // 2, 20)
    configuration = choose_recipe(
        dataset,
        data=plain_name(path),
        fast=execution.device.type != "cpu",
        loss=loss or audit_loss(look_at(dataset), dataset.train.labels),
        **{name[2:].replace("-", "_"): value for name, value in settings.items()},
    )
    parts = choose_folds(folds, dataset.train)
    say(console, describe_plan(dataset, configuration, parts))
    asked = configuration.as_values() | reading.as_values()
    asked |= {"folds": parts, "fingerprint": fingerprint(dataset)}
    refuse_foreign(folder, kind="an audit")
    if dry_run:
        begun = not fresh and is_begun(folder, asked, configuration)
        seconds = None
        if not begun:
            seconds = forecast(
                dataset,
                configuration,
                folds=parts,
                execution=execution,
                console=console,
                image_memory=image_memory,
            )
        say(console, describe_course(execution.device, seconds, begun=begun))
        say(console, describe_folder(folder, fresh=fresh))
        return
    try:
        with owning(folder):
            if fresh:
                remove_audit(folder)
            with StopRequest() as stop:
                found = cross_validate(
                    dataset,
                    configuration,
                    folder,
                    asked=asked,
                    folds=parts,
                    execution=execution,
                    human=human_labels,
                    image_memory=image_memory,
                    console=console,
                    stop=stop,
                    options=reading.options(),
                )
            present(console, folder, found, Samples.of(found, dataset))
    except FolderInUseError as error:
        raise ValueError(str(error)) from None
    if noise is not None and dataset.clean:
        say(console, describe_rehearsal(found, dataset.train.labels))
