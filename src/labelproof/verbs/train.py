"""`labelproof.train`: train a network by a configuration, and resume where it was stopped."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from labelproof.data.dataset import Dataset
from labelproof.data.images import OnError
from labelproof.data.load import LabelledData
from labelproof.data.notices import count
from labelproof.data.table import table_stem
from labelproof.experiments.presets import paper_configuration, paper_noise
from labelproof.fitting.attempts import Attempts
from labelproof.fitting.recipe import LARGE, check_network, look_at, network_for, small_network
from labelproof.noise import parse_noise
from labelproof.ranges import choose
from labelproof.training.checkpoint import newest_whole
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples, choose_examples
from labelproof.training.execution import StopRequest, process_group, resolve_precision
from labelproof.training.provenance import mark_data, refuse_other_data
from labelproof.training.record import RunRecord
from labelproof.training.run_folder import ATTEMPTS, RunFolder
from labelproof.training.runner import Event, Job, train_runs
from labelproof.verbs.inputs import Request, choose_folder, take_over
from labelproof.verbs.progress import Callback, Reporter
from labelproof.verbs.run import Run, load_run
from labelproof.verbs.summaries import format_settings, what


class StoppedError(KeyboardInterrupt):
    """Work was stopped by Ctrl-C or by the system, and is saved: the same call resumes it.

    Attributes:
        exit_code: The exit code of a program that is stopped this way.
    """

    def __init__(self, message: str, exit_code: int = 130):
        super().__init__(message)
        self.exit_code = exit_code


def follow(
    events: Iterable[Event],
    job: Job,
    *,
    reporter: Reporter,
    stop: StopRequest,
    fresh: bool = False,
) -> RunRecord:
    """Train with progress, and return the record, unless training fails or is stopped."""
    last: Event | None = None
    with reporter.display(runs=1, epochs=job.configuration.epochs) as display:
        for event in events:
            display.show(event)
            if event.kind != "notice":
                last = event
    if last is not None and last.kind == "finished":
        return last.value
    if last is not None and last.kind == "failed":
        raise last.value
    command = "the same command" + " without --fresh" * fresh
    saved = f"Stopped and saved in {job.folder}; {command} resumes from there"
    if job.folder is not None and newest_whole(job.folder / "checkpoint")[1] is None:
        saved = "Stopped before there was anything to save"
    raise StoppedError(saved, stop.exit_code)


_UNMEASURED = (
    "No accuracy will be measured, because there are no test examples; --validation 0.1 holds out "
    "a tenth of the training examples."
)


@dataclass
class TrainPlan:
    """A training before it starts.

    Attributes:
        configuration: All settings of the run.
        request: The data and the device.
        folder: The run's folder.
        fresh: Whether to remove an earlier run in the folder.
        checkpoint_seconds: Seconds between two checkpoints.
    """

    configuration: Configuration
    request: Request
    folder: Path
    fresh: bool = False
    checkpoint_seconds: float = 30.0

    def __post_init__(self) -> None:
        noise, human = parse_noise(self.configuration.noise), self.request.human_labels
        if noise.kind != "human" and human is not None:
            got = f"--noise {noise}; --labels replaces the data's own labels"
            raise ValueError(f"--human-labels: expected with --noise human:WHICH, got {got}")

    @cached_property
    def examples(self) -> Examples:
        """The training examples."""
        request = self.request
        return choose_examples(self.configuration, request.dataset, human=request.human)

    @cached_property
    def finished(self) -> RunRecord | None:
        """The record of this run, if the folder holds it finished; another run is refused."""
        if self.fresh:
            return None
        record = RunFolder(self.folder).record(self.configuration)
        # Before the processes synchronise, so that all of them refuse and none waits.
        refuse_other_data(self.folder, lambda: mark_data(self.configuration, self.examples))
        return record

    def preview(self) -> None:
        """Print all settings as a file for --config; a run of other settings or data is refused."""
        configuration, execution = self.configuration, self.request.execution
        state = "finished" if self.finished else self._state()
        dataset, used = self.examples.dataset, len(self.examples.used)
        precision = resolve_precision(configuration.precision, execution.device)
        full, rest = divmod(used, configuration.batch_size)
        steps = full + (rest > 1)  # a batch of a single example is left out
        lines = [
            f"device: {execution.device}, {precision}",
            f"examples: {used:,} of {count(dataset.num_classes, 'class', 'classes')}",
            f"noise: {_noise(self.examples.noise_rate, clean=self.examples.clean is not None)}",
            f"steps: {steps:,} in each of {count(configuration.epochs, 'epoch')}",
            *([] if self._measured else [_UNMEASURED]),
            f"output: {self.folder} ({state})",
        ]
        comments = "\n".join(f"# {line}" for line in lines)
        self.request.reporter.say(f"{format_settings(configuration)}\n\n{comments}")

    @property
    def _measured(self) -> bool:
        return "test" in self.examples.dataset.splits or self.configuration.validation > 0

    def _state(self) -> str:
        checkpoint = None if self.fresh else newest_whole(self.folder / "checkpoint")[1]
        if checkpoint is None:
            return "new"
        return f"resumes after epoch {checkpoint.values['epoch']}, step {checkpoint.values['step']}"

    def run(self) -> None:
        """Train, or resume, unless the folder holds the finished run."""
        record, configuration, reporter = self.finished, self.configuration, self.request.reporter
        if record is not None:
            accuracy = record.curve.get("test_accuracy")
            result = f" with an accuracy of {accuracy[-1]:.2f}%" if accuracy else ""
            reporter.say(f"{self.folder} holds this run, finished{result}; --fresh trains it again")
            return
        examples, reading = self.examples, self.request.reading  # examples first: they fill it in
        # A mistake in the network must leave no folder, nor cost an earlier run its own.
        check_network(examples.dataset, configuration)
        if not self._measured:
            reporter.say(_UNMEASURED)
        places = self.request.places(self.folder)
        # How the data were read, for evaluations and audits, as `fit` notes it.
        notes = Attempts(reading.as_values(), configuration.loss, places=places)
        needed = any(notes.asked.values()) or places or (self.folder / ATTEMPTS).exists()
        job = Job(configuration, self.folder)
        with StopRequest() as stop, process_group(self.request.execution) as taken:
            take_over(self.folder, taken, fresh=self.fresh)
            if needed and taken.rank == 0:
                notes.write(self.folder)
            events = train_runs(
                [job],
                taken,
                load=lambda _: examples,
                checkpoint_seconds=self.checkpoint_seconds,
                stop=stop,
            )
            record = follow(events, job, reporter=reporter, stop=stop, fresh=self.fresh)
            reporter.say(_summary(record, examples, self.folder))


def _summary(record: RunRecord, examples: Examples, folder: Path) -> str:
    """The results of a run, and what to do next."""
    dataset, accuracy = examples.dataset, "not measured, because there are no test examples"
    command = ["predict", str(folder), "NEW.csv" if dataset.tabular else "NEW-IMAGES"]
    if held := record.curve.get("validation_accuracy"):
        accuracy = f"{held[-1]:.2f}% of held-out labels after the last epoch"
    if "test_accuracy" in record.curve:
        tested = count(len(dataset.test), f"test {what(dataset)}")
        accuracy = f"{record.final_accuracy:.2f}% of {tested} after the last epoch"
        command = ["evaluate", str(folder)]
    noise = _noise(record.noise_rate, clean=examples.clean is not None)
    if record.noise_rate and (memorised := record.curve.get("wrong_fitted")):
        noise += f"; {100 * memorised[-1]:.1f}% of these are memorised"
    following = shlex.join(["labelproof", *command])
    return f"Accuracy: {accuracy}\nNoise: {noise}\nRun: {folder}\nNext: {following}"


def _noise(rate: float, *, clean: bool) -> str:
    if clean:
        return f"{100 * rate:.1f}% of the training labels are wrong"
    return f"{100 * rate:.1f}% of the training labels were changed; how many were wrong is unknown"


def default_folder(
    configuration: Configuration, labels: str | os.PathLike[str] | None = None
) -> Path:
    """The folder of a run without --output.

    Corrected labels give another folder, so that the earlier run stays for comparison.
    """
    name = configuration.name if labels is None else f"{configuration.name}-{table_stem(labels)}"
    return Path("labelproof-runs") / name


def train(
    configuration: Configuration,
    output: str | os.PathLike[str] | None = None,
    *,
    data: LabelledData | None = None,
    label: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    drop: tuple[str, ...] = (),
    group: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    device: str = "auto",
    compile: bool | None = None,
    workers: int | None = None,
    checkpoint_seconds: float = 30.0,
    human_labels: str | os.PathLike[str] | None = None,
    on_error: OnError = "raise",
    data_root: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    progress: Reporter | Callback | bool | None = None,
) -> Run:
    """Train a network by a configuration.

    If stopped, the same call with the same `output` resumes, with the same result. A finished run
    is not trained again, and a run never resumes on different data or labels.

    Args:
        configuration: All settings of the run, and the name or path of its data.
        output: The run's folder. Without one the run is kept in a temporary folder, which is
            removed with the returned `Run`.
        data: The data, if they are not those that the configuration names: a DataFrame, `(X, y)` or
            a dataset.
        label: See `fit`.
        labels: See `fit`.
        drop: See `fit`.
        group: See `fit`.
        decimal: See `fit`.
        thousands: See `fit`.
        device: See `fit`.
        compile: Compile network and loss; by default on CUDA.
        workers: See `fit`.
        checkpoint_seconds: Seconds between two checkpoints.
        human_labels: The file of human labels, for noise such as `human:worse`.
        on_error: `"skip"` leaves out images that cannot be read and rows without a label.
        data_root: See `fit`.
        fresh: See `fit`.
        progress: As for `labelproof.fit`.

    Raises:
        DivergedError: The loss is NaN.
        StoppedError: Training was stopped by Ctrl-C, and is saved.
        ValueError: The folder holds another run, or the data cannot be used.

    Example:
        >>> import labelproof
        >>> tiny = labelproof.Configuration("digits", network="mlp(hidden=8,depth=1)", epochs=1)
        >>> labelproof.train(tiny, device="cpu").epochs
        1
    """
    if not isinstance(configuration, Configuration):
        raise TypeError(f"configuration: expected labelproof.Configuration({configuration!r})")
    given: dict[str, Any] = dict(locals())
    for name in ("configuration", "output", "checkpoint_seconds", "fresh"):
        del given[name]
    given["data"] = configuration.data if data is None else data
    request = Request(**given)
    folder, keeper = choose_folder(output, configuration.name)
    TrainPlan(configuration, request, folder, fresh, checkpoint_seconds).run()
    kept = None if request.named else request.data
    return load_run(folder, device, network=configuration.network, given=kept, keeper=keeper)


def choose_configuration(
    values: Mapping[str, Any], *, preset: str | None, look: Callable[[], Dataset]
) -> Configuration:
    """The configuration for some settings, completed by a preset or by defaults for the data.

    Example:
        >>> values = {"data": "cifar10", "loss": "ce+sr", "noise": "symmetric:0.6", "epochs": 3}
        >>> paper = choose_configuration(values, preset="paper", look=lambda: None)
        >>> paper.network, paper.epochs, paper.noise
        ('cnn8', 3, 'symmetric:0.6:exact')
        >>> paper.loss
        'ce+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1,normalize=true,clamp=1e-7)'
        >>> from labelproof.data import load_digits
        >>> choose_configuration({"data": "digits"}, preset=None, look=load_digits).network
        'cnn4(width=12)'
    """
    given = dict(values)
    if "data" not in given:
        raise ValueError("data: expected a dataset's name or a path, such as --data digits")
    try:
        if preset is not None:
            choose("preset", preset, ("paper",))
            return _from_paper(given)
        # Errors in the settings are raised before any data are read.
        Configuration.from_values(given)
        return Configuration.from_values({**_defaults(given, look), **given})
    except TypeError as error:  # a file may hold values of any type
        raise ValueError(str(error)) from None


def _from_paper(given: dict[str, Any]) -> Configuration:
    data, noise = given.pop("data"), given.pop("noise", "none")
    method = given.pop("loss", "CE+SR")
    for name, text in (("data", data), ("noise", noise), ("loss", method)):
        if not isinstance(text, str):
            raise TypeError(f"{name}: expected a text, got {text!r} ({type(text).__name__})")
    spec = parse_noise(noise)
    if spec.kind in ("symmetric", "asymmetric") and not spec.exact:
        noise = paper_noise(data, spec.kind, spec.rate)
    return paper_configuration(data, method, noise=noise, **given)


def _defaults(given: Mapping[str, Any], look: Callable[[], Dataset]) -> dict[str, str]:
    """A network for the size of the images, and crops for large ones."""
    if "network" in given and "augmentation" in given:
        return {}
    dataset = look()
    if dataset.tabular:
        return network_for(look_at(dataset))
    _, height, width = dataset.image_shape
    if max(height, width) <= 32:
        return {"network": small_network(height, width)}
    # The user's network for images in memory may be made for just their size.
    if "network" in given and isinstance(dataset.train.images, np.ndarray):
        return {}
    return {"network": LARGE, "augmentation": "resized-crop:224,flip"}
