"""Parts of a dataset: splits, held-out parts, folds, groups that stay together, and imbalance.

These functions take training labels and return indices: nothing here sees the test set. A held-out
part has wrong labels like the rest. Samples that belong together (copies, or images of one patient)
are never split apart: validation on copies of the training data rewards memorisation.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from labelproof.data.notices import count, few, notice
from labelproof.ranges import finite, whole, within
from labelproof.seeds import Seed, admit_labels, as_generator
from labelproof.text import parse_form

SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
"""For each split, its spellings."""


def split_name(text: str) -> str | None:
    """The split with this name, or `None`."""
    word = text.strip().casefold()
    return next((split for split, words in SPLITS.items() if word in words), None)


class Holdout(NamedTuple):
    """Indices into the training set, disjoint and in rising order."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]


def hold_out(
    labels: ArrayLike,
    share: float,
    *,
    seed: Seed,
    indices: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Holdout:
    """Hold out a share of every class to validate on.

    The validation part has `round(share * N)` samples, and of each class its share to within one.
    At least one sample of each class stays in training, so the validation part may be smaller.

    Args:
        labels: The given, noisy class indices of the whole training set, `(N)`.
        share: The share to hold out, between 0 and 1.
        seed: A number, or a generator, which is advanced; the same on every platform.
        indices: The samples to split; all of them by default.
        groups: The group of each sample, `(N)`, such as a patient. Samples of one group stay on one
            side, so shares are only as near as whole groups allow.

    >>> train, validation = hold_out([0, 0, 0, 0, 1, 1, 1, 1, 2], 0.25, seed=1)
    >>> train, validation
    (array([0, 1, 3, 5, 6, 7, 8]), array([2, 4]))
    """
    share = finite("share", share)
    if not 0 < share < 1:
        raise ValueError(f"share: expected a number between 0 and 1, got {share:g}")
    given, chosen, together = _admit(labels, indices, groups)
    generator = as_generator(seed)
    if together is not None:
        parts = max(min(round(1 / share), len(np.unique(together))), 2)
        kept = _deal_groups(given, together, parts, generator) != 0
        # At least one group of each class stays in training.
        for label in np.setdiff1d(given, given[kept]):
            if not kept[given == label].any():  # not in a group that has stayed for another class
                kept |= together == together[given == label][0]
        return _split(chosen, np.flatnonzero(~kept))
    order = order_by_class(given, generator)
    sizes = np.bincount(given)
    ideal = share * sizes
    held = np.floor(ideal).astype(np.int64)
    missing = round(share * len(chosen)) - held.sum()
    # One more from classes that can spare it, the largest remainders first, ties at random.
    most = np.maximum(sizes - 1, 0)
    held[np.lexsort((generator.random(len(sizes)), held - ideal, held >= most))[:missing]] += 1
    held = np.minimum(held, most)
    rank = np.arange(len(chosen)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return _split(chosen, order[rank < np.repeat(held, sizes)])


def folds(
    labels: ArrayLike,
    count: int,
    *,
    seed: Seed,
    indices: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> list[Holdout]:
    """Cut a training set into folds, each validated on once while the others are trained on.

    The sizes of the folds differ by at most one, and so do the numbers of each class in them. A
    class with fewer samples than there are folds is missing from some validation parts.

    Args:
        labels: The given, noisy class indices of the whole training set, `(N)`.
        count: Number of folds, from 2 to the number of samples.
        seed: As for `hold_out`.
        indices: Likewise.
        groups: Likewise; samples of one group are in one fold.

    >>> for fold in folds([0, 0, 0, 1, 1, 1], 3, seed=1):
    ...     print(fold.train, fold.validation)
    [0 1 3 5] [2 4]
    [1 2 3 4] [0 5]
    [0 2 4 5] [1 3]
    """
    given, chosen, together = _admit(labels, indices, groups)
    count = whole("count", count, 2)
    if count > len(chosen):
        raise ValueError(f"count: expected 2 to {len(chosen)} folds, got {count}")
    if together is not None:
        dealt = _deal_groups(given, together, count, as_generator(seed))
        return [_split(chosen, np.flatnonzero(dealt == fold)) for fold in range(count)]
    order = order_by_class(given, as_generator(seed))
    # Dealt like cards, class after class: the next class continues where the last one ended.
    return [_split(chosen, order[fold::count]) for fold in range(count)]


def order_by_class(labels: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Positions by class, in random order within each."""
    return np.lexsort((generator.random(len(labels)), labels))


def _admit(
    labels: ArrayLike, indices: ArrayLike | None, groups: ArrayLike | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
    """Labels of the chosen samples, their indices, and their groups, `None` if all are single."""
    given = admit_labels(labels)
    listed = np.arange(len(given))
    if indices is not None:
        listed = admit_labels(indices, len(given), name="indices")
    # In rising order, so that the same samples are split alike however they are listed.
    chosen = np.unique(listed)
    if len(chosen) < len(listed):
        raise ValueError(f"indices: expected each once at most, got {listed[:20].tolist()}")
    together = admit_groups(groups, len(given))
    if together is None or len(np.unique(together[chosen])) == len(chosen):
        return given[chosen], chosen, None
    return given[chosen], chosen, together[chosen]


def _split(indices: NDArray[np.int64], held: NDArray[np.int64]) -> Holdout:
    return Holdout(np.delete(indices, held), indices[np.sort(held)])


def _deal_groups(
    labels: NDArray[np.int64], groups: NDArray[np.int64], parts: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """The part of each sample, the same for all of a group."""
    sizes = np.bincount(groups)
    number = int((sizes > 0).sum())
    if number < parts:
        raise ValueError(f"groups: expected at least {parts} for {parts} parts, got {number}")
    dealt = np.empty(len(labels), np.int64)
    # Most samples are alone: these are dealt like cards, which is faster than group by group.
    alone = sizes[groups] == 1
    order = np.flatnonzero(alone)[order_by_class(labels[alone], generator)]
    dealt[order] = np.arange(len(order)) % parts
    several = np.flatnonzero(~alone)
    if len(np.unique(groups[several])) < parts:
        # Each to a different part, the smallest first.
        for part, group in enumerate(np.unique(groups[several])):
            dealt[groups == group] = parts - 1 - part
        return dealt
    # scikit-learn takes as long to import as torch, and most runs have no groups.
    from sklearn.model_selection import StratifiedGroupKFold

    state = int(generator.integers(2**31))
    with_groups = StratifiedGroupKFold(parts, shuffle=True, random_state=state)
    # It refuses to stratify if every class has fewer samples than there are parts.
    known = labels[several]
    known = known if np.bincount(known).max() >= parts else np.zeros_like(known)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        for part, (_, held) in enumerate(with_groups.split(several, known, groups[several])):
            dealt[several[held]] = part
    return dealt


def admit_groups(groups: ArrayLike | None, samples: int) -> NDArray[np.int64] | None:
    """The group number of each sample, `(N)`; a sample without a group is one of its own."""
    if groups is None:
        return None
    shape = np.shape(groups)
    if shape != (samples,):
        raise ValueError(f"groups: expected one for each of {samples:,} samples, got shape {shape}")
    joined = joined_groups(groups)
    return np.arange(samples) if joined is None else joined


def joined_groups(*columns: Any) -> NDArray[np.int64] | None:
    """Group samples that share a value in any column: the first index of each one's group, `(N)`.

    `None`, NaN, `""` and -1 are never shared. Returns `None` if no values are shared.

    >>> joined_groups(["a", "b", "a", ""], [-1, -1, 3, 3])
    array([0, 1, 0, 0])
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    given = [pd.Series(column).reset_index(drop=True) for column in columns if column is not None]
    samples, nodes = [], []
    start = size = len(given[0]) if given else 0
    for column in given:
        if column.dtype.kind in "iu" and (column == -1).all():
            continue
        codes = pd.factorize(column.mask(column.isin(["", -1])))[0]
        shared = np.flatnonzero(codes >= 0)
        samples.append(shared)
        nodes.append(codes[shared] + start)
        start += int(codes.max(initial=-1)) + 1
    if not samples:
        return None
    pairs = np.concatenate(samples), np.concatenate(nodes)
    graph = coo_matrix((np.ones(len(pairs[0]), np.bool_), pairs), shape=(start, start))
    component = connected_components(graph, directed=False)[1][:size]
    _, first, which = np.unique(component, return_index=True, return_inverse=True)
    return None if len(first) == size else first[which].astype(np.int64)


def splittable(groups: NDArray[np.int64] | None, labels: ArrayLike) -> NDArray[np.int64] | None:
    """The groups, or `None` if a class is a single group, which could not be held out."""
    if groups is None:
        return None
    given = np.asarray(labels)
    for label in np.unique(given):
        own = groups[given == label]
        if len(own) > 1 and (own == own[0]).all():
            return None
    return groups


def report_shared_groups(place: str, column: str, values: Any, splits: Any) -> None:
    """Warn of groups that are in `train` and in another split."""
    table: Any = pd.DataFrame({"value": list(values), "split": list(splits)})
    table = table[table["value"] != ""]
    trained = set(table.loc[table["split"] == "train", "value"])
    for split, part in table[table["split"] != "train"].groupby("split"):
        both = sorted(trained & set(part["value"]))
        if both:
            values = f"{count(len(both), 'value')} of {column!r}"
            notice(
                f"{place}: {values} both in train and {split}: {few(both)}; accuracy says little"
            )


_FORMS = ["none", "long-tailed:FACTOR", "step:FACTOR"]


@dataclass(frozen=True)
class Imbalance:
    r"""A kind of imbalance and its factor; prints as the text it was read from.

    Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019 (long-tailed);
    Buda et al., "A systematic study of the class imbalance problem in convolutional neural
    networks", Neural Networks 2018 (step).

    Attributes:
        kind: `"long-tailed"` keeps $\lfloor n f^{i / (k - 1)} \rfloor$ samples of class i of k,
            `"step"` $\lfloor n f \rfloor$ of the last half of the classes, `"none"` all.
        factor: $f$, the smallest class over the largest, in (0, 1].

    >>> Imbalance("long-tailed", 0.01).counts(5000, 10)
    [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    >>> Imbalance("step", 0.1).counts(500, 5)
    [500, 500, 500, 50, 50]
    >>> Imbalance("step", 0.5).keep([0, 0, 0, 0, 1, 1, 1, 1], seed=1)
    array([0, 1, 2, 3, 4, 7])
    """

    kind: str
    factor: float = 1.0

    def __post_init__(self) -> None:
        within("imbalance factor", self.factor, 0, 1, open_low=True)

    def counts(self, largest: int, num_classes: int) -> list[int]:
        """Number of samples that each class keeps, if the largest class has `largest`."""
        if largest < 1 or num_classes < 2:
            raise ValueError(f"labels: expected samples of 2 classes or more, got {num_classes}")
        powers = [0.0] * num_classes
        if self.kind == "long-tailed":
            powers = [index / (num_classes - 1) for index in range(num_classes)]
        elif self.kind == "step":
            powers[num_classes - num_classes // 2 :] = [1.0] * (num_classes // 2)
        # At least one sample: without a class it would be a different task.
        return [max(int(largest * self.factor**power), 1) for power in powers]

    def keep(self, labels: ArrayLike, *, seed: Seed) -> NDArray[np.int64]:
        """Choose samples at random; classes that are small already are kept whole.

        Args:
            labels: Class indices, `(N)`.
            seed: A number, or a generator, which is advanced; the same on every platform.

        Returns:
            The indices to keep, in rising order.
        """
        given = admit_labels(labels)
        if self.kind == "none":
            return np.arange(len(given))
        sizes = np.bincount(given)
        counts = self.counts(int(sizes.max(initial=0)), len(sizes))
        order = order_by_class(given, as_generator(seed))
        rank = np.arange(len(given)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.sort(order[rank < np.repeat(counts, sizes)])

    def __str__(self) -> str:
        factor = repr(self.factor).removesuffix(".0")  # all digits: a run is rebuilt from this text
        return self.kind if self.kind == "none" else f"{self.kind}:{factor}"


def parse_imbalance(text: str) -> Imbalance:
    """Read `none`, `long-tailed:FACTOR` or `step:FACTOR`.

    >>> parse_imbalance("long-tailed:0.01")
    Imbalance(kind='long-tailed', factor=0.01)
    >>> parse_imbalance("longtailed:0.01")
    Traceback (most recent call last):
        ...
    ValueError: imbalance: expected none, long-tailed:FACTOR or step:FACTOR, got 'longtailed:0.01';
    did you mean 'long-tailed'?
    """
    form, values = parse_form(text, _FORMS, what="imbalance")
    return Imbalance(form.partition(":")[0], values.get("FACTOR", 1.0))
