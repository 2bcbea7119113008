"""Which classifier a table needs, chosen by its noisy labels alone.

How far to smooth decides: at 40% of wrong labels a forest with leaves of 40 rows can be ten points
ahead of one with leaves of 5, and behind it without wrong labels. So the candidates are linear
models and forests from stiff to flexible, boosting, and the network with its robust loss. Each
predicts rows that it was not trained on; how often it agrees with their labels ranks candidates as
clean labels would, as long as right labels are the most frequent of each class. All candidates
within one standard error of the best are kept, and their mean predicts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from labelproof.audit.noise_model import NoiseModel, fit_noise_model
from labelproof.integrations.estimator_collapse import CollapseWarning
from labelproof.integrations.estimator_inputs import Standard, standardize_rows
from labelproof.integrations.soft_labels import (
    LabelledRows,
    calibrate,
    cross_validate,
    fit_labels,
    full_probabilities,
    is_too_small,
    limited_threads,
    seeded,
)

__all__ = ["Committee", "choose_candidates"]

TREES = 100
_PENALTIES = (0.01, 0.1, 1.0)
_LEAVES = (40, 15, 5, 1)
"""Rows of the smallest leaf of each forest, from stiff to flexible."""


@dataclass(frozen=True)
class Committee:
    """Fitted classifiers whose mean predicts.

    Attributes:
        members: By name, as scikit-learn fitted them.
        standard: What rows are standardised with.
        noise: The noise by the mean of their out-of-sample probabilities.
        scores: Of each candidate: `agreement` with held-out labels, its standard `error`,
            `seconds`, and whether it was `chosen`.
    """

    members: dict[str, Any]
    standard: Standard
    noise: NoiseModel
    scores: dict[str, dict[str, float]]

    def predict_proba(self, rows: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
        """The probability of each true class, `(N, C)`."""
        ready = standardize_rows(rows, self.standard)
        told = [full_probabilities(member, ready, classes) for member in self.members.values()]
        return calibrate(np.mean(told, axis=0), self.noise.temperature)


def choose_candidates(
    examples: LabelledRows,
    standard: Standard,
    network: Any,
    *,
    seed: int,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Committee:
    """Train every candidate, and keep those that predict held-out labels best.

    Args:
        examples: Standardised rows.
        standard: What they were standardised with.
        network: The network, as a classifier of scikit-learn.
        seed: Of all draws.
        n_jobs: How many folds, or trees, to train at a time.
        verbose: Whether to print a line for each candidate.
    """
    told: dict[str, NDArray[np.float64]] = {}
    fitted: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    labels = np.eye(len(examples.classes))[examples.given]
    small = is_too_small(examples)
    for name, candidate in _candidates(network, seed):
        started = time.perf_counter()
        with warnings.catch_warnings(), limited_threads(n_jobs):
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", CollapseWarning)
            if small:  # what cannot be held out cannot be compared
                fitted[name] = fit_labels(candidate, examples, labels, balanced=True)
                told[name] = labels
            else:
                fitted[name], told[name] = _train(candidate, examples, labels, n_jobs)
        seconds[name] = time.perf_counter() - started
        if verbose:
            agreement = np.mean(told[name].argmax(axis=1) == examples.given)
            print(f"{name}: agreement {agreement:.4f}, {seconds[name]:.1f} s", flush=True)
    scores, chosen = _compare(told, seconds, examples)
    mean = np.mean([told[name] for name in chosen], axis=0)
    noise = (
        NoiseModel(np.eye(labels.shape[1]), 1.0, 0.0, np.diag(labels.mean(axis=0)))
        if small
        else fit_noise_model(np.log(mean), examples.given)
    )
    return Committee({name: fitted[name] for name in chosen}, standard, noise, scores)


def _candidates(network: Any, seed: int) -> Iterator[tuple[str, Any]]:
    for penalty in _PENALTIES:
        yield f"logistic regression (C={penalty:g})", LogisticRegression(C=penalty, max_iter=300)
    for leaf in _LEAVES:
        forest = RandomForestClassifier(TREES, min_samples_leaf=leaf, random_state=seed)
        yield f"forest (leaf={leaf})", forest
    yield (
        "boosting",
        HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, l2_regularization=1.0, random_state=seed
        ),
    )
    yield "network", seeded(network, seed)


def _train(
    candidate: Any, examples: LabelledRows, labels: NDArray[np.float64], n_jobs: int | None
) -> tuple[Any, NDArray[np.float64]]:
    """The fitted candidate, and its probabilities for rows that it was not trained on."""
    if not isinstance(candidate, RandomForestClassifier) or examples.grouped:
        fitted = fit_labels(candidate, examples, labels, balanced=True)
        return fitted, cross_validate(candidate, examples, labels, n_jobs)
    # Each tree leaves out a third of the rows, which saves the cross-validation.
    candidate = candidate.set_params(oob_score=True, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
        fitted = fit_labels(candidate, examples, labels, balanced=True)
    chances = np.nan_to_num(fitted.oob_decision_function_, nan=1.0)
    table = np.full(labels.shape, 0.0)
    table[:, np.searchsorted(examples.classes, fitted.classes_)] = chances
    table = np.maximum(table, 1 / (TREES * labels.shape[1]))
    del fitted.oob_decision_function_  # as long as the training rows
    return fitted, table / table.sum(axis=1, keepdims=True)


def _compare(
    told: dict[str, NDArray[np.float64]], seconds: dict[str, float], examples: LabelledRows
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The scores of all candidates, and the names of those that are tied with the best."""
    weight = examples.weight / examples.weight.sum()
    hits = {name: (table.argmax(axis=1) == examples.given) * 1.0 for name, table in told.items()}
    best = hits[max(hits, key=lambda name: float(weight @ hits[name]))]
    scores: dict[str, dict[str, float]] = {}
    chosen: list[str] = []
    for name, hit in hits.items():
        agreement = float(weight @ hit)
        # Of the difference: two candidates are right about nearly the same rows.
        behind = best - hit
        mean = float(weight @ behind)
        tied = mean <= np.sqrt(weight**2 @ (behind - mean) ** 2)
        scores[name] = {
            "agreement": agreement,
            "error": float(np.sqrt(weight**2 @ (hit - agreement) ** 2)),
            "seconds": seconds[name],
            "chosen": bool(tied),
        }
        if tied:
            chosen.append(name)
    return scores, chosen
