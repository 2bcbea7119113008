"""Data to measure a run on, counted in the run's own classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from labelproof.data.dataset import Dataset
from labelproof.data.notices import few
from labelproof.data.unseen_values import spelled_otherwise

__all__ = ["in_classes"]


def in_classes(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """The dataset with its labels as numbers of these classes, of which it need not have all.

    Args:
        dataset: What was read, with classes of its own.
        names: The classes of a run.

    Raises:
        ValueError: An example has a class that is none of them.

    Example:
        >>> from labelproof.data import Split
        >>> pixels = np.zeros((2, 1, 4, 4), np.uint8)
        >>> train = Split(pixels, np.array([0, 1]))
        >>> new = Dataset("new", {"train": train}, ("cat", "dog"), (0.5,), (0.25,))
        >>> in_classes(new, ["bird", "dog", "cat"]).train.labels
        array([2, 1])
        >>> in_classes(new, ["Cat", "dog"])
        Traceback (most recent call last):
            ...
        ValueError: data: expected classes of the run (Cat, dog), new has cat; 'cat' differs ...
    """
    if tuple(names) == tuple(dataset.class_names):
        return dataset
    labels = np.concatenate([split.labels for split in dataset.splits.values()])
    # A name that no example has does no harm.
    used = [dataset.class_names[label] for label in np.unique(labels)]
    strange = [name for name in used if name not in names]
    if strange:
        raise ValueError(
            f"data: expected classes of the run ({few(list(names))}), {dataset.name} has "
            f"{few(strange)}{spelled_otherwise(strange, list(names))}"
        )
    numbers = {name: number for number, name in enumerate(names)}
    places = np.array([numbers.get(name, -1) for name in dataset.class_names], dtype=np.int64)
    splits = {
        name: replace(split, labels=places[split.labels]) for name, split in dataset.splits.items()
    }
    return replace(dataset, splits=splits, class_names=tuple(names))
