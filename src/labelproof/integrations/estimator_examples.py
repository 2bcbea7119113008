"""Examples for the engine out of what the estimator was given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset, Split
from labelproof.data.notices import count
from labelproof.data.splits import hold_out
from labelproof.integrations.estimator_admission import Admitted
from labelproof.integrations.estimator_groups import keep_together, merge_groups
from labelproof.integrations.estimator_inputs import Standard, merge_duplicates, standardize_rows
from labelproof.training.examples import Examples
from labelproof.training.metrics import spread

__all__ = ["SMALL", "make_examples", "spread_of_labels"]

_LOOKED_AT = 512
"""Examples whose predictions are counted after every epoch, to see a collapse."""
SMALL = 256
"""Up to so many rows, equal ones are taken for one that counts as much."""


def make_examples(
    admitted: Admitted,
    *,
    standard: Standard | None,
    validation: float,
    seed: int,
    tuned: bool = False,
) -> tuple[Examples, Standard]:
    """Standardise the inputs, hold out a part, and weigh the rest.

    Args:
        admitted: What came through the door.
        standard: What to standardise with, where weights that fit it are gone on from.
        validation: Share to hold out; with 0 nothing is, and some training examples are looked at
            after every epoch instead.
        seed: Of what is held out.
        tuned: Whether parts of the dataset will be validated on to choose something.
    """
    inputs, labels, weight = admitted.inputs, admitted.labels, admitted.weight
    # Where nothing is held out, groups change nothing, not even which rows are taken for one.
    cut = bool(validation) or tuned
    together = keep_together(inputs, admitted.groups) if cut else None
    if admitted.form.image_shape is not None:
        standard = standard or Standard.of_images(inputs)
        statistics = (standard.mean, standard.std)
    else:
        rows = inputs.astype(np.float64)
        if len(rows) <= SMALL:
            groups = admitted.groups if cut else None
            stay, became, weight = merge_duplicates(rows, labels, weight, groups)
            rows, labels, together = rows[stay], labels[stay], merge_groups(together, became)
        standard = standard or Standard.of_rows(rows, weight)
        inputs = standardize_rows(rows, standard)
        statistics = ((0.0,) * inputs.shape[1], (1.0,) * inputs.shape[1])
    names = tuple(str(name) for name in admitted.classes)
    train = Split(inputs, labels, groups=together)
    dataset = Dataset("X", {"train": train}, names, *statistics, clean=False)
    used, held = _divide(labels, validation, seed, together)
    share = weight / weight[used].mean()
    alike = bool((weight == weight[0]).all())
    weights = None if alike else share.astype(np.float32)
    return Examples(dataset, used, labels, None, 0.0, held, weights), standard


def spread_of_labels(examples: Examples) -> float:
    """Over how many classes the labels spread, by weight: all of them where they are even."""
    used = examples.used
    weight = None if examples.weight is None else examples.weight[used]
    return spread(np.bincount(examples.given[used], weights=weight).tolist())


def _divide(
    labels: NDArray[np.int64], validation: float, seed: int, groups: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if not validation:
        everything = np.arange(len(labels))
        # In even steps: rows may come sorted by class.
        looked_at = np.unique(np.linspace(0, len(labels) - 1, min(len(labels), _LOOKED_AT)).round())
        return everything, looked_at.astype(np.int64)
    used, held = hold_out(labels, validation, seed=seed, groups=groups)
    if not len(held):
        found = "" if groups is None else f" in {count(len(np.unique(groups)), 'group')}"
        raise ValueError(
            f"validation_fraction: {validation:g} of {len(labels)} examples{found} leaves none to "
            "validate on; hold out a larger share, or set early_stopping=False"
        )
    return used, held
