"""Predictions for every sample by a network that has not seen its label.

The samples are cut into parts. For each part a network is trained on all the others and predicts
it. A network may memorise the labels it is trained on; a label that it has never seen it can only
predict from the image or row.
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
from labelproof.fitting.attempts import Attempts, train_robustly
from labelproof.fitting.recipe import Inputs
from labelproof.npz import read_npz
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution, StopRequest
from labelproof.training.run_folder import PREDICTIONS, RunFolder
from labelproof.training.runner import Event, Job
from labelproof.tuning.search import choose_validation


class CrossValidation:
    """The training of one network for each part, and their joint predictions.

    Args:
        dataset: The data, whose training samples are predicted.
        configuration: How each network is trained; its noise is applied to the labels first, and
            its validation share is ignored.
        folds: Number of parts.
        folder: Where the runs are kept, each in a folder of its own.
        human: The file of human labels, for noise such as `human:worse`.
        attempts: The loss to use, and those that collapsed; the configuration's loss by default.
        note: Saves the attempts, when a run starts and after each collapse.
    """

    def __init__(
        self,
        dataset: Dataset,
        configuration: Configuration,
        *,
        folds: int,
        folder: Path,
        human: str | os.PathLike[str] | None = None,
        attempts: Attempts | None = None,
        note: Callable[[], None] = lambda: None,
    ):
        self.setting = replace(configuration, validation=0.0)
        self.folder, self.note = folder, note
        self.attempts = attempts or Attempts({}, configuration.loss)
        self.parts = choose_validation(dataset, self.setting, parts=folds, human=human)
        self.failure: Exception | None = None

    @property
    def configuration(self) -> Configuration:
        """How each network is trained, with a weaker penalty after a collapse."""
        return replace(self.setting, loss=self.attempts.loss)

    @property
    def jobs(self) -> list[Job]:
        """The run of each part."""
        plain = self.configuration
        # The seed identifies the part, in `load` and to a reader of the folder.
        return [
            Job(replace(plain, seed=plain.seed + fold), self.folder / f"{fold + 1}")
            for fold in range(len(self.parts))
        ]

    def run(
        self, execution: Execution, *, at_once: int = 1, stop: StopRequest | None = None
    ) -> Iterator[Event]:
        """Train the networks that are not finished; yield events as they happen.

        A network that collapses under its penalty is abandoned, and all parts start over with a
        weaker one: their predictions are compared, so they have to be trained alike.
        """
        for event in train_robustly(
            self.jobs,
            execution,
            load=self.load,
            attempts=self.attempts,
            note=self.note,
            at_once=at_once,
            stop=stop,
        ):
            if event.kind == "failed":
                self.failure = event.value
            yield event

    def predictions(self) -> Predictions:
        """The out-of-sample predictions of all parts together."""
        dataset = self.parts[0].dataset
        logits = np.full((len(dataset.train), dataset.num_classes), np.nan, dtype=np.float32)
        for job, part in zip(self.jobs, self.parts, strict=True):
            assert job.folder is not None  # noqa: S101
            record = RunFolder(job.folder).record(job.configuration)
            arrays = read_npz(job.folder / PREDICTIONS, ["held", "held_logits"])
            if record is None or not np.array_equal(arrays["held"], part.held):
                raise ValueError(
                    f"{self.folder}: these folds were split differently, by an earlier "
                    "version or with other groups; train them again with --fresh"
                )
            logits[arrays["held"]] = arrays["held_logits"]
        index = np.sort(np.concatenate([part.held for part in self.parts]))
        return Predictions(logits[index], index, dataset.train.labels[index])

    def load(self, configuration: Configuration) -> Examples:
        """The samples that the run of a part is trained on, and those it predicts."""
        return self.parts[configuration.seed - self.setting.seed]


_ROBUST = 0.7
_MANY_CLASSES = 20
"""Classes from which on generalised cross entropy is set nearer to plain cross entropy."""
_NEARLY_PLAIN = 0.15

_LEAST_WEIGHT = 0.18
"""Least share of its weight that a label keeps while the network has learned class frequencies
only, with a margin: at q = 0.7 a class of 5% keeps 0.12 and is learned; one of 3% keeps 0.09, is
never learned, and all its labels look wrong (`benchmarks/audit_rare.py`)."""


def audit_loss(inputs: Inputs, labels: NDArray[np.int64] | None = None) -> str:
    r"""The default loss of an audit's networks.

    Generalised cross entropy: from the first step, labels that the network finds improbable have
    little weight, so that wrong labels are not learned, but hard samples still are. Sparse
    regularization trains better networks, but takes more epochs than a cross-validation can spare.
    With many classes, all labels are improbable to an untrained network; the loss is then closer to
    plain cross entropy.

    So it is if a class is rare, such as fraud: at first, when a network has only learned the class
    frequencies, a label has the weight \(u_y^q\), with \(u_y\) the share of its class.

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
        q = min(q, math.log(_LEAST_WEIGHT) / math.log(rarest))
    return f"gce(q={round(q, 2):g})"
