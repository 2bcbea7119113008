"""An audit by cross-validation: networks or classifiers that have not seen a label judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelproof.audit.cross_validation import CrossValidation, audit_loss
from labelproof.audit.folder import AUDIT, PAGE, RUNS, SETTINGS, Audit, remove_audit
from labelproof.audit.predictions import Predictions
from labelproof.audit.samples import Samples
from labelproof.data.dataset import Split
from labelproof.fitting.attempts import Attempts, go_on
from labelproof.fitting.recipe import choose_recipe, look_at
from labelproof.models.blend import BLEND
from labelproof.report.audit import write_audit_page
from labelproof.tabular.run import blend_configuration, blend_rows, fit_blend, name_blend
from labelproof.training.configuration import Configuration
from labelproof.training.execution import StopRequest, choose_execution
from labelproof.training.files import clear_litter, remove_folder
from labelproof.training.provenance import fingerprint, note_places
from labelproof.training.run_folder import owning
from labelproof.verbs.budget import time_steps
from labelproof.verbs.inputs import Request, decode_images, refuse_foreign
from labelproof.verbs.progress import Reporter
from labelproof.verbs.summaries import (
    describe_audit,
    describe_folder,
    describe_plan,
    describe_rehearsal,
    roughly,
)
from labelproof.verbs.train import StoppedError
from labelproof.verbs.training_data import judge

_FEW = 10_000
"""Samples below which five folds are worth their cost; from there on there are three."""
_AT_ONCE = 6
"""Networks that are trained at a time on a GPU."""


class CrossValidationPlan:
    """An audit by cross-validation that is about to be done."""

    def __init__(self, request: Request, *, folds: int | None = None, reporter: Reporter):
        self.request, self.folder, self.human = request, request.folder, request.human
        self.execution = choose_execution(request.device, workers=request.workers)
        self.dataset = dataset = request.read(reporter)
        self.reading, settings, loss = request.reading, request.settings, request.loss
        self.place = request.place
        asked = {**settings, "loss": loss, "folds": folds}
        configuration = blend_configuration(dataset, request.called, asked, human=self.human)
        if configuration is None:
            on_cpu = self.execution.device.type == "cpu"
            if settings.get("epochs") is None and settings.get("network") is None and on_cpu:
                # Several trainings instead of one, and a loss that learns fast.
                settings = {**settings, "epochs": max(choose_recipe(dataset).epochs // 2, 20)}
            configuration = choose_recipe(
                dataset,
                data=request.called,
                fast=not on_cpu,
                loss=loss or audit_loss(look_at(dataset), dataset.train.labels),
                **settings,
            )
        self.configuration = configuration
        self.folds = _choose_folds(folds, dataset.train)
        reporter.say(describe_plan(dataset, configuration, self.folds))
        refuse_foreign(self.folder, kind="an audit")

    @property
    def blended(self) -> bool:
        """Whether classifiers are blended, and no network is trained."""
        return self.configuration.network == BLEND

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
        """Whether the folder holds an audit of these settings, which would be resumed."""
        go_on(self.folder, self.asked, self.configuration.loss, name=SETTINGS, kind="an audit")
        if (self.folder / SETTINGS).exists():
            return True
        _refuse_untrained(self.folder)
        return False

    def run(self, *, fresh: bool = False, page: bool = True, reporter: Reporter) -> Audit:
        """Train the networks that are not finished, and conclude from what they say."""
        with owning(self.folder):
            if fresh:
                remove_audit(self.folder)
            found = self._cross_validate(reporter)
            if page:
                write_page(self.folder, found, reporter)
                reporter.say(describe_audit(found, self.folder))
        if self.configuration.noise != "none" and self.dataset.clean:
            reporter.say(describe_rehearsal(found, self.dataset.train.labels))
        return found

    def preview(self, *, fresh: bool, reporter: Reporter) -> None:
        """Say how long it may take, and what the folder holds; nothing is written."""
        begun = not fresh and self.is_begun()
        if not self.blended:
            seconds = None if begun else self._forecast(reporter)
            taken = "not known; the first epochs will tell"
            if begun:
                taken = "what is left of an audit that was started or finished before"
            elif seconds is not None:
                taken = f"{roughly(seconds)} on {self.execution.device}, by its first steps"
            reporter.say(f"Time: {taken}")
        reporter.say(describe_folder(self.folder, fresh=fresh))

    def _forecast(self, reporter: Reporter) -> float | None:
        """Seconds that it may take, by a few steps; `None` on a GPU, whose first steps are slow."""
        dataset, configuration, execution = self.dataset, self.configuration, self.execution
        if execution.device.type != "cpu":
            return None
        memory = self.request.image_memory
        pace = time_steps(dataset, configuration, execution, reporter, image_memory=memory)
        seen = len(dataset.train) * (self.folds - 1) * configuration.epochs
        return None if pace is None else pace.seconds(seen)

    def _cross_validate(self, reporter: Reporter) -> Audit:
        folder, configuration = self.folder, self.configuration
        attempts = go_on(folder, self.asked, configuration.loss, name=SETTINGS, kind="an audit")
        places = note_places(configuration.data, self.reading.labels, folder)
        attempts.places = attempts.places or places
        if (folder / AUDIT).exists():
            _refuse_untrained(folder)
            kept = Audit.read(folder)
            reporter.say("Finished before, and not trained again; --fresh trains it anew:")
            _remove_runs(folder)
            # Data and audit may have been moved together since.
            options = self.reading.options()
            found = replace(kept, data=self.place, options=options, dataset=self.dataset)
            if (found.data, dict(found.options)) != (kept.data, dict(kept.options)):
                found.write(folder)
            return found
        # The networks that are there know the data by the path that they were begun with.
        begun = attempts.asked.get("data", configuration.data)
        configuration = replace(attempts.configure(configuration), data=begun)
        if self.blended:
            attempts.write(folder, SETTINGS)
            found = self._blend(configuration, reporter)
        else:
            with StopRequest() as stop:
                found = self._train(configuration, attempts, stop, reporter)
        found.write(folder)
        _remove_runs(folder)
        return found

    def _blend(self, configuration: Configuration, reporter: Reporter) -> Audit:
        """Ask classifiers that are compared by rows that they have not seen."""
        rows = blend_rows(configuration, self.dataset, human=self.human)
        with reporter.working("Comparing classifiers"):
            committee, predictions = fit_blend(rows, seed=configuration.seed)
        method = {"predictions": "cross-validation", "network": name_blend(committee.scores)}
        return self._judge(predictions, configuration, method)

    def _judge(
        self, predictions: Predictions, configuration: Configuration, method: Mapping[str, Any]
    ) -> Audit:
        place, reading = self.place, self.reading
        return judge(self.dataset, predictions, configuration, method, place=place, reading=reading)

    def _train(
        self,
        configuration: Configuration,
        attempts: Attempts,
        stop: StopRequest,
        reporter: Reporter,
    ) -> Audit:
        """Ask networks, each of which is trained without one of the parts."""
        folder, folds, execution = self.folder, self.folds, self.execution
        device, memory = execution.device, self.request.image_memory
        validation = CrossValidation(
            decode_images(self.dataset, configuration, device, reporter, megabytes=memory),
            configuration,
            folds=folds,
            folder=folder / RUNS,
            human=self.human,
            attempts=attempts,
            note=lambda: attempts.write(folder, SETTINGS),
        )
        at_once = min(folds, _AT_ONCE) if execution.device.type == "cuda" else 1
        with reporter.display(runs=folds, epochs=folds * configuration.epochs) as display:
            for event in validation.run(execution, at_once=at_once, stop=stop):
                display.show(event)
        if stop.wanted:
            raise StoppedError(f"Stopped; the same command resumes from {folder}.", stop.exit_code)
        if validation.failure is not None:
            raise validation.failure
        trained = validation.configuration
        named = {name: getattr(trained, name) for name in ("network", "loss", "epochs")}
        method = {"predictions": "cross-validation", "folds": folds, **named}
        return self._judge(validation.predictions(), configuration, method)


def write_page(folder: Path, audit: Audit, reporter: Reporter) -> None:
    """Write the page of an audit into its folder."""
    with reporter.working("Making the page"):
        write_audit_page(folder / PAGE, audit, Samples(audit, audit.dataset))


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
    raise ValueError(
        f"{folder} holds an audit that is not of this call: nothing was trained for it, or its "
        f"{SETTINGS} is missing; choose another folder with --output, or replace it with --fresh"
    )


def _remove_runs(folder: Path) -> None:
    # Of no use any more, and hundreds of megabytes with large networks.
    if (folder / RUNS).is_dir():
        remove_folder(folder / RUNS)
    # What is left of them where an earlier removal was killed on the way.
    clear_litter(folder)
