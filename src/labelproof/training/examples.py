"""The examples of a run: the dataset with its given labels."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.splits import hold_out, parse_imbalance
from labelproof.noise import parse_noise
from labelproof.seeds import derive_seed
from labelproof.training.configuration import Configuration


@dataclass(frozen=True)
class Examples:
    """A dataset, the training examples in use, and their given labels.

    Attributes:
        dataset: The images and their labels before noise.
        used: Indices of the training examples that are used, `(n)`, ascending.
        given: The labels to train on, `(N)`; those of unused examples are the dataset's own.
        clean: The true labels, `(N)`, or `None` if unknown.
        noise_rate: The share of wrong labels among those used, or of those changed by noise if the
            true labels are unknown.
        held: Indices of the held-out training examples, ascending.
        weight: The weight of each training example, `(N)`, or `None` for equal weights.
    """

    dataset: Dataset
    used: NDArray[np.int64]
    given: NDArray[np.int64]
    clean: NDArray[np.int64] | None
    noise_rate: float
    held: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    weight: NDArray[np.float32] | None = None


def choose_examples(
    configuration: Configuration, dataset: Dataset, *, human: str | os.PathLike[str] | None = None
) -> Examples:
    """Apply a configuration's imbalance, label noise and validation split to a dataset.

    The validation split is stratified by the given labels, wrong ones included; it does not use the
    true labels.

    Args:
        configuration: Its imbalance, noise, validation share and seed are used.
        dataset: The dataset that it names.
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
    if noise.kind != "none":
        # A file of human labels has one for each example of the whole set.
        noised = slice(None) if noise.kind == "human" else used
        given[noised] = noise.apply(
            labels[noised],
            num_classes=dataset.num_classes,
            seed=configuration.seed,
            dataset=dataset.name,
            features=dataset.features[used] if noise.kind == "instance" else None,
            human=human,
        ).noisy
    held = np.zeros(0, dtype=np.int64)
    if configuration.validation:
        seed = derive_seed(configuration.seed, "validation", 0)
        used, held = hold_out(
            given, configuration.validation, seed=seed, indices=used, groups=dataset.train.groups
        )
        if not len(held):
            raise ValueError(
                f"validation: {configuration.validation:g} of {len(used)} training examples leaves "
                "none to validate on; hold out a larger share, or add examples"
            )
    clean = dataset.truth
    right = labels if clean is None else clean
    noise_rate = int(np.count_nonzero(given[used] != right[used])) / max(len(used), 1)
    weight = choose_weights(configuration, given, used)
    return Examples(dataset, used, given, clean, noise_rate, held, weight)


def choose_weights(
    configuration: Configuration, labels: NDArray[np.int64], used: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    """Weights of mean 1 that give every class the same total weight, if they are to be balanced."""
    if configuration.class_weight != "balanced":
        return None
    counts = np.bincount(labels[used], minlength=labels.max() + 1)
    by_class = len(used) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return by_class[labels].astype(np.float32)
