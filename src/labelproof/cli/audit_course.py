"""The training behind an audit, under a person's eyes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from labelproof.audit import Audit, CrossValidation
from labelproof.audit.conclusion import conclude
from labelproof.audit.folder import AUDIT, RUNS, SETTINGS, mend_suspects
from labelproof.cli.audit_places import data_place
from labelproof.cli.decoding import decode_images
from labelproof.cli.exit_codes import DIVERGED, OUT_OF_MEMORY
from labelproof.cli.lines import say
from labelproof.cli.progress import RunDisplay
from labelproof.data.dataset import Dataset, Split
from labelproof.fitting.attempts import go_on
from labelproof.fitting.whereabouts import note_places
from labelproof.training.configuration import Configuration
from labelproof.training.durable import remove_folder, settle
from labelproof.training.execution import Execution
from labelproof.training.pack import DeviceMemoryError
from labelproof.training.stopping import StopRequest

__all__ = ["choose_folds", "cross_validate", "is_begun"]

_FEW = 10_000
"""Samples below which five folds are worth their cost; from there on there are three."""
_AT_ONCE = 6
"""Networks that are trained at a time on a GPU."""


def choose_folds(asked: int | None, split: Split) -> int:
    """Number of parts: as many as are asked for, or by how many samples there are."""
    what, most = "samples", len(split)
    if split.groups is not None:
        what, most = "groups", len(np.unique(split.groups))
    if most == 1 and len(split) > 1:
        raise ValueError("--group: expected at least two groups to cut between, got one")
    if asked is None:
        return max(min(5 if len(split) < _FEW else 3, most), 2)
    if asked > most:
        raise ValueError(f"--folds: expected 2 to {most:,}, the number of {what}, got {asked}")
    return asked


def is_begun(folder: Path, asked: dict[str, Any], configuration: Configuration) -> bool:
    """Whether a folder holds an audit of these settings, so that the command would go on with it.

    Args:
        folder: The audit's.
        asked: The settings, by which an earlier audit there is known again.
        configuration: How each network would be trained.

    Raises:
        ValueError: It holds one that this would not go on with.
    """
    go_on(folder, asked, configuration.loss, name=SETTINGS, kind="an audit")
    if (folder / SETTINGS).exists():
        return True
    _refuse_untrained(folder)
    return False


def cross_validate(
    dataset: Dataset,
    configuration: Configuration,
    folder: Path,
    *,
    asked: dict[str, Any],
    folds: int,
    execution: Execution,
    human: Path | None,
    image_memory: int | None,
    console: Console,
    stop: StopRequest,
    options: dict[str, Any],
) -> Audit:
    """Train a network for each part that is not finished, and conclude from what they say.

    Args:
        dataset: Whose labels are audited.
        configuration: How each network is trained.
        folder: The audit's; it is owned already.
        asked: The settings, by which an earlier audit there is known again.
        folds: Number of parts.
        execution: On which device, and how.
        human: The file of human labels, for noise such as `human:worse`.
        image_memory: Megabytes that decoded images may take.
        console: Where progress is shown.
        stop: Asked between steps.
        options: What is needed to read the data again.
    """
    attempts = go_on(folder, asked, configuration.loss, name=SETTINGS, kind="an audit")
    attempts.places = attempts.places or note_places(configuration.data, asked["labels"], folder)
    place = data_place(configuration.data)
    if (folder / AUDIT).exists():
        _refuse_untrained(folder)
        kept = Audit.read(folder)
        say(console, "Finished before, and not trained again; --fresh trains it anew:")
        _remove_runs(folder)
        # Data and audit may have been moved together since.
        found = replace(kept, data=place, options=options)
        if (found.data, dict(found.options)) != (kept.data, dict(kept.options)):
            found.write(folder)
        mend_suspects(folder, found)
        return found
    # The networks that are there know the data by the path that they were begun with.
    begun = attempts.asked.get("data", configuration.data)
    configuration = replace(configuration, loss=attempts.loss, data=begun)

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
        data=place,
        method={
            "predictions": "cross-validation",
            "folds": folds,
            "network": validation.configuration.network,
            "loss": validation.configuration.loss,
            "epochs": validation.configuration.epochs,
            "noise": None if configuration.noise == "none" else configuration.noise,
        },
        options=options,
    )
    found.write(folder)
    _remove_runs(folder)
    return found


def _refuse_untrained(folder: Path) -> None:
    if not (folder / AUDIT).exists() or (folder / SETTINGS).exists():
        return
    if Audit.read(folder).trained:
        raise ValueError(
            f"{folder} holds an audit whose {SETTINGS} is missing, so that it is not known what it "
            "was asked for; choose another folder with --output, or make it anew with --fresh"
        )
    raise ValueError(
        f"{folder} holds an audit for which nothing was trained; choose another folder with "
        "--output, or replace it with --fresh"
    )


def _remove_runs(folder: Path) -> None:
    # Of no use any more, and hundreds of megabytes with large networks.
    if (folder / RUNS).is_dir():
        remove_folder(folder / RUNS)
    # What is left of them where an earlier removal was killed on the way.
    settle(folder)
