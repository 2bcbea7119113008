"""Estimate the training time from a few steps, and choose a recipe for a time limit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelproof.data.images import select_samples
from labelproof.data.notices import count
from labelproof.fitting.attempts import Attempts
from labelproof.ranges import within
from labelproof.training import Configuration, Job, choose_examples, train_runs
from labelproof.verbs.inputs import Request
from labelproof.verbs.summaries import roughly

_BATCHES = 4
"""Batches of a timed epoch. The first epoch, which is slower than the others, is not timed."""
_LONGEST = 2.0
"""Seconds after which the timing stops."""
_SHARE = 0.8
"""Share of the time for decoding and training; the rest is for the audit and its page."""
_ENOUGH = 40
"""Epochs that a network must have time for; otherwise a smaller one is tried."""
_STEPS = (1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100)
"""Numbers of epochs to choose from, coarse so that timings of one machine mostly agree."""

_SMALLER = {
    "cnn8": ("cnn8(width=32)", "cnn8(width=16)", "cnn4(width=16)"),
    "cnn8(width=32)": ("cnn8(width=16)", "cnn4(width=16)"),
    "cnn4": ("cnn4(width=16)", "cnn4(width=8)"),
}
"""Replacements for a network that is too slow, each about a quarter of the work."""


@dataclass(frozen=True)
class Pace:
    """Training speed on this machine.

    Attributes:
        decoding: Seconds to decode all images.
        example: Seconds to train on one example, once.
    """

    decoding: float
    example: float

    def seconds(self, examples: float) -> float:
        """Seconds to decode all images and train on that many examples.

        >>> Pace(decoding=2.0, example=0.01).seconds(1000)
        12.0
        """
        return self.decoding + self.example * examples


def time_steps(request: Request, configuration: Configuration) -> Pace:
    """Measure the speed of a few training steps."""
    dataset, size = request.dataset, len(request.dataset.train)
    spread = np.linspace(0, size - 1, min(size, _BATCHES * configuration.batch_size))
    train = select_samples(dataset.train, spread.round().astype(np.int64))
    subset = replace(dataset, splits={"train": train})
    start = time.perf_counter()
    prepared = request.decode(configuration, subset, share=len(train) / size)
    decoding = (time.perf_counter() - start) / len(train) * size
    short = replace(configuration, epochs=9, validation=0.0, noise="none")
    ends: list[float] = []
    with request.reporter.working("Timing a few steps"):
        for event in train_runs(
            [Job(short)], request.execution, load=lambda chosen: choose_examples(chosen, prepared)
        ):
            if event.kind == "epoch":
                ends.append(time.perf_counter())
                if ends[-1] - ends[0] >= _LONGEST:
                    break
    # If the steps diverge, which the run itself will report, no epoch ends.
    seconds = (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else 0.0
    return Pace(decoding, seconds / len(train))


def smaller(configuration: Configuration) -> list[dict[str, str]]:
    """Smaller networks and image sizes for a recipe, from the slowest to the fastest.

    >>> smaller(Configuration("photos", network="cnn8(width=32)", augmentation="resized-crop:48"))
    [{'network': 'cnn8(width=16)', 'augmentation': 'resized-crop:32'},
     {'network': 'cnn4(width=16)', 'augmentation': 'resized-crop:32'}]
    """
    augmentation = configuration.augmentation.replace("resized-crop:48", "resized-crop:32")
    networks = _SMALLER.get(configuration.network, ())
    return [{"network": network, "augmentation": augmentation} for network in networks]


def time_limit(
    request: Request, requested: float | None, default: float | None, *, frozen: bool = False
) -> float | None:
    """The time limit for images on a CPU, in minutes; `None` where there is no limit."""
    limited = (
        not request.dataset.tabular
        and request.slow
        and request.execution.world_size == 1
        and request.settings.get("epochs") is None
        and not frozen
    )
    if requested is None:
        return default if limited else None
    if not limited:
        raise ValueError("minutes: expected for images on one CPU, without epochs")
    return within("minutes", requested, 0, open_low=True)


def fit_into(
    minutes: float | None,
    request: Request,
    recipe: Configuration,
    remake: Callable[[dict[str, Any]], Configuration],
    *,
    examples: float,
    kept: Attempts | None = None,
) -> tuple[Configuration, str]:
    """The recipe that fits a time limit, and a line on its time and what more time would buy.

    It has the widest network that has time for enough epochs, by its first steps on the data; if
    none has, the smallest, for as many epochs as fit. Only the epochs change if network or image
    size are given. An earlier choice for the same limit is kept, without a line.

    Args:
        minutes: The time limit; with `None` the recipe stays as it is.
        request: The data, the device and the given settings.
        recipe: The recipe without a time limit.
        remake: Makes a recipe with other settings.
        examples: Number of examples in an epoch.
        kept: The notes of an earlier run in the folder.
    """
    if minutes is None:
        return recipe, ""
    before = None if kept is None else kept.asked.get("minutes")
    if before not in (None, minutes):
        raise ValueError(
            f"minutes: the folder holds a run with --minutes {before:g}; repeat that to resume it, "
            "choose another folder with --output, or start over with --fresh"
        )
    names = ("network", "augmentation")
    choices = [{name: getattr(recipe, name) for name in names}, *smaller(recipe)]
    if kept is not None and before is not None:
        choice = {name: kept.asked.get(name) for name in names}
        epochs = kept.asked.get("epochs")
        # Only networks that could be chosen now: a file must not name code to run.
        if choice in choices and isinstance(epochs, int):
            return remake({**choice, "epochs": epochs}), ""
    fixed = any(request.settings.get(name) for name in names)
    paces: list[Pace] = []
    left, choice = 0.0, choices[0]
    for choice in choices[:1] if fixed else choices:
        paces.append(pace := time_steps(request, remake(choice)))
        left = (60 * _SHARE * minutes - pace.decoding) / max(pace.example * examples, 1e-9)
        if left >= min(recipe.epochs, _ENOUGH):
            break
    possible = [each for each in (*_STEPS, recipe.epochs) if each <= max(left, 1)]
    epochs = min(max(possible), recipe.epochs)
    line = f"Time: {roughly(paces[-1].seconds(examples * epochs))} on this CPU, by its first steps"
    chosen = remake({**choice, "epochs": epochs})
    if chosen == recipe:
        return recipe, line
    needed = math.ceil(paces[0].seconds(examples * recipe.epochs) / (60 * _SHARE))
    return chosen, (
        f"{line}; --minutes {needed} would train {recipe.network} for "
        f"{count(recipe.epochs, 'epoch')}"
    )
