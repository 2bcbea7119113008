r"""Anchors: the most confident predictions of each class, whose labels show the noise directly.

A network that has learned that one cat in three is called a dog explains the labels without any
noise: it doubts every cat. Predictions and labels alone cannot distinguish such a network from one
with real doubts. A common assumption can: every class has samples beyond doubt, its *anchors*. If
the labels of anchors differ from the predictions more often than the noise model says, the network
has learned the noise, and its predictions are corrected: with \(\eta = q\,T\), the probabilities of
the labels by the noise model, and the matrix \(A\) of the anchors, the true classes have the
probabilities \(\eta A^{-1}\).

The most confident samples also show whether annotators confuse the same classes as the network. A
label that differs from such a prediction is wrong. If these labels are the network's second choice
no more often than any other class, mistakes are random, and the noise model decides how far to
trust a doubt. Otherwise some of the network's doubts are shared, and in that share of cases its
first choice counts as right.

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
"""Share of the samples of each predicted class that are its anchors."""
_BEYOND_DOUBT = 0.99
_ENOUGH = 100
"""Anchors of a class that determine its noise to within about five points."""
_MOST = 0.25
"""Largest share of a class that may be anchors, even where that leaves fewer than `_ENOUGH`."""
_BY_CHANCE = 0.1
"""Number of classes, on average, whose anchors may show more noise than there is, by chance."""
_FEWEST = 10
"""Fewest anchors of a class: the few of a class that was not learned may have any label."""
_MORE_THAN_DIFFER = 2.0
"""Largest noise rate after a correction, in multiples of the share of unpredicted labels."""
_TANGLED = 20.0
"""Largest condition number of a matrix that is inverted."""
_LEAST = 1e-6


def anchor_temperature(samples: Groups) -> float:
    """The highest temperature at which the most confident samples of each class have no doubt."""
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


def correct_by_anchors(
    samples: Groups, model: NoiseModel, *, by_chance: float = _BY_CHANCE
) -> NoiseModel:
    """The noise model with a correction of the predictions, if the network has learned the noise.

    The model is returned unchanged unless anchors have significantly more wrong labels than it
    says. `by_chance` is the number of classes, on average, in which they may by chance.

    Example:
        >>> from labelproof.audit.noise_model import fit_noise_model
        >>> generator = np.random.default_rng(2)
        >>> cats = generator.random(4000) < 0.5
        >>> given = np.where(cats & (generator.random(4000) < 0.35), 1, 1 - cats)
        >>> # A network that has learned it: it takes every cat for a dog by a third.
        >>> share = 0.65 / (1 + np.exp(-4 * generator.normal(np.where(cats, 2, -2))))
        >>> logits = np.log(np.stack([share, 1 - share], axis=1)).astype(np.float32)
        >>> model = fit_noise_model(logits, given)
        >>> read = correct_by_anchors(Groups(logits, given), model)
        >>> f"wrong {np.mean(given == cats):.0%}, {model.noise_rate:.0%}, {read.noise_rate:.0%}"
        'wrong 18%, 0%, 18%'
    """
    matrix = _raised(model.transition, count_anchors(samples), by_chance)
    if matrix is None or np.linalg.cond(matrix, 1) > _TANGLED:
        return model
    correction = model.transition @ np.linalg.inv(matrix)
    corrected = correct(softmax(samples.logits, model.temperature), correction)
    joint = samples.fit(1.0, start=matrix, steps=1, probabilities=corrected).joint
    differing = float(np.mean(samples.predicted != samples.given))
    if 1 - np.trace(joint) > _MORE_THAN_DIFFER * differing:
        return model
    return replace(model, transition=matrix, joint=joint, correction=correction)


def correct(
    probabilities: NDArray[np.floating], correction: NDArray[np.float64]
) -> NDArray[np.float32]:
    """The probabilities of a network that had not learned the noise, `(N, C)`."""
    corrected = np.maximum(probabilities @ correction, _LEAST)
    return (corrected / corrected.sum(axis=1, keepdims=True)).astype(np.float32)


def _raised(
    transition: NDArray[np.float64], counts: NDArray[np.float64], by_chance: float
) -> NDArray[np.float64] | None:
    """The matrix with more noise in rows whose anchors have significantly more; `None` if none has.

    Whole rows, since with a hundred classes single entries of a few anchors are chance.
    """
    number = np.maximum(counts.sum(axis=1), 1.0)
    observed = as_transition(counts / number.sum(), number.sum())
    wrong, known = 1 - np.diag(observed), 1 - np.diag(transition)
    deviation = np.sqrt(wrong * (1 - wrong) / number)
    # Of a hundred classes one has many mistakes among its anchors by chance.
    significant = NormalDist().inv_cdf(1 - by_chance / len(transition))
    raised = wrong - known > significant * deviation
    # A class whose most confident samples nearly all have another label was not learned.
    raised &= (number >= _FEWEST) & (2 * np.diag(observed) >= observed.max(axis=1))
    more = np.where(raised, wrong - known, 0.0)
    if not (more > 0).any():
        return None
    towards = np.maximum(observed - transition, 0.0)
    np.fill_diagonal(towards, 0.0)
    towards /= np.maximum(towards.sum(axis=1, keepdims=True), 1e-12)
    return transition + more[:, None] * (towards - np.eye(len(transition)))


def trust_in_model(samples: Groups) -> float:
    """Weight of the noise model's ranking of labels against the network's own, 0 to 0.75.

    The noise model ranks better where classes are confused one way only: of two classes, anchors of
    one have the other's label more often than the reverse. If that holds for all samples as well,
    the network itself is biased. The limits were chosen on tables, see
    `benchmarks/audit_ranking.py`.

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
    """How one-sided the confusions of pairs of classes are: of anchors, of all samples; 0 to 1."""
    every = count_pairs(samples.predicted, samples.given, samples.classes)
    return _one_sided(count_anchors(samples), 1.0), _one_sided(every, 2.0)


def _one_sided(counts: NDArray[np.float64], deviations: float) -> float:
    """The share of confusions that are one way only, beyond chance."""
    either, apart = np.triu(counts + counts.T, 1), np.abs(np.triu(counts - counts.T, 1))
    return float(np.maximum(apart - deviations * np.sqrt(either), 0.0).sum() / max(either.sum(), 1))


_SUREST = 0.25
"""Share of each predicted class, the most confident, that counts as predicted correctly."""

_MOST_SHARED = 1 / 3
"""Largest share of shared doubts: noise between two similar classes looks like them and is not."""


def share_of_doubts(samples: Groups, score: NDArray[np.float32]) -> float:
    """The share of the network's doubts that annotators have too, between 0 and a third.

    The samples' logits are of networks that have not seen the labels; `score` is the probability
    that each label is wrong if no doubts are shared.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> logits = generator.normal(0, 3, (9000, 10)).astype(np.float32)
        >>> first, second = np.argsort(-logits, axis=1)[:, :2].T
        >>> wrong = np.ones(9000, np.float32)
        >>> any_other = (first + generator.integers(1, 10, 9000)) % 10
        >>> [round(share_of_doubts(Groups(logits, each), wrong), 2) for each in (any_other, second)]
        [0.0, 0.33]
    """
    if samples.classes < 3:  # every mistake is the second choice
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
