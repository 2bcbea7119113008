"""How long a training takes, by its first steps, and a recipe for the time there is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelproof.data.labels_file import select_samples
from labelproof.data.notices import count
from labelproof.training import Configuration, Job, choose_examples, train_runs
from labelproof.verbs.inputs import Request
from labelproof.verbs.summaries import roughly

MINUTES = 10.0
"""What `fit` on images may take on a CPU, unless it is told otherwise."""

_BATCHES = 4
"""Batches that are timed, as an epoch: the first one, which is slower than any later, is not."""
_LONGEST = 2.0
"""Seconds after which enough was timed."""
_SHARE = 0.8
"""Of the time, for the training; the rest is for images to be decoded, the audit and its page."""
_ENOUGH = 40
"""Epochs that count for more than a wider network does."""
_STEPS = (1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100)
"""Epochs that are chosen from, so that two timings of one machine mostly come to the same."""

_SMALLER = {
    "cnn8": ("cnn8(width=32)", "cnn8(width=16)", "cnn4(width=16)"),
    "cnn8(width=32)": ("cnn8(width=16)", "cnn4(width=16)"),
    "cnn4": ("cnn4(width=16)", "cnn4(width=8)"),
}
"""What takes the place of a network that is too slow: each about a quarter of the work."""


@dataclass(frozen=True)
class Pace:
    """How fast a training is on this machine.

    Attributes:
        decoding: Seconds until all images are decoded.
        example: Seconds that one example takes in an epoch.
    """

    decoding: float
    example: float

    def seconds(self, examples: float) -> float:
        """How long it takes to see that many examples.

        >>> Pace(decoding=2.0, example=0.01).seconds(1000)
        12.0
        """
        return self.decoding + self.example * examples


def time_steps(request: Request, configuration: Configuration) -> Pace | None:
    """Train a few steps and look at the clock; `None` where they diverge."""
    dataset, size = request.dataset, len(request.dataset.train)
    spread = np.linspace(0, size - 1, min(size, _BATCHES * configuration.batch_size))
    train = select_samples(dataset.train, spread.round().astype(np.int64))
    some = replace(dataset, splits={"train": train})
    begin = time.perf_counter()
    prepared = request.decode(configuration, some, share=len(some.train) / size)
    decoding = (time.perf_counter() - begin) / len(some.train) * size
    short = replace(configuration, epochs=9, validation=0.0, noise="none")
    moments: list[float] = []
    with request.reporter.working("Timing a few steps"):
        for event in train_runs(
            [Job(short)], request.execution, load=lambda chosen: choose_examples(chosen, prepared)
        ):
            if event.kind == "epoch":
                moments.append(time.perf_counter())
                if moments[-1] - moments[0] >= _LONGEST:
                    break
    if len(moments) < 2:
        return None
    seconds = (moments[-1] - moments[0]) / (len(moments) - 1)
    return Pace(decoding, seconds / len(some.train))


def smaller(configuration: Configuration) -> list[dict[str, str]]:
    """Networks and image sizes that take the place of a recipe's, less and less work.

    >>> smaller(Configuration("photos", network="cnn8(width=32)", augmentation="resized-crop:48"))
    [{'network': 'cnn8(width=16)', 'augmentation': 'resized-crop:32'},
     {'network': 'cnn4(width=16)', 'augmentation': 'resized-crop:32'}]
    """
    augmentation = configuration.augmentation.replace("resized-crop:48", "resized-crop:32")
    networks = _SMALLER.get(configuration.network, ())
    return [{"network": network, "augmentation": augmentation} for network in networks]


def choose_within(
    minutes: float,
    recipe: Configuration,
    remake: Callable[[dict[str, Any]], Configuration],
    *,
    fixed: bool,
    examples: float,
    pace: Callable[[Configuration], Pace | None],
) -> tuple[Configuration, str]:
    """The recipe for which there is time, and a line about what it costs and what more would buy.

    The widest network that sees the data often enough is taken; where none does, the smallest, for
    as many epochs as there is time for.

    Args:
        minutes: The time there is.
        recipe: What would be done with time enough.
        remake: Makes a recipe of other settings.
        fixed: Whether network and images are decided already, and epochs alone may change.
        examples: Seen in an epoch.
        pace: Times the first steps of a recipe.
    """
    found = whole = pace(recipe)
    if found is None or whole is None:  # it diverged, which the run itself will tell
        return recipe, ""
    left, chosen = 0.0, recipe
    for chosen in (recipe, *(() if fixed else map(remake, smaller(recipe)))):
        if chosen is not recipe:
            found = pace(chosen) or found
        left = (60 * _SHARE * minutes - found.decoding) / max(found.example * examples, 1e-9)
        if left >= min(recipe.epochs, _ENOUGH):
            break
    epochs = min(max((each for each in _STEPS if each <= left), default=1), recipe.epochs)
    if left >= recipe.epochs:
        epochs = recipe.epochs
    line = f"Time: {roughly(found.seconds(examples * epochs))} on this CPU, by its first steps"
    chosen = remake(
        {"network": chosen.network, "augmentation": chosen.augmentation, "epochs": epochs}
    )
    if chosen == recipe:
        return recipe, line
    needed = math.ceil(whole.seconds(examples * recipe.epochs) / (60 * _SHARE))
    return chosen, (
        f"{line}; --minutes {needed} would train {recipe.network} for "
        f"{count(recipe.epochs, 'epoch')}"
    )
