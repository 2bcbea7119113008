"""`labelproof audit`: which labels are wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelproof.audit import Samples, audit_given, read_labels
from labelproof.audit.folder import INSIDE
from labelproof.audit.predictions import match_predictions
from labelproof.cli import flags
from labelproof.cli.data import Root
from labelproof.cli.endings import ending
from labelproof.cli.lines import Terminal, say, told
from labelproof.cli.loss_file import LossFiles
from labelproof.data.load import Reading
from labelproof.data.published import plain_name
from labelproof.training.provenance import MODEL
from labelproof.verbs.audit import holds_labels_alone, plan_audit, read_given
from labelproof.verbs.audit_folder import refuse_trained, replace_audit
from labelproof.verbs.audit_forecast import forecast
from labelproof.verbs.audit_run import audit_run, data_place
from labelproof.verbs.audit_words import (
    describe_course,
    describe_folder,
    describe_given,
    describe_run,
)
from labelproof.verbs.fit_words import stem_of
from labelproof.verbs.run import load_run

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
    label: flags.Label = None,
    labels: flags.Labels = None,
    drop: flags.Drop = None,
    group: flags.Group = None,
    decimal: flags.Decimal = ".",
    thousands: flags.Thousands = None,
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
    for flag, value in {"--class-names": class_names, "--id": identify}.items():
        if value is not None and probabilities is None:
            raise ValueError(f"{flag}: expected with --probabilities, got it without")
    alone = probabilities is not None and holds_labels_alone(path)
    for flag, value in {"--label": label, "--labels": labels}.items():
        if value is not None and of_run:
            raise ValueError(f"{flag}: {path} is a run, which knows the labels it was trained on")
        if value is not None and alone:
            raise ValueError(f"{flag}: {path} is taken for the labels themselves")
    reporter = Terminal(console)
    if of_run:
        folder = output if output is not None else Path(path) / INSIDE
        refuse_trained(folder, fresh=fresh)
        if dry_run:
            say(console, describe_run(Path(path)))
            say(console, describe_folder(folder, fresh=fresh))
            return
        with told():
            run = load_run(path, device)
        found, dataset = audit_run(run, human=human_labels, data_root=data_root, reporter=reporter)
        replace_audit(folder, found, Samples.of(found, dataset), fresh=fresh, reporter=reporter)
        return
    folder = output if output is not None else Path(f"{stem_of(plain_name(path), labels)}-audit")
    reading = Reading(label, labels, tuple(drop or ()), group, decimal, thousands, data_root)
    if probabilities is not None:
        refuse_trained(folder, fresh=fresh)
        matching: dict[str, Any] = {"data": data_place(path), "id": identify}
        matching["class_names"] = _read_names(class_names)
        with told():
            given = read_given(path, reading, by_position=identify is None)
            if dry_run:
                matched = match_predictions(probabilities, given, **matching)
                samples = len(matched.labels)
                say(console, describe_given(matched.class_names, samples, probabilities))
                say(console, describe_folder(folder, fresh=fresh))
                return
            found = audit_given(probabilities, given, **matching, options=reading.options())
        seen = Samples.of(found, found.dataset)
        replace_audit(folder, found, seen, fresh=fresh, reporter=reporter)
        return
    plan = plan_audit(
        path,
        reading,
        {name[2:].replace("-", "_"): value for name, value in settings.items()},
        folder=folder,
        folds=folds,
        loss=loss,
        device=device,
        workers=workers,
        human=human_labels,
        image_memory=image_memory,
        on_error="raise" if strict else "skip",
        reporter=reporter,
    )
    if not dry_run:
        with ending(reporter):
            plan.run(fresh=fresh, reporter=reporter)
        return
    begun = not fresh and plan.is_begun()
    seconds = None
    if not begun:
        seconds = forecast(
            plan.dataset,
            plan.configuration,
            folds=plan.folds,
            execution=plan.execution,
            reporter=reporter,
            image_memory=image_memory,
        )
    say(console, describe_course(plan.execution.device, seconds, begun=begun))
    say(console, describe_folder(folder, fresh=fresh))


def _read_names(names: str | None) -> list[str] | None:
    """Class names: a file with a name a line, or names with commas between."""
    if names is None:
        return None
    file = os.path.expanduser(names)
    if os.path.isfile(file):
        return read_labels(file).astype(str).tolist()
    return [name.strip() for name in names.split(",")]
