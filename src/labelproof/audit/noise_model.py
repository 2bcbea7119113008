r"""A model of the labels: a true class by the network's prediction, then a label by the noise.

A network that has not seen a sample's label predicts \(q_j(x)\), the probability of each class. The
model draws the label from the true class by a transition matrix, \(T_{jk} = P(\text{given } k \mid
\text{true } j)\), so that

\[ P(\text{given } k \mid x) = \sum_j q_j(x)\, T_{jk}. \]

The matrix maximises the likelihood of the given labels, by expectation maximisation. Bayes' rule
then gives the probability that a label is wrong.

Networks are rarely calibrated: trained on wrong labels with cross entropy they are underconfident,
with a robust loss overconfident. So \(q\) is the softmax of the logits over a temperature, which is
estimated along with the matrix. Its logarithm has a normal prior about 0, which fades as samples
grow to 5,000: with a hundred, if all of the most confident predictions are right, the likelihood
grows until the network has no doubts left, at the lowest temperature.

Reference:
    Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
    1979; Guo et al., "On calibration of modern neural networks", ICML 2017 (temperature).
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.audit.predictions import admit_logits, read_part
from labelproof.noise.matrices import symmetric_matrix
from labelproof.ranges import within

_STEPS = 60
_TOLERANCE = 1e-6
"""Change of the mean log-likelihood at which a fit has converged."""

COOLEST, HOTTEST = 0.05, 20.0
_SEARCHED = 10_000
"""Most samples by which the temperature is searched for, spread over all."""
_PROBES, _CLOSE = 9, 0.2
"""Temperatures that the search starts from; how narrow, in the logarithm, its interval ends."""

_FEW = 5_000
"""Number of samples from which on the temperature has no prior."""

IMPOSSIBLE = -1e6
"""Lowest logit below the largest: dividing the most negative number would overflow."""

UNLIKELIEST = -60.0
"""Lowest exponent of a probability: products of smaller ones are denormal numbers, with which a
processor takes a hundred times as long."""

_PRIOR = 1.0
"""Pseudo-counts that each row of the matrix has beside its samples, on top of its diagonal."""


@dataclass(frozen=True)
class NoiseModel:
    """A transition matrix, and the temperature that goes with it.

    Attributes:
        transition: `(C, C)`, float64; rows sum to 1.
        temperature: What logits are divided by.
        likelihood: The mean log-likelihood of a given label.
        joint: The share of samples of each true class (row) with each label (column) among those
            it was fitted to, `(C, C)`; sums to 1.
        correction: What predictions are multiplied by, `(C, C)`, if the network has learned the
            noise; see `correct_by_anchors`.
    """

    transition: NDArray[np.float64]
    temperature: float
    likelihood: float
    joint: NDArray[np.float64]
    correction: NDArray[np.float64] | None = None

    @property
    def noise_rate(self) -> float:
        """The share of wrong labels among those it was fitted to."""
        return max(1 - float(np.trace(self.joint)), 0.0)


def fit_noise_model(
    logits: ArrayLike,
    given: ArrayLike,
    *,
    temperature: float | None = None,
    prior: NDArray[np.float64] | float = 0.0,
) -> NoiseModel:
    """Estimate the noise from predictions by networks that have not seen the labels.

    Args:
        logits: `(N, C)`; logarithms of probabilities are logits too.
        given: The given labels, `(N)`, class indices.
        temperature: What logits are divided by; estimated by default.
        prior: Further pseudo-counts of the matrix, `(C, C)`; see `LeastSquares.prior`.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(3, size=3000)
        >>> logits = 6 * np.eye(3)[true] + generator.normal(size=(3000, 3))
        >>> wrong = generator.random(3000) < 0.3
        >>> given = np.where(wrong, (true + 1) % 3, true)
        >>> model = fit_noise_model(logits.astype(np.float32), given)
        >>> bool(abs(np.diag(model.transition) - 0.7).max() < 0.03)
        True
    """
    table, labels = admit_logits(logits, given)
    groups = Groups(read_part(table, slice(None)), labels)
    if temperature is not None:
        # In float32, in which logits are divided, a smaller one would be 0.
        return groups.fit(within("temperature", temperature, 1e-37), prior=prior)
    best = search_temperature(groups)
    return groups.fit(best.temperature, start=best.transition, prior=prior)


def search_temperature(samples: Groups) -> NoiseModel:
    """A fit to some samples at the most probable temperature: probes, then golden section."""
    groups, fits = samples.some(_SEARCHED), dict[float, NoiseModel]()

    def probable(logarithm: float) -> float:
        logarithm = round(logarithm, 6)  # golden section revisits points, up to rounding
        if logarithm not in fits:
            near = min(fits, key=lambda tried: abs(tried - logarithm), default=None)
            start = None if near is None else fits[near].transition
            fits[logarithm] = groups.fit(math.exp(logarithm), start=start, steps=_STEPS // 3)
        return log_posterior(fits[logarithm], len(samples.given))

    probes = np.linspace(math.log(COOLEST), math.log(HOTTEST), _PROBES).tolist()
    peak = int(np.argmax([probable(probe) for probe in probes]))
    low, high = probes[max(peak - 1, 0)], probes[min(peak + 1, _PROBES - 1)]
    # Importing an optimiser takes longer than the whole search.
    while high - low > _CLOSE:
        inner = (math.sqrt(5) - 1) / 2 * (high - low)
        if probable(high - inner) > probable(low + inner):
            high = low + inner
        else:
            low = high - inner
    # Here a parabola through the best point and its neighbours is accurate.
    tried, best = sorted(fits), max(fits, key=probable)
    near = tried[max(tried.index(best) - 1, 0) :][:3]
    curve = np.polyfit(np.subtract(near, best), [probable(each) for each in near], 2)
    if len(near) == 3 and near[1] == best and curve[0] < 0:
        probable(best - float(curve[1] / curve[0]) / 2)
    return fits[max(fits, key=probable)]


def log_posterior(fit: NoiseModel, samples: int) -> float:
    r"""The mean log-posterior of a temperature.

    The log-prior is \(-\tfrac12 (\log T)^2\), less with more samples, and 0 from 5,000 on.
    """
    prior = -0.5 * prior_weight(samples) * math.log(fit.temperature) ** 2
    return fit.likelihood + prior / samples


def prior_weight(samples: int) -> float:
    """The weight of the temperature's prior, which fades as samples grow."""
    return max(1 - samples / _FEW, 0.0)


def warmest(shifted: NDArray[np.float32], wanted: float) -> float:
    """The highest temperature at which the mean confidence is at least `wanted`."""
    low, high = COOLEST, HOTTEST
    for _ in range(30):
        middle = float(np.sqrt(low * high))
        odds = shifted / np.float32(middle)
        sureness = float(np.mean(1 / np.exp(odds, out=odds).sum(axis=1), dtype=np.float64))
        low, high = (middle, high) if sureness >= wanted else (low, middle)
    return low


def shift(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same logits with 0 for the largest of each sample."""
    with np.errstate(over="ignore"):
        return np.maximum(logits - logits.max(axis=1, keepdims=True), np.float32(IMPOSSIBLE))


def softmax(
    shifted: NDArray[np.float32], temperature: float, *, out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Probabilities by logits from `shift`."""
    found = np.divide(shifted, np.float32(temperature), out=out)
    np.maximum(found, np.float32(UNLIKELIEST), out=found)
    np.exp(found, out=found)
    found /= found.sum(axis=1, keepdims=True)
    return found


def as_transition(
    joint: NDArray[np.float64], samples: float, prior: NDArray[np.float64] | float = 0.0
) -> NDArray[np.float64]:
    """The matrix behind shares of samples by true class and label.

    A class with few samples counts as correctly labelled until they say otherwise.
    """
    classes = len(joint)
    counts = joint * samples + _PRIOR * (np.eye(classes) + 1 / classes) + prior
    return counts / counts.sum(axis=1, keepdims=True)


def count_pairs(
    rows: NDArray[np.int64], columns: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    """How often each class of `rows` meets each class of `columns`, `(C, C)`."""
    counts = np.bincount(rows * classes + columns, minlength=classes**2)
    return counts.reshape(classes, classes).astype(np.float64)


class Groups:
    """Samples sorted by their given label, so that a step of the fit is a few matrix products.

    Attributes:
        logits: `(N, C)`, with 0 for the largest of each sample.
        given: The labels, `(N)`, rising.
        order: The index of each before sorting; it breaks ties, since the present order would
            favour the first labels.
        blocks: Where the samples of each label begin and end.
    """

    def __init__(self, logits: NDArray[np.float32], given: NDArray[np.int64]):
        self.order = np.argsort(given, kind="stable")
        self.logits, self.given = shift(logits[self.order]), given[self.order]
        self.classes = logits.shape[1]
        ends = np.cumsum(np.bincount(given, minlength=self.classes))
        self.blocks = list(itertools.pairwise([0, *ends.tolist()]))

    @functools.cached_property
    def predicted(self) -> NDArray[np.int64]:
        """The class of each sample's largest logit, `(N)`."""
        return self.logits.argmax(axis=1)

    @functools.cached_property
    def margin(self) -> NDArray[np.float32]:
        """How far each sample's second largest logit is below its largest, `(N)`."""
        return -np.partition(self.logits, -2, axis=1)[:, -2]

    def some(self, most: int) -> Groups:
        """So many samples at most, spread over all."""
        step = -(-len(self.given) // most)
        if step <= 1:
            return self
        some = Groups(self.logits[::step], self.given[::step])
        some.order = self.order[::step]
        return some

    def fit(
        self,
        temperature: float,
        *,
        start: NDArray[np.float64] | None = None,
        steps: int = _STEPS,
        probabilities: NDArray[np.float32] | None = None,
        prior: NDArray[np.float64] | float = 0.0,
    ) -> NoiseModel:
        """Expectation maximisation at one temperature, from a matrix to start with."""
        if probabilities is None:
            probabilities = softmax(self.logits, temperature)
        blocks = [probabilities[begin:end] for begin, end in self.blocks]
        transition = symmetric_matrix(self.classes, 0.2) if start is None else start
        before = likelihood = -np.inf
        joint = transition / self.classes
        for _ in range(steps):
            joint, likelihood = self._step(blocks, transition)
            transition = as_transition(joint, len(self.logits), prior)
            if likelihood - before < _TOLERANCE:
                break
            before = likelihood
        return NoiseModel(transition, temperature, float(likelihood), joint)

    def _step(
        self, blocks: list[NDArray[np.float32]], transition: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """The share of samples of each true class with each label, and the mean log-likelihood."""
        columns = np.ascontiguousarray(transition.T, np.float32)
        chances = np.empty(len(self.given), np.float32)
        expected = np.empty_like(columns)
        # Block by block: the second product finds its block in the cache.
        for block, column, row, (begin, end) in zip(
            blocks, columns, expected, self.blocks, strict=True
        ):
            chance = np.matmul(block, column, out=chances[begin:end])
            np.maximum(chance, np.float32(1e-30), out=chance)
            np.matmul(np.reciprocal(chance), block, out=row)
        expected *= columns
        likelihood = float(np.log(chances, out=chances).mean(dtype=np.float64))
        return expected.T.astype(np.float64) / len(chances), likelihood
