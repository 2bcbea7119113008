r"""Samples beyond doubt, and what their labels give away.

A network that has learned that one cat in three is called a dog explains the labels as well without
any noise: it doubts every cat. Predictions and labels alone cannot tell such a network from one
whose doubts are its own. What can is an assumption that much of the field makes: that every class
has samples beyond doubt, its *anchors*. The labels of those are the noise itself. If they differ
from the network's word more often than the noise model has it, the network has learned the noise,
and its word is read through it: with \(\eta = q\,T\) as the noise model has it, and the matrix
\(A\) of the anchors, the true class has the probabilities \(\eta A^{-1}\).

The surest samples also say whether people share the network's doubts. A label that differs from
its word there is wrong. If such labels are its second choice no more often than any other class,
mistakes fall on samples at random, and the noise model says how far to trust a doubt. If they are,
people confuse what it confuses, and by as much its first choice is taken to be right.

Reference:
    Patrini et al., "Making deep neural networks robust to label noise: a loss correction approach",
    CVPR 2017 (anchor points).
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.noise_model import (
    Groups,
    NoiseModel,
    as_transition,
    count_pairs,
    softmax,
    warmest,
)

_ANCHORS = 0.1
"""Share of the samples of each predicted class that are beyond doubt, where there are such."""
_BEYOND_DOUBT = 0.99
_ENOUGH = 100
"""Anchors of a class from which its noise is known to some five points."""
_MOST = 0.25
"""For the sake of being enough, anchors are never more than this share of a class."""
_BY_CHANCE = 0.1
"""In how many classes, on average, anchors may say more than the noise model by chance."""
_FEWEST = 10
"""Anchors that a class must have: the few of a class that was not learned may have any label."""
_MORE_THAN_DIFFER = 2.0
"""Times as many labels may be wrong as differ from the predictions; more was taken back too far."""
_TANGLED = 20.0
"""Condition number from which on a matrix is not taken back: its classes are labelled alike."""
_LEAST = 1e-6


def anchor_temperature(samples: Groups) -> float:
    """The highest temperature at which the surest samples of each class are beyond doubt."""
    return warmest(samples.logits[surest(samples, _ANCHORS)], _BEYOND_DOUBT)


def find_anchors(samples: Groups) -> NDArray[np.bool_]:
    """Which samples are anchors: a tenth or a hundred of each predicted class."""
    sizes = np.bincount(samples.predicted, minlength=samples.classes)
    wanted = np.maximum(_ANCHORS * sizes, np.minimum(_ENOUGH, _MOST * sizes))
    return surest(samples, wanted / np.maximum(sizes, 1))


def count_anchors(samples: Groups) -> NDArray[np.float64]:
    """How many anchors of each predicted class have each label, `(C, C)`."""
    chosen = find_anchors(samples)
    return count_pairs(samples.predicted[chosen], samples.given[chosen], samples.classes)


def read_through(
    samples: Groups, model: NoiseModel, *, by_chance: float = _BY_CHANCE
) -> NoiseModel:
    """The noise model with the noise taken out of the network's word, where that has learned it.

    Where anchors do not have clearly more wrong labels than the model says, it is returned as it
    is. `by_chance` is in how many classes, on average, they may have more by chance.

    Example:
        >>> from labelproof.audit.noise_model import fit_noise_model
        >>> generator = np.random.default_rng(2)
        >>> cats = generator.random(4000) < 0.5
        >>> given = np.where(cats & (generator.random(4000) < 0.35), 1, 1 - cats)
        >>> # A network that has learned it: cats are dogs to it, by a third.
        >>> share = 0.65 / (1 + np.exp(-4 * generator.normal(np.where(cats, 2, -2))))
        >>> logits = np.log(np.stack([share, 1 - share], axis=1)).astype(np.float32)
        >>> model = fit_noise_model(logits, given)
        >>> read = read_through(Groups(logits, given), model)
        >>> f"wrong {np.mean(given == cats):.0%}, {model.noise_rate:.0%}, {read.noise_rate:.0%}"
        'wrong 18%, 0%, 18%'
    """
    matrix = _raised(model.transition, count_anchors(samples), by_chance)
    if matrix is None or np.linalg.cond(matrix, 1) > _TANGLED:
        return model
    reading = model.transition @ np.linalg.inv(matrix)
    word = read_word(softmax(samples.logits, model.temperature), reading)
    joint = samples.fit(1.0, start=matrix, steps=1, probabilities=word).joint
    differing = float(np.mean(samples.predicted != samples.given))
    if 1 - np.trace(joint) > _MORE_THAN_DIFFER * differing:
        return model
    return replace(model, transition=matrix, joint=joint, reading=reading)


def read_word(word: NDArray[np.floating], reading: NDArray[np.float64]) -> NDArray[np.float32]:
    """What a network would say that had not learned the noise, `(N, C)`."""
    read = np.maximum(word @ reading, _LEAST)
    return (read / read.sum(axis=1, keepdims=True)).astype(np.float32)


def _raised(
    transition: NDArray[np.float64], counts: NDArray[np.float64], by_chance: float
) -> NDArray[np.float64] | None:
    """The matrix with more noise in the rows whose anchors have clearly more; `None` if none has.

    By whole rows: with a hundred classes, single entries of a few anchors are chance.
    """
    number = np.maximum(counts.sum(axis=1), 1.0)
    told = as_transition(counts / number.sum(), number.sum())
    wrong, known = 1 - np.diag(told), 1 - np.diag(transition)
    deviation = np.sqrt(wrong * (1 - wrong) / number)
    # Of a hundred classes one has many mistakes among its anchors by chance.
    clearly = NormalDist().inv_cdf(1 - by_chance / len(transition))
    raised = wrong - known > clearly * deviation
    # A class whose surest samples are nearly all called something else was not learned.
    raised &= (number >= _FEWEST) & (2 * np.diag(told) >= told.max(axis=1))
    more = np.where(raised, wrong - known, 0.0)
    if not (more > 0).any():
        return None
    towards = np.maximum(told - transition, 0.0)
    np.fill_diagonal(towards, 0.0)
    towards /= np.maximum(towards.sum(axis=1, keepdims=True), 1e-12)
    return transition + more[:, None] * (towards - np.eye(len(transition)))


def trust_in_model(samples: Groups) -> float:
    """How far the order of labels by the noise model is to be preferred to the network's own.

    The noise model is ahead where classes are mistaken one way only: of each two classes, anchors
    of one are called the other more often than the other way round. Where that holds for most of
    what is predicted, it is the network that leans one way. The result is from 0 to 0.75; the
    limits were chosen on tables, see `benchmarks/audit_ranking.py`.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(2, size=2000)
        >>> logits = (2 * np.eye(2)[true] + generator.normal(size=(2000, 2))).astype(np.float32)
        >>> wrong = generator.random(2000) < 0.1
        >>> labels = [np.where(wrong, other, true) for other in (1, 1 - true)]
        >>> [trust_in_model(Groups(logits, given)) for given in labels]
        [0.75, 0.0]
    """
    mistakes, leaning = one_sidedness(samples)
    trust = np.clip((mistakes - 0.2) / 0.1, 0, 1) * np.clip((0.6 - leaning) / 0.2, 0, 1)
    return 0.75 * float(trust)


def one_sidedness(samples: Groups) -> tuple[float, float]:
    """By how much pairs of classes are mistaken one way only: anchors, and all samples; 0 to 1."""
    every = count_pairs(samples.predicted, samples.given, samples.classes)
    return _one_sided(count_anchors(samples), 1.0), _one_sided(every, 2.0)


def _one_sided(counts: NDArray[np.float64], deviations: float) -> float:
    """By how much more the pairs of classes are mistaken one way than by chance, as a share."""
    either, apart = np.triu(counts + counts.T, 1), np.abs(np.triu(counts - counts.T, 1))
    return float(np.maximum(apart - deviations * np.sqrt(either), 0.0).sum() / max(either.sum(), 1))


_SUREST = 0.25
"""Share of the samples of each predicted class that the network is taken to be right about."""

_MOST_SHARED = 1 / 3
"""However alike the mistakes are, so much of its doubts are the network's own: noise that turns one
class into a similar one looks like shared doubts and is none."""


def share_of_doubts(samples: Groups, score: NDArray[np.float32]) -> float:
    """Which share of its doubts a network has in common with whoever wrote the labels.

    It is between 0 and a third. The samples' logits are of networks that have not seen the labels;
    `score` is the probability that each label is wrong if all doubts are the network's own.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> logits = generator.normal(0, 3, (9000, 10)).astype(np.float32)
        >>> first, second = np.argsort(-logits, axis=1)[:, :2].T
        >>> wrong = np.ones(9000, np.float32)
        >>> any_other = (first + generator.integers(1, 10, 9000)) % 10
        >>> [round(share_of_doubts(Groups(logits, each), wrong), 2) for each in (any_other, second)]
        [0.0, 0.33]
    """
    if samples.classes < 3:  # where every mistake is the second choice
        return 0.0
    differing = surest(samples, _SUREST) & (samples.given != samples.predicted)
    weight = score[differing].astype(np.float64)
    if not weight.sum() > 0:
        return 0.0
    rest = samples.logits[differing]
    rest[np.arange(len(rest)), samples.predicted[differing]] = -np.inf
    second = rest.argmax(axis=1)
    hits = float(weight[samples.given[differing] == second].sum() / weight.sum())
    chance = 1 / (samples.classes - 1)
    return min(max((hits - chance) / (1 - chance), 0.0), _MOST_SHARED)


def surest(samples: Groups, share: float | NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of each predicted class, the share of samples with the largest margins, and at least one."""
    predicted = samples.predicted
    chosen = np.zeros(len(predicted), dtype=np.bool_)
    order = np.lexsort((samples.order, -samples.margin, predicted))
    sizes = np.bincount(predicted, minlength=np.size(share))
    rank = np.arange(len(predicted)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen[order[rank < np.repeat(np.ceil(share * sizes), sizes)]] = True
    return chosen
