"""The search: settings tried on noisy labels, those that fail let go, the best one chosen."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from labelproof.data.dataset import Dataset
from labelproof.losses import format_loss, parse_loss
from labelproof.ranges import whole, within
from labelproof.training.configuration import Configuration
from labelproof.training.execution import Execution, choose_execution
from labelproof.training.runner import Event
from labelproof.training.stop_request import StopRequest
from labelproof.tuning.course import Course
from labelproof.tuning.proposal import import_optuna
from labelproof.tuning.ranking import choose_trial, rank
from labelproof.tuning.trial import Trial

__all__ = ["Search", "tune"]


@dataclass(frozen=True, repr=False)
class Search:
    """What a search came to.

    Attributes:
        configuration: What all trials have in common; its loss is that of the choice, where there
            is one.
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
        names = ("loss", "accuracy", "standard_error", "state", "origin", "why")
        rows = [{name: getattr(trial, name) for name in names} for trial in self.tried]
        numbers = pd.Index([trial.number for trial in self.tried], name="trial")
        return pd.DataFrame(rows, columns=list(names), index=numbers)

    def __repr__(self) -> str:
        best = "none" if self.choice is None else f"{self.choice.loss}, {self.choice.accuracy:.2f}%"
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
    seed: int | None = None,
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
        seconds: After so long no more is begun, and what is under way is let go as soon as one
            setting is through; no limit unless given.
        execution: On which device, and how; the fastest there is unless given.
        seed: Of the search; the configuration's unless given.
        folds: Each setting is trained so many times, each time validated on another part of the
            examples; 1 holds out a single part. `auto` takes 3 for fewer than 10,000 examples.
        losses: Settings of one's own to try first, as text.
        prune: Whether settings that are clearly behind are let go before their last epoch.
        file: Where the search is kept after every run; it goes on from what is there.
        stop: Asked between steps; when it is wanted, the search ends with the best so far. Unless
            given, Ctrl-C is such a wish.
        on_event: Told whatever happens to a run (an `Event`), and each `Trial` that is over.

    Raises:
        ImportError: There are to be more trials than there are settings to start from, and Optuna
            is not installed.

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
    course = Course(
        dataset,
        replace(configuration, validation=0.0),
        trials=whole("trials", trials, 1),
        seconds=None if seconds is None else within("seconds", seconds, 0),
        seed=configuration.seed if seed is None else whole("seed", seed, 0),
        folds=folds,
        losses=[format_loss(parse_loss(loss)) for loss in losses],
        prune=prune,
        file=file,
    )
    if len(course.trials) + len(course.waiting) < trials:
        import_optuna()  # what is missing is said before anything is trained
    with StopRequest() if stop is None else nullcontext(stop) as request:
        for event in course.run(
            execution or choose_execution(), at_once=whole("at_once", at_once, 1), stop=request
        ):
            if on_event is not None:
                on_event(event)
        stopped = request.wanted
    chosen = choose_trial(course.trials)
    if chosen is not None:
        configuration = replace(configuration, loss=chosen.loss)
    return Search(configuration, tuple(rank(course.trials)), chosen, stopped)
