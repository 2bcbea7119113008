"""`labelproof.fit`: from your own data to a trained classifier and an audit of its labels."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelproof.audit.folder import AUDIT, INSIDE, PAGE, Audit
from labelproof.data import Dataset
from labelproof.data.images import OnError
from labelproof.data.load import LabelledData
from labelproof.fitting.attempts import Attempts, read_attempts, resume_attempts, train_robustly
from labelproof.fitting.frozen import frozen_settings, train_frozen
from labelproof.fitting.recipe import check_feasible
from labelproof.losses import Loss
from labelproof.models.blend import BLEND
from labelproof.models.pretrained import is_pretrained
from labelproof.tabular.run import blend_configuration, train_blend
from labelproof.training import Configuration, Job, RunRecord, StopRequest, choose_examples
from labelproof.training.provenance import MODEL
from labelproof.training.record import RECORD
from labelproof.training.run_folder import SEARCH, RunFolder, owning, refuse_file
from labelproof.tuning.space import DEFAULT_TRIALS
from labelproof.verbs.audit import write_page
from labelproof.verbs.budget import fit_into, time_limit
from labelproof.verbs.inputs import RUN_FILES, Request, choose_folder, refuse_foreign, take_over
from labelproof.verbs.progress import Callback, Reporter
from labelproof.verbs.run import Run, audit_run, load_run
from labelproof.verbs.summaries import describe_fit, describe_start, format_settings
from labelproof.verbs.train import follow
from labelproof.verbs.tune import search

_MINUTES = 10.0
"""Default time limit for images on a CPU."""


class FitPlan:
    """A fit before training: the data are read, and the recipe is chosen.

    The arguments are those of `fit`. What is impossible is refused here.
    """

    def __init__(
        self,
        data: LabelledData,
        *,
        output: str | os.PathLike[str] | None = None,
        trials: int | None = None,
        minutes: float | None = None,
        weights: str | os.PathLike[str] | None = None,
        balanced: bool = False,
        audit: bool = True,
        fresh: bool = False,
        **options: Any,
    ):
        options["class_weight"] = "balanced" if balanced else None
        self.request = request = Request(data, verb=fit, **options)
        self.folder, self.keeper = choose_folder(output, "run")
        self.trials, self.weights, self.audited, self.fresh = trials, weights, audit, fresh
        self.reporter, self.dataset = request.reporter, request.dataset
        self.auto = request.loss == "auto"
        if trials is not None and not self.auto:
            raise ValueError("--trials: expected with --loss auto, got it without")
        settings = {**request.settings, "loss": request.loss}
        blend = blend_configuration(self.dataset, request.called, settings)
        self.frozen = self._is_frozen()
        self.configuration = blend or self._recipe({})
        if blend is None:
            check_feasible(self.dataset, self.configuration)
            if not self.configuration.validation:
                raise ValueError("validation: expected a share of labels to measure on, got 0")
        if weights is not None and not Path(weights).is_file():
            raise ValueError(f"--weights: expected a safetensors file, and {weights} is none")
        self.minutes = time_limit(request, minutes, _MINUTES, frozen=self.frozen)
        size = len(self.dataset.train)
        held = self.configuration.validation * size
        others = held + len(self.dataset.splits.get("test", ()))
        self.configuration, time = fit_into(
            self.minutes,
            request,
            self.configuration,
            self._recipe,
            examples=size - held + others / 3,  # predicting costs a third of training
            kept=None if fresh else read_attempts(self.folder),
        )
        self.lines = describe_start(self.dataset, self.configuration, auto=self.auto).splitlines()
        if self.frozen:
            self.lines.append("Frozen: only its last layer is trained; the rest keeps its weights")
        self.lines += [time] if time else []
        refuse_file(self.folder)
        refuse_foreign(self.folder, RUN_FILES)

    def preview(self) -> None:
        """Print the plan as comments, and the recipe as a file that `labelproof train` reads."""
        lines = [f"# {line}" for line in self.lines]
        if self.configuration.network == BLEND:
            lines.append("# Classifiers are blended; --loss or --network trains a network")
        else:
            lines.append(format_settings(self.configuration))
            if beside := self.request.reading.flags():
                lines.append(f"# and on the command line: {shlex.join(beside)}")
        self.reporter.say("\n".join(lines))

    def _is_frozen(self) -> bool:
        """Whether only the last layer is trained: with weights, or a pretrained net on a CPU."""
        settings, network = self.request.settings, self.request.settings.get("network")
        if self.weights is None:
            slow = self.request.slow and settings.get("epochs") is None
            return is_pretrained(network) and slow and not self.auto
        if self.dataset.tabular or network is None or self.auto:
            raise ValueError("weights: expected with --network, on images, without --loss auto")
        return True

    def _recipe(self, more: dict[str, Any]) -> Configuration:
        """The recipe for a network, with `more` in place of its settings."""
        decided = {name: v for name, v in self.request.settings.items() if v is not None}
        if self.frozen:
            decided = frozen_settings(self.dataset, decided["network"]) | decided
        if self.request.loss is not None and not self.auto:
            decided["loss"] = self.request.loss
        return self.request.recipe(search=self.auto, **{"validation": 0.1} | decided | more)

    def run(self) -> None:
        """Train, or resume the run in the folder, and audit its labels."""
        self.reporter.say("\n".join(self.lines))
        folder, execution = self.folder, self.request.execution
        take_over(folder, execution, fresh=self.fresh)
        asked = self.request.asked(
            self.configuration,
            auto=self.auto,
            image_memory=self.request.image_memory,
            minutes=self.minutes,
            weights=None if self.weights is None else os.fspath(self.weights),
        )
        attempts = resume_attempts(folder, asked, self.configuration.loss)
        attempts.places = self.request.places(folder)
        configuration = attempts.configure(self.configuration)
        record, kept, prepared = RunFolder(folder).record(configuration), None, self.dataset
        if record is not None:
            if execution.rank == 0:
                attempts.write(folder)  # the data may have been moved
            self.reporter.say("Finished before, and not trained again; --fresh starts over:")
            # None if the run was killed before its page was written; it is then audited now.
            kept = _kept_audit(folder)
        elif self.configuration.network == BLEND:
            with owning(folder):
                attempts.write(folder)
            with self.reporter.working("Comparing classifiers"):
                record = train_blend(configuration, self.dataset, folder)
        else:
            record, prepared = self._train(configuration, attempts)
        audit = None
        if self.audited and execution.rank == 0:
            audit = kept or self._audit(prepared)
        corrected = self.request.reading.labels is not None
        summary = describe_fit(record, folder, self.dataset, audit, corrected=corrected)
        self.reporter.say(summary)

    def _train(self, configuration: Configuration, attempts: Attempts) -> tuple[RunRecord, Dataset]:
        """Train a network; returns its record, and the data as the network sees them."""
        folder, execution = self.folder, self.request.execution
        with StopRequest() as stop:
            prepared = self.request.decode(configuration)
            if self.auto and not attempts.given_up and not (folder / MODEL).exists():
                with owning(folder):
                    configuration = search(
                        prepared,
                        configuration,
                        trials=self.trials or DEFAULT_TRIALS,
                        file=folder / SEARCH,
                        execution=execution,
                        stop=stop,
                        reporter=self.reporter,
                    ).configuration
                attempts.loss, attempts.l1 = configuration.loss, configuration.l1
            job = Job(configuration, folder)
            weaken = self.request.loss is None or self.auto
            more = {"attempts": attempts, "weaken": weaken, "stop": stop}
            if self.frozen:
                events = train_frozen(job, prepared, execution, weights=self.weights, **more)
            else:
                events = train_robustly(
                    [job],
                    execution,
                    load=lambda chosen: choose_examples(chosen, prepared),
                    note=lambda: attempts.write(folder),
                    **more,
                )
            record = follow(events, job, reporter=self.reporter, stop=stop, fresh=self.fresh)
            return record, prepared

    def _audit(self, prepared: Dataset) -> Audit:
        """Audit the labels by the trained run, and write the audit and its page."""
        audit = audit_run(self.load(), self.request, prepared)
        with owning(self.folder / INSIDE):
            audit.write(self.folder / INSIDE)
            write_page(self.folder / INSIDE, audit, self.reporter)
        return audit

    def load(self) -> Run:
        """The run in the folder."""
        request, network = self.request, self.configuration.network
        given = None if request.named else request.data
        device = str(request.execution.device)
        return load_run(self.folder, device, network=network, given=given, keeper=self.keeper)


def fit(
    data: LabelledData,
    label: str | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
    annotators: Sequence[str] = (),
    drop: str | Sequence[str] = (),
    group: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    loss: str | Loss | None = None,
    trials: int | None = None,
    network: str | None = None,
    weights: str | os.PathLike[str] | None = None,
    epochs: int | None = None,
    balanced: bool = False,
    validation: float | None = None,
    noise: str | None = None,
    seed: int = 1,
    device: str = "auto",
    workers: int | None = None,
    image_memory: int | None = None,
    minutes: float | None = None,
    audit: bool = True,
    output: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    on_error: OnError = "skip",
    data_root: str | os.PathLike[str] | None = None,
    progress: Reporter | Callback | bool | None = None,
    **settings: Any,
) -> Run:
    """Train on data when an unknown share of the labels is wrong.

    On a table, linear models, kernels and a forest are compared on held-out labels, and the best
    are blended. On images, or with a loss, a network or any other training setting, a network is
    trained, with a recipe for the kind and size of the data. Its loss is robust to wrong labels; a
    penalty that is too strong for the data is weakened. If stopped, the same call with the same
    `output` resumes.

    Args:
        data: The path of a folder of images, a table or arrays, or a dataset's name; a DataFrame
            with a label column; `(X, y)` with rows or images; or a dataset.
        label: The label column of a table; by default the one called label, class, target or the
            like.
        labels: A table with the columns sample and label that replaces the data's own labels, such
            as a review exports; samples with an empty label are left out.
        annotators: Columns of a table with the labels of several annotators, instead of `label`;
            the class that they make most probable becomes the label. The accuracy of each is
            estimated.
        drop: Columns of a table to ignore.
        group: A column that identifies samples that belong together, such as a patient; they stay
            on one side of every split. The column is not a feature.
        decimal: The decimal separator of numbers in a table.
        thousands: The thousands separator of numbers in a table.
        loss: What a network minimises, such as `ce`, `gce(q=0.7)` or `ce+sr`; by default sparse
            regularization, adapted to the data and the number of epochs. `auto` tries several on
            held-out labels, which takes many times as long; see `labelproof tune`.
        trials: With the loss `auto`: number of settings to try; 12 by default.
        network: cnn4, cnn8, resnet18, resnet34, resnet50, resnet18-imagenet, resnet34-imagenet,
            resnet50-imagenet, mlp, with arguments such as `cnn4(width=12)`; `timm/NAME` and
            `torchvision/NAME` are pretrained; `package.module:factory` is your own and runs your
            code. By default one that fits the data.
        weights: A safetensors file of weights for `network`. They are frozen; only the last layer
            is trained. On a CPU, pretrained networks without `epochs` are frozen as well.
        epochs: Passes over the training examples; by default as many as suit the data.
        balanced: Weight classes equally, whatever their size.
        validation: Share of the examples held out to validate a network; by default a tenth. A
            blend holds out every row once.
        noise: Label noise to add first, such as `symmetric:0.4`, to test on data with correct
            labels.
        seed: Seed of the noise, the weights, the order of examples and augmentation; by default 1.
        device: `auto` (the fastest available), `cpu`, `cuda`, `cuda:1` or `mps`.
        workers: Processes that decode images that do not fit in memory; by default one per core, at
            most 16.
        image_memory: Megabytes for decoded images, by default 400, or 4000 with a GPU; beyond that,
            images are decoded again in every epoch.
        minutes: Approximate time limit for images on a CPU, by default 10: network, image size and
            epochs are chosen by the speed of the first steps. The folder stores the choice. Not
            with `epochs`.
        audit: Audit the labels at the end; the audit and its page are written to the folder audit
            in the run's folder.
        output: The run's folder. Without one the run is kept in a temporary folder, which is
            removed with the returned `Run`.
        fresh: Remove what is in `output`, and start over.
        on_error: `"raise"` refuses data with images that cannot be read or rows without a label;
            `"skip"` leaves them out with a warning.
        data_root: Folder of the published datasets; by default the user's cache folder.
        progress: `True` shows bars on a terminal, plain lines elsewhere. A function is called with
            each [`Event`][labelproof.training.Event] and each line. Silent by default.
        settings: Any other setting of [`Configuration`][labelproof.training.Configuration], such as
            `batch_size`, `learning_rate` or `augmentation`.

    Raises:
        DivergedError: The loss is NaN.
        StoppedError: Training was stopped by Ctrl-C, and is saved.
        ValueError: The folder holds another run, or the data cannot be used.

    Example:
        >>> import labelproof, numpy as np, pandas as pd
        >>> generator = np.random.default_rng(0)
        >>> kinds = np.repeat(["fig", "pear"], 50)
        >>> table = pd.DataFrame({"size": generator.normal(size=100) + (kinds == "fig")})
        >>> run = labelproof.fit((table, kinds))
        >>> run.predict(table).shape
        (100, 4)
    """
    arguments = dict(locals())
    del arguments["settings"]
    plan = FitPlan(**arguments, **settings)
    plan.run()
    return plan.load()


def _kept_audit(folder: Path) -> Audit | None:
    """The audit of the finished run, if it and its page are complete and newer than the run."""
    files = [folder / RECORD, folder / INSIDE / AUDIT, folder / INSIDE / PAGE]
    try:
        # In the order of writing: an older page is of an earlier run.
        times = [file.stat().st_mtime_ns for file in files]
        return Audit.read(folder / INSIDE) if times == sorted(times) else None
    except (OSError, ValueError):
        return None
