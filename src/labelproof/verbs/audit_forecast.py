"""How long an audit may take, from a few steps of its training."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from labelproof.data.dataset import Dataset, Split
from labelproof.data.images import ImageFiles, select_images
from labelproof.data.notices import count
from labelproof.training.configuration import Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.execution import Execution
from labelproof.training.runner import Job, train_runs
from labelproof.verbs.inputs import decode_images
from labelproof.verbs.progress import Reporter

__all__ = ["forecast", "roughly"]

_BATCHES = 2
"""As many are trained on for a forecast, twice: the first time is slower than any later one."""


def forecast(
    dataset: Dataset,
    configuration: Configuration,
    *,
    folds: int,
    execution: Execution,
    reporter: Reporter,
    image_memory: int | None = None,
) -> float | None:
    """Seconds that a cross-validation may take; `None` where a few steps do not tell.

    Nothing is written. On a GPU, whose first steps are spent on preparations, nothing is measured.

    Args:
        dataset: What would be audited.
        configuration: How each network would be trained.
        folds: Number of parts.
        execution: On which device.
        reporter: Told that it takes its time.
        image_memory: Megabytes that decoded images may take.
    """
    if execution.device.type != "cpu":
        return None
    size = len(dataset.train)
    some = _spread(dataset, min(size, _BATCHES * configuration.batch_size))
    begin = time.perf_counter()
    prepared = decode_images(
        some,
        configuration,
        execution.device,
        reporter,
        megabytes=image_memory,
        share=len(some.train) / size,
    )
    decoding = (time.perf_counter() - begin) / len(some.train) * size
    short = replace(configuration, epochs=2, validation=0.0, noise="none")
    moments: list[float] = []
    with reporter.working("Timing a few steps"):
        for event in train_runs(
            [Job(short)], execution, load=lambda chosen: choose_examples(chosen, prepared)
        ):
            if event.kind == "epoch":
                moments.append(time.perf_counter())
    if len(moments) < 2:  # as where the loss is not a number from the beginning
        return None
    seen = size * (folds - 1) * configuration.epochs
    return decoding + (moments[1] - moments[0]) / len(some.train) * seen


def _spread(dataset: Dataset, number: int) -> Dataset:
    """A few training samples, spread over all."""
    train = dataset.train
    chosen = np.linspace(0, len(train) - 1, number).round().astype(np.int64)
    if isinstance(train.images, ImageFiles):
        files = select_images(train.images.files, chosen.tolist())
        images = ImageFiles(files, mode=train.images.mode, short_side=train.images.short_side)
    else:
        images = train.array[chosen]
    return replace(dataset, splits={"train": Split(images, train.labels[chosen])})


def roughly(seconds: float) -> str:
    """A duration as a person would say it.

    >>> roughly(20), roughly(290), roughly(5000), roughly(60 * 3600)
    ('less than a minute', 'about 5 minutes', 'about 83 minutes', 'about 60 hours')
    """
    if seconds < 60:
        return "less than a minute"
    minutes = round(seconds / 60)
    # A forecast is not so exact that fractions of an hour would mean anything from two hours on.
    number, unit = (minutes, "minute") if minutes < 120 else (round(minutes / 60), "hour")
    return f"about {count(number, unit)}"
