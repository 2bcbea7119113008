"""The word of a run's own network about the samples it was trained on."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from labelproof.audit import Audit, Samples
from labelproof.audit.conclusion import conclude
from labelproof.audit.of_run import predict_trained
from labelproof.cli.audit_places import data_place, reading_options
from labelproof.cli.lines import told
from labelproof.cli.unfinished import warn_if_unfinished
from labelproof.data.catalogue import is_known
from labelproof.data.dataset import Dataset
from labelproof.data.loading import load_dataset
from labelproof.data.row_columns import dropped_columns
from labelproof.fitting.attempts import read_attempts
from labelproof.training.saved import SavedRun, load_run

__all__ = ["ask_run", "audit_run"]


def audit_run(
    folder: Path,
    *,
    device: str,
    human: Path | None = None,
    data_root: Path | None = None,
    console: Console,
) -> tuple[Audit, Samples]:
    """Read a run's data again, and ask its network about them."""
    run = load_run(folder, device)
    warn_if_unfinished(run)
    attempts = read_attempts(folder)
    asked = attempts.asked if attempts is not None else {}
    label, labels = asked.get("label"), asked.get("labels")
    if label is None and attempts is not None:
        label = attempts.label_column
    with told():
        data = _find_data(run.configuration.data, folder)
        dataset = load_dataset(
            data,
            root=data_root,
            on_error="skip",
            label=label,
            labels=labels,
            drop=asked.get("drop") or (),
            group=asked.get("group"),
        )
    found = ask_run(
        run,
        dataset,
        dataset,
        data=data,
        label=label,
        labels=labels,
        human=human,
        root=data_root,
        console=console,
    )
    return found, Samples.of(found, dataset)


def _find_data(data: str, folder: Path) -> str:
    """Where a run's data are: as it was told, or beside its folder, seen from anywhere."""
    if is_known(data) or Path(data).expanduser().exists():
        return data
    beside = folder.resolve().parent / data
    return str(beside) if beside.exists() else data


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
