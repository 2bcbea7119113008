"""`labelproof fit`: from one's own data to a trained network, with nothing to know but the path."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelproof.cli import flags
from labelproof.cli.audit_words import describe_own_audit
from labelproof.cli.carrying import carry_out, take_over
from labelproof.cli.data import Root
from labelproof.cli.decoding import decode_images
from labelproof.cli.fit_audit import audit_own, kept_audit
from labelproof.cli.fit_checks import check_enough, check_folder, check_whole, tell_of_another
from labelproof.cli.fit_words import describe_end, describe_start, stem_of
from labelproof.cli.lines import say, told
from labelproof.cli.loss_file import LossFiles
from labelproof.cli.reading import check_labels_file
from labelproof.cli.settings import format_settings
from labelproof.cli.tune import describe, show_search
from labelproof.data.catalogue import plain_name
from labelproof.data.fingerprint import fingerprint
from labelproof.data.reading import Reading
from labelproof.data.taken_label import taken_label
from labelproof.fitting.attempts import go_on, train_robustly
from labelproof.fitting.feasible import check_feasible
from labelproof.fitting.recipe import choose_recipe
from labelproof.fitting.whereabouts import note_places
from labelproof.training.description import FILE as MODEL
from labelproof.training.examples import choose_examples
from labelproof.training.execution import choose_execution
from labelproof.training.folder import RunFolder
from labelproof.training.ownership import owning
from labelproof.training.pack import Job
from labelproof.training.saved import SEARCH
from labelproof.training.stopping import StopRequest
from labelproof.tuning.proposal import default_trials

__all__ = ["fit"]


def fit(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A folder of images with a folder for each class, a table of image files and "
            "labels, a table of features with a label column (.csv, .tsv, .jsonl, .csv.gz, "
            ".parquet), a file of arrays (.npz), or a dataset's name.",
        ),
    ],
    label: flags.Label = None,
    labels: flags.Labels = None,
    drop: flags.Drop = None,
    group: flags.Group = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="What is minimised, such as ce, 'gce(q=0.7)' or ce+sr; 'labelproof losses' lists "
            "all. auto tries several on a part of the labels that is held out, which takes many "
            "times as long (see 'labelproof tune').",
            show_default="ce+sr, set for the length of the training",
            rich_help_panel="What is trained",
        ),
    ] = None,
    loss_file: LossFiles = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --loss auto: how many settings to try. More than eight need Optuna (pip "
            "install 'labelproof\\[tune]').",
            show_default="12, without Optuna 8",
            rich_help_panel="What is trained",
        ),
    ] = None,
    network: flags.RecipeNetwork = None,
    epochs: flags.RecipeEpochs = None,
    batch_size: flags.RecipeBatchSize = None,
    learning_rate: flags.RecipeLearningRate = None,
    augmentation: flags.RecipeAugmentation = None,
    balanced: Annotated[
        bool,
        typer.Option(
            "--balanced",
            help="Let every class count the same, however many examples it has.",
            rich_help_panel="What is trained",
        ),
    ] = False,
    validation: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=0.5,
            help="Share of the training examples that is held out to validate on.",
            rich_help_panel="What is trained",
        ),
    ] = 0.1,
    noise: flags.Rehearsal = None,
    seed: flags.Seed = None,
    device: flags.Device = "auto",
    workers: flags.Workers = None,
    image_memory: flags.ImageMemory = None,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit/--no-audit",
            rich_help_panel=flags.HOW,
            help="Ask the network at the end which labels are wrong, and write a page about it.",
        ),
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=flags.HOW,
            help="The run's folder.",
            show_default="DATA-fit; DATA-LABELS-fit",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            rich_help_panel=flags.HOW,
            help="Remove the run that is in the folder; start anew.",
        ),
    ] = False,
    strict: flags.Strict = False,
    data_root: Root = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            rich_help_panel=flags.HOW,
            help="Train nothing; print the recipe as a file that 'labelproof train' reads.",
        ),
    ] = False,
) -> None:
    """Train on your own data, of whose labels an unknown share is wrong.

    A folder of images, or a spreadsheet saved as CSV:

        labelproof fit photos/

        labelproof fit customers.csv --label churned --drop comment

        labelproof fit photos/ --labels reviewed.csv

    A network and a way to train it are chosen by what the data are and how many. The loss is
    robust to wrong labels. A tenth is held out, and how well its labels are predicted is told with
    an interval. At the end the network says which labels it takes for wrong, with a page to look
    at. The folder that is left has all that is needed to use the network:

        labelproof predict photos-fit new-photos/

        labelproof review photos-fit

    Stopped in the middle, the same command goes on from the last checkpoint.
    """
    check_labels_file(labels)
    execution = choose_execution(device, workers=workers)
    console = Console()
    reading = Reading(label, labels, tuple(drop or ()), group, data_root)
    with told():
        dataset = reading.load(path, on_error="raise" if strict else "skip")
    reading = reading.found_in(dataset)
    given: dict[str, Any] = {
        "network": network,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "augmentation": augmentation,
        "class_weight": "balanced" if balanced else None,
        "validation": validation,
        "noise": noise,
        "seed": seed,
        "loss": None if loss == "auto" else loss,
    }
    configuration = choose_recipe(
        dataset, data=plain_name(path), fast=execution.device.type != "cpu", **given
    )
    folder = output or Path(f"{stem_of(configuration.data, labels)}-fit")
    auto = loss == "auto"
    if trials is not None and not auto:
        raise ValueError("--trials: expected with --loss auto, got it without")
    check_enough(dataset, validation)
    check_feasible(dataset, configuration)
    check_folder(folder)
    seen = describe_start(dataset, configuration, auto=auto)
    asked = configuration.as_values() | reading.as_values()
    asked |= {
        "auto": auto,
        "image_memory": image_memory,
        "fingerprint": fingerprint(dataset),
    }
    if dry_run:
        typer.echo(
            "".join(f"# {line}\n" for line in seen) + format_settings(configuration), nl=False
        )
        if beside := reading.flags():
            typer.echo(f"# and on the command line: {shlex.join(beside)}")
        if not fresh:
            tell_of_another(folder, asked, configuration.loss)
        return
    say(console, "\n".join(seen))
    with StopRequest() as stop:
        take_over(folder, execution, fresh=fresh)
        attempts = go_on(folder, asked, configuration.loss)
        attempts.label_column = taken_label(Path(configuration.data), dataset.columns, label)
        before, attempts.places = attempts.places, note_places(path, labels, folder)
        # A run that is there knows the data by the path that it was begun with.
        begun = attempts.asked.get("data", configuration.data)
        configuration = replace(configuration, loss=attempts.loss, data=begun)
        record = RunFolder(folder).record(configuration)
        if record is not None:
            check_whole(folder)
            ended = describe_end(record, folder, dataset, corrected=labels is not None)
            if attempts.places != before and execution.rank == 0:
                attempts.write(folder)
            say(console, "Finished before, and not trained again; --fresh trains it anew:")
            say(console, ended)
            if audit:
                # Killed between its record and its page, it is as good as new.
                kept = kept_audit(folder)
                if kept is not None:
                    say(console, describe_own_audit(kept, folder))
                else:
                    audit_own(folder, device, dataset, dataset, path, reading, console)
            return
        prepared = decode_images(
            dataset, configuration, execution.device, console, megabytes=image_memory
        )
        if auto and not attempts.given_up and not (folder / MODEL).exists():
            with owning(folder):
                found = show_search(
                    prepared,
                    configuration,
                    trials=trials or default_trials(),
                    file=folder / SEARCH,
                    execution=execution,
                    stop=stop,
                )
            say(console, describe(found, num_classes=dataset.num_classes))
            if found.stopped:
                say(console, f"Stopped; the same command goes on from {folder}.")
                raise typer.Exit(stop.exit_code)
            attempts.loss = found.configuration.loss
            configuration = replace(configuration, loss=attempts.loss)
        job = Job(configuration, folder)
        events = train_robustly(
            job,
            execution,
            load=lambda chosen: choose_examples(chosen, prepared),
            attempts=attempts,
            weaken=loss is None or auto,
            stop=stop,
        )
        code = carry_out(
            events,
            job,
            execution,
            console=console,
            stop=stop,
            finish=lambda record: describe_end(
                record, folder, dataset, corrected=labels is not None
            ),
            fresh=fresh,
        )
    if code:
        raise typer.Exit(code)
    if audit and execution.rank == 0:
        audit_own(folder, device, dataset, prepared, path, reading, console)
