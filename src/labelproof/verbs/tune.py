"""`labelproof.tune`: choose a loss where only noisy labels are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelproof.data.dataset import Dataset
from labelproof.data.notices import count
from labelproof.training.configuration import Configuration
from labelproof.training.runner import Event
from labelproof.tuning.search import Tuning
from labelproof.tuning.search import tune as run_trials
from labelproof.tuning.trial import Trial
from labelproof.tuning.validation import count_folds
from labelproof.verbs.progress import Reporter, RunDisplay

__all__ = ["describe", "search"]


def search(
    dataset: Dataset,
    configuration: Configuration,
    *,
    trials: int,
    folds: int | str = "auto",
    reporter: Reporter,
    **options: Any,
) -> Tuning:
    """Search for a loss, and report how it comes along.

    Args:
        dataset: What to learn from.
        configuration: What all runs have in common.
        trials: How many settings are tried.
        folds: Parts that are held out in turn.
        reporter: Told of it.
        options: Of `labelproof.tuning.tune`.
    """
    runs = trials * count_folds(folds, len(dataset.train))
    epochs = runs * configuration.epochs
    with reporter.display(runs=max(runs, 2), epochs=epochs, aside=True) as display:
        return run_trials(
            dataset,
            configuration,
            trials=trials,
            folds=folds,
            on_event=lambda event: _show(display, event),
            **options,
        )


def _show(display: RunDisplay, event: Event | Trial) -> None:
    if isinstance(event, Trial):
        if event.why:
            display.say(f"{event.loss}: {event.state}; {event.why}")
        return
    job = event.job
    if event.kind == "started":
        display.start(job, job.configuration.loss, epochs=job.configuration.epochs)
    elif event.kind == "epoch":
        display.advance(job, event.value)
    elif event.kind == "notice":
        display.say(str(event.value))
    elif event.kind == "finished":
        accuracy = event.value.curve["validation_accuracy"][-1]
        display.finish(job, f"agrees with {accuracy:.2f}% of the labels held out")
    else:
        display.finish(job, "let go" if event.kind == "abandoned" else event.kind)


def describe(found: Tuning, *, num_classes: int) -> str:
    """All trials as a table, and the choice in words.

    Args:
        found: What the search came to.
        num_classes: Of the dataset.
    """
    lines = ["agreement with the labels held out", ""]
    for trial in found.trials:
        lines.append(f"{_measured(trial):>15}  {trial.loss}{_ended(trial)}")
    lines.append("")
    if found.choice is None:
        return "\n".join([*lines, "Chosen: nothing, for no run was finished."])
    return "\n".join([*lines, *_words(found, found.choice, num_classes)])


def _measured(trial: Trial) -> str:
    if trial.accuracy is None:
        return "-"
    return f"{trial.accuracy:.2f}% ± {trial.standard_error:.2f}"


def _ended(trial: Trial) -> str:
    if trial.state == "complete":
        return ""
    why = f": {trial.why}" if trial.why else ""
    return f"  ({'not all folds' if trial.state == 'waiting' else trial.state}{why})"


def _words(found: Tuning, choice: Trial, num_classes: int) -> list[str]:
    lines = [
        f"Chosen: {choice.loss}, which agrees with {_measured(choice)} of the labels held out; "
        f"guessing would with {100 / num_classes:.1f}%."
    ]
    plain = next((trial for trial in found.trials if trial.loss == "ce"), None)
    if plain is not None and plain is not choice and plain.accuracy is not None:
        lines.append(f"Plain cross entropy agrees with {_measured(plain)}.")
    close = _close(found.trials, choice)
    if close:
        lines.append(
            f"{count(close, 'other setting')} came within that error of it: between those the "
            "choice may be chance, and costs little."
        )
    return lines


def _close(trials: Sequence[Trial], choice: Trial) -> int:
    if choice.accuracy is None or choice.standard_error is None:
        return 0
    limit = choice.accuracy - choice.standard_error
    able = (trial for trial in trials if trial is not choice and trial.state == "complete")
    return sum(trial.accuracy is not None and trial.accuracy >= limit for trial in able)
