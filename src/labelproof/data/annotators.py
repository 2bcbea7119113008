r"""Labels of several annotators: how accurate each of them is, and which class is right.

An annotator \(a\) gives a sample of the true class \(c\) the label \(k\) with probability
\(M^a_{ck}\), whatever the others say. With a model's probability \(q_c(x)\) of each class, or its
frequency where there is no model,

\[ P(c \mid x, k_1, k_2, \ldots) \propto q_c(x) \prod_a M^a_{c k_a}. \]

The matrices maximise the likelihood of the labels, by expectation maximisation; an annotator with
few labels is assumed to be like the others. The model's probabilities are calibrated by a
temperature between 1 and the one at which the labels are most likely.

Reference:
    Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
    1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from labelproof.data.dataset import as_indices, order_classes

_STEPS = 100
_TOLERANCE = 1e-5
"""Change of the mean log-likelihood at which a fit has converged."""
_LIKE_OTHERS = 5.0
"""Pseudo-counts by which each row of an annotator's matrix is drawn to the mean of all."""
_LEAST = 1e-6
"""Smaller probabilities of a model are raised to this."""
_TEMPERATURES = (0.1, 5.0)


class JudgedVotes(NamedTuple):
    """What labels of several annotators say.

    Attributes:
        posterior: The probability of each class, `(N, C)`.
        confusion: Of each annotator, how often each class (row) is given each label (column),
            `(A, C, C)`.
        accuracy: The share of each annotator's labels that are right, `(A)`.
        likelihood: The mean log-likelihood of a sample's labels.
    """

    posterior: NDArray[np.float64]
    confusion: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    likelihood: float


def judge_votes(
    votes: ArrayLike, num_classes: int, probabilities: ArrayLike | None = None
) -> JudgedVotes:
    """Estimate the true class of each sample and the accuracy of each annotator.

    Args:
        votes: The class index that each annotator gave each sample, `(N, A)`; negative for none.
        num_classes: Number of classes.
        probabilities: A model's probability of each class, `(N, C)`, for samples whose labels it
            was not trained on.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(3, size=500)
        >>> wrong = generator.random((500, 4)) < [0.05, 0.2, 0.3, 0.5]
        >>> votes = np.where(wrong, (true[:, None] + 1) % 3, true[:, None])
        >>> judged = judge_votes(votes, 3)
        >>> judged.accuracy.round(1)
        array([1. , 0.8, 0.7, 0.5])
        >>> float(np.mean(judged.posterior.argmax(axis=1) == true)) > 0.95
        True
    """
    given = _Votes(np.asarray(votes, np.int64), num_classes)
    if probabilities is None:
        return given.fit(np.log(given.start.mean(axis=0, keepdims=True)))
    from scipy.optimize import minimize_scalar

    logits = np.log(np.maximum(probabilities, _LEAST))

    def fit(heat: float) -> JudgedVotes:
        scores = logits / np.exp(heat)
        scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return given.fit(np.maximum(scores, np.log(_LEAST)))

    found: Any = minimize_scalar(
        lambda heat: -fit(heat).likelihood, bounds=np.log(_TEMPERATURES), options={"xatol": 0.1}
    )
    # The matrices adapt to a model that is too sure, so the likelihood favours one: half of it.
    return fit(found.x / 2)


class _Votes:
    """Votes as a sparse matrix, `(N, A * C)`: 1 for a sample's label by an annotator."""

    def __init__(self, votes: NDArray[np.int64], classes: int):
        from scipy.sparse import csr_array  # imported here, since every command would wait for it

        self.shape = (votes.shape[1], classes, classes)
        self.sample, self.annotator = np.nonzero(votes >= 0)
        self.label = votes[self.sample, self.annotator]
        places = self.sample, self.annotator * classes + self.label
        shape = len(votes), votes.shape[1] * classes
        self.matrix: Any = csr_array((np.ones(len(self.sample)), places), shape=shape)
        shares = self.matrix @ np.tile(np.eye(classes), (votes.shape[1], 1))
        shares += 0.1 * shares.sum(axis=0) / max(shares.sum(), 1.0) + _LEAST
        self.start = shares / shares.sum(axis=1, keepdims=True)

    def fit(self, prior: NDArray[np.float64]) -> JudgedVotes:
        """Expectation maximisation from the shares of the votes, by logarithms of a prior."""
        posterior, before, likelihood = self.start, -np.inf, -np.inf
        annotators, classes, _ = self.shape
        confusion = np.zeros(self.shape)
        for _ in range(_STEPS):
            counts = (self.matrix.T @ posterior).reshape(self.shape).transpose(0, 2, 1)
            mean = counts.sum(axis=0) + np.eye(classes) + 1 / classes
            confusion = counts + _LIKE_OTHERS * mean / mean.sum(axis=1, keepdims=True)
            confusion /= confusion.sum(axis=2, keepdims=True)
            chances = np.log(confusion).transpose(0, 2, 1).reshape(-1, classes)
            scores = prior + self.matrix @ chances
            total = np.logaddexp.reduce(scores, axis=1, keepdims=True)
            posterior, likelihood = np.exp(scores - total), float(total.mean())
            if likelihood - before < _TOLERANCE:
                break
            before = likelihood
        right = posterior[self.sample, self.label]
        each = np.bincount(self.annotator, minlength=annotators)
        accuracy = np.bincount(self.annotator, right, annotators) / np.maximum(each, 1)
        return JudgedVotes(posterior, confusion, accuracy, likelihood)


def vote_indices(votes: pd.DataFrame, class_names: Sequence[str]) -> NDArray[np.int64]:
    """Votes as class indices, `(N, A)`; -1 for none and for other classes."""
    return np.stack([as_indices(votes[name], class_names) for name in votes], axis=1)


def consensus(votes: pd.DataFrame) -> pd.Series:
    """The most probable class of each sample by its votes alone; empty if it has none.

    >>> consensus(pd.DataFrame({"ann": ["cat", "dog", ""], "bob": ["cat", "", ""]})).tolist()
    ['cat', 'dog', '']
    """
    names = order_classes(set(votes.to_numpy(object).ravel()) - {""})
    indices = vote_indices(votes, names)
    found = pd.Series("", index=votes.index, dtype=object)
    if names:
        chosen = np.array(names, dtype=object)[judge_votes(indices, len(names)).posterior.argmax(1)]
        found = found.where((indices < 0).all(axis=1), chosen)
    return found
