"""`labelproof.audit`: which labels are wrong, by networks that have not seen them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from labelproof.audit.conclusion import conclude
from labelproof.audit.cross_validation import CrossValidation
from labelproof.audit.folder import AUDIT, RUNS, SETTINGS, Audit, mend_suspects, remove_audit
from labelproof.audit.labels import audit_given
from labelproof.audit.loss import audit_loss
from labelproof.audit.predictions import PredictionSource, read_labels
from labelproof.audit.samples import Samples
from labelproof.data.classes import UnusableSamplesError
from labelproof.data.dataset import Dataset, Split
from labelproof.data.images import OnError
from labelproof.data.load import Reading
from labelproof.data.published import plain_name
from labelproof.fitting.attempts import go_on
from labelproof.fitting.recipe import choose_recipe, look_at
from labelproof.fitting.whereabouts import note_places
from labelproof.training.configuration import Configuration
from labelproof.training.execution import Execution, choose_execution
from labelproof.training.files import clear_litter, remove_folder
from labelproof.training.provenance import MODEL, fingerprint
from labelproof.training.run_folder import FolderInUseError, owning
from labelproof.training.stop_request import StopRequest
from labelproof.verbs.audit_folder import present, refuse_trained, replace_audit
from labelproof.verbs.audit_run import data_place
from labelproof.verbs.audit_words import describe_plan, describe_rehearsal
from labelproof.verbs.inputs import (
    LabelledData,
    decode_images,
    is_path,
    name_data,
    read_data,
)
from labelproof.verbs.output_folder import choose_folder, refuse_foreign
from labelproof.verbs.progress import Callback, Reporter, as_reporter
from labelproof.verbs.run import Run, load_run
from labelproof.verbs.train import StoppedError

__all__ = ["AuditPlan", "audit", "holds_labels_alone", "plan_audit", "read_given"]

_FEW = 10_000
"""Samples below which five folds are worth their cost; from there on there are three."""
_AT_ONCE = 6
"""Networks that are trained at a time on a GPU."""


@dataclass
class AuditPlan:
    """An audit by cross-validation that is about to be done.

    Attributes:
        place: Where the data are, or what they are called.
        dataset: The data.
        reading: How they were read.
        configuration: How each network is trained.
        folds: Number of parts.
        folder: The audit's.
        execution: On which device, and how.
        human: The file of human labels, for noise such as `human:worse`.
        image_memory: Megabytes that decoded images may take.
    """

    place: str
    dataset: Dataset
    reading: Reading
    configuration: Configuration
    folds: int
    folder: Path
    execution: Execution
    human: Path | None = None
    image_memory: int | None = None

    def describe(self) -> str:
        """What the data are, and what is trained on them."""
        return describe_plan(self.dataset, self.configuration, self.folds)

    @property
    def asked(self) -> dict[str, Any]:
        """By what an audit in the folder is known to be of the same settings and data."""
        return {
            **self.configuration.as_values(),
            **self.reading.as_values(),
            "folds": self.folds,
            "fingerprint": fingerprint(self.dataset),
        }

    def is_begun(self) -> bool:
        """Whether the folder holds an audit of these settings, which would be resumed.

        Raises:
            ValueError: It holds one that would not.
        """
        go_on(self.folder, self.asked, self.configuration.loss, name=SETTINGS, kind="an audit")
        if (self.folder / SETTINGS).exists():
            return True
        _refuse_untrained(self.folder)
        return False

    def run(self, *, fresh: bool = False, page: bool = True, reporter: Reporter) -> Audit:
        """Train the networks that are not finished, and conclude from what they say."""
        try:
            with owning(self.folder):
                if fresh:
                    remove_audit(self.folder)
                with StopRequest() as stop:
                    found = self._cross_validate(stop, reporter)
                if page:
                    present(self.folder, found, Samples.of(found, self.dataset), reporter)
        except FolderInUseError as error:
            raise ValueError(str(error)) from None
        if self.configuration.noise != "none" and self.dataset.clean:
            reporter.say(describe_rehearsal(found, self.dataset.train.labels))
        return found

    def _cross_validate(self, stop: StopRequest, reporter: Reporter) -> Audit:
        folder, options = self.folder, self.reading.options()
        configuration, folds, execution = self.configuration, self.folds, self.execution
        attempts = go_on(folder, self.asked, configuration.loss, name=SETTINGS, kind="an audit")
        labels = None if self.reading.labels is None else Path(self.reading.labels)
        attempts.places = attempts.places or note_places(configuration.data, labels, folder)
        if (folder / AUDIT).exists():
            _refuse_untrained(folder)
            kept = Audit.read(folder)
            reporter.say("Finished before, and not trained again; --fresh trains it anew:")
            _remove_runs(folder)
            # Data and audit may have been moved together since.
            found = replace(kept, data=self.place, options=options, dataset=self.dataset)
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

        validation = CrossValidation(
            decode_images(
                self.dataset,
                configuration,
                execution.device,
                reporter,
                megabytes=self.image_memory,
            ),
            configuration,
            folds=folds,
            folder=folder / RUNS,
            human=self.human,
            on_weaker=note_weaker,
        )
        at_once = min(folds, _AT_ONCE) if execution.device.type == "cuda" else 1
        with reporter.display(runs=folds, epochs=folds * configuration.epochs) as display:
            for event in validation.run(execution, at_once=at_once, stop=stop):
                if event.kind == "started":
                    # Not before: what cannot be trained at all must not stand in a folder's way.
                    attempts.write(folder, SETTINGS)
                display.show(event)
        if stop.wanted:
            raise StoppedError(f"Stopped; the same command goes on from {folder}.", stop.exit_code)
        if validation.failure is not None:
            raise validation.failure
        found = conclude(
            self.dataset,
            validation.predictions(),
            data=self.place,
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


def plan_audit(
    data: LabelledData,
    reading: Reading,
    settings: dict[str, Any],
    *,
    folder: Path,
    folds: int | None = None,
    loss: str | None = None,
    device: str = "auto",
    workers: int | None = None,
    human: Path | None = None,
    image_memory: int | None = None,
    on_error: OnError = "skip",
    reporter: Reporter,
) -> AuditPlan:
    """Read data and choose how networks are trained to audit them; see `audit`."""
    execution = choose_execution(device, workers=workers)
    with reporter.reading():
        dataset = read_data(data, reading, on_error=on_error)
    name, named = name_data(data), is_path(data)
    on_cpu = execution.device.type == "cpu"
    if settings.get("epochs") is None and settings.get("network") is None and on_cpu:
        # Several trainings instead of one, and a loss that learns at once what is to be learned.
        settings = {**settings, "epochs": max(choose_recipe(dataset).epochs // 2, 20)}
    configuration = choose_recipe(
        dataset,
        data=plain_name(name) if named else name,
        fast=not on_cpu,
        loss=loss or audit_loss(look_at(dataset), dataset.train.labels),
        **settings,
    )
    plan = AuditPlan(
        data_place(name) if named else name,
        dataset,
        reading.found_in(dataset),
        configuration,
        _choose_folds(folds, dataset.train),
        folder,
        execution,
        human,
        image_memory,
    )
    reporter.say(plan.describe())
    refuse_foreign(folder, kind="an audit")
    return plan


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
    folds: int | None = None,
    loss: str | None = None,
    network: str | None = None,
    epochs: int | None = None,
    noise: str | None = None,
    seed: int = 1,
    device: str = "auto",
    workers: int | None = None,
    output: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    on_error: OnError = "skip",
    data_root: str | os.PathLike[str] | None = None,
    progress: Reporter | Callback | bool | None = None,
    **settings: Any,
) -> Audit:
    """Find out which labels are wrong, how many, and which classes are confused.

    Networks are trained by cross-validation, so that each label is judged by one that has not seen
    it. Nothing is trained where `probabilities` are given, or where the data are a run.

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
        folds: Number of parts; by default 5 below 10,000 samples, else 3.
        loss: What the networks minimise; by default a loss for the number of classes.
        network: See `fit`.
        epochs: See `fit`.
        noise: See `fit`.
        seed: See `fit`.
        device: See `fit`.
        workers: See `fit`.
        output: The audit's folder, with the page; the same call resumes there. Without one nothing
            is kept but what is returned.
        fresh: Whether an audit that is in the folder is removed first.
        on_error: See `fit`.
        data_root: See `fit`.
        progress: See `fit`.
        settings: Any other setting of [`Configuration`][labelproof.training.Configuration].

    Example:
        >>> import labelproof
        >>> given = ["cat", "dog", "cat", "dog"] * 10
        >>> predicted = np.tile([[0.9, 0.1], [0.2, 0.8]], (20, 1))
        >>> labelproof.audit(labels=given, probabilities=predicted).suspects.shape
        (0, 4)
    """
    reporter = as_reporter(progress)
    dropped = (drop,) if isinstance(drop, str) else tuple(drop)
    file = labels if isinstance(labels, str | os.PathLike) else None
    reading = Reading(label, file, dropped, group, root=data_root)
    if isinstance(data, str | os.PathLike) and (Path(data) / MODEL).exists():
        data = load_run(data, device)
    if isinstance(data, Run):
        found = data.audit(data_root=data_root, progress=reporter)
    elif probabilities is not None:
        if data is None and labels is None:
            raise ValueError("labels: expected with probabilities and without data, got none")
        place = "labels" if data is None else name_data(data)
        with reporter.reading():
            given = labels if data is None else read_given(data, reading, by_position=id is None)
            found = audit_given(
                probabilities,
                given,  # pyright: ignore[reportArgumentType]
                data=data_place(place) if is_path(data) else place,
                id=id,
                class_names=class_names,
                options=reading.options(),
            )
    elif data is None:
        raise ValueError("data: expected what is to be audited, or labels and probabilities")
    else:
        folder, _keeper = choose_folder(output, "audit")
        settings |= {"network": network, "epochs": epochs, "noise": noise, "seed": seed}
        plan = plan_audit(
            data,
            reading,
            settings,
            folder=folder,
            folds=folds,
            loss=loss,
            device=device,
            workers=workers,
            on_error=on_error,
            reporter=reporter,
        )
        return plan.run(fresh=fresh, page=output is not None, reporter=reporter)
    if output is not None:
        refuse_trained(Path(output), fresh=fresh)
        samples = Samples.of(found, found.dataset)
        replace_audit(Path(output), found, samples, fresh=fresh, reporter=reporter)
    return found


def holds_labels_alone(path: str) -> bool:
    """Whether a path is a file of labels, with nothing to look at.

    >>> holds_labels_alone("labels.txt"), holds_labels_alone("photos")
    (True, False)
    """
    place = Path(path).expanduser()
    return place.suffix.lower() in (".npy", ".txt") and not place.is_dir()


def read_given(data: LabelledData, reading: Reading, *, by_position: bool) -> Dataset | Any:
    """The labels that someone else's predictions are about: a dataset, or labels alone.

    Args:
        data: As for `audit`; a path may be that of a file of labels.
        reading: How they are read.
        by_position: Whether predictions are in the order of the data, so that none may be left out.
    """
    if isinstance(data, str | os.PathLike) and holds_labels_alone(os.fspath(data)):
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


def _choose_folds(asked: int | None, split: Split) -> int:
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
    clear_litter(folder)
