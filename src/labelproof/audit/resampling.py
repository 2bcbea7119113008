"""How far estimates move with other samples of the same kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.anchors import find_anchors, read_through
from labelproof.audit.noise_model import Groups, NoiseModel, log_posterior, shift

__all__ = ["resample"]


def resample(
    logits: NDArray[np.float32],
    given: NDArray[np.int64],
    model: NoiseModel,
    *,
    times: int,
    seed: int,
    shared: float = 0.0,
    fixed: bool = False,
    read: bool = False,
    samples: int | None = None,
) -> Iterator[NDArray[np.float64]]:
    """What comes out of samples drawn anew from the same samples, as a measure of chance.

    Args:
        logits: As `fit_noise_model` takes them.
        given: Likewise.
        model: What it came to.
        times: How often.
        seed: Of the draws.
        shared: As `suspect` takes it.
        fixed: Whether the temperature was decided beforehand.
        read: Whether the network's word is read through the noise it has learned.
        samples: How many samples these were drawn from, where they are not all.

    Yields:
        For each time, the share of samples by true class and label.
    """
    groups = Groups(shift(logits), given)
    steps = np.zeros(1) if fixed else np.array([-0.1, 0.0, 0.1])
    nearby = np.exp(np.log(model.temperature) + steps).tolist()
    tables = [groups.probabilities(temperature) for temperature in nearby]
    said, labels = logits.argmax(axis=1)[groups.order], given[groups.order]
    anchors = find_anchors(groups.logits) if read else None
    generator = np.random.default_rng(seed)
    for _ in range(times):
        weight = generator.poisson(1.0, len(given)).astype(np.float32)
        if not weight.any():  # as happens with a handful of samples
            weight[:] = 1
        fits = [
            groups.fit(temperature, start=model, steps=5, weight=weight, probabilities=table)
            for temperature, table in zip(nearby, tables, strict=True)
        ]
        best = max(fits, key=lambda fit: log_posterior(fit, samples or len(given)))
        if read:
            best = read_through(groups.logits, labels, best, anchors=anchors, weight=weight)
        counted = np.zeros_like(best.joint)
        np.add.at(counted, (said, labels), weight)
        yield (1 - shared) * best.joint + shared * counted / weight.sum()
