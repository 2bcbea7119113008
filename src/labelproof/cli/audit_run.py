"""The word of a run's own network about the samples it was trained on."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console

from labelproof.audit import Audit, Samples
from labelproof.audit.conclusion import conclude
from labelproof.audit.of_run import predict_trained
from labelproof.cli.audit_places import data_place
from labelproof.cli.lines import told
from labelproof.cli.run_data import find_data, find_labels, reading_of, same_data
from labelproof.cli.saved_runs import open_run
from labelproof.data.dataset import Dataset
from labelproof.data.notices import readable
from labelproof.data.reading import Reading
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
    reading = reading_of(attempts, labels, data_root)
    with told():
        dataset = reading.load(data, on_error="skip")
    if same_data(run, attempts, dataset, human=human) is False:
        place = shlex.quote(data)
        raise ValueError(
            f"{readable(data)}: not what {folder} was trained on: its labels, files or rows have "
            f"changed since, or it is another of the same name; 'labelproof audit {place}' audits "
            f"it as it is, 'labelproof fit {place}' with --fresh or another --output trains on it"
        )
    found = ask_run(run, dataset, dataset, data=data, reading=reading, human=human, console=console)
    return found, Samples.of(found, dataset)


def ask_run(
    run: SavedRun,
    dataset: Dataset,
    prepared: Dataset,
    *,
    data: str,
    reading: Reading,
    console: Console,
    human: Path | None = None,
) -> Audit:
    """Audit a dataset by what a run that was trained on it says.

    Args:
        run: The trained network.
        dataset: The data as they are.
        prepared: The same with its images at the size that is looked at.
        data: Where they were read from.
        reading: How.
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
        options=reading.found_in(dataset).options(),
    )
