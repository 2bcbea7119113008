"""A trial of the search: a loss, its accuracy on noisy labels, and how it ended."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from labelproof.training.configuration import Configuration
from labelproof.training.files import read_json, write_text
from labelproof.version import __version__

STATES = ("complete", "waiting", "pruned", "collapsed", "failed")
"""All folds trained; not all folds trained; abandoned as too far behind; collapsed; diverged."""

_DERIVED = ("accuracy", "standard_error")


def settled(accuracies: Sequence[float], *, epochs: int) -> float:
    """The final accuracy of a run: the mean over its last tenth of epochs, at most five.

    Example:
        >>> settled([10, 50, 54, 56], epochs=20)
        55.0
    """
    return fmean(accuracies[-min(max(epochs // 10, 1), 5) :])


def penalty(l1: float) -> dict[str, float]:
    """Settings of `Configuration` for an l1 penalty, which replaces weight decay; none for 0.

    >>> penalty(5e-5), penalty(0.0)
    ({'l1': 5e-05, 'weight_decay': 0.0}, {})
    """
    return {"l1": l1, "weight_decay": 0.0} if l1 else {}


@dataclass
class Trial:
    """A setting that is tried.

    Attributes:
        number: Position in the order of proposals, from 0.
        loss: The loss, as canonical text.
        l1: Weight of the l1 penalty on the weights, which replaces weight decay.
        origin: Where the setting comes from: `start`, `asked` for, `search` or `back-off`.
        state: One of `STATES`.
        why: The reason why it was abandoned or failed.
        curves: For each fold that was started, its accuracy after each epoch.
        finished: The folds that were trained to the end.
        rows: Number of validation examples of each fold.
        epochs: Number of epochs of a whole run.

    Example:
        >>> trial = Trial(0, "gce(q=0.7)", "start", rows=[400], epochs=1)
        >>> trial.add(0, 50.0)
        >>> trial.finished.append(0)
        >>> trial.accuracy, trial.standard_error
        (50.0, 2.5)
    """

    number: int
    loss: str
    origin: str
    rows: Sequence[int]
    epochs: int
    state: str = "waiting"
    why: str = ""
    curves: dict[int, list[float]] = field(default_factory=dict)
    finished: list[int] = field(default_factory=list)
    l1: float = 0.0

    @property
    def text(self) -> str:
        """The setting as text."""
        return f"{self.loss}, l1={self.l1:g}" if self.l1 else self.loss

    def configure(self, configuration: Configuration) -> Configuration:
        """The configuration with this setting."""
        return replace(configuration, loss=self.loss, **penalty(self.l1))

    @property
    def accuracy(self) -> float | None:
        """Accuracy on the noisy labels of all finished folds, in percent; `None` before any."""
        if not self.finished:
            return None
        scores = [settled(self.curves[fold], epochs=self.epochs) for fold in self.finished]
        return float(np.average(scores, weights=[self.rows[fold] for fold in self.finished]))

    @property
    def standard_error(self) -> float | None:
        """Standard error of the accuracy, in percent.

        It is that of a share of the validation examples, and does not include the seed's effect.
        """
        accuracy, rows = self.accuracy, sum(self.rows[fold] for fold in self.finished)
        if accuracy is None:
            return None
        share = min(max(accuracy / 100, 0.5 / rows), 1 - 0.5 / rows)
        return 100 * math.sqrt(share * (1 - share) / rows)

    def add(self, fold: int, accuracy: float) -> None:
        """Add the accuracy of an epoch."""
        self.curves.setdefault(fold, []).append(round(accuracy, 4))

    def forget_begun(self) -> None:
        """Drop the curves of unfinished folds, which start over."""
        if self.state == "waiting":
            self.curves = {fold: self.curves[fold] for fold in self.finished}

    def as_values(self) -> dict[str, Any]:
        """Plain values for JSON, with derived ones for readers of the file."""
        return asdict(self) | {name: getattr(self, name) for name in _DERIVED}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Trial:
        """The trial that `as_values` describes."""
        plain = {name: value for name, value in values.items() if name not in _DERIVED}
        plain["curves"] = {int(fold): list(curve) for fold, curve in values["curves"].items()}
        return cls(**plain)


def rank(trials: Sequence[Trial]) -> list[Trial]:
    """All trials, the best first; abandoned ones come last.

    A trial whose folds are not all trained is behind every complete one: its accuracy is on fewer
    examples, and on other ones.
    """
    return sorted(
        trials,
        key=lambda trial: (STATES.index(trial.state), -(trial.accuracy or 0.0), trial.number),
    )


def choose_trial(trials: Sequence[Trial]) -> Trial | None:
    """The best complete trial; before there is one, the best with a finished fold.

    >>> trial = Trial(0, "ce", "start", rows=[100], epochs=1)
    >>> choose_trial([trial]) is None
    True
    >>> trial.add(0, 50.0)
    >>> trial.finished.append(0)
    >>> choose_trial([trial]).accuracy
    50.0
    """
    able = [trial for trial in trials if trial.finished and trial.state in ("complete", "waiting")]
    return rank(able)[0] if able else None


_FORMAT = 3


class OtherSearchError(ValueError):
    """A file holds a search of other data or another configuration."""


def write_journal(path: Path, trials: Sequence[Trial], about: Mapping[str, Any]) -> None:
    """Write all trials and the choice atomically.

    Example:
        >>> file = getfixture("tmp_path") / "tuning.json"
        >>> about = {"epochs": 1, "rows": [9]}
        >>> write_journal(file, [Trial(0, "ce", "start", rows=[9], epochs=1)], about)
        >>> [trial.loss for trial in read_journal(file, about)]
        ['ce']
    """
    chosen = choose_trial(trials)
    values = {
        "format": _FORMAT,
        "version": __version__,
        "about": dict(about),
        "choice": None if chosen is None else chosen.text,
        "trials": [trial.as_values() for trial in trials],
    }
    write_text(path, json.dumps(values, indent=1) + "\n")


def read_journal(path: Path, about: Mapping[str, Any]) -> list[Trial]:
    """The trials of an earlier search, or none where there is no file.

    Raises:
        OtherSearchError: The file holds another search, or none.
    """
    values = _journal(path)
    if values is None:
        return []
    kept = values["about"] | {"format": values["format"]}
    expected = json.loads(json.dumps(about)) | {"format": _FORMAT}
    different = [
        f"{name}: {kept.get(name)!r} there, {value!r} here"
        for name, value in expected.items()
        if kept.get(name) != value
    ]
    if different:
        raise OtherSearchError(
            f"{path} holds another search ({'; '.join(different)}); choose another file "
            "(--output), or start over with --fresh"
        )
    trials = [Trial.from_values(entry) for entry in values["trials"]]
    for trial in trials:
        trial.forget_begun()
    return trials


def count_finished(path: Path) -> int:
    """The number of runs that a search resumed from this file need not train."""
    values = _journal(path)
    if values is None or values["format"] != _FORMAT:
        return 0
    trials = map(Trial.from_values, values["trials"])
    return sum(len(each.finished if each.state == "waiting" else each.rows) for each in trials)


def remove_journal(path: Path) -> None:
    """Remove the file of any search; another file is refused."""
    if _journal(path) is not None:
        path.unlink()


def _journal(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        values = read_json(path)
        if {"format", "about", "trials"} <= set(values):
            return values
    except (ValueError, TypeError):
        pass
    raise OtherSearchError(f"{path} is not the file of a search; choose another file")
