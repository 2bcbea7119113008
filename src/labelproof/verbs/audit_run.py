"""The word of a run's own network about the labels it was trained on."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from labelproof.audit.conclusion import conclude
from labelproof.audit.folder import Audit
from labelproof.audit.of_run import predict_trained
from labelproof.data.dataset import Dataset
from labelproof.data.load import Reading
from labelproof.data.notices import readable
from labelproof.data.published import is_known, plain_name
from labelproof.training.trained_network import TrainedNetwork
from labelproof.verbs.progress import Reporter
from labelproof.verbs.training_data import TrainingData

__all__ = ["ask_run", "audit_run", "data_place"]


def data_place(data: str) -> str:
    """The whole path of data, wherever a review is started from; a dataset's name as it is.

    >>> data_place("MNIST"), os.path.isabs(data_place("photos"))
    ('mnist', True)
    """
    return plain_name(data) if is_known(data) else os.path.abspath(Path(data).expanduser())


def audit_run(
    run: TrainedNetwork,
    *,
    human: Path | None = None,
    data_root: str | os.PathLike[str] | None = None,
    reporter: Reporter,
) -> tuple[Audit, Dataset]:
    """Read a run's data again, and ask its network about them.

    Raises:
        FileNotFoundError: The data are not there any more.
        ValueError: They are others than it was trained on.
    """
    trained_on = TrainingData(run, data_root)
    data = trained_on.find(advice="bring it back, or start this from where it is now")
    labels = trained_on.find_labels(advice="start it from the folder that the run was told of")
    reading = trained_on.reading(labels)
    with reporter.reading():
        dataset = reading.load(data, on_error="skip")
    if trained_on.is_same(dataset, human=human) is False:
        place = shlex.quote(data)
        raise ValueError(
            f"{readable(data)}: not what {run.folder} was trained on: its labels, files or rows "
            f"have changed since, or it is another of the same name; 'labelproof audit {place}' "
            f"audits it as it is, 'labelproof fit {place}' with --fresh or another --output trains "
            "on it"
        )
    place = data_place(data)
    return ask_run(
        run, dataset, place=place, reading=reading, human=human, reporter=reporter
    ), dataset


def ask_run(
    run: TrainedNetwork,
    dataset: Dataset,
    prepared: Dataset | None = None,
    *,
    place: str,
    reading: Reading,
    reporter: Reporter,
    human: Path | None = None,
) -> Audit:
    """Audit a dataset by what a run that was trained on it says.

    Args:
        run: The trained network.
        dataset: The data as they are.
        prepared: The same with its images at the size that is looked at.
        place: Where they are.
        reading: How they were read.
        reporter: Told that it takes its time.
        human: The file of human labels, for noise such as `human:worse`.
    """
    with reporter.working("Looking at the training samples"):
        predictions = predict_trained(run, dataset if prepared is None else prepared, human=human)
    noise = run.configuration.noise
    return conclude(
        dataset,
        predictions,
        data=place,
        method={
            "predictions": "run",
            "network": run.configuration.network,
            "loss": run.configuration.loss,
            "epochs": run.epochs,
            "noise": None if noise == "none" else noise,
        },
        options=reading.found_in(dataset).options(),
    )
