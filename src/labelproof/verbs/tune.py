"""`labelproof.tune`: choose a loss where only noisy labels are known."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelproof.data.dataset import Dataset
from labelproof.data.images import OnError
from labelproof.data.load import LabelledData, Reading
from labelproof.losses.names import LOSS_FILES, VERSION
from labelproof.training import Configuration, Event, StopRequest
from labelproof.tuning.search import Search, count_folds
from labelproof.tuning.search import tune as run_trials
from labelproof.tuning.trial import Trial, count_finished, remove_journal
from labelproof.verbs.inputs import Request
from labelproof.verbs.progress import Callback, Reporter, RunDisplay
from labelproof.verbs.summaries import stem_of
from labelproof.verbs.train import StoppedError


def tune(
    data: LabelledData,
    label: str | None = None,
    *,
    trials: int = 20,
    losses: Sequence[str] = (),
    folds: int | str = "auto",
    seconds: float | None = None,
    prune: bool = True,
    at_once: int = 1,
    labels: str | os.PathLike[str] | None = None,
    annotators: Sequence[str] = (),
    drop: str | Sequence[str] = (),
    group: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    noise: str | None = None,
    network: str | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    device: str = "auto",
    output: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    on_error: OnError = "skip",
    data_root: str | os.PathLike[str] | None = None,
    progress: Reporter | Callback | bool | None = None,
    **settings: Any,
) -> Search:
    """Choose the loss and its hyperparameters without clean labels.

    The search holds out some examples with their noisy labels, trains each setting on the rest and
    chooses the one that best predicts the held-out labels. It starts with settings that are known
    to work, then varies the best ones and draws new ones.

    Args:
        data: As for `labelproof.fit`.
        label: See `fit`.
        trials: Number of settings to try.
        losses: Losses of your own to try first, as text.
        folds: Folds of the cross-validation of each setting; 1 holds out a single part. `"auto"`
            takes 3 below 10,000 examples, else 1.
        seconds: Start no run after this many seconds.
        prune: Stop settings early that are clearly behind.
        at_once: Runs at a time on the device.
        labels: See `fit`.
        annotators: See `fit`.
        drop: See `fit`.
        group: See `fit`.
        decimal: See `fit`.
        thousands: See `fit`.
        noise: See `fit`.
        network: See `fit`.
        epochs: See `fit`.
        seed: See `fit`.
        device: See `fit`.
        output: The file of the search, written after every run; the same call resumes from it, also
            with more `trials`.
        fresh: See `fit`.
        on_error: See `fit`.
        data_root: See `fit`.
        progress: See `fit`.
        settings: Any other setting of [`Configuration`][labelproof.training.Configuration].

    Raises:
        StoppedError: The search was stopped by Ctrl-C; finished runs are in `output`.
        ValueError: The file holds another search, or the data cannot be used.

    Example:
        >>> import labelproof
        >>> found = labelproof.tune(
        ...     "digits", trials=2, folds=1, network="mlp(hidden=8)", epochs=1, device="cpu"
        ... )
        >>> sorted(found.trials["loss"]), found.best.network
        (['ce', 'gce(q=0.7)'], 'mlp(hidden=8)')
    """
    given = dict(locals())
    names = ("trials", "losses", "folds", "seconds", "prune", "at_once")
    search_options = {name: given.pop(name) for name in names}
    for name in ("settings", "output", "fresh"):
        del given[name]
    request = Request(**given, verb=tune, **settings)
    reporter, settings = request.reporter, request.settings
    recipe = request.recipe(search=True, validation=0.0, **settings)
    dataset = request.decode(recipe)
    file = None if output is None else Path(output)
    if fresh and file is not None:
        remove_journal(file)
    with StopRequest() as stop:
        found = search(
            dataset,
            recipe,
            **search_options,
            execution=request.execution,
            file=file,
            stop=stop,
            reporter=reporter,
        )
    if found.best is not None and request.named:
        reporter.say(f"Next: {next_command(found, settings, request.reading)}")
    return found


def search(
    dataset: Dataset,
    configuration: Configuration,
    *,
    trials: int,
    folds: int | str = "auto",
    file: Path | None,
    stop: StopRequest,
    reporter: Reporter,
    **options: Any,
) -> Search:
    """Search for a loss, with progress, and report all trials and the choice."""
    runs = trials * count_folds(folds, len(dataset.train))
    epochs = runs * configuration.epochs
    with reporter.display(runs=runs, epochs=epochs, aside=True) as display:
        if file is not None:
            display.skip(min(count_finished(file), runs), configuration.epochs)
        found = run_trials(
            dataset,
            configuration,
            trials=trials,
            folds=folds,
            file=file,
            stop=stop,
            on_event=lambda event: _show(display, event),
            **options,
        )
    largest = np.bincount(dataset.train.labels).max() / len(dataset.train)
    reporter.say(describe(found, largest=float(largest)))
    if found.stopped:
        kept = "" if file is None else f"; the same command resumes from {file}"
        raise StoppedError(f"Stopped{kept}.", stop.exit_code)
    return found


def _show(display: RunDisplay, event: Event | Trial) -> None:
    if isinstance(event, Event):
        display.show(event, event.job.configuration.loss)
        return
    if event.why:
        display.say(f"{event.text}: {event.state}; {event.why}")
    if event.state != "complete":  # its other folds, after the one that ended it
        display.skip(len(event.rows) - len(event.finished) - 1, event.epochs)


def describe(found: Search, *, largest: float) -> str:
    """All trials as a table, and the choice in words; `largest` is the largest class's share."""
    lines = ["agreement with the labels held out", ""]
    for trial in found.tried:
        state = "not all folds" if trial.state == "waiting" else trial.state
        why = f": {trial.why}" if trial.why else ""
        ended = "" if state == "complete" else f"  ({state}{why})"
        lines.append(f"{_measured(trial):>15}  {trial.text}{ended}")
    chosen = "nothing, because no run finished."
    if found.choice is not None:
        chosen = (
            f"{found.choice.text}, which agrees with {_measured(found.choice)} of the labels held "
            f"out; always predicting the most frequent class would agree with {largest:.1%}."
        )
    lines += ["", f"Chosen: {chosen}"]
    return "\n".join(lines)


def _measured(trial: Trial) -> str:
    if trial.accuracy is None:
        return "-"
    return f"{trial.accuracy:.2f}% ± {trial.standard_error:.2f}"


def next_command(found: Search, given: Mapping[str, Any], reading: Reading) -> str:
    """The command that fits the data with the choice; it holds out a part to validate on.

    Example:
        >>> chosen = Search(Configuration("photos", loss="gce(q=0.7)", epochs=5), (), None)
        >>> next_command(chosen, {"epochs": 5, "noise": None}, Reading())
        "labelproof fit photos --output photos-tuned --loss 'gce(q=0.7)' --epochs 5"
    """
    configuration = found.configuration
    # A folder of its own: the default one may hold a run from before the search.
    folder = f"{stem_of(configuration.data, reading.labels)}-tuned"
    words = ["labelproof", "fit", configuration.data, "--output", folder]
    words += ["--loss", configuration.loss, *reading.flags()]
    if VERSION in configuration.loss:  # a loss of the user's own
        files = os.environ.get(LOSS_FILES, "").split(os.pathsep)
        words += [word for file in files for word in ("--loss-file", file)]
    if configuration.l1:
        words += ["--l1", f"{configuration.l1:g}"]
    for name, value in given.items():
        if value is not None and (name, value) != ("noise", "none"):
            text = f"{value:g}" if isinstance(value, float) else str(value)
            words += [f"--{name.replace('_', '-')}", text]
    return shlex.join(words)
