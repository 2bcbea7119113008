r"""How labels come about: a true class as the network predicts, then a label by the noise.

A network that has not seen a sample's label predicts \(q_j(x)\), the probability of each class.
Labels are drawn from the true class by a transition matrix, \(T_{jk} = P(\text{given } k \mid
\text{true } j)\), so that

\[ P(\text{given } k \mid x) = \sum_j q_j(x)\, T_{jk}. \]

Each row of the matrix has a Dirichlet prior around a structured matrix: one share on the diagonal,
the rest spread evenly. Its concentration is chosen by the labels: high for symmetric noise, whose
cells are then known although few samples fall into each, low where few cells hold all mistakes.
Variational expectation maximisation finds the matrix; unlike the plain one it does not collect
small shares of noise in cells that have none. Bayes' rule then says how probable it is that a given
label is wrong.

Networks are rarely calibrated: trained on wrong labels with cross entropy they are underconfident,
with a robust loss overconfident. So \(q\) is the softmax of the logits over a temperature, which is
estimated along with the matrix. Its logarithm has a normal prior about 0, which fades as samples
grow to 5,000: with a hundred, a network that is right about all of its most confident samples
explains the labels best without any doubts, at the lowest temperature there is.

Reference:
    Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
    1979; Guo et al., "On calibration of modern neural networks", ICML 2017 (temperature); Beal,
    "Variational algorithms for approximate Bayesian inference", 2003, chapter 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, psi

from labelproof.audit.predictions import admit_logits, admit_temperature

__all__ = [
    "Groups",
    "NoiseModel",
    "as_transition",
    "expected_shares",
    "fit_noise_model",
    "log_prior",
    "normalised",
    "pseudo_counts",
    "shift",
    "sure_temperature",
    "warmest",
]

_STEPS = 40
_TOLERANCE = 1e-6
"""Change of a sample's mean log-likelihood at which a fit has converged."""

COOLEST, HOTTEST = 0.05, 20.0
_SEARCHED = 10_000
"""Samples by which the temperature and the concentration are searched for."""
_PROBES = (9, 7, 5)
"""Temperatures that are tried in each round of the search."""
_PROBED = 10
"""Steps of the fit to each of them."""

_SURE = 0.999
"""Mean confidence that is assumed of a network that has seen the labels."""

IMPOSSIBLE = -1e6
"""As far below the largest as a logit counts: a probability of 0 at any temperature. Classes that
are hidden come as the most negative number there is, which no temperature can divide."""

_LEAST = 1e-9

_SPARSE = 3.0
_CONCENTRATIONS = (12.0, 60.0, 300.0)
"""Pseudo-counts of a row, besides the fewest, `_SPARSE`, and the most, the classes squared."""


@dataclass(frozen=True)
class NoiseModel:
    """A transition matrix, and the temperature that goes with it.

    Attributes:
        transition: `(C, C)`, float64; rows sum to 1.
        temperature: What logits are divided by.
        likelihood: A bound of the mean log-likelihood of a given label, priors included.
        joint: The share of samples of each true class (row) with each label (column) among those
            it was fitted to, `(C, C)`; sums to 1.
        reading: What the predictions have to be multiplied by, `(C, C)`, where the network has
            learned the noise; see `read_through`.
        concentration: Pseudo-counts that each row has beside its samples.
    """

    transition: NDArray[np.float64]
    temperature: float
    likelihood: float
    joint: NDArray[np.float64]
    reading: NDArray[np.float64] | None = None
    concentration: float = _SPARSE

    @property
    def noise_rate(self) -> float:
        """The share of wrong labels among those it was fitted to."""
        return max(1 - float(np.trace(self.joint)), 0.0)


def fit_noise_model(
    logits: ArrayLike, given: ArrayLike, *, temperature: float | None = None
) -> NoiseModel:
    """Estimate the noise from predictions by networks that have not seen the labels.

    Args:
        logits: `(N, C)`; logarithms of probabilities are logits too.
        given: The labels as they came, `(N)`, class indices.
        temperature: What logits are divided by, where that is decided already.

    Raises:
        ValueError: Logits are not numbers, labels are not those of their rows, or the temperature
            is not above 0.

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
    with np.errstate(over="ignore"):  # what is too far below for float32 is ruled out
        shifted = shift(np.asarray(table[:], np.float32))
    step = max(-(-len(labels) // _SEARCHED), 1)
    few = Groups(shifted[::step], labels[::step])
    dense = float(few.classes**2)
    starts = [few.begin(_SPARSE), few.begin(dense)]
    if temperature is None:
        best = _search(few, starts, samples=len(labels))
    else:
        heat = admit_temperature(temperature)
        fits = [few.fit(heat, start=start, steps=_STEPS) for start in starts]
        best = max(fits, key=lambda fit: fit.likelihood)
    between = [replace(best, concentration=each) for each in _CONCENTRATIONS if each < dense]
    told = few.probabilities(best.temperature)
    fits = [few.fit(best.temperature, start=each, steps=_STEPS, told=told) for each in between]
    best = max([best, *fits], key=lambda fit: fit.likelihood)
    groups = few if step == 1 else Groups(shifted, labels)
    return groups.fit(best.temperature, start=best, steps=_STEPS)


def _search(groups: Groups, starts: list[NoiseModel], *, samples: int) -> NoiseModel:
    """The most probable temperature by the labels, in rounds of closer and closer probes."""
    low, high = math.log(COOLEST), math.log(HOTTEST)
    best = starts[0]
    for number in _PROBES:
        probes = np.linspace(low, high, number)
        fits: list[NoiseModel] = []
        for probe in np.exp(probes).tolist():
            told = groups.probabilities(probe)
            fits += [groups.fit(probe, start=each, steps=_PROBED, told=told) for each in starts]
        best = max(fits, key=lambda fit: _posterior(fit, samples))
        starts, middle = [best], math.log(best.temperature)
        width = probes[1] - probes[0]
        low, high = max(middle - width, low), min(middle + width, high)
    return best


def _posterior(fit: NoiseModel, samples: int) -> float:
    return fit.likelihood + log_prior(fit.temperature, samples) / samples


def sure_temperature(logits: NDArray[np.float32]) -> float:
    """The highest temperature at which the mean confidence of a network is 0.999.

    The confidence of a network that has seen the labels says more about them than about the sample,
    so the temperature cannot be estimated from them.

    Args:
        logits: `(N, C)`.

    Example:
        >>> sure_temperature(np.array([[9.0, 0.0]], np.float32)) < 9 / 4
        True
    """
    return warmest(shift(logits), _SURE)


def warmest(shifted: NDArray[np.float32], wanted: float) -> float:
    """The highest temperature at which the largest probability is so large, on average."""
    exact = shifted.astype(np.float64)
    low, high = COOLEST, HOTTEST
    for _ in range(30):
        middle = float(np.sqrt(low * high))
        sureness = float(np.mean(1 / np.exp(exact / middle).sum(axis=1)))
        low, high = (middle, high) if sureness >= wanted else (low, middle)
    return low


def shift(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same logits with 0 for the largest of each sample."""
    with np.errstate(over="ignore"):
        return np.maximum(logits - logits.max(axis=1, keepdims=True), np.float32(IMPOSSIBLE))


def as_transition(joint: NDArray[np.float64], samples: float) -> NDArray[np.float64]:
    """The matrix behind shares of samples by true class and label.

    A class with few samples counts as correctly labelled until they say otherwise.

    >>> as_transition(np.array([[0.5, 0.5], [0.0, 0.0]]), 98).round(3)
    array([[0.505, 0.495],
           [0.25 , 0.75 ]])
    """
    classes = len(joint)
    counts = joint * samples + np.eye(classes) + 1 / classes
    return counts / counts.sum(axis=1, keepdims=True)


def pseudo_counts(joint: NDArray[np.float64], concentration: float) -> NDArray[np.float64]:
    """Those of the prior: as many on the diagonal as labels are right, the others alike."""
    classes = len(joint)
    right = min(max(float(np.trace(joint)), 0.01), 1 - 1e-4)
    off = (1 - right) / (classes - 1)
    return concentration * (np.full((classes, classes), off) + (right - off) * np.eye(classes))


def expected_shares(posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exponential of the mean logarithm of each share under a Dirichlet posterior."""
    return np.exp(psi(posterior) - psi(posterior.sum(axis=1, keepdims=True)))


def normalised(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same with rows that sum to 1 and have no 0, by which nothing could be divided.

    >>> normalised(np.array([[3.0, 1.0], [0.0, 2.0]])).round(2)
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    shares = np.maximum(matrix / matrix.sum(axis=1, keepdims=True), _LEAST)
    return shares / shares.sum(axis=1, keepdims=True)


class Groups:
    """Samples sorted by their given label, so that a step of the fit is a few matrix products.

    Args:
        logits: As `shift` gives them.
        given: The labels as they came.
    """

    def __init__(self, logits: NDArray[np.float32], given: NDArray[np.int64]):
        self.classes = logits.shape[1]
        self.order = np.argsort(given, kind="stable")
        self.logits = logits[self.order]
        self.ends = np.cumsum(np.bincount(given, minlength=self.classes))

    def probabilities(self, temperature: float) -> NDArray[np.float32]:
        """The predictions at a temperature, sorted likewise."""
        scaled = torch.from_numpy(self.logits) / temperature
        return torch.softmax(scaled, dim=1).numpy()

    def fit(
        self,
        temperature: float,
        *,
        start: NoiseModel,
        steps: int,
        told: NDArray[np.float32] | None = None,
    ) -> NoiseModel:
        """Variational expectation maximisation at one temperature.

        `told` are the probabilities at that temperature, where they are at hand.
        """
        told = self.probabilities(temperature) if told is None else told
        size, concentration, joint = len(self.logits), start.concentration, start.joint
        before, bound, matrix = -np.inf, -np.inf, joint
        for _ in range(steps):
            prior = pseudo_counts(joint, concentration)
            posterior = size * joint + prior
            matrix = expected_shares(posterior)
            counts, likelihood = self._step(told, matrix)
            bound = (likelihood - _divergence(posterior, prior)) / size
            joint = counts / counts.sum()
            if abs(bound - before) < _TOLERANCE:
                break
            before = bound
        return NoiseModel(
            normalised(matrix), temperature, float(bound), joint, concentration=concentration
        )

    def expect(
        self, probabilities: NDArray[np.float32], transition: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The share of samples of each true class (row) with each label (column)."""
        counts, _ = self._step(probabilities, transition)
        return counts / counts.sum()

    def begin(self, concentration: float) -> NoiseModel:
        """What a search starts from: a fifth of all labels wrong, in any way."""
        joint = pseudo_counts(0.8 * np.eye(self.classes) / self.classes, 1.0) / self.classes
        return NoiseModel(normalised(joint), 1.0, -math.inf, joint, concentration=concentration)

    def _step(
        self, probabilities: NDArray[np.float32], transition: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """How many samples of each true class have each label, and the log-likelihood."""
        expected = np.zeros((self.classes, self.classes))
        likelihood = 0.0
        begin = 0
        for label, end in enumerate(self.ends.tolist()):
            block = probabilities[begin:end]
            column = transition[:, label].astype(np.float32)
            told = np.maximum(block @ column, np.float32(1e-30))
            expected[:, label] = column * (block.T @ (1 / told))
            likelihood += float(np.log(told).sum(dtype=np.float64))
            begin = end
        # Where no class can have a label by the matrix, the predicted one has it.
        return np.maximum(expected, 1e-12), likelihood


def _divergence(posterior: NDArray[np.float64], prior: NDArray[np.float64]) -> float:
    """Kullback and Leibler's, between Dirichlet distributions of the rows."""
    total, before = posterior.sum(axis=1), prior.sum(axis=1)
    mean = psi(posterior) - psi(total)[:, None]
    terms = gammaln(prior) - gammaln(posterior) + (posterior - prior) * mean
    return float((terms.sum(axis=1) + gammaln(total) - gammaln(before)).sum())


_FEW = 5_000
"""Samples from which on nothing is assumed beforehand."""


def log_prior(temperature: float, samples: int) -> float:
    r"""\(-\tfrac12 (\log T)^2\), less of it the more samples there are, and from 5,000 on nothing.

    Args:
        temperature: What logits are divided by.
        samples: How many labels it is estimated from.

    Returns:
        In the unit of the log-likelihood of one sample.

    Example:
        >>> round(log_prior(0.05, 100), 1), log_prior(1.0, 100), log_prior(0.05, 5_000)
        (-4.4, 0.0, 0.0)
    """
    return -0.5 * prior_weight(samples) * math.log(temperature) ** 2 or 0.0


def prior_weight(samples: int) -> float:
    return max(1 - samples / _FEW, 0.0)
