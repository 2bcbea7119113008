"""`labelproof.audit`: which labels are wrong, by models that have not seen them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from labelproof.audit.cross_validation import CrossValidation, audit_loss
from labelproof.audit.folder import AUDIT, INSIDE, PAGE, RUNS, SETTINGS, Audit, remove_audit
from labelproof.audit.labels import audit_given, conclude
from labelproof.audit.predictions import Predictions, PredictionSource, read_labels, sample_ids
from labelproof.audit.samples import Samples
from labelproof.data.dataset import Split
from labelproof.data.images import OnError
from labelproof.data.load import LabelledData
from labelproof.data.notices import notice
from labelproof.fitting.attempts import Attempts, read_attempts, resume_attempts
from labelproof.fitting.recipe import choose_recipe, look_at
from labelproof.losses import Loss
from labelproof.models.blend import BLEND
from labelproof.models.text import is_factory
from labelproof.report.audit import write_audit_page
from labelproof.report.audit_words import remark
from labelproof.tabular.run import blend_configuration, blend_rows, fit_blend, name_blend
from labelproof.training import Configuration, StopRequest
from labelproof.training.files import remove_folder
from labelproof.training.provenance import MODEL
from labelproof.training.run_folder import owning
from labelproof.verbs.budget import fit_into, time_limit, time_steps
from labelproof.verbs.inputs import AUDIT_FILES, Request, choose_folder, is_path, refuse_foreign
from labelproof.verbs.progress import Callback, Reporter
from labelproof.verbs.run import Run, load_run
from labelproof.verbs.summaries import (
    describe_audit,
    describe_rehearsal,
    describe_start,
    roughly,
    stem_of,
)
from labelproof.verbs.train import StoppedError

_FEW = 10_000
"""Number of samples below which five folds are worth their cost; above, there are three."""
_MINUTES = 30.0
"""Default time limit for images on a CPU: several networks are trained, where `fit` trains one."""
_INSTEAD = "choose another folder with --output, or replace it with --fresh"
_AT_ONCE = 6
"""Networks trained at a time on a GPU."""


def audit(
    data: LabelledData | Run | None = None,
    label: str | None = None,
    *,
    probabilities: PredictionSource | None = None,
    labels: str | os.PathLike[str] | ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    id: str | None = None,
    annotators: Sequence[str] = (),
    drop: str | Sequence[str] = (),
    group: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    folds: int | None = None,
    loss: str | Loss | None = None,
    network: str | None = None,
    epochs: int | None = None,
    minutes: float | None = None,
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
    kernels and a forest; on images, or with `folds`, a loss, a network or any other training
    setting, a network. Nothing is trained if `probabilities` are given, or if the data are a run.

    Args:
        data: As for `labelproof.fit`; or a run or its folder, to let its own network judge (name
            it with `network` if it is a `package.module:factory`); or nothing, with `labels` and
            `probabilities`.
        label: See `fit`.
        probabilities: Predictions of a model of your own that was not trained on the label of the
            sample it predicts: `(N, C)`, a DataFrame with a column for each class, or a file.
        labels: With `data`, a file of labels that replaces theirs; without, the labels themselves.
        class_names: With `probabilities`, the class of each column.
        id: A column of the table, written beside each suspect. With `probabilities`, their column
            that names the sample of each row.
        annotators: See `fit`.
        drop: See `fit`.
        group: See `fit`.
        decimal: See `fit`.
        thousands: See `fit`.
        folds: Number of folds; by default 5 below 10,000 samples, else 3.
        loss: What the networks minimise, by default `gce`, adapted to the class sizes.
        network: See `fit`.
        epochs: See `fit`.
        minutes: Approximate time limit for images on a CPU, by default 30: smaller networks or
            fewer epochs, by the speed of the first steps. The folder stores the choice. Not with
            --epochs.
        noise: See `fit`.
        seed: See `fit`.
        device: See `fit`.
        workers: See `fit`.
        image_memory: See `fit`.
        human_labels: The file of human labels, for noise such as `human:worse`.
        output: The audit's folder, with the page; the same call resumes there. Without one, nothing
            is kept on disk.
        fresh: See `fit`.
        on_error: See `fit`.
        data_root: See `fit`.
        progress: See `fit`.
        settings: Any other setting of [`Configuration`][labelproof.training.Configuration].

    Warns:
        DataWarning: Too little was learned for the figures to be trusted.

    Example:
        >>> import labelproof, numpy as np
        >>> given = ["cat", "dog", "cat", "dog"] * 10
        >>> predicted = np.tile([[0.9, 0.1], [0.2, 0.8]], (20, 1))
        >>> labelproof.audit(labels=given, probabilities=predicted).suspects.shape
        (0, 4)
    """
    arguments = dict(locals())
    del arguments["settings"]
    return AuditPlan(**arguments, **settings).run()


def default_folder(data: str, labels: Path | None = None) -> Path:
    """The folder of an audit without --output.

    >>> default_folder("tables/customers.csv").name
    'customers-audit'
    """
    if (Path(data) / MODEL).exists():
        return Path(data) / INSIDE
    return Path(f"{stem_of(data, labels)}-audit")


class AuditPlan:
    """An audit before it starts. The arguments are those of `audit`.

    Arguments that contradict each other are refused here.

    Attributes:
        find: Makes the audit if nothing has to be trained.
        configuration: Otherwise, what is trained on all but one of the `folds`.
    """

    find: Callable[[], Audit] | None = None
    configuration: Configuration
    folds: int

    def __init__(
        self,
        data: LabelledData | Run | None = None,
        *,
        probabilities: PredictionSource | None = None,
        labels: Any = None,
        output: str | os.PathLike[str] | None = None,
        minutes: float | None = None,
        fresh: bool = False,
        **options: Any,
    ):
        matching = {name: options.pop(name, None) for name in ("class_names", "id")}
        folds = options.pop("folds", None)
        file = labels if is_path(labels) or data is not None else None
        self.id = matching["id"] if probabilities is None else None
        self.request = request = Request(data, labels=file, verb=audit, **options)
        self.reporter, self.kept, self.fresh = request.reporter, output is not None, fresh
        given = {**options, **matching, "folds": folds, "labels": file, "minutes": minutes}
        training = ["folds", "minutes", "loss", "drop", "group", *request.settings]
        self.folder, self._keeper = choose_folder(output, "audit")
        labelled = ("label", "labels", "annotators")
        if isinstance(data, Run) or (is_path(data) and (Path(str(data)) / MODEL).exists()):
            network = request.settings.get("network")
            if network is not None and is_factory(network):
                training.remove("network")  # it allows the run's own code to run
            given["probabilities"] = None if probabilities is None else "some"
            names = (*training, *labelled, "class_names", "probabilities")
            _refuse(given, names, f"expected without a run, which has its own, and {data} is one")
            self.find = partial(_audit_run, request)
        elif probabilities is not None:
            training += ["workers", "image_memory", "human_labels", "device"]
            names = (*training, *labelled) if _holds_labels_alone(data) else training
            _refuse(given, names, "expected without --probabilities, for which nothing is trained")
            if data is None and labels is None:
                raise ValueError("labels: expected with probabilities and without data, got none")
            self.find = partial(_audit_given, request, probabilities, labels, **matching)
        elif data is None:
            raise ValueError("data: expected what is to be audited, or labels and probabilities")
        else:
            _refuse(given, ["class_names"], "expected with --probabilities")
            if self.id is not None:
                # For its errors, which must come before training.
                sample_ids(request.dataset, request.place, self.id)
            self._choose(folds, minutes)
        refuse_foreign(self.folder, AUDIT_FILES)
        if self.find is not None and not fresh and (self.folder / SETTINGS).exists():
            # Its training may have taken hours.
            raise ValueError(f"{self.folder} holds an audit that was trained; {_INSTEAD}")

    def _choose(self, folds: int | None, minutes: float | None) -> None:
        """Choose what to train: classifiers for a table, or networks."""
        request, dataset, time = self.request, self.request.dataset, ""
        self.folds = _choose_folds(folds, dataset.train)
        self.minutes = time_limit(request, minutes, _MINUTES)
        settings, loss = request.settings, request.loss
        requested = {**settings, "loss": loss, "folds": folds}
        configuration = blend_configuration(dataset, request.called, requested, human=request.human)
        if configuration is None:
            open = settings.get("epochs") is None and settings.get("network") is None
            if open and request.slow:
                # Half the epochs: several networks are trained, with a loss that learns fast.
                settings = {**settings, "epochs": max(choose_recipe(dataset).epochs // 2, 20)}
            loss = loss or audit_loss(look_at(dataset), dataset.train.labels)
            configuration, time = fit_into(
                self.minutes,
                request,
                request.recipe(loss=loss, **settings),
                lambda more: request.recipe(loss=loss, **settings | more),
                examples=len(dataset.train) * (self.folds - 1),
                kept=None if self.fresh else read_attempts(self.folder, SETTINGS),
            )
        self.configuration = configuration
        start = describe_start(dataset, configuration, folds=self.folds)
        self.reporter.say(f"{start}\n{time}".rstrip())

    def preview(self) -> None:
        """Print the plan and the estimated time; nothing is written."""
        if self.find is None:
            if not self.fresh:
                self._resume()
            # Not on a GPU, where the first steps are slow; a time limit has said it already.
            if self.configuration.network != BLEND and self.minutes is None and self.request.slow:
                pace, folds = time_steps(self.request, self.configuration), self.folds
                seen = len(self.request.dataset.train) * (folds - 1) * self.configuration.epochs
                self.reporter.say(
                    f"Time: {roughly(pace.seconds(seen))} on this CPU, by its first steps"
                )
        self.reporter.say(f"Folder: {self.folder}\nA dry run; nothing was written.")

    def run(self) -> Audit:
        """Audit the labels, and write the audit in place of an earlier one."""
        # First, so that errors leave no folder.
        found = None if self.find is None else self._identify(self.find())
        with owning(self.folder):
            if self.fresh:
                remove_audit(self.folder)
            if found is None:
                found = self._cross_validate()
            elif self.kept:
                found.write(self.folder)
            # No longer needed, and hundreds of megabytes with large networks.
            if (self.folder / RUNS).is_dir():
                remove_folder(self.folder / RUNS)
            if self.kept:
                write_page(self.folder, found, self.reporter)
                self.reporter.say(describe_audit(found, self.folder))
            elif caution := remark("caution", found):
                notice(caution)  # nothing else says it
        if self.find is None and self.configuration.noise != "none":
            self.reporter.say(describe_rehearsal(found, self.request.dataset))
        return found

    def _resume(self) -> Attempts:
        """The notes on this audit in the folder; another audit is refused."""
        folder, loss = self.folder, self.configuration.loss
        asked = self.request.asked(self.configuration, folds=self.folds, minutes=self.minutes)
        attempts = resume_attempts(folder, asked, loss, name=SETTINGS, kind="an audit")
        if (folder / AUDIT).exists() and not (folder / SETTINGS).exists():
            raise ValueError(f"{folder} holds an audit that nothing was trained for; {_INSTEAD}")
        return attempts

    def _cross_validate(self) -> Audit:
        """Train what is not finished, and write the audit to the folder."""
        folder, request, attempts = self.folder, self.request, self._resume()
        attempts.places = request.places(folder)
        now = {"data": request.place, "options": request.reading.options()}
        if (folder / AUDIT).exists():
            kept = Audit.read(folder)
            self.reporter.say("Finished before, and not trained again; --fresh starts over:")
            found = self._identify(replace(kept, **now, dataset=request.dataset))
            # Data and audit may have been moved together since.
            if {"data": kept.data, "options": dict(kept.options)} != now or found.ids != kept.ids:
                found.write(folder)
            return found
        configuration = attempts.configure(self.configuration)
        if configuration.network == BLEND:
            attempts.write(folder, SETTINGS)
            examples, rows = blend_rows(configuration, request.dataset, human=request.human)
            with self.reporter.working("Comparing classifiers"):
                committee, predictions = fit_blend(examples, rows, seed=configuration.seed)
            method: dict[str, Any] = {"network": name_blend(committee.scores)}
        else:
            predictions, method = self._train(configuration, attempts)
        noise = None if configuration.noise == "none" else configuration.noise
        method = {"predictions": "cross-validation", **method, "noise": noise}
        with self.reporter.working("Judging the labels"):
            found = self._identify(conclude(request.dataset, predictions, method=method, **now))
        found.write(folder)
        return found

    def _identify(self, found: Audit) -> Audit:
        if self.id is None:
            return found
        ids = sample_ids(found.dataset, found.data, self.id)
        return replace(found, ids=ids[found.samples].tolist())

    def _train(
        self, configuration: Configuration, attempts: Attempts
    ) -> tuple[Predictions, dict[str, Any]]:
        """The out-of-sample predictions of networks, and how they were trained."""
        folder, folds, execution = self.folder, self.folds, self.request.execution
        at_once = min(folds, _AT_ONCE) if execution.device.type == "cuda" else 1
        with StopRequest() as stop:
            validation = CrossValidation(
                self.request.decode(configuration),
                configuration,
                folds=folds,
                folder=folder / RUNS,
                human=self.request.human,
                attempts=attempts,
                note=lambda: attempts.write(folder, SETTINGS),
            )
            with self.reporter.display(runs=folds, epochs=folds * configuration.epochs) as display:
                for event in validation.run(execution, at_once=at_once, stop=stop):
                    display.show(event)
        if stop.wanted:
            raise StoppedError(f"Stopped; the same command resumes from {folder}.", stop.exit_code)
        if validation.failure is not None:
            raise validation.failure
        trained = validation.configuration
        named = {name: getattr(trained, name) for name in ("network", "loss", "epochs")}
        return validation.predictions(), {"folds": folds, **named}


def _refuse(given: Mapping[str, Any], names: Iterable[str], why: str) -> None:
    for name in names:
        if given.get(name) is not None and given[name] not in ((), [], "auto"):
            raise ValueError(f"--{name.replace('_', '-')}: {why}")


def _holds_labels_alone(data: Any) -> bool:
    """Whether data are a file of labels only.

    >>> _holds_labels_alone("labels.txt"), _holds_labels_alone("photos")
    (True, False)
    """
    place = Path(data if is_path(data) else "").expanduser()
    return place.suffix.lower() in (".npy", ".txt") and not place.is_dir()


def _audit_run(request: Request) -> Audit:
    """Audit the labels that a run was trained on by its predictions."""
    run, reporter = request.data, request.reporter
    if not isinstance(run, Run):
        run = load_run(run, request.device, network=request.settings.get("network"))
    root = request.reading.data_root
    return run.audit(human_labels=request.human, data_root=root, progress=reporter)


def _audit_given(
    request: Request, probabilities: PredictionSource, labels: Any, **matching: Any
) -> Audit:
    """Audit a dataset, or labels alone, by predictions of another model."""
    place, data, reading = "labels", request.data, request.reading
    with request.reporter.working("Judging the labels"):
        if isinstance(labels, pd.DataFrame):
            labels = replace(reading, annotators=tuple(labels)).load(labels, features=False)
        if data is not None:
            place = request.place
            if _holds_labels_alone(data):
                labels = read_labels(Path(data).expanduser())
            else:  # an unreadable image still has a label and a prediction
                labels = reading.load(data, on_error="later", features=False)
        return audit_given(probabilities, labels, data=place, options=reading.options(), **matching)


def write_page(folder: Path, audit: Audit, reporter: Reporter) -> None:
    """Write the page of an audit into its folder."""
    with reporter.working("Making the page"):
        write_audit_page(folder / PAGE, audit, Samples(audit, audit.dataset))


def _choose_folds(requested: int | None, split: Split) -> int:
    """The requested number of folds, or a default for the number of samples."""
    what, most = "samples", len(split)
    if split.groups is not None:
        what, most = "groups", len(np.unique(split.groups))
    if most == 1 and len(split) > 1:
        raise ValueError("--group: expected at least two groups to cut between, got one")
    if requested is None:
        return max(min(5 if len(split) < _FEW else 3, most), 2)
    if not 2 <= requested <= most:
        raise ValueError(f"--folds: expected 2 to {most:,}, the number of {what}, got {requested}")
    return requested
