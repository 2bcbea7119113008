r"""Classifiers trained on how probable each true class is, chosen by the noisy labels alone.

1. Every candidate predicts rows that it was not trained on.
2. Candidates are blended, one after another, as long as the blend predicts the given labels of those
   rows better: their mean log loss falls.
3. The noise model of the audit finds the temperature and the transition matrix \(T\) that explain
   the given labels best by the blend. Bayes' rule gives the posterior of each row's true class, in
   proportion to \(q_j(x)\, T_{jk}\) for the given label \(k\).
4. The candidates in the blend are trained again, with the posterior as soft labels. No row is
   dropped: one in doubt counts a little for each class.

Reference:
    Caruana et al., "Ensemble selection from libraries of models", ICML 2004.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from threadpoolctl import threadpool_limits

from labelproof.audit.noise_model import NoiseModel, fit_noise_model
from labelproof.data.splits import Holdout, folds, splittable
from labelproof.integrations.candidates import (
    Boosting,
    Candidate,
    Floats,
    Forest,
    Kernel,
    Linear,
    Network,
    as_probabilities,
)
from labelproof.integrations.estimator_admission import Admitted, check_class_weight
from labelproof.integrations.estimator_examples import SMALL
from labelproof.integrations.estimator_groups import keep_together, merge_groups
from labelproof.integrations.estimator_inputs import merge_duplicates

__all__ = ["Committee", "LabelledRows", "choose_candidates", "fit_committee", "label_rows"]

_FOLDS = 5
_KEPT = 0.03
"""Weight that every given label keeps, so that no class is without rows."""
_FEWEST_ROWS = 30
"""Rows from which on the noise is estimated; of fewer, all labels are taken to be right."""
_FEWEST_OF_CLASS = 5
"""Likewise for the labels of one class: a model that has seen two rows of a class rarely predicts
it, and would take all of its labels for wrong."""
_FIRST = 3
"""Candidates that a blend starts with, the best ones: fewer follow chance."""
_STEPS = 20
_MEMBERS = 5
"""Candidates in a blend at most; each is trained again."""
_HOPELESS = 1.1
"""Boosting is the dearest candidate: with so many times the best log loss in its first fold, it is
not trained on the others."""


@dataclass(frozen=True)
class LabelledRows:
    """What to learn from.

    Attributes:
        rows: `(N, F)`.
        given: The labels as they came, class indices.
        weight: How much each row counts.
        class_weight: How much each class counts, `(C)`.
        parts: Folds over all rows.
        grouped: Whether some rows have to stay in one fold.
    """

    rows: Floats
    given: NDArray[np.int64]
    weight: Floats
    class_weight: Floats
    parts: list[Holdout]
    grouped: bool = False

    @property
    def labels(self) -> Floats:
        """The given labels as probabilities, `(N, C)`."""
        return np.eye(len(self.class_weight))[self.given]


@dataclass(frozen=True)
class Committee:
    """Fitted candidates whose weighted mean predicts.

    Attributes:
        members: The candidates.
        weights: Of all fitted variants, member after member; sum to 1.
        noise: The noise by their out-of-sample probabilities.
        scores: Of each variant: the mean `log_loss` of held-out labels, its `agreement` with them,
            and its `weight`.
    """

    members: list[Candidate]
    weights: Floats
    noise: NoiseModel
    scores: dict[str, dict[str, float]]

    def predict_proba(self, rows: NDArray[Any]) -> Floats:
        """The probability of each true class, `(N, C)`."""
        wide = rows.astype(np.float64)
        told = np.concatenate([member.predict(wide) for member in self.members])
        return np.tensordot(self.weights, told, axes=1)


def choose_candidates(
    examples: LabelledRows, *, fast: bool, seed: int, n_jobs: int | None
) -> list[Candidate]:
    """What is compared: from stiff to flexible, because the more noise, the stiffer is better."""
    common: dict[str, Any] = {"seed": seed, "n_jobs": n_jobs}
    grouped = examples.grouped
    quick = [
        Linear(**common),
        Kernel(**common, sharpness=0.5),
        Kernel(**common, sharpness=4.0),
        Forest(**common, leaf=5, grouped=grouped),
    ]
    if fast or is_too_small(examples):
        return quick
    return [
        *quick,
        Kernel(**common, sharpness=16.0),
        Forest(**common, leaf=1, grouped=grouped),
        Forest(**common, leaf=20, grouped=grouped),
        Forest(**common, leaf=5, extra=True, grouped=grouped),
        Network(**common),
        Network(**common, truncation=0.7),
        Boosting(**common),
    ]


def fit_committee(
    candidates: Sequence[Candidate],
    examples: LabelledRows,
    *,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Committee:
    """Blend the candidates by the given labels, and train them on the posterior of the true ones.

    Args:
        candidates: One or more.
        examples: What to learn from.
        n_jobs: Threads of what takes all cores unasked.
        verbose: Whether to print a line for each candidate.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(2, size=400)
        >>> given = np.where(generator.random(400) < 0.3, 1 - true, true)
        >>> rows = (4.0 * true + generator.normal(size=400))[:, None]
        >>> parts = folds(given, 5, seed=0)
        >>> examples = LabelledRows(rows, given, np.ones(400), np.ones(2), parts)
        >>> committee = fit_committee([Linear(), Kernel()], examples)
        >>> print(f"{np.mean(given != true):.0%} wrong, estimated {committee.noise.noise_rate:.0%}")
        27% wrong, estimated 26%
    """
    with threadpool_limits(effective_n_jobs(n_jobs or 1), "openmp"):
        if is_too_small(examples):
            return _trust(candidates, examples)
        return _fit_committee(candidates, examples, verbose=verbose)


def _fit_committee(
    candidates: Sequence[Candidate], examples: LabelledRows, *, verbose: bool
) -> Committee:
    labels, given = examples.labels, examples.given
    order = np.concatenate([part.validation for part in examples.parts])
    told: dict[tuple[int, int], Floats] = {}
    best = np.inf
    share = examples.weight / examples.weight.sum()
    for number, candidate in enumerate(candidates):
        started = time.perf_counter()
        if isinstance(candidate, Boosting) and told and _is_hopeless(candidate, examples, told):
            continue
        found = candidate.held_out(examples.rows, labels, examples.weight, examples.parts)
        for variant, table in enumerate(found):
            scattered = np.empty_like(table)
            scattered[order] = table
            told[number, variant] = _calibrate_to_labels(scattered, given, share)
            best = min(best, _log_loss(told[number, variant], given, share))
        if verbose:
            seconds = time.perf_counter() - started
            print(f"{candidate.names[0]}: best log loss {best:.4f}, {seconds:.1f} s", flush=True)
    weights = _blend(told, given, share)
    mean = sum(weight * told[key] for key, weight in weights.items())
    noise = fit_noise_model(np.log(np.asarray(mean)), given)
    soft, weight = _soft_labels(np.asarray(mean), examples, noise)
    members = [
        candidate.fit(
            examples.rows, soft, weight, [variant for who, variant in weights if who == number]
        )
        for number, candidate in enumerate(candidates)
        if any(who == number for who, _ in weights)
    ]
    scores = {
        candidates[number].names[variant]: {
            "log_loss": _log_loss(table, given, share),
            "agreement": float(share @ (table.argmax(axis=1) == given)),
            "weight": float(weights.get((number, variant), 0.0)),
        }
        for (number, variant), table in told.items()
    }
    return Committee(members, np.array(list(weights.values())), noise, scores)


def _trust(candidates: Sequence[Candidate], examples: LabelledRows) -> Committee:
    """Rows are too few to hold some out: all labels are taken to be right, all candidates kept."""
    labels = examples.labels
    noise = NoiseModel(np.eye(labels.shape[1]), 1.0, 0.0, np.diag(labels.mean(axis=0)))
    soft, weight = _weigh(labels, examples)
    members = [candidate.fit(examples.rows, soft, weight, [0]) for candidate in candidates]
    return Committee(members, np.full(len(members), 1 / len(members)), noise, {})


def _is_hopeless(
    candidate: Candidate, examples: LabelledRows, told: dict[tuple[int, int], Floats]
) -> bool:
    part = examples.parts[0]
    given = examples.given[part.validation]
    share = np.full(len(given), 1 / len(given))
    found = candidate.held_out(examples.rows, examples.labels, examples.weight, [part])
    own = min(_log_loss(_calibrate_to_labels(table, given, share), given, share) for table in found)
    others = (_log_loss(table[part.validation], given, share) for table in told.values())
    return own > _HOPELESS * min(others)


def _calibrate_to_labels(table: Floats, given: NDArray[np.int64], share: Floats) -> Floats:
    """Probabilities at the temperature that predicts the given labels best."""
    tried = (calibrate(table, temperature) for temperature in np.geomspace(0.3, 4.0, 15))
    return min(tried, key=lambda found: _log_loss(found, given, share))


def calibrate(table: Floats, temperature: float) -> Floats:
    """Probabilities at a temperature.

    >>> calibrate(np.array([[0.8, 0.2]]), 0.5).round(3)
    array([[0.941, 0.059]])
    """
    scores = np.log(table) / temperature
    powered = np.exp(scores - scores.max(axis=1, keepdims=True))
    return as_probabilities(powered / powered.sum(axis=1, keepdims=True))


def _log_loss(table: Floats, given: NDArray[np.int64], share: Floats) -> float:
    return -float(share @ np.log(table[np.arange(len(given)), given]))


def _blend(
    told: dict[tuple[int, int], Floats], given: NDArray[np.int64], share: Floats
) -> dict[tuple[int, int], float]:
    """The weight of each variant in the blend; with replacement, so that some count repeatedly."""
    keys = list(told)
    # Of each variant the probability of the given label is all that its log loss needs.
    chances = np.stack([told[key][np.arange(len(given)), given] for key in keys])
    counts = np.zeros(len(keys))
    alone = -np.log(chances) @ share
    counts[np.argsort(alone, kind="stable")[:_FIRST]] = 1
    loss = -float(np.log(counts @ chances / counts.sum()) @ share)
    while counts.sum() < _STEPS:
        after = -np.log((counts @ chances + chances) / (counts.sum() + 1)) @ share
        if after.min() >= loss - 1e-6:
            break
        loss = float(after.min())
        counts[after.argmin()] += 1
    counts[np.argsort(-counts, kind="stable")[_MEMBERS:]] = 0
    counts /= counts.sum()
    return {key: float(weight) for key, weight in zip(keys, counts, strict=True) if weight}


def _soft_labels(told: Floats, examples: LabelledRows, noise: NoiseModel) -> tuple[Floats, Floats]:
    """The posterior of each row's true class, and the weight of each row, class weights included."""
    given, labels = examples.given, examples.labels
    posterior = calibrate(told, noise.temperature) * noise.transition[:, given].T
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    rare = np.bincount(given, minlength=labels.shape[1])[given] < _FEWEST_OF_CLASS
    posterior[rare] = labels[rare]
    return _weigh((1 - _KEPT) * posterior + _KEPT * labels, examples)


def _weigh(labels: Floats, examples: LabelledRows) -> tuple[Floats, Floats]:
    weighed = labels * examples.class_weight
    total = weighed.sum(axis=1)
    weighed = np.where(total[:, None] > 0, weighed / np.maximum(total[:, None], 1e-300), labels)
    return weighed, examples.weight * total


def is_too_small(examples: LabelledRows) -> bool:
    """Whether rows are too few to hold some out: all labels are then taken to be right."""
    return len(examples.rows) < _FEWEST_ROWS or len(examples.parts) < 2


def label_rows(admitted: Admitted, class_weight: Any, seed: int) -> LabelledRows:
    """What came through the door, cut into folds; groups and copies stay in one fold.

    Args:
        admitted: Rows; weights of classes are not yet in theirs.
        class_weight: `"balanced"`, a weight for each class, or `None`.
        seed: Of the folds.
    """
    rows, given, weight = admitted.inputs.astype(np.float64), admitted.labels, admitted.weight
    together = keep_together(rows, admitted.groups)
    if len(rows) <= SMALL:
        stay, became, weight = merge_duplicates(rows, given, weight, admitted.groups)
        rows, given, together = rows[stay], given[stay], merge_groups(together, became)
    together = splittable(together, given)
    groups = len(rows) if together is None else len(np.unique(together))
    # Rows that are few are never cut: their labels are taken to be right.
    parts = folds(given, min(_FOLDS, groups), seed=seed, groups=together) if groups > 1 else []
    if class_weight is not None:
        check_class_weight(class_weight)
    classes, present = admitted.classes, np.unique(given)
    balance = np.ones(len(classes))
    balance[present] = compute_class_weight(
        class_weight, classes=classes[present], y=classes[given]
    )
    return LabelledRows(rows, given, weight, balance, parts, together is not None)
