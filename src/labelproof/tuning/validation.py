"""What the search learns from and validates on: the given labels, and nothing else of them.

The true labels, where anyone knows them, and the test set are left outside: what is handed to the
runs is a dataset that was built without them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelproof.data.dataset import Dataset, Split
from labelproof.data.splits import Holdout, folds, hold_out
from labelproof.ranges import whole
from labelproof.seeds import derive_seed
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples, balanced_weights, choose_examples
from labelproof.training.metrics import spread

_SMALL = 10_000
"""Below so many examples one part that is held out says too little, and folds are worth their
cost; it is also what is held out of a large set, as far as that is no more than a fifth of it."""

_FOLDS = 3


@dataclass(frozen=True)
class Validation:
    """A dataset with the given labels in place of its own, and how it is cut.

    Attributes:
        dataset: Training images and given labels; no test set.
        parts: For each fold, what is learned from and what is validated on.
        classes: For each fold, over how many classes its labels to validate on spread.
        balanced: Whether every class counts the same.
    """

    dataset: Dataset
    parts: tuple[Holdout, ...]
    classes: tuple[float, ...]
    balanced: bool = False

    @property
    def rows(self) -> list[int]:
        """How many examples each fold validates on."""
        return [len(part.validation) for part in self.parts]

    def examples(self, fold: int) -> Examples:
        """What the run of a fold gets."""
        labels, part = self.dataset.train.labels, self.parts[fold]
        weight = None
        if self.balanced:
            weight = balanced_weights(labels, part.train, num_classes=self.dataset.num_classes)
        return Examples(self.dataset, part.train, labels, None, 0.0, part.validation, weight)

    def fingerprint(self) -> dict[str, Any]:
        """What tells whether another search was of the same labels, cut in the same way."""
        digest = hashlib.sha256(np.ascontiguousarray(self.dataset.train.labels, "<i8").tobytes())
        for part in self.parts:
            digest.update(np.ascontiguousarray(part.validation, "<i8").tobytes())
        return {"rows": self.rows, "labels": digest.hexdigest()[:16]}


def choose_validation(
    dataset: Dataset,
    configuration: Configuration,
    *,
    parts: int | str = "auto",
    human: str | os.PathLike[str] | None = None,
) -> Validation:
    """Put the configuration's noise on the labels, if it has any, and cut what comes out.

    Example:
        >>> from labelproof.data import load_digits
        >>> noisy = Configuration("digits", noise="symmetric:0.4")
        >>> validation = choose_validation(load_digits(), noisy)
        >>> validation.rows, "test" in validation.dataset.splits
        ([449, 449, 449], False)
    """
    plain = replace(configuration, validation=0.0)
    chosen = choose_examples(plain, dataset, human=human)
    count = count_folds(parts, len(chosen.used))
    if parts == "auto" and dataset.train.groups is not None:
        count = min(count, len(np.unique(dataset.train.groups[chosen.used])))
    seed = derive_seed(configuration.seed, "validation", 0)
    given, groups = chosen.given, dataset.train.groups
    if count == 1:
        share = min(max(_SMALL / len(chosen.used), 0.1), 0.2)
        cut = [hold_out(given, share, seed=seed, indices=chosen.used, groups=groups)]
    else:
        cut = folds(given, count, seed=seed, indices=chosen.used, groups=groups)
    if any(not len(part.validation) or not len(part.train) for part in cut):
        raise ValueError(
            f"dataset: {len(chosen.used)} examples are too few to learn from some and validate on "
            "the others"
        )
    noisy = replace(dataset, splits={"train": Split(dataset.train.images, given)}, clean=False)
    classes = tuple(spread(np.bincount(given[part.validation]).tolist()) for part in cut)
    return Validation(noisy, tuple(cut), classes, configuration.class_weight == "balanced")


def count_folds(parts: int | str, examples: int) -> int:
    """How many times a setting is trained.

    >>> count_folds("auto", 1347), count_folds("auto", 60_000), count_folds(5, 60_000)
    (3, 1, 5)
    """
    if parts == "auto":
        return _FOLDS if examples < _SMALL else 1
    return whole("folds", parts, 1)
