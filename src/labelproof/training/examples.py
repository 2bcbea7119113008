"""What a run learns from and is measured on: the dataset with its labels as they are given."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.imbalance import parse_imbalance
from labelproof.noise import parse_noise
from labelproof.training.configuration import Configuration

__all__ = ["Examples", "choose_examples"]


@dataclass(frozen=True)
class Examples:
    """A dataset, which of its training examples are used, and the labels they are given.

    Attributes:
        dataset: Images and clean labels.
        used: Indices of the training examples that are used, `(n)`, rising.
        given: The labels to learn from, `(N)`; those of unused examples are the dataset's own.
        clean: The true labels, `(N)`, or `None` where no one knows them.
        noise_rate: The share of wrong labels among those used, as far as is known.
    """

    dataset: Dataset
    used: NDArray[np.int64]
    given: NDArray[np.int64]
    clean: NDArray[np.int64] | None
    noise_rate: float


def choose_examples(
    configuration: Configuration,
    dataset: Dataset,
    *,
    human: str | os.PathLike[str] | None = None,
) -> Examples:
    """Leave out what the configuration leaves out, and put its noise on the labels that stay.

    Args:
        configuration: Its imbalance, noise and seed are read.
        dataset: What it names.
        human: The file of human labels, for noise such as `human:worse`.

    Example:
        >>> from labelproof.data import load_digits
        >>> configuration = Configuration("digits", noise="symmetric:0.4:exact")
        >>> round(choose_examples(configuration, load_digits()).noise_rate, 3)
        0.399
    """
    labels = dataset.train.labels
    used = parse_imbalance(configuration.imbalance).keep(labels, seed=configuration.seed)
    noise = parse_noise(configuration.noise)
    given = labels.copy()
    if noise.kind == "human":
        # Human labels come one for each example of the whole set.
        given = noise.apply(
            labels, num_classes=dataset.num_classes, seed=configuration.seed, human=human
        ).noisy
    elif noise.kind != "none":
        given[used] = noise.apply(
            labels[used],
            num_classes=dataset.num_classes,
            seed=configuration.seed,
            dataset=dataset.name,
            features=dataset.train.array[used] if noise.kind == "instance" else None,
        ).noisy
    wrong = int(np.count_nonzero(given[used] != labels[used])) / max(len(used), 1)
    return Examples(dataset, used, given, labels if dataset.clean else None, wrong)
