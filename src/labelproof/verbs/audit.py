"""`labelproof.audit`: which labels are wrong, by models that have not seen them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from labelproof.audit.folder import INSIDE, SETTINGS, Audit, remove_audit
from labelproof.audit.labels import audit_given
from labelproof.audit.predictions import PredictionSource, read_labels
from labelproof.data.dataset import Dataset
from labelproof.data.images import OnError
from labelproof.data.load import Reading
from labelproof.data.notices import UnusableSamplesError
from labelproof.data.published import plain_name
from labelproof.models.text import is_factory
from labelproof.training.provenance import MODEL
from labelproof.training.run_folder import owning
from labelproof.verbs.cross_validation import CrossValidationPlan, write_page
from labelproof.verbs.inputs import (
    LabelledData,
    Request,
    choose_folder,
    is_path,
    read_data,
    refuse_foreign,
)
from labelproof.verbs.progress import Callback, Reporter, as_reporter
from labelproof.verbs.run import Run, load_run
from labelproof.verbs.summaries import (
    describe_audit,
    describe_folder,
    stem_of,
)


def audit(
    data: LabelledData | Run | None = None,
    label: str | None = None,
    *,
    probabilities: PredictionSource | None = None,
    labels: str | os.PathLike[str] | ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    id: str | None = None,
    drop: str | Sequence[str] = (),
    group: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    folds: int | None = None,
    loss: str | None = None,
    network: str | None = None,
    epochs: int | None = None,
    noise: str | None = None,
    seed: int | None = None,
    device: str = "auto",
    workers: int | None = None,
    image_memory: int | None = None,
    human_labels: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    on_error: OnError = "skip",
    data_root: str | os.PathLike[str] | None = None,
    progress: Reporter | Callback | bool | None = None,
    **settings: Any,
) -> Audit:
    """Find out which labels are wrong, how many, and which classes are confused.

    Each label is judged by a model that has not seen it. On a table it is a blend of linear models,
    kernels and a forest; on images, and wherever `folds`, a loss, a network or any other setting of
    its training is named, a network. Nothing is trained where `probabilities` are given, or where
    the data are a run.

    Args:
        data: As for `labelproof.fit`; or a run or its folder, whose own network is asked; or
            nothing, with `labels` and `probabilities`.
        label: The column of a table that holds the labels.
        probabilities: Predictions of a model of your own that was not trained on the label of the
            sample it predicts: `(N, C)`, a DataFrame with a column for each class, or a file.
        labels: With `data`, a file of labels that replace theirs; without, the labels themselves.
        class_names: With `probabilities`, the class of each column.
        id: With `probabilities`, the column that names the sample of each row.
        drop: Columns that are not features.
        group: The column that says which samples belong together.
        decimal: See `fit`.
        thousands: See `fit`.
        folds: Number of parts; by default 5 below 10,000 samples, else 3.
        loss: What the networks minimise; by default a loss for the number of classes.
        network: See `fit`; of a run whose network is a `package.module:factory`, that factory.
        epochs: See `fit`.
        noise: See `fit`.
        seed: See `fit`.
        device: See `fit`.
        workers: See `fit`.
        image_memory: See `fit`.
        human_labels: The file of human labels, for noise such as `human:worse`.
        output: The audit's folder, with the page; the same call resumes there. Without one nothing
            is kept but what is returned.
        fresh: Whether an audit that is in the folder is removed first.
        on_error: See `fit`.
        data_root: See `fit`.
        progress: See `fit`.
        settings: Any other setting of [`Configuration`][labelproof.training.Configuration].

    Example:
        >>> import labelproof, numpy as np
        >>> given = ["cat", "dog", "cat", "dog"] * 10
        >>> predicted = np.tile([[0.9, 0.1], [0.2, 0.8]], (20, 1))
        >>> labelproof.audit(labels=given, probabilities=predicted).suspects.shape
        (0, 4)
    """
    reporter = as_reporter(progress)
    dropped = (drop,) if isinstance(drop, str) else tuple(drop)
    file = labels if isinstance(labels, str | os.PathLike) else None
    folder, _keeper = choose_folder(output, "audit")
    reading = Reading(label, file, dropped, group, decimal, thousands, data_root)
    settings |= {"network": network, "epochs": epochs, "noise": noise, "seed": seed}
    human = None if human_labels is None else Path(human_labels)
    request = Request(
        data, reading, settings, folder, loss, device, workers, image_memory, human, on_error
    )
    plan = plan_audit(
        request,
        probabilities=probabilities,
        labels=None if file is not None else labels,
        class_names=class_names,
        id=id,
        folds=folds,
        fresh=fresh,
        reporter=reporter,
    )
    return plan.run(fresh=fresh, page=output is not None, reporter=reporter)


def default_folder(data: str, labels: Path | None = None) -> Path:
    """Where the command keeps an audit that it is not told where to keep.

    >>> default_folder("tables/customers.csv").name
    'customers-audit'
    """
    if (Path(data) / MODEL).exists():
        return Path(data) / INSIDE
    return Path(f"{stem_of(plain_name(data), labels)}-audit")


def plan_audit(
    request: Request,
    *,
    probabilities: PredictionSource | None = None,
    labels: Any = None,
    class_names: Sequence[str] | None = None,
    id: str | None = None,
    folds: int | None = None,
    fresh: bool = False,
    reporter: Reporter,
) -> CrossValidationPlan | UntrainedPlan:
    """Choose how labels are audited; what makes no sense together is refused. See `audit`."""
    data, reading, folder = request.data, request.reading, request.folder
    of_run = isinstance(data, Run) or (is_path(data) and (Path(str(data)) / MODEL).exists())
    training = {"--folds": folds, "--loss": request.loss}
    training |= {"--drop": reading.drop, "--group": reading.group}
    training |= {f"--{name.replace('_', '-')}": value for name, value in request.settings.items()}
    computing = {
        "--device": None if request.device == "auto" else request.device,
        "--workers": request.workers,
        "--image-memory": request.image_memory,
        "--human-labels": request.human,
    }
    columns = {"--label": reading.label, "--labels": reading.labels}
    if probabilities is None:
        matching = {"--class-names": class_names, "--id": id}
        _refuse(matching, "expected with --probabilities, got it without")
    if of_run:
        network = request.settings.get("network")
        if network is not None and is_factory(network):
            del training["--network"]  # it allows the run's own code
        _refuse(training, "nothing is trained for an audit of a run")
        _refuse({"--probabilities": probabilities}, f"{data} is a run, which predicts itself")
        _refuse(columns, f"{data} is a run, which knows the labels it was trained on")
        refuse_trained(folder, fresh=fresh)

        def ask(reporter: Reporter) -> Audit:
            run = data
            if not isinstance(run, Run):
                with reporter.reading():
                    run = load_run(run, request.device, network=network)
            return run.audit(human_labels=request.human, data_root=reading.root, progress=reporter)

        return UntrainedPlan(folder, ask)
    if probabilities is not None:
        _refuse(training | computing, "nothing is trained for an audit with --probabilities")
        if data is None and labels is None:
            raise ValueError("labels: expected with probabilities and without data, got none")
        if is_path(data) and _holds_labels_alone(str(data)):
            _refuse(columns, f"{data} is taken for the labels themselves")
        refuse_trained(folder, fresh=fresh)

        def find(reporter: Reporter) -> Audit:
            with reporter.reading():
                read, place = labels, "labels"
                if data is not None:
                    read = _read_given(request.data, reading, by_position=id is None)
                    place = request.place
                return audit_given(
                    probabilities,
                    read,
                    data=place,
                    id=id,
                    class_names=class_names,
                    options=reading.options(),
                )

        return UntrainedPlan(folder, find)
    if data is None:
        raise ValueError("data: expected what is to be audited, or labels and probabilities")
    return CrossValidationPlan(request, folds=folds, reporter=reporter)


def _refuse(options: Mapping[str, Any], why: str) -> None:
    for flag, value in options.items():
        if value is not None and value != ():
            raise ValueError(f"{flag}: {why}")


@dataclass
class UntrainedPlan:
    """An audit that is about to be done, for which nothing is trained.

    Attributes:
        folder: Where it is kept.
        find: Judges the labels.
    """

    folder: Path
    find: Callable[[Reporter], Audit]

    def preview(self, *, fresh: bool, reporter: Reporter) -> None:
        """Say what would be done; nothing is written."""
        reporter.say(f"Nothing is trained\n{describe_folder(self.folder, fresh=fresh)}")

    def run(self, *, fresh: bool = False, page: bool = True, reporter: Reporter) -> Audit:
        """Judge the labels and keep what was found, in place of an earlier audit."""
        found = self.find(reporter)
        if page:
            with owning(self.folder):
                if fresh:
                    remove_audit(self.folder)
                found.write(self.folder)
                write_page(self.folder, found, reporter)
            reporter.say(describe_audit(found, self.folder))
        return found


def refuse_trained(folder: Path, *, fresh: bool) -> None:
    """Leave alone what took hours to train, and what is someone else's."""
    refuse_foreign(folder, kind="an audit")
    try:
        trained = (folder / SETTINGS).exists() or Audit.read(folder).trained
    except (OSError, ValueError):
        trained = False
    if trained and not fresh:
        raise ValueError(
            f"{folder} holds an audit for which networks were trained; choose another folder with "
            "--output, or replace it with --fresh"
        )


def keep_beside(run: Path, found: Audit, reporter: Reporter) -> None:
    """Keep what a run says about its own labels in its folder."""
    with owning(run / INSIDE):
        found.write(run / INSIDE)
        write_page(run / INSIDE, found, reporter)


def _holds_labels_alone(path: str) -> bool:
    """Whether a path is a file of labels, with nothing to look at.

    >>> _holds_labels_alone("labels.txt"), _holds_labels_alone("photos")
    (True, False)
    """
    place = Path(path).expanduser()
    return place.suffix.lower() in (".npy", ".txt") and not place.is_dir()


def _read_given(data: LabelledData, reading: Reading, *, by_position: bool) -> Dataset | Any:
    """The labels that someone else's predictions are about: a dataset, or labels alone."""
    if isinstance(data, str | os.PathLike) and _holds_labels_alone(os.fspath(data)):
        return read_labels(Path(data).expanduser())
    if isinstance(data, Dataset | tuple):
        return read_data(data, reading)
    try:
        return reading.load(data, on_error="raise" if by_position else "skip", features=False)
    except UnusableSamplesError as error:
        # Rows that are matched by position leave no room for samples that are left out.
        raise UnusableSamplesError(
            error.reason, "mend the data, or name the samples of the predictions with --id"
        ) from None
