"""Which trial is chosen, by noisy validation accuracy alone."""

from __future__ import annotations

from collections.abc import Sequence

from labelproof.tuning.trial import Trial

__all__ = ["choose_trial", "rank"]


def rank(trials: Sequence[Trial]) -> list[Trial]:
    """All trials, the best first; those that were let go come after those that were not.

    A trial whose folds are not all trained is behind every complete one: its accuracy is that of
    fewer examples, and of other ones.
    """
    return sorted(trials, key=_key)


def choose_trial(trials: Sequence[Trial]) -> Trial | None:
    """The best of the complete trials; before there is one, the best of what there is.

    >>> trial = Trial(0, "ce", "start", rows=[100], epochs=1)
    >>> choose_trial([trial]) is None
    True
    >>> _ = trial.add(0, {"validation_accuracy": 50.0, "predicted_classes": 9.0})
    >>> trial.finished.append(0)
    >>> choose_trial([trial]).accuracy
    50.0
    """
    able = [trial for trial in trials if trial.finished and trial.state in ("complete", "waiting")]
    return rank(able)[0] if able else None


def _key(trial: Trial) -> tuple[int, float, int]:
    order = {"complete": 0, "waiting": 1, "pruned": 2, "collapsed": 3, "failed": 4}
    accuracy = trial.accuracy
    return order[trial.state], -(accuracy if accuracy is not None else 0.0), trial.number
