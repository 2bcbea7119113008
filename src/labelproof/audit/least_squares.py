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

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.anchors import margins, surest
from labelproof.audit.noise_model import COOLEST, HOTTEST, prior_weight, shift, softmax
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


def fit_least_squares(
    logits: NDArray[np.float32],
    given: NDArray[np.int64],
    temperature: float,
    *,
    fixed: bool = False,
) -> LeastSquares:
    """Fit the matrix, and unless it is fixed the temperature, starting from one nearby.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(3, size=3000)
        >>> logits = (3 * np.eye(3)[true] + generator.normal(size=(3000, 3))).astype(np.float32)
        >>> given = np.where(generator.random(3000) < 0.3, (true + 1) % 3, true)
        >>> found = fit_least_squares(logits, given, 1.0)
        >>> f"{found.rate:.2f}, give or take {found.rate_error:.2f}"
        '0.30, give or take 0.01'
    """
    shifted, size = shift(logits), len(given)
    lowest, highest = math.log(COOLEST), math.log(HOTTEST)
    logarithm = math.log(temperature)
    at = _Point(shifted, given, logarithm, fixed=fixed)
    for _ in range(_STEPS):
        if abs(at.step) <= _CLOSE * at.error:
            break
        logarithm += min(max(at.step, -_LONGEST), _LONGEST)
        logarithm = min(max(logarithm, lowest), highest)
        at = _Point(shifted, given, logarithm)
    word, transition, influence = at.word, at.transition, at.influence
    along = at.following @ transition
    by_labels = (at.leverage**2).T @ at.residual**2
    chance = by_labels + along**2 * float(influence @ influence)
    chance -= 2 * along * (at.leverage.T @ (at.residual * influence[:, None]))
    chance = np.maximum(chance, 0.0)
    shares, right = word.mean(axis=0, dtype=np.float64), np.diag(transition)
    moved = shares @ np.diag(along) - at.slope @ right
    each = (at.leverage * at.residual) @ shares
    rate_by_labels = float(each @ each)
    each += (word @ right - shares @ right) / size - influence * moved
    confident = surest(shifted.argmax(axis=1), margins(shifted), _CONFIDENT)
    inverse, other = _solve(word[confident], given[confident])
    leverage = word[confident] @ inverse.astype(np.float32)
    residual = at.residual[confident]
    by_chance = np.maximum((leverage**2).T @ residual**2 - by_labels, 0.0)
    misfit = _beyond(difference := other - transition, by_chance)
    # One entry says little about its misfit: none fits better than all do, on or off the diagonal.
    for chosen in (same := np.eye(len(misfit), dtype=np.bool_), ~same):
        mean = (difference**2 - by_chance)[chosen].mean()
        misfit[chosen] = np.maximum(misfit[chosen], max(mean, 0.0))
    by_chance = np.maximum(np.square((leverage * residual) @ shares).sum() - rate_by_labels, 0.0)
    rate_misfit = _beyond(shares @ (np.diag(other) - right), by_chance)
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


class _Point:
    """The fit at one temperature, and a Newton step to a better one.

    Attributes:
        word: The probabilities at the temperature, `(N, C)`.
        inverse: Of the normal equations, `(C, C)`.
        leverage: `word @ inverse`.
        residual: By the matrix of all other samples, `(N, C)`.
        slope: The mean derivative of the probabilities by the logarithm of the temperature, `(C)`.
        following: What the matrix is multiplied by for its derivative, `(C, C)`, but for its sign.
        influence: How far each sample moves the logarithm, `(N)`.
        error: The logarithm's standard error.
        step: To the best logarithm, if the squares were quadratic.
    """

    def __init__(
        self,
        shifted: NDArray[np.float32],
        given: NDArray[np.int64],
        logarithm: float,
        *,
        fixed: bool = False,
    ):
        size = len(given)
        scaled = np.asarray(shifted / math.exp(logarithm), np.float32)
        self.word = word = softmax(scaled)
        self.inverse, self.transition = _solve(word, given)
        matrix = self.transition.astype(np.float32)
        residual = -(word @ matrix)
        residual[np.arange(size), given] += 1
        self.leverage = word @ self.inverse.astype(np.float32)
        slope = word * (_inner(word, scaled)[:, None] - scaled)
        self.slope = slope.mean(axis=0, dtype=np.float64)
        self.following = self.leverage.T @ slope
        slope -= word @ self.following  # what is left of it when the matrix follows
        direction = slope @ matrix
        larger = 1 / np.maximum(1 - _inner(self.leverage, word), _LEAST_LEFT)
        self.residual = residual * larger[:, None]
        squares = _inner(residual, residual)
        precision = 2 * size / max(float(squares.sum()), 1e-9)
        held = prior_weight(size)
        # Errors of the matrix make the direction longer, by chance.
        length = float(_inner(direction, direction).sum())
        by_chance = float((self.inverse * (slope.T @ slope)).sum() * (squares * larger**2).mean())
        curvature = precision * max(length - by_chance, length / 2) + held + 1e-9
        told = precision / curvature * _inner(direction, residual)
        own = precision / curvature * _inner(slope, self.leverage) * squares * larger
        influence = told * larger
        self.influence = np.zeros_like(influence) if fixed else influence
        # A temperature that does not matter is known by its prior alone.
        self.error = math.sqrt(float(influence @ influence) + max(held, 1e-9) / curvature**2)
        step = float((told - own).sum()) - held * logarithm / curvature
        self.step = 0.0 if fixed else step


def rate_at(logits: NDArray[np.float32], given: NDArray[np.int64], temperature: float) -> float:
    """The share of wrong labels by least squares at a temperature."""
    word = softmax(shift(logits) / temperature)
    return 1 - float(word.mean(axis=0) @ np.diag(_solve(word, given)[1]))


def _inner(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.einsum("ij,ij->i", first, second)


def _solve(
    word: NDArray[np.float32], given: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The inverse of the normal equations, and the matrix."""
    same = _RIDGE * np.eye(word.shape[1])
    products = np.zeros_like(same)
    for label in np.unique(given).tolist():
        products[:, label] = word[given == label].sum(axis=0, dtype=np.float64)
    inverse = np.linalg.inv((word.T @ word).astype(np.float64) + same)
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
