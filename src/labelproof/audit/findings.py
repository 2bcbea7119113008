"""What an audit found: which labels are wrong, how many are, and which classes are confused."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from labelproof.audit.anchors import correct
from labelproof.audit.noise_model import (
    IMPOSSIBLE,
    UNLIKELIEST,
    NoiseModel,
    count_pairs,
    prior_weight,
)
from labelproof.audit.predictions import CACHED, Table, read_parts
from labelproof.intervals import wilson_interval

DOUBTFUL = 0.5
"""The probability to be wrong from which on a label is a suspect."""

FEWEST = 10
"""Samples of a class from which on it can be judged: smaller ones are hardly learned."""

LIKELIEST = 3
"""Classes of each sample that are kept with their probabilities."""

_TRUSTED, _OF_RIGHT = 0.7, 0.85
"""Shares of all labels, and of the right ones, from which on predictions that agree are trusted."""
_ABOVE_CHANCE = 0.1
"""The least share, of the labels that guessing does not predict, that a model has to predict."""


@dataclass(frozen=True, repr=False)
class Findings:
    """The outcome of an audit of `N` labels in `C` classes.

    Attributes:
        given: The given labels, `(N)`, int64.
        suggested: The label that each sample should probably have, `(N)`, int64: of a suspect the
            most probable other one, else the given one.
        score: The probability that the given label is wrong, `(N)`, float32 between 0 and 1.
        noise_rate: The share of labels that are wrong.
        transition: Row `i`, column `j`: the share of samples truly of class `i` that are labelled
            `j`, `(C, C)`; its rows sum to 1.
        transition_low: The lower ends of the 95% intervals, entry by entry.
        transition_high: The upper ends.
        temperature: What the logits were divided by, so that probabilities mean what they say.
        likeliest: The classes that the network finds most probable, at most three, the likeliest
            first, `(N, 3)`.
        probability: Their probabilities.
        shared_doubts: Which share of its doubts the network has in common with whoever wrote the
            labels.
    """

    given: NDArray[np.int64]
    suggested: NDArray[np.int64]
    score: NDArray[np.float32]
    noise_rate: Estimate
    transition: NDArray[np.float64]
    transition_low: NDArray[np.float64]
    transition_high: NDArray[np.float64]
    temperature: float
    likeliest: NDArray[np.int32]
    probability: NDArray[np.float32]
    shared_doubts: float = 0.0

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        return (
            f"Findings({len(self):,} labels, {len(self.suspects):,} suspects, "
            f"wrong: {self.noise_rate.as_percent()}, agreement {self.agreement.value:.0%})"
        )

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.transition)

    @functools.cached_property
    def suspects(self) -> NDArray[np.int64]:
        """Samples whose label is more probably wrong than right, the most suspicious first."""
        order = self.order
        return order[self.score[order] > DOUBTFUL]

    @functools.cached_property
    def order(self) -> NDArray[np.int64]:
        """All samples, the most suspicious first."""
        return _sort(-self.score)

    @property
    def labelled(self) -> list[int]:
        """How many samples have each class for their label."""
        return np.bincount(self.given, minlength=self.num_classes).tolist()

    @property
    def predicted(self) -> list[int]:
        """How many samples each class is predicted for."""
        return np.bincount(self.likeliest[:, 0], minlength=self.num_classes).tolist()

    @functools.cached_property
    def agreement(self) -> Estimate:
        """The share of labels that the network predicts."""
        agreed = int(np.count_nonzero(self.likeliest[:, 0] == self.given))
        return Estimate(agreed / len(self), *wilson_interval(agreed, len(self)))

    @functools.cached_property
    def trusted(self) -> bool:
        """Whether so many labels are predicted that the network has learned enough."""
        chance = np.dot(self.predicted, self.labelled) / len(self) ** 2
        guessed = chance + _ABOVE_CHANCE * (1 - chance)
        least = max(_OF_RIGHT * (1 - self.noise_rate.low), guessed)
        return bool(self.agreement.value >= min(_TRUSTED, least))

    @property
    def estimated_count(self) -> int:
        """How many labels are wrong by the estimated rate."""
        return round(self.noise_rate.value * len(self))


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval.

    Attributes:
        value: The estimate.
        low: The interval's lower end.
        high: Its upper end.

    Example:
        >>> print(Estimate(0.2, 0.181, 0.2204).as_percent())
        20.0% (18.1% to 22.0%)
    """

    value: float
    low: float
    high: float

    def as_percent(self) -> str:
        """As text, for a share of 0 to 1."""
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


_EACH = 8
"""Parts for which a further thread is worth its start."""
_APART = 1e-4
_WEIGHED = 0.1
"""The score from which on the most probable other class is looked for by Bayes' rule."""


class Suspicion(NamedTuple):
    """What the noise model and the network say of each label.

    `score` is as in `Findings`; `other` is the most probable class besides the label, by the
    network alone where the label is hardly in doubt; `unlike` is the mean of the label's margin and
    of the log odds against it, by the network alone; `confusion` is how often each class is
    predicted (row) for each label (column); `likeliest` and `probability` are as in `Findings`.
    """

    score: NDArray[np.float32]
    other: NDArray[np.int64]
    unlike: NDArray[np.float32]
    confusion: NDArray[np.float64]
    likeliest: NDArray[np.int32]
    probability: NDArray[np.float32]


def suspect(
    logits: Table, given: NDArray[np.int64], model: NoiseModel, *, shared: float = 0.0
) -> Suspicion:
    """The probability that each label is wrong, by Bayes' rule.

    The true class is `j` with a probability in proportion to `q_j T_jk`, where `k` is the given
    label, and `q` the prediction, corrected for noise that the network has learned. A label that is
    often put on another class by mistake is suspected sooner than one that never is.

    `logits`, `(N, C)`, may be a mapped file, which is read part by part. `shared`, from
    `share_of_doubts`, is the probability that, where network and label differ, the network is right
    whatever its doubts.

    Example:
        >>> matrix = np.array([[0.9, 0.1], [0.0, 1.0]])
        >>> model = NoiseModel(matrix, 1.0, 0.0, matrix / 2)
        >>> found = suspect(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([1, 0]), model)
        >>> found.score.round(2), found.other
        (array([0.42, 0.  ], dtype=float32), array([0, 1]))
    """
    size, classes = logits.shape
    score, unlike = np.empty((2, size), np.float32)
    other = np.empty(size, np.int64)
    likeliest = np.empty((size, min(classes, LIKELIEST)), np.int32)
    probability = np.empty(likeliest.shape, np.float32)
    columns = torch.from_numpy(np.ascontiguousarray(model.transition.T, np.float32))
    most = min(max(CACHED // classes, 1), size)
    ones, starts = torch.ones(classes), np.arange(most)

    def judge(share: tuple[int, int]) -> None:
        weights = torch.empty(most, classes)
        for part, odds in read_parts(logits, CACHED, share=share):
            # Torch is fast at whole rows, and NumPy at one number of each.
            whole, single, labels = torch.from_numpy(odds), odds.reshape(-1), given[part]
            start, first = starts[: len(labels)] * classes, odds.argmax(axis=1)
            at_label, at_first = start + labels, start + first
            # Shifted before the division, so that no logit overflows.
            whole.sub_(torch.from_numpy(single[at_first])[:, None]).div_(model.temperature)
            whole.clamp_(min=IMPOSSIBLE)
            unlikely, best = -single[at_label], _likeliest(odds, start, first, likeliest.shape[1])
            whole.clamp_(min=UNLIKELIEST).exp_()
            top, own = single[start[:, None] + best], single[at_label]
            single[at_label] = 0
            rest = (whole @ ones).numpy()  # less exact as a difference
            single[at_label] = own
            highest = np.where(first == labels, top[:, 1], top[:, 0])
            unlike[part] = unlikely + np.log(np.maximum(highest * rest, 1e-30)) / 2
            likeliest[part], probability[part] = best, top / (rest + own)[:, None]
            if model.correction is not None:
                odds[:] = correct(odds / (rest + own)[:, None], model.correction)
            whole.mul_(
                torch.index_select(columns, 0, torch.from_numpy(labels), out=weights[: len(odds)])
            )
            # A label that no class can have by the matrix is wrong, whatever the true one is.
            total = np.maximum((whole @ ones).numpy(), np.float32(1e-30)) / np.float32(1 - shared)
            single[at_first] += np.float32(shared) * total
            score[part] = np.clip(1 - single[at_label] / total, 0, 1)
            other[part] = np.where(first == labels, best[:, 1], first)
            doubted = np.flatnonzero(score[part] > _WEIGHED)
            single[at_label] = -1
            other[part][doubted] = odds[doubted].argmax(axis=1)

    threads = min(joblib.cpu_count(), size // (_EACH * most))
    if threads < 2:
        judge((0, 1))
    else:
        # OpenMP has a limit for each thread; the others were set, and are restored, by the caller.
        with ThreadPoolExecutor(threads, initializer=threadpool_limits, initargs=(1,)) as pool:
            list(pool.map(judge, [(thread, threads) for thread in range(threads)]))
    counts = count_pairs(likeliest[:, 0].astype(np.int64), given, classes)
    return Suspicion(score, other, unlike, counts, likeliest, probability)


def _likeliest(
    logits: NDArray[np.float32], start: NDArray[np.int64], first: NDArray[np.int64], wanted: int
) -> NDArray[np.int64]:
    """Where each row is largest, the largest first; `torch.topk` takes four times as long."""
    single, places = logits.reshape(-1), [first]
    removed = []
    while len(places) < wanted:
        removed.append(single[start + places[-1]])
        single[start + places[-1]] = -np.inf
        places.append(logits.argmax(axis=1))
    for place, values in zip(places, removed, strict=False):
        single[start + place] = values
    return np.stack(places, axis=1)


def reorder(found: Suspicion, trust: float) -> Suspicion:
    """The same scores, ordered by a mean of their log odds and of what the network alone says.

    Where no class is mistaken for another, or the network is too weak to tell, the network alone
    orders labels better. `trust` is the noise model's weight.
    """
    score = np.clip(found.score, 1e-7, 1 - 1e-7, dtype=np.float64)
    mean = trust * np.log(score / (1 - score)) + (1 - trust) * found.unlike
    ranked = np.empty_like(found.score)
    # Pulled apart, since equal scores would lose their order.
    apart = np.linspace(0, _APART, len(ranked), dtype=np.float32)
    ranked[_sort(mean)] = (1 - _APART) * np.sort(found.score) + apart
    return found._replace(score=ranked)


def temper(score: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same order and suspects, with the log odds of suspects halved where samples are few.

    A noise model of some hundred samples is a guess, and a weak network's errors look like wrong
    labels to it: on small tables about half of the suspects are wrong where it says four in five
    (`benchmarks/audit_small.py`). From 5,000 samples on nothing changes.

    >>> temper(np.array([0.1, 0.5, 0.99], np.float32)).round(2)
    array([0.1 , 0.5 , 0.91], dtype=float32)
    """
    power = 1 / (1 + prior_weight(len(score)))
    for_it, against = score**power, (1 - score) ** power
    return np.where(score > DOUBTFUL, for_it / (for_it + against), score)


def _sort(numbers: NDArray[np.floating]) -> NDArray[np.int64]:
    """A stable `argsort` of numbers in float32, five times as fast: of each with its place."""
    bits = np.asarray(numbers, np.float32).view(np.int32).astype(np.int64)
    rising = np.where(bits < 0, -(1 << 31) - bits, bits)  # of negative numbers the bits fall
    return np.sort((rising << 32) + np.arange(len(bits))) & ((1 << 32) - 1)
