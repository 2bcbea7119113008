"""The search: settings tried on noisy labels, those that fail abandoned, the best one chosen."""

from __future__ import annotations

import hashlib
import html
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from labelproof.data import Dataset, Holdout, Split, hold_out
from labelproof.data.splits import folds as cut_folds
from labelproof.losses import format_loss, parse_loss
from labelproof.ranges import whole, within
from labelproof.seeds import derive_seed
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples, balanced_weights, choose_examples
from labelproof.training.execution import Execution, StopRequest, choose_execution
from labelproof.training.runner import Event, Job, train_runs
from labelproof.tuning.collapse import Watch, back_off, hopeless
from labelproof.tuning.space import first_settings, propose
from labelproof.tuning.trial import Trial, choose_trial, rank, read_journal, write_journal


@dataclass(frozen=True, repr=False)
class Search:
    """What a search came to.

    Attributes:
        configuration: What all trials have in common; its loss, and l1 penalty, are those of the
            choice, where there is one.
        tried: All trials, the best first.
        choice: The best trial, or `None` if no run was finished.
        stopped: Whether it was stopped before all trials were done.
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
    """Choose the loss and its hyperparameters by accuracy on noisy labels that are held out.

    No true label and no test example is looked at, also where the dataset has them.

    Args:
        dataset: What to learn from, with its labels as they are.
        configuration: How every run is trained; its loss is replaced. Its noise, if it has any, is
            put on the labels first: a rehearsal on data whose labels are right.
        trials: How many settings are tried, those of an earlier part of the search among them.
        at_once: Runs at a time on the device.
        seconds: After so long nothing more is started, and what is under way is abandoned as soon
            as one setting is through; no limit unless given.
        execution: On which device, and how; the fastest there is unless given.
        folds: Each setting is trained so many times, each time validated on another part of the
            examples; 1 holds out a single part. `auto` takes 3 for fewer than 10,000 examples.
        losses: Settings of one's own to try first, as text.
        prune: Whether settings that are clearly behind are abandoned before their last epoch.
        file: Where the search is kept after every run; it resumes from what is there.
        stop: Asked between steps; when it is wanted, the search ends with the best so far. Unless
            given, Ctrl-C is such a wish.
        on_event: Told whatever happens to a run (an `Event`), and each `Trial` that is over.

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
    if seconds is not None:
        seconds = time.monotonic() + within("seconds", seconds, 0)
    course = Course(
        replace(configuration, validation=0.0),
        choose_validation(dataset, configuration, parts=folds),
        wanted=trials,
        deadline=seconds,
        asked=[format_loss(parse_loss(loss)) for loss in losses],
        prune=prune,
        file=file,
    )
    with StopRequest() if stop is None else nullcontext(stop) as request:
        for event in course.run(execution or choose_execution(), at_once=at_once, stop=request):
            if on_event is not None:
                on_event(event)
        stopped = request.wanted
    chosen = choose_trial(course.trials)
    if chosen is not None:
        configuration = chosen.configure(configuration)
    return Search(configuration, tuple(rank(course.trials)), chosen, stopped)


_SMALL = 10_000
"""Below so many examples one part that is held out says too little, and folds are worth their
cost; it is also what is held out of a large set, as far as that is no more than a fifth of it."""

_FOLDS = 3


@dataclass(frozen=True)
class Validation:
    """A dataset with the given labels in place of its own, and how it is cut.

    Attributes:
        dataset: Training images and given labels; no test set.
        parts: For each fold, what is learned from and what is validated on.
        balanced: Whether every class counts the same.
    """

    dataset: Dataset
    parts: tuple[Holdout, ...]
    balanced: bool = False

    @property
    def rows(self) -> list[int]:
        """How many examples each fold validates on."""
        return [len(part.validation) for part in self.parts]

    def examples(self, fold: int) -> Examples:
        """What the run of a fold gets."""
        labels, part = self.dataset.train.labels, self.parts[fold]
        weight = None
        if self.balanced:
            weight = balanced_weights(labels, part.train, num_classes=self.dataset.num_classes)
        return Examples(self.dataset, part.train, labels, None, 0.0, part.validation, weight)

    def fingerprint(self) -> dict[str, Any]:
        """What tells whether another search was of the same labels, cut in the same way."""
        digest = hashlib.sha256(np.ascontiguousarray(self.dataset.train.labels, "<i8").tobytes())
        for part in self.parts:
            digest.update(np.ascontiguousarray(part.validation, "<i8").tobytes())
        return {"rows": self.rows, "labels": digest.hexdigest()[:16]}


def choose_validation(
    dataset: Dataset,
    configuration: Configuration,
    *,
    parts: int | str = "auto",
    human: str | os.PathLike[str] | None = None,
) -> Validation:
    """Put the configuration's noise on the labels, if it has any, and cut what comes out.

    Example:
        >>> from labelproof.data import load_digits
        >>> noisy = Configuration("digits", noise="symmetric:0.4")
        >>> validation = choose_validation(load_digits(), noisy)
        >>> validation.rows, "test" in validation.dataset.splits
        ([449, 449, 449], False)
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
            f"dataset: {len(chosen.used)} examples are too few to learn from some and validate on "
            "the others"
        )
    noisy = replace(dataset, splits={"train": Split(dataset.train.images, given)}, clean=False)
    return Validation(noisy, tuple(cut), configuration.class_weight == "balanced")


def count_folds(parts: int | str, examples: int) -> int:
    """How many times a setting is trained.

    >>> count_folds("auto", 1347), count_folds("auto", 60_000), count_folds(5, 60_000)
    (3, 1, 5)
    """
    if parts == "auto":
        return _FOLDS if examples < _SMALL else 1
    return whole("folds", parts, 1)


@dataclass
class Course:
    """A search under way: its trials, whose turn it is, and which runs are to be abandoned."""

    configuration: Configuration
    validation: Validation
    wanted: int
    deadline: float | None
    asked: Sequence[str]
    prune: bool
    file: Path | None
    trials: list[Trial] = field(default_factory=list)
    active: dict[Job, tuple[Trial, int, Watch]] = field(default_factory=dict)
    let_go: set[Job] = field(default_factory=set)

    def __post_init__(self) -> None:
        epochs = self.configuration.epochs
        dataset = self.validation.dataset
        self.classes = dataset.num_classes
        known = first_settings(epochs=epochs, classes=self.classes, images=not dataset.tabular)
        self.waiting = [(loss, self.configuration.l1, "asked") for loss in self.asked]
        self.waiting += [(loss, l1, "start") for loss, l1 in known if loss not in self.asked]
        self.about = self.configuration.as_values() | self.validation.fingerprint()
        del self.about["loss"]
        if self.file is not None:
            self.trials = read_journal(self.file, self.about)
        for trial in self.trials:
            self._follow(trial)

    def run(
        self, execution: Execution, *, at_once: int, stop: StopRequest
    ) -> Iterator[Event | Trial]:
        """Train until all trials are over, the time is, or someone wants it to stop."""
        # A trial's later folds are known to be wanted only when its first is through, by when the
        # jobs may have come to an end: so there may be several rounds.
        while not (stop.wanted or self._late()) and (
            len(self.trials) < self.wanted or "waiting" in [trial.state for trial in self.trials]
        ):
            for event in train_runs(
                self._jobs(),
                execution,
                load=lambda each: self.validation.examples(each.seed - self.configuration.seed),
                at_once=at_once,
                stop=stop,
                give_up=lambda event: event.job in self.let_go,
            ):
                trial = self._take(event)
                yield event
                if trial is not None:
                    yield trial

    def _jobs(self) -> Iterator[Job]:
        while (turn := self._next()) is not None:
            trial, fold = turn
            # The seed tells the folds apart; all trials have the same one for the same fold, so
            # that they differ in the loss alone.
            seed = self.configuration.seed + fold
            job = Job(replace(trial.configure(self.configuration), seed=seed))
            self.active[job] = (*turn, Watch(self.validation.examples(fold), job.configuration))
            yield job

    def _next(self) -> tuple[Trial, int] | None:
        if self._late():
            return None
        busy = {id(trial) for trial, _, _ in self.active.values()}
        for trial in self.trials:
            # One fold at a time, so that what is abandoned in its first costs no more than that.
            if trial.state == "waiting" and id(trial) not in busy:
                return trial, len(trial.finished)
        if len(self.trials) >= self.wanted:
            return None
        loss, l1, origin = self._propose()
        number, rows, epochs = len(self.trials), self.validation.rows, self.configuration.epochs
        trial = Trial(number, loss, origin, rows=rows, epochs=epochs, l1=l1)
        self.trials.append(trial)
        return trial, 0

    def _propose(self) -> tuple[str, float, str]:
        tried = {trial.loss for trial in self.trials}
        while self.waiting:
            loss, l1, origin = self.waiting.pop(0)
            if loss not in tried:
                return loss, l1, origin
        epochs, seed = self.configuration.epochs, self.configuration.seed
        return propose(self.trials, epochs=epochs, classes=self.classes, seed=seed), 0.0, "search"

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _take(self, event: Event) -> Trial | None:
        """Take in what happened to a run; the trial, when it is over with that."""
        trial, fold, watch = self.active[event.job]
        if event.kind == "epoch":
            trial.add(fold, event.value["validation_accuracy"])
            self._judge(event.job, trial, fold, watch.look(event.value))
            return None
        if event.kind in ("started", "notice"):
            return None
        del self.active[event.job]
        self.let_go.discard(event.job)
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
        return None if trial.state == "waiting" else trial

    def _judge(self, job: Job, trial: Trial, fold: int, gone: str | None) -> None:
        if trial.state != "waiting":
            return
        if gone is not None:
            trial.state, trial.why = "collapsed", gone
        elif self.prune and fold == 0 and (why := hopeless(trial, self.trials)) is not None:
            trial.state, trial.why = "pruned", why
        late = self._late() and any(other.state == "complete" for other in self.trials)
        if trial.state != "waiting" or late:
            self.let_go.add(job)

    def _follow(self, trial: Trial) -> None:
        """After a trial that was too strong comes the same with a weaker penalty."""
        # Only after one that is known to be good elsewhere, and once: where half of the weight is
        # too much as well, it is something else that is.
        if trial.state in ("collapsed", "failed") and trial.origin in ("start", "asked"):
            weaker = back_off(trial.loss)
            if weaker is not None and weaker not in [loss for loss, _, _ in self.waiting]:
                self.waiting.insert(0, (weaker, trial.l1, "back-off"))
