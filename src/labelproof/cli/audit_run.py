"""The word of a run's own network about the samples it was trained on."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console

from labelproof.audit import Audit, Samples
from labelproof.audit.conclusion import conclude
from labelproof.audit.of_run import predict_trained
from labelproof.cli.audit_places import data_place, reading_options
from labelproof.cli.lines import told
from labelproof.cli.run_data import (
    find_data,
    find_labels,
    load_as_trained,
    same_data,
    taken_label_of,
)
from labelproof.cli.saved_runs import open_run
from labelproof.data.dataset import Dataset
from labelproof.data.notices import readable
from labelproof.data.row_columns import dropped_columns
from labelproof.fitting.attempts import read_attempts
from labelproof.training.saved import SavedRun

__all__ = ["ask_run", "audit_run"]


def audit_run(
    folder: Path,
    *,
    device: str,
    human: Path | None = None,
    data_root: Path | None = None,
    console: Console,
) -> tuple[Audit, Samples]:
    """Read a run's data again, and ask its network about them.

    Raises:
        FileNotFoundError: The data are not there any more.
        ValueError: They are others than it was trained on.
    """
    run = open_run(folder, device)
    attempts = read_attempts(folder)
    data = find_data(run, attempts, advice="bring it back, or start this from where it is now")
    labels = find_labels(run, attempts, advice="start it from the folder that the run was told of")
    with told():
        dataset = load_as_trained(data, attempts, labels=labels, root=data_root)
    if same_data(run, attempts, dataset, human=human) is False:
        place = shlex.quote(data)
        raise ValueError(
            f"{readable(data)}: not what {folder} was trained on: its labels, files or rows have "
            f"changed since, or it is another of the same name; 'labelproof audit {place}' audits "
            f"it as it is, 'labelproof fit {place}' with --fresh or another --output trains on it"
        )
    found = ask_run(
        run,
        dataset,
        dataset,
        data=data,
        label=taken_label_of(attempts),
        labels=labels,
        human=human,
        root=data_root,
        console=console,
    )
    return found, Samples.of(found, dataset)


def ask_run(
    run: SavedRun,
    dataset: Dataset,
    prepared: Dataset,
    *,
    data: str,
    label: str | None,
    labels: str | Path | None,
    root: Path | None,
    console: Console,
    human: Path | None = None,
) -> Audit:
    """Audit a dataset by what a run that was trained on it says.

    Args:
        run: The trained network.
        dataset: The data as they are.
        prepared: The same with its images at the size that is looked at.
        data: Where they were read from.
        label: The column of a table that holds the labels.
        labels: The file of labels that stand in place of the data's own.
        root: Where datasets are that have a name.
        console: Where progress is shown.
        human: The file of human labels, for noise such as `human:worse`.
    """
    with console.status("Looking at the training samples"):
        predictions = predict_trained(run, prepared, human=human)
    noise = run.configuration.noise
    return conclude(
        dataset,
        predictions,
        data=data_place(data),
        method={
            "predictions": "run",
            "network": run.configuration.network,
            "loss": run.configuration.loss,
            "epochs": run.epochs,
            "noise": None if noise == "none" else noise,
        },
        options=reading_options(
            label=label,
            labels=labels,
            data_root=root,
            drop=dropped_columns(dataset.columns),
            group=dataset.group,
        ),
    )
