"""Predictions for every sample by a network that has not seen its label.

The samples are cut into parts. For each part a network is trained on all the others and predicts
it. A network may memorise the labels it learns from; about a label that it never saw it can only
say what the image or row tells.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.findings import FEWEST
from labelproof.audit.predictions import Predictions
from labelproof.data.dataset import Dataset
from labelproof.fitting.recipe import Inputs
from labelproof.training.checkpoint import load_checkpoint
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution
from labelproof.training.files import read_arrays
from labelproof.training.record import RunRecord
from labelproof.training.run_folder import PREDICTIONS, RunFolder, owning, remove_run
from labelproof.training.runner import Event, Job, train_runs
from labelproof.training.stop_request import StopRequest
from labelproof.tuning.collapse import Watch, back_off
from labelproof.tuning.validation import Validation, choose_validation

__all__ = ["CrossValidation", "audit_loss"]


class CrossValidation:
    """The training of one network for each part, and what they come to together.

    Args:
        dataset: Its training samples are predicted, by their labels as they are.
        configuration: How each network is trained; its noise is put on the labels first, and its
            own share to validate on is not used.
        folds: Number of parts.
        folder: Where the runs are kept, each in a folder of its own.
        weaken: Whether the penalty may be weakened where a network collapses.
        human: The file of human labels, for noise such as `human:worse`.
        on_weaker: Told the loss that all parts start over with, before they do.
    """

    def __init__(
        self,
        dataset: Dataset,
        configuration: Configuration,
        *,
        folds: int,
        folder: Path,
        weaken: bool = True,
        human: str | os.PathLike[str] | None = None,
        on_weaker: Callable[[str], None] | None = None,
    ):
        self.configuration = replace(configuration, validation=0.0)
        self.folder = folder
        self.weaken = weaken
        self.validation: Validation = choose_validation(
            dataset, self.configuration, parts=folds, human=human
        )
        self.on_weaker = on_weaker
        self.failure: Exception | None = None

    @property
    def folds(self) -> int:
        """Number of parts."""
        return len(self.validation.parts)

    @property
    def jobs(self) -> list[Job]:
        """The run of each part."""
        return [self._job(fold) for fold in range(self.folds)]

    def run(
        self, execution: Execution, *, at_once: int = 1, stop: StopRequest | None = None
    ) -> Iterator[Event]:
        """Train those that are not finished; what happens to them as it happens.

        A network that collapses under its penalty is abandoned, and all parts start over with a
        weaker one: what they predict is compared, so they have to be trained alike.
        """
        for job in self.jobs:
            # Whoever was killed between the note of a weaker loss and the removal goes on here.
            if self._let_go(job):
                self._remove(job)
        while True:
            collapsed = False
            for event in self._train(execution, at_once, stop):
                yield event
                collapsed |= event.kind == "abandoned"
                if event.kind == "failed":
                    self.failure = event.value
            if not collapsed:
                return
            weaker = back_off(self.configuration.loss)
            assert weaker is not None  # noqa: S101
            if self.on_weaker is not None:
                self.on_weaker(weaker)
            for job in self.jobs:
                self._remove(job)
            self.configuration = replace(self.configuration, loss=weaker)
            yield Event(self._job(0), "notice", f"Starting over with a weaker penalty: {weaker}")

    @property
    def finished(self) -> bool:
        """Whether the runs of all parts are."""
        return all(self._record(job) is not None for job in self.jobs)

    def predictions(self) -> Predictions:
        """What the networks say about the parts they have not seen, put together."""
        size = len(self.validation.dataset.train)
        logits = np.zeros((size, self.validation.dataset.num_classes), dtype=np.float32)
        seen = np.zeros(size, dtype=np.bool_)
        curves = []
        for fold, job in enumerate(self.jobs):
            record = self._record(job)
            assert record is not None  # noqa: S101
            arrays = read_arrays(_folder(job) / PREDICTIONS, ["held", "held_logits"])
            if not np.array_equal(arrays["held"], self.validation.parts[fold].validation):
                raise ValueError(
                    f"{self.folder}: the parts that are there were cut in another way, by an "
                    "earlier version or other groups; train them anew with --fresh"
                )
            logits[arrays["held"]] = arrays["held_logits"]
            seen[arrays["held"]] = True
            curves.append(record.curve)
        index = np.flatnonzero(seen)
        given = self.validation.dataset.train.labels[index]
        return Predictions(logits[index], index, given, curves)

    def _train(
        self, execution: Execution, at_once: int, stop: StopRequest | None
    ) -> Iterator[Event]:
        watches: dict[Job, Watch] = {}
        weaker = back_off(self.configuration.loss) if self.weaken else None
        todo = [job for job in self.jobs if self._record(job) is None]

        def give_up(event: Event) -> bool:
            return watches[event.job](event) and weaker is not None

        for event in train_runs(
            todo, execution, load=self.load, at_once=at_once, stop=stop, give_up=give_up
        ):
            if event.kind == "started":
                configuration = event.job.configuration
                watch = watches[event.job] = Watch(self.load(configuration), configuration)
                watch.remember(_folder(event.job), event.value)
            yield event
            watch = watches.get(event.job)
            if watch is not None and watch.news:
                yield Event(event.job, "notice", watch.news)
                watch.news = ""
            if event.kind == "abandoned":
                return

    def _let_go(self, job: Job) -> bool:
        """Whether the run in a job's folder is of a stronger loss, which this one came from."""
        checkpoint = load_checkpoint(_folder(job) / "checkpoint", on_problem=lambda _: None)
        loss = None if checkpoint is None else checkpoint.values["configuration"]["loss"]
        stronger = loss != self.configuration.loss
        while loss is not None and loss != self.configuration.loss:
            loss = back_off(loss)
        return stronger and loss is not None

    def _remove(self, job: Job) -> None:
        if _folder(job).exists():
            with owning(_folder(job)):
                remove_run(_folder(job))

    def _job(self, fold: int) -> Job:
        # The seed tells the parts apart, for the loader and for whoever looks into the folder.
        seed = self.configuration.seed + fold
        return Job(replace(self.configuration, seed=seed), self.folder / f"{fold + 1}")

    def _record(self, job: Job) -> RunRecord | None:
        return RunFolder(_folder(job)).record(job.configuration)

    def load(self, configuration: Configuration) -> Examples:
        """What the run of a part learns from, and is asked about."""
        return self.validation.examples(configuration.seed - self.configuration.seed)


def _folder(job: Job) -> Path:
    assert job.folder is not None  # noqa: S101
    return job.folder


_ROBUST = 0.7
_MANY_CLASSES = 20
"""Classes from which on generalised cross entropy is set nearer to plain cross entropy."""
_NEARLY_PLAIN = 0.15

_HEARD = 0.18
"""The share of its weight that a label keeps, at least, of which the network has only learned how
frequent it is. With q = 0.7 a class of 5% keeps 0.12, which is enough; one of 3% keeps 0.08, is
never learned, and all its labels pass for wrong (`benchmarks/audit_rare.py`)."""


def audit_loss(inputs: Inputs, labels: NDArray[np.int64] | None = None) -> str:
    r"""The loss of the networks behind an audit, where none is named.

    Generalised cross entropy: from the first step a label that the network finds absurd moves it
    little, so wrong labels are not learned, and what is hard still is. Sparse regularization ends
    with better networks, but takes more epochs than a cross-validation can spare. With many
    classes, where the labels of a fresh network all look absurd, it is set nearer to plain cross
    entropy.

    So it is where a class is rare, as fraud is: at first, when a network has only learned how
    frequent classes are, a label weighs \(u_y^q\), with \(u_y\) the share of its class.

    Example:
        >>> audit_loss(Inputs("images", (3, 32, 32), 50_000, 10))
        'gce(q=0.7)'
        >>> audit_loss(Inputs("rows", (8,), 1000, 2), np.repeat([0, 1], [970, 30]))
        'gce(q=0.49)'
    """
    q = _ROBUST if inputs.classes <= _MANY_CLASSES else _NEARLY_PLAIN
    counts = np.full(inputs.classes, FEWEST) if labels is None else np.bincount(labels)
    learned = counts[counts >= FEWEST]
    if len(learned) > 1:
        rarest = float(learned.min() / counts.sum())
        q = min(q, math.log(_HEARD) / math.log(rarest))
    return f"gce(q={round(q, 2):g})"
