"""What to try next: Optuna's tree-structured Parzen estimator, in turn with steps from the best.

Nothing is kept between two proposals. Each is made from the trials themselves and a seed of its
own, so a search that was stopped proposes what it would have proposed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from labelproof.seeds import as_generator
from labelproof.training.randomness import derive_seed
from labelproof.tuning.ranking import choose_trial, rank
from labelproof.tuning.space import (
    CHOICES,
    KINDS,
    RANGES,
    Coordinates,
    coordinates,
    loss_at,
    nearby,
    strongest,
    suggest_coordinates,
)
from labelproof.tuning.trial import Trial, settled

__all__ = ["choose_kind", "default_trials", "import_optuna", "propose"]

_ATTEMPTS = 25
"""What is proposed is now and then what was tried already."""

_BEST = 3
"""From so many of the best trials steps are taken."""


def import_optuna() -> Any:
    """Optuna, or an error that says how to get it."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError(
            "the search for hyperparameters needs Optuna: pip install 'labelproof[tune]'"
        ) from error
    return optuna


def default_trials() -> int:
    """How many settings to try where no one says: the known ones, and four more with Optuna."""
    return 12 if importlib.util.find_spec("optuna") is not None else 8


def propose(trials: Sequence[Trial], *, number: int, epochs: int, classes: int, seed: int) -> str:
    """A loss that is worth a trial and has not had one.

    Args:
        trials: All so far, those under way among them.
        number: Of the trial that it is for.
        epochs: Of each run.
        classes: Of the dataset.
        seed: Of the search.

    Raises:
        ImportError: Optuna is not installed.
    """
    optuna = import_optuna()
    tried = {trial.loss for trial in trials}
    plain = next((trial.accuracy for trial in trials if trial.loss == "ce"), None)
    limit = strongest(classes=classes, plain=plain)
    good = [trial for trial in rank(trials) if trial.state == "complete"]
    places = [place for trial in good if (place := coordinates(trial.loss, epochs=epochs))]
    found = ""
    for attempt in range(_ATTEMPTS):
        drawn = derive_seed(seed, f"proposal/{attempt}", number)
        # The estimator is at its best with dozens of trials. With a few it goes where none has
        # been, so every other proposal is a step from one of the best.
        if number % 2 and places:
            generator = as_generator(drawn)
            place = places[int(generator.random() * min(len(places), _BEST))]
            place = nearby(place, generator, limit=limit)
        else:
            place = _estimate(optuna, trials, epochs=epochs, limit=limit, seed=drawn)
        found = loss_at(place, epochs=epochs)
        if found not in tried:
            break
    return found


def _estimate(
    optuna: Any, trials: Sequence[Trial], *, epochs: int, limit: float, seed: int
) -> Coordinates:
    kind = choose_kind(trials, epochs=epochs, seed=seed)
    with _quiet(optuna):
        sampler = optuna.samplers.TPESampler(
            seed=seed % 2**32,  # as many bits as it takes
            n_startup_trials=4,
            # The more candidates, the surer it takes the place that is furthest from all others.
            n_ei_candidates=3,
            multivariate=False,
        )
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials(_told(optuna, trials, epochs=epochs))
        return suggest_coordinates(study.ask(), kind, limit=limit)


def choose_kind(trials: Sequence[Trial], *, epochs: int, seed: int) -> str:
    """The kind of loss to try: mostly that of the best trial, now and then another.

    Left to the estimator, which with a dozen trials takes a single one for good, it would be what
    was tried least.

    Args:
        trials: All so far.
        epochs: Of each run.
        seed: Of the draw.
    """
    drawn = as_generator(seed).random()
    best = choose_trial([trial for trial in trials if coordinates(trial.loss, epochs=epochs)])
    place = coordinates(best.loss, epochs=epochs) if best is not None else None
    first = place["kind"] if place is not None else KINDS[0]
    order = [first, *(kind for kind in KINDS if kind != first)]
    shares = (0.6, 0.85, 1.0)
    return next(kind for kind, share in zip(order, shares, strict=True) if drawn < share)


def _told(optuna: Any, trials: Sequence[Trial], *, epochs: int) -> list[Any]:
    """The trials as Optuna knows them; those of other losses have no place in its space."""
    states = optuna.trial.TrialState
    told = []
    for trial in trials:
        place = coordinates(trial.loss, epochs=epochs)
        if place is None or trial.state == "failed" or not trial.trained:
            continue
        del place["kind"]
        complete = trial.state == "complete"
        reached = {
            len(curve["validation_accuracy"]): settled(curve["validation_accuracy"], epochs=epochs)
            for fold, curve in sorted(trial.curves.items())
        }
        told.append(
            optuna.trial.create_trial(
                state=states.COMPLETE if complete else states.PRUNED,
                value=trial.accuracy if complete else None,
                params=place,
                distributions={name: _distribution(optuna, name) for name in place},
                intermediate_values={} if complete else reached,
            )
        )
    return told


def _distribution(optuna: Any, name: str) -> Any:
    if name in CHOICES:
        return optuna.distributions.CategoricalDistribution(CHOICES[name])
    return optuna.distributions.FloatDistribution(*RANGES[name], log=True)


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Inside, Optuna says nothing; what it is set to say otherwise is the program's affair."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
