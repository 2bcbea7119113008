"""`labelproof audit`: which labels are wrong."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelproof.audit import CrossValidation, audit_loss, read_probabilities
from labelproof.audit.conclusion import conclude
from labelproof.audit.folder import AUDIT, INSIDE, PAGE, RUNS, SETTINGS, Audit, remove_audit
from labelproof.audit.given import audit_given, read_given
from labelproof.audit.of_run import predict_trained
from labelproof.audit.samples import Samples
from labelproof.cli import flags
from labelproof.cli.audit_words import describe_audit, describe_rehearsal
from labelproof.cli.carrying import DIVERGED, OUT_OF_MEMORY
from labelproof.cli.data import Root
from labelproof.cli.decoding import decode_images
from labelproof.cli.fit_words import describe_data, stem_of
from labelproof.cli.lines import say, told
from labelproof.cli.progress import RunDisplay
from labelproof.data.catalogue import is_known, plain_name
from labelproof.data.dataset import Dataset
from labelproof.data.loading import load_dataset
from labelproof.data.notices import count
from labelproof.data.relabelling import relabel
from labelproof.fitting.attempts import go_on, read_attempts
from labelproof.fitting.fingerprint import fingerprint
from labelproof.fitting.recipe import choose_recipe, look_at
from labelproof.report.audit import write_audit_page
from labelproof.training.configuration import Configuration
from labelproof.training.description import FILE as MODEL
from labelproof.training.durable import remove_folder, settle
from labelproof.training.execution import Execution, choose_execution
from labelproof.training.ownership import FolderInUseError, owning
from labelproof.training.pack import DeviceMemoryError
from labelproof.training.saved import load_run
from labelproof.training.stopping import StopRequest

__all__ = ["audit", "audit_run"]

_FEW = 10_000
"""Samples below which five folds are worth their cost; from there on there are three."""
_AT_ONCE = 6
"""Networks that are trained at a time on a GPU."""


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
            help="Predictions by a model of your own, a .npy file of (samples, classes): rows in "
            "the order of the data, columns in the order of the class names, each row predicted by "
            "a model that has not seen its label. PATH may then be a .npy file of class indices.",
            show_default="networks are trained",
        ),
    ] = None,
    label: flags.Label = None,
    labels: flags.Labels = None,
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
) -> None:
    """Find out which labels are wrong, how many, and which classes are confused.

    From a folder of images, or a table:

        labelproof audit photos/

        labelproof audit customers.csv --label churned

    Networks are trained by cross-validation with a loss that wrong labels do not mislead, so each
    sample is judged by one that has not seen its label. Quicker, since nothing is trained: the word
    of a network that 'labelproof fit' left, or of a model of any other framework:

        labelproof audit photos-fit

        labelproof audit photos/ --probabilities predictions.npy

    What comes out: suspects.csv, and report.html to look at. 'labelproof review' then goes through
    the suspects one by one. Stopped in the middle, the same command goes on.
    """
    console = Console()
    trains = {
        "--folds": folds,
        "--loss": loss,
        "--network": network,
        "--epochs": epochs,
        "--batch-size": batch_size,
        "--learning-rate": learning_rate,
        "--augmentation": augmentation,
        "--noise": noise,
        "--seed": seed,
    }
    of_run = (Path(path) / MODEL).exists()
    if of_run or probabilities is not None:
        why = "of a run" if of_run else "with --probabilities"
        for flag, value in trains.items():
            if value is not None:
                raise ValueError(f"{flag}: nothing is trained for an audit {why}")
    if of_run and probabilities is not None:
        raise ValueError(f"--probabilities: {path} is a run, which says itself what it thinks")
    indices = probabilities is not None and Path(path).suffix.lower() == ".npy"
    for flag, value in {"--label": label, "--labels": labels}.items():
        if value is not None and of_run:
            raise ValueError(f"{flag}: {path} is a run, which knows the labels it was trained on")
        if value is not None and indices:
            raise ValueError(f"{flag}: {path} is taken for the labels themselves")
    if of_run:
        folder = output if output is not None else Path(path) / INSIDE
        _refuse_trained(folder, fresh=fresh)
        found, samples = audit_run(
            Path(path), device=device, human=human_labels, data_root=data_root, console=console
        )
        _replace(console, folder, found, samples, fresh=fresh)
        return
    folder = output if output is not None else Path(f"{stem_of(plain_name(path))}-audit")
    options = {
        "label": label,
        "labels": _absolute(labels),
        "data_root": _absolute(data_root),
    }
    if probabilities is not None:
        _refuse_trained(folder, fresh=fresh)
        table = read_probabilities(probabilities)
        given: Dataset | Any
        if indices:
            given = read_given(path)
        else:
            with told():
                # Rows are matched by their order, so that none may be left out on the way.
                given = load_dataset(path, root=data_root, on_error="raise", label=label)
                given = given if labels is None else relabel(given, path, labels)
        found = audit_given(table, given, data=_place(path), options=options)
        dataset = given if isinstance(given, Dataset) else None
        _replace(console, folder, found, Samples.of(found, dataset), fresh=fresh)
        return
    execution = choose_execution(device, workers=workers)
    with told():
        dataset = load_dataset(
            path, root=data_root, on_error="raise" if strict else "skip", label=label
        )
        if labels is not None:
            dataset = relabel(dataset, path, labels)
    configuration = choose_recipe(
        dataset,
        data=plain_name(path),
        fast=execution.device.type != "cpu",
        loss=loss or audit_loss(look_at(dataset)),
        **{
            name[2:].replace("-", "_"): value
            for name, value in trains.items()
            if name not in ("--folds", "--loss")
        },
    )
    parts = _choose_folds(folds, len(dataset.train))
    say(console, describe_data(dataset))
    say(
        console,
        f"Cross-validation: {parts} networks ({configuration.network}), each for "
        f"{count(configuration.epochs, 'epoch')} on {parts - 1} of {parts} parts, "
        f"{configuration.loss}",
    )
    asked = configuration.as_values() | {
        "folds": parts,
        "label": label,
        "labels": None if labels is None else str(labels),
        "fingerprint": fingerprint(dataset),
    }
    try:
        with owning(folder):
            if fresh:
                remove_audit(folder)
            with StopRequest() as stop:
                found = _cross_validate(
                    dataset,
                    configuration,
                    folder,
                    asked=asked,
                    folds=parts,
                    weaken=loss is None,
                    execution=execution,
                    human=human_labels,
                    image_memory=image_memory,
                    console=console,
                    stop=stop,
                    options=options,
                )
            _present(console, folder, found, Samples.of(found, dataset))
    except FolderInUseError as error:
        raise ValueError(str(error)) from None
    if noise is not None and dataset.clean:
        say(console, describe_rehearsal(found, dataset.train.labels))


def _choose_folds(asked: int | None, samples: int) -> int:
    if asked is None:
        return max(min(5 if samples < _FEW else 3, samples), 2)
    if asked > samples:
        raise ValueError(f"--folds: expected 2 to {samples:,}, the number of samples, got {asked}")
    return asked


def _place(data: str) -> str:
    """Where data are, wherever the review is started from; a dataset's name as it is."""
    return plain_name(data) if is_known(data) else os.path.abspath(Path(data).expanduser())


def _absolute(path: str | Path | None) -> str | None:
    return None if path is None else os.path.abspath(path)


def _cross_validate(
    dataset: Dataset,
    configuration: Configuration,
    folder: Path,
    *,
    asked: dict[str, Any],
    folds: int,
    weaken: bool,
    execution: Execution,
    human: Path | None,
    image_memory: int | None,
    console: Console,
    stop: StopRequest,
    options: dict[str, Any],
) -> Audit:
    attempts = go_on(folder, asked, configuration.loss, name=SETTINGS)
    if (folder / AUDIT).exists():
        if not (folder / SETTINGS).exists():
            raise ValueError(
                f"{folder} holds an audit for which nothing was trained; choose another folder "
                "with --output, or replace it with --fresh"
            )
        say(console, "Finished before, and not trained again; --fresh trains it anew:")
        _remove_runs(folder)
        return Audit.read(folder)
    configuration = replace(configuration, loss=attempts.loss)

    def note_weaker(loss: str) -> None:
        attempts.given_up.append({"loss": attempts.loss, "reason": "collapsed"})
        attempts.loss = loss
        attempts.write(folder, SETTINGS)

    prepared = decode_images(
        dataset, configuration, execution.device, console, megabytes=image_memory
    )
    validation = CrossValidation(
        prepared,
        configuration,
        folds=folds,
        folder=folder / RUNS,
        weaken=weaken,
        human=human,
        on_weaker=note_weaker,
    )
    at_once = min(folds, _AT_ONCE) if execution.device.type == "cuda" else 1
    try:
        with RunDisplay(console, runs=folds, epochs=folds * configuration.epochs) as display:
            for event in validation.run(execution, at_once=at_once, stop=stop):
                if event.kind == "started":
                    # Not before: what cannot be trained at all must not stand in a folder's way.
                    attempts.write(folder, SETTINGS)
                display.show(event)
    except DeviceMemoryError as error:
        typer.secho(f"error: {error}", fg="red", err=True)
        raise typer.Exit(OUT_OF_MEMORY) from None
    if stop.wanted:
        say(console, f"Stopped; the same command goes on from {folder}.")
        raise typer.Exit(stop.exit_code)
    if validation.failure is not None:
        typer.secho(f"error: {validation.failure}", fg="red", err=True)
        raise typer.Exit(DIVERGED)
    found = conclude(
        dataset,
        validation.predictions(),
        data=_place(configuration.data),
        method={
            "predictions": "cross-validation",
            "folds": folds,
            "network": validation.configuration.network,
            "loss": validation.configuration.loss,
            "epochs": validation.configuration.epochs,
        },
        options=options,
    )
    found.write(folder)
    _remove_runs(folder)
    return found


def _remove_runs(folder: Path) -> None:
    # Of no use any more, and hundreds of megabytes with large networks.
    if (folder / RUNS).is_dir():
        remove_folder(folder / RUNS)
    # What is left of them where an earlier removal was killed on the way.
    settle(folder)


def audit_run(
    folder: Path,
    *,
    device: str,
    human: Path | None = None,
    data_root: Path | None = None,
    console: Console,
) -> tuple[Audit, Samples]:
    """Ask a run's own network about the samples it was trained on."""
    run = load_run(folder, device)
    attempts = read_attempts(folder)
    asked = attempts.asked if attempts is not None else {}
    label, labels = asked.get("label"), asked.get("labels")
    data = run.configuration.data
    with told():
        dataset = load_dataset(data, root=data_root, on_error="skip", label=label)
        if labels is not None:
            dataset = relabel(dataset, data, labels)
    with console.status("Looking at the training samples"):
        predictions = predict_trained(run, dataset, human=human)
    found = conclude(
        dataset,
        predictions,
        data=_place(data),
        method={
            "predictions": "run",
            "network": run.configuration.network,
            "loss": run.configuration.loss,
            "epochs": run.epochs,
        },
        options={
            "label": label,
            "labels": _absolute(labels),
            "data_root": _absolute(data_root),
        },
    )
    return found, Samples.of(found, dataset)


def _refuse_trained(folder: Path, *, fresh: bool) -> None:
    """Leave alone what took hours to train."""
    if (folder / SETTINGS).exists() and not fresh:
        raise ValueError(
            f"{folder} holds an audit for which networks were trained; choose another folder with "
            "--output, or replace it with --fresh"
        )


def _replace(
    console: Console, folder: Path, found: Audit, samples: Samples, *, fresh: bool
) -> None:
    """Keep an audit for which nothing was trained, in place of an earlier one."""
    try:
        with owning(folder):
            if fresh:
                remove_audit(folder)
            found.write(folder)
            _present(console, folder, found, samples)
    except FolderInUseError as error:
        raise ValueError(str(error)) from None


def _present(console: Console, folder: Path, found: Audit, samples: Samples) -> None:
    """Make the page of an audit that is kept, and say what was found."""
    with console.status("Making the page"):
        write_audit_page(folder / PAGE, found, samples)
    say(console, describe_audit(found, folder))
