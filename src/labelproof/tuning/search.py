"""The search: try settings on noisy labels, abandon those that fail, and choose the best."""

from __future__ import annotations

import hashlib
import html
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from labelproof.data import Dataset, Split, hold_out
from labelproof.data.splits import folds as cut_folds
from labelproof.losses import format_loss, parse_loss
from labelproof.ranges import whole, within
from labelproof.seeds import derive_seed
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples, choose_examples, choose_weights
from labelproof.training.execution import Execution, StopRequest, choose_execution
from labelproof.training.runner import Event, Job, train_runs
from labelproof.tuning.collapse import Watch, back_off, hopeless
from labelproof.tuning.space import first_settings, propose
from labelproof.tuning.trial import Trial, choose_trial, rank, read_journal, write_journal


@dataclass(frozen=True, repr=False)
class Search:
    """The result of a search.

    Attributes:
        configuration: The settings that all trials share, with the loss and the l1 penalty of the
            choice, if there is one.
        tried: All trials, the best first.
        choice: The best trial, or `None` if no run finished.
        stopped: Whether the search was stopped before all trials were done.
    """

    configuration: Configuration
    tried: tuple[Trial, ...]
    choice: Trial | None
    stopped: bool = False

    @property
    def best(self) -> Configuration | None:
        """The configuration with the best loss, for `labelproof.train`; `None` if there is none."""
        return None if self.choice is None else self.configuration

    @property
    def trials(self) -> pd.DataFrame:
        """A row for each trial, the best first; accuracies are in percent, on noisy labels."""
        names = ("loss", "l1", "accuracy", "standard_error", "state", "origin", "why")
        rows = [{name: getattr(trial, name) for name in names} for trial in self.tried]
        numbers = pd.Index([trial.number for trial in self.tried], name="trial")
        return pd.DataFrame(rows, columns=list(names), index=numbers)

    def __repr__(self) -> str:
        best = "none" if self.choice is None else f"{self.choice.text}, {self.choice.accuracy:.2f}%"
        return f"Search({len(self.tried)} trials, best: {best})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.trials.to_html()}"


def tune(
    dataset: Dataset,
    configuration: Configuration,
    *,
    trials: int = 20,
    at_once: int = 1,
    seconds: float | None = None,
    execution: Execution | None = None,
    folds: int | str = "auto",
    losses: Sequence[str] = (),
    prune: bool = True,
    file: Path | None = None,
    stop: StopRequest | None = None,
    on_event: Callable[[Event | Trial], None] | None = None,
) -> Search:
    """Choose the loss and its hyperparameters by accuracy on held-out noisy labels.

    True labels and test examples are never used, even if the dataset has them.

    Args:
        dataset: The training data, with noisy labels.
        configuration: How to train every run; its loss is replaced. Its noise, if any, is added to
            the labels first, as a rehearsal on data with correct labels.
        trials: Number of settings to try, including those of a search that is resumed.
        at_once: Runs at a time on the device.
        seconds: Time limit, by default none. After it no run starts, and active ones are abandoned
            as soon as one setting is complete.
        execution: The device, and how to use it; by default the fastest available.
        folds: Folds of the cross-validation of each setting; 1 holds out a single part. `auto`
            takes 3 for fewer than 10,000 examples, else 1.
        losses: Losses of your own to try first, as text.
        prune: Whether to abandon settings early that are clearly behind.
        file: The file of the search, written after every run; the search resumes from it.
        stop: Checked between steps; a request to stop ends the search with the best so far. By
            default, Ctrl-C is such a request.
        on_event: Called with each `Event` of a run, and each `Trial` that is over.

    Example:
        >>> from labelproof.data import load_digits
        >>> setting = Configuration(
        ...     "digits", noise="symmetric:0.4", network="mlp", epochs=2, learning_rate=0.1
        ... )
        >>> found = tune(load_digits(), setting, trials=2, folds=1)
        >>> sorted(found.trials["loss"])
        ['ce', 'gce(q=0.7)']
        >>> found.choice.loss == found.best.loss
        True
    """
    trials, at_once = whole("trials", trials, 1), whole("at_once", at_once, 1)
    limit = math.inf if seconds is None else within("seconds", seconds, 0)
    running = _RunningSearch(
        replace(configuration, validation=0.0),
        choose_validation(dataset, configuration, parts=folds),
        total=trials,
        deadline=time.monotonic() + limit,
        requested=[format_loss(parse_loss(loss)) for loss in losses],
        prune=prune,
        file=file,
    )
    with StopRequest() if stop is None else nullcontext(stop) as request:
        for event in running.run(execution or choose_execution(), at_once=at_once, stop=request):
            if on_event is not None:
                on_event(event)
        stopped = request.wanted
    chosen = choose_trial(running.trials)
    if chosen is not None:
        configuration = chosen.configure(configuration)
    return Search(configuration, tuple(rank(running.trials)), chosen, stopped)


_SMALL = 10_000
"""Number of examples below which a single held-out part is too small, and folds are worth their
cost; also the number held out of a larger dataset, within a tenth to a fifth of it."""

_FOLDS = 3


def choose_validation(
    dataset: Dataset,
    configuration: Configuration,
    *,
    parts: int | str = "auto",
    human: str | os.PathLike[str] | None = None,
) -> list[Examples]:
    """Add the configuration's noise to the labels, if it has any, and make the folds.

    Their dataset has the training images and given labels, and no test set.

    Example:
        >>> from labelproof.data import load_digits
        >>> folds = choose_validation(load_digits(), Configuration("digits", noise="symmetric:0.4"))
        >>> [len(examples.held) for examples in folds], list(folds[0].dataset.splits)
        ([449, 449, 449], ['train'])
    """
    plain = replace(configuration, validation=0.0)
    chosen = choose_examples(plain, dataset, human=human)
    count = count_folds(parts, len(chosen.used))
    if parts == "auto" and dataset.train.groups is not None:
        count = min(count, len(np.unique(dataset.train.groups[chosen.used])))
    seed = derive_seed(configuration.seed, "validation", 0)
    given, groups = chosen.given, dataset.train.groups
    if count == 1:
        share = min(max(_SMALL / len(chosen.used), 0.1), 0.2)
        cut = [hold_out(given, share, seed=seed, indices=chosen.used, groups=groups)]
    else:
        cut = cut_folds(given, count, seed=seed, indices=chosen.used, groups=groups)
    if any(not len(part.validation) or not len(part.train) for part in cut):
        raise ValueError(
            f"dataset: {len(chosen.used)} examples are too few to train on some and to validate on "
            "the rest"
        )
    noisy = replace(dataset, splits={"train": Split(dataset.train.images, given)}, clean=False)
    folds = [Examples(noisy, part.train, given, None, 0.0, part.validation) for part in cut]
    return [replace(each, weight=choose_weights(configuration, given, each.used)) for each in folds]


def identify(folds: Sequence[Examples]) -> dict[str, Any]:
    """Values by which a search of the same labels and folds is recognised."""
    digest = hashlib.sha256(np.ascontiguousarray(folds[0].given, "<i8").tobytes())
    for fold in folds:
        digest.update(np.ascontiguousarray(fold.held, "<i8").tobytes())
    return {"rows": [len(fold.held) for fold in folds], "labels": digest.hexdigest()[:16]}


def count_folds(parts: int | str, examples: int) -> int:
    """The number of folds of each setting.

    >>> count_folds("auto", 1347), count_folds("auto", 60_000), count_folds(5, 60_000)
    (3, 1, 5)
    """
    if parts == "auto":
        return _FOLDS if examples < _SMALL else 1
    return whole("folds", parts, 1)


@dataclass
class _RunningSearch:
    """A search in progress: its trials, the settings to try next, and the active runs."""

    configuration: Configuration
    folds: Sequence[Examples]
    total: int
    deadline: float
    requested: Sequence[str]
    prune: bool
    file: Path | None
    trials: list[Trial] = field(default_factory=list)
    active: dict[Job, tuple[Trial, int, Watch]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        epochs, dataset = self.configuration.epochs, self.folds[0].dataset
        self.classes = dataset.num_classes
        known = first_settings(epochs=epochs, classes=self.classes, images=not dataset.tabular)
        self.waiting = [(loss, self.configuration.l1, "asked") for loss in self.requested]
        self.waiting += [(loss, l1, "start") for loss, l1 in known if loss not in self.requested]
        self.about = self.configuration.as_values() | identify(self.folds)
        del self.about["loss"]
        if self.file is not None:
            self.trials = read_journal(self.file, self.about)
        for trial in self.trials:
            self._follow(trial)

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.deadline

    def run(
        self, execution: Execution, *, at_once: int, stop: StopRequest
    ) -> Iterator[Event | Trial]:
        """Train until all trials are over, the time is up, or a stop is requested."""
        # Whether a trial's later folds are needed is known only after its first, when the jobs may
        # have run out: so there may be several rounds.
        while not (stop.wanted or self.late) and (
            len(self.trials) < self.total or "waiting" in [trial.state for trial in self.trials]
        ):
            for event in train_runs(
                self._jobs(),
                execution,
                load=lambda each: self.folds[each.seed - self.configuration.seed],
                at_once=at_once,
                stop=stop,
                give_up=self._judge,
            ):
                yield event
                if event.kind not in ("started", "epoch", "notice"):
                    trial = self._end(event)
                    if trial.state != "waiting":
                        yield trial

    def _jobs(self) -> Iterator[Job]:
        while not self.late:
            # One fold at a time, so that a trial abandoned in its first costs no more than that.
            busy = [trial.number for trial, _, _ in self.active.values()]
            open = (each for each in self.trials if each.state == "waiting")
            trial = next((each for each in open if each.number not in busy), None)
            if trial is None:
                if len(self.trials) >= self.total:
                    return
                trial = self._propose()
                self.trials.append(trial)
            # The seed identifies the fold, and is the same for all trials, so that they differ
            # only in the loss.
            fold = len(trial.finished)
            seed = self.configuration.seed + fold
            job = Job(replace(trial.configure(self.configuration), seed=seed))
            self.active[job] = trial, fold, Watch(self.folds[fold], job.configuration)
            yield job

    def _propose(self) -> Trial:
        epochs, seed = self.configuration.epochs, self.configuration.seed
        tried = {trial.loss for trial in self.trials}
        self.waiting = [each for each in self.waiting if each[0] not in tried]
        if self.waiting:
            loss, l1, origin = self.waiting.pop(0)
        else:
            loss = propose(self.trials, epochs=epochs, classes=self.classes, seed=seed)
            l1, origin = 0.0, "search"
        rows = self.about["rows"]
        return Trial(len(self.trials), loss, origin, rows=rows, epochs=epochs, l1=l1)

    def _judge(self, event: Event) -> bool:
        """Add an epoch to its trial; whether the run is to be abandoned."""
        trial, fold, watch = self.active[event.job]
        trial.add(fold, event.value["validation_accuracy"])
        collapsed = watch.look(event.value)
        if trial.state != "waiting":
            return True
        if collapsed is not None:
            trial.state, trial.why = "collapsed", collapsed
        elif self.prune and fold == 0 and (why := hopeless(trial, self.trials)) is not None:
            trial.state, trial.why = "pruned", why
        late = self.late and any(other.state == "complete" for other in self.trials)
        return trial.state != "waiting" or late

    def _end(self, event: Event) -> Trial:
        """Note how a run ended; returns its trial."""
        trial, fold, _ = self.active.pop(event.job)
        if event.kind == "failed":
            trial.state, trial.why = "failed", str(event.value)
        elif event.kind == "finished":
            trial.finished.append(fold)
            if trial.state == "waiting" and len(trial.finished) == len(trial.rows):
                trial.state = "complete"
        trial.forget_begun()
        self._follow(trial)
        if self.file is not None:
            write_journal(self.file, self.trials, self.about)
        return trial

    def _follow(self, trial: Trial) -> None:
        """Queue a weaker penalty after a trial whose penalty was too strong."""
        # Only for settings that are known to work elsewhere, and once: if half of the weight is too
        # much as well, the weight is not the problem.
        if trial.state in ("collapsed", "failed") and trial.origin in ("start", "asked"):
            weaker = back_off(trial.loss)
            if weaker is not None and weaker not in [loss for loss, _, _ in self.waiting]:
                self.waiting.insert(0, (weaker, trial.l1, "back-off"))
