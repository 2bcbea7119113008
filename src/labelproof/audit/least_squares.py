r"""The transition matrix by least squares, with its sampling error and its misfit.

Expectation maximisation keeps every entry of the matrix positive. With few samples of a class this
biases it: entries that are 0 come out above it, and the diagonal comes out too low. A regression of
the labels on the predictions has no such bias. With \(Y\) the one-hot labels and \(Q\) the
predicted probabilities,

\[ T = (Q^\top Q)^{-1} Q^\top Y. \]

The temperature minimises the same squares. Each sample is judged by the matrix of all others, since
a label that takes part in its own prediction favours low temperatures. The residuals give the
sampling error, including that of the temperature.

With many samples the sampling error is small, and the misfit of the predictions dominates: errors
that no temperature corrects. Confident predictions suffer least from it. The misfit is therefore
taken from the difference between the matrix of the most confident quarter of each predicted class
and the matrix of all samples.

Reference:
    MacKinnon and White, "Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties", 1985 (sampling error); Hausman, "Specification tests in
    econometrics", 1978 (misfit).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.anchors import surest
from labelproof.audit.noise_model import COOLEST, HOTTEST, Groups, prior_weight, softmax
from labelproof.audit.predictions import CACHED
from labelproof.intervals import NORMAL_95
from labelproof.noise.matrices import symmetric_matrix

_STEPS = 10
_CLOSE = 0.1
"""The search for the temperature ends at a step of so many of its standard errors."""
_LONGEST = 0.5
"""Longest step of the search, in the logarithm: further away the squares are not quadratic."""
_RIDGE = 1e-3
"""Correctly labelled samples added to each class, since a class may never be predicted."""
_LEAST_LEFT = 0.1
"""Least share of a residual that is left by a sample which determines its own prediction."""
_CONFIDENT = 0.25


class LeastSquares(NamedTuple):
    """A transition matrix by least squares.

    Attributes:
        transition: `(C, C)`; rows sum to 1, but entries may be negative.
        variance: The squared standard errors of its entries, misfit included.
        rate: The share of wrong labels.
        rate_error: Its standard error, misfit included.
        temperature: What logits are divided by.
        temperature_error: The standard error of its logarithm.
        worth: How many samples without any doubt would determine each row as well, `(C)`.
        prior: Pseudo-counts for a fit with positive entries, `(C, C)`.
    """

    transition: NDArray[np.float64]
    variance: NDArray[np.float64]
    rate: float
    rate_error: float
    temperature: float
    temperature_error: float
    worth: NDArray[np.float64]
    prior: NDArray[np.float64]


def fit_least_squares(samples: Groups, temperature: float, *, fixed: bool = False) -> LeastSquares:
    """Fit the matrix, and unless it is fixed the temperature, starting from one nearby.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(3, size=3000)
        >>> logits = (3 * np.eye(3)[true] + generator.normal(size=(3000, 3))).astype(np.float32)
        >>> given = np.where(generator.random(3000) < 0.3, (true + 1) % 3, true)
        >>> found = fit_least_squares(Groups(logits, given), 1.0)
        >>> f"{found.rate:.2f}, give or take {found.rate_error:.2f}"
        '0.30, give or take 0.01'
    """
    lowest, highest = math.log(COOLEST), math.log(HOTTEST)
    logarithm = math.log(temperature)
    at = _Point(samples, logarithm, fixed=fixed)
    for _ in range(_STEPS):
        if abs(at.step) <= _CLOSE * at.error:
            break
        logarithm += min(max(at.step, -_LONGEST), _LONGEST)
        logarithm = min(max(logarithm, lowest), highest)
        at = _Point(samples, logarithm)
    probabilities, transition, influence = at.probabilities, at.transition, at.influence
    shares, right = probabilities.mean(axis=0, dtype=np.float64), np.diag(transition)
    confident = surest(samples, _CONFIDENT)
    inverse, other = _solve(probabilities[confident], samples.given[confident])
    by_labels, by_temperature, by_confident = np.zeros((3, *transition.shape))
    each, rate_by_confident = np.empty(len(probabilities)), 0.0
    for rows in _parts(samples):
        leverage, residual = probabilities[rows] @ at.inverse.astype(np.float32), at.residual(rows)
        by_labels += (leverage**2).T @ residual**2
        by_temperature += leverage.T @ (residual * influence[rows, None])
        each[rows] = (leverage * residual) @ shares
        leverage = probabilities[rows][confident[rows]] @ inverse.astype(np.float32)
        residual = residual[confident[rows]]
        by_confident += (leverage**2).T @ residual**2
        rate_by_confident += np.square((leverage * residual) @ shares).sum()
    along = at.following @ transition
    chance = by_labels + along**2 * float(influence @ influence) - 2 * along * by_temperature
    chance = np.maximum(chance, 0.0)
    by_chance = np.maximum(by_confident - by_labels, 0.0)
    misfit = _beyond(difference := other - transition, by_chance)
    # One entry says little about its misfit: none fits better than all do, on or off the diagonal.
    for chosen in (same := np.eye(len(misfit), dtype=np.bool_), ~same):
        mean = (difference**2 - by_chance)[chosen].mean()
        misfit[chosen] = np.maximum(misfit[chosen], max(mean, 0.0))
    by_chance = np.maximum(rate_by_confident - each @ each, 0.0)
    rate_misfit = _beyond(shares @ (np.diag(other) - right), by_chance)
    moved = shares @ np.diag(along) - at.slope @ right
    each += (probabilities @ right - shares @ right) / len(probabilities) - influence * moved
    rate, worth = 1 - float(shares @ right), 1 / np.diag(at.inverse)
    return LeastSquares(
        transition,
        chance + misfit,
        rate,
        math.sqrt(float(each @ each) + float(rate_misfit)),
        math.exp(logarithm),
        at.error,
        worth,
        _prior(transition, chance, rate, worth),
    )


def _beyond(difference: NDArray[np.float64], by_chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The squares of differences beyond chance, and 0 for those that chance explains."""
    squares = difference**2
    return np.where(squares > NORMAL_95**2 * by_chance, squares - by_chance, 0.0)


def _parts(samples: Groups) -> Iterator[slice]:
    """Rows that stay in the cache while they are worked on."""
    size, step = len(samples.given), max(CACHED // samples.classes, 1)
    return (slice(begin, min(begin + step, size)) for begin in range(0, size, step))


class _Point:
    """The fit at one temperature, and a Newton step to a better one.

    Attributes:
        probabilities: At the temperature, `(N, C)`.
        inverse: Of the normal equations, `(C, C)`.
        slope: The mean derivative of the probabilities by the logarithm of the temperature, `(C)`.
        following: What the matrix is multiplied by for its derivative, `(C, C)`, but for its sign.
        influence: How far each sample moves the logarithm, `(N)`.
        error: The logarithm's standard error.
        step: To the best logarithm, if the squares were quadratic.
    """

    def __init__(self, samples: Groups, logarithm: float, *, fixed: bool = False):
        temperature, size = math.exp(logarithm), len(samples.given)
        self.given, self.probabilities = samples.given, np.empty_like(samples.logits)
        slopes = np.empty_like(self.probabilities)
        crossed = np.zeros((samples.classes, samples.classes))
        for rows in _parts(samples):
            logits, slope = samples.logits[rows], slopes[rows]
            probabilities = softmax(logits, temperature, out=self.probabilities[rows])
            np.subtract(_inner(probabilities, logits)[:, None], logits, out=slope)
            slope *= probabilities
            slope /= np.float32(temperature)
            crossed += probabilities.T @ slope
        self.slope = slopes.mean(axis=0, dtype=np.float64)
        self.inverse, self.transition = _solve(self.probabilities, self.given)
        self.following = self.inverse @ crossed
        self._matrix = matrix = self.transition.astype(np.float32)
        inverse, following = self.inverse.astype(np.float32), self.following.astype(np.float32)
        own, squares, pull, bent = np.empty((4, size), np.float32)
        length, spread = 0.0, np.zeros_like(crossed)
        for rows in _parts(samples):
            probabilities, slope = self.probabilities[rows], slopes[rows]
            residual = self._plain_residual(rows)
            leverage = probabilities @ inverse
            slope -= probabilities @ following  # what is left of it when the matrix follows
            direction = slope @ matrix
            length += float(np.vdot(direction, direction))
            spread += slope.T @ slope
            own[rows], squares[rows] = _inner(leverage, probabilities), _inner(residual, residual)
            pull[rows], bent[rows] = _inner(direction, residual), _inner(slope, leverage)
        self._larger = larger = 1 / np.maximum(1 - own, _LEAST_LEFT)
        precision = 2 * size / max(float(squares.sum()), 1e-9)
        held = prior_weight(size)
        # Errors of the matrix make the direction longer, by chance.
        by_chance = float((self.inverse * spread).sum() * (squares * larger**2).mean())
        curvature = precision * max(length - by_chance, length / 2) + held + 1e-9
        pull *= precision / curvature
        bent *= precision / curvature * squares * larger
        influence = pull * larger
        self.influence = np.zeros_like(influence) if fixed else influence
        # A temperature that does not matter is known by its prior alone.
        self.error = math.sqrt(float(influence @ influence) + max(held, 1e-9) / curvature**2)
        step = float((pull - bent).sum()) - held * logarithm / curvature
        self.step = 0.0 if fixed else step

    def _plain_residual(self, rows: slice) -> NDArray[np.float32]:
        residual = -(self.probabilities[rows] @ self._matrix)
        residual[np.arange(len(residual)), self.given[rows]] += 1
        return residual

    def residual(self, rows: slice) -> NDArray[np.float32]:
        """By the matrix of all other samples."""
        residual = self._plain_residual(rows)
        residual *= self._larger[rows, None]
        return residual


def rate_at(samples: Groups, temperature: float) -> float:
    """The share of wrong labels by least squares at a temperature."""
    probabilities = softmax(samples.logits, temperature)
    return 1 - float(probabilities.mean(axis=0) @ np.diag(_solve(probabilities, samples.given)[1]))


def _inner(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.einsum("ij,ij->i", first, second)


def _solve(
    probabilities: NDArray[np.float32], given: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The inverse of the normal equations, and the matrix; labels are rising."""
    same = _RIDGE * np.eye(probabilities.shape[1])
    products = np.zeros_like(same)
    ends = np.cumsum(np.bincount(given, minlength=len(same)))
    for label, (begin, end) in enumerate(itertools.pairwise([0, *ends.tolist()])):
        products[:, label] = probabilities[begin:end].sum(axis=0, dtype=np.float64)
    inverse = np.linalg.inv((probabilities.T @ probabilities).astype(np.float64) + same)
    return inverse, inverse @ (products + same)


def _prior(
    transition: NDArray[np.float64],
    chance: NDArray[np.float64],
    rate: float,
    worth: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Symmetric noise, with a weight by how far chance explains what differs from it."""
    classes = len(transition)
    target = symmetric_matrix(classes, min(max(rate, 1 / float(worth.sum())), 1.0))
    differing = float(((transition - target) ** 2).sum())
    # As in empirical Bayes, but at most one for each entry: a single confusion among many classes
    # must not be taken for chance.
    share = min(float(chance.sum()) / max(differing, 1e-12), 0.99)
    return np.minimum(worth * share / (1 - share), classes)[:, None] * target
