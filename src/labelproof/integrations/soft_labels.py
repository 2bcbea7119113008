r"""Any scikit-learn classifier made robust: trained again on how probable each true class is.

1. Cross-validation gives the probabilities of each row by a model that has not seen its label.
2. The noise model of the audit finds the temperature and the transition matrix \(T\) that explain
   the given labels best; Bayes' rule then gives the posterior of each row's true class, in
   proportion to \(q_j(x)\, T_{jk}\) for the given label \(k\).
3. The classifier is trained again, on a copy of each row for every class it may well be of, with
   the posterior as the weight. No row is dropped: one in doubt counts a little for each class.
4. The same by cross-validation says whether held-out labels are predicted better than without, and
   which temperature calibrates the new probabilities for the true labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from labelproof.audit.anchors import read_through, read_word
from labelproof.audit.noise_model import NoiseModel, fit_noise_model, shift
from labelproof.data.splits import Holdout, folds, splittable
from labelproof.integrations.estimator_admission import Admitted, check_class_weight
from labelproof.integrations.estimator_examples import SMALL
from labelproof.integrations.estimator_groups import keep_together, merge_groups
from labelproof.integrations.estimator_inputs import merge_duplicates

__all__ = [
    "LabelledRows",
    "RobustModel",
    "admit_estimator",
    "calibrate",
    "cross_validate",
    "fit_labels",
    "fit_robust",
    "full_probabilities",
    "is_too_small",
    "label_rows",
    "limited_threads",
    "seeded",
]

_FOLDS = 5
_NEGLIGIBLE = 0.02
"""A posterior below which a row is not repeated for a class."""
_KEPT = 0.03
"""Weight that every given label keeps, so that no class is without rows."""
_LEAST = 1e-6
"""The smallest probability that a model is believed: a forest says 0 after a few dozen trees."""
_FEWEST_ROWS = 30
"""Rows from which on the noise is estimated; of fewer, all labels are taken to be right."""
_FEWEST_OF_CLASS = 5
"""Likewise for the labels of one class: a model that has seen two rows of a class rarely predicts
it, and would take all of its labels for wrong."""


@dataclass(frozen=True)
class LabelledRows:
    """What to learn from.

    Attributes:
        rows: `(N, F)`.
        given: The labels as they came, class indices.
        weight: How much each row counts.
        class_weight: How much each class counts, `(C)`.
        classes: What the indices stand for, sorted.
        parts: Folds over all rows.
        grouped: Whether some rows have to stay in one fold.
    """

    rows: NDArray[Any]
    given: NDArray[np.int64]
    weight: NDArray[np.float64]
    class_weight: NDArray[np.float64]
    classes: NDArray[Any]
    parts: list[Holdout]
    grouped: bool = False


@dataclass(frozen=True)
class RobustModel:
    """A fitted classifier, and what its word is divided by to be calibrated.

    Attributes:
        estimator: As scikit-learn fitted it.
        noise: The noise behind its soft labels.
        temperature: What the logarithms of its probabilities are divided by.
    """

    estimator: Any
    noise: NoiseModel
    temperature: float = 1.0

    def predict_proba(self, rows: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
        """The probability of each true class, `(N, C)`."""
        return calibrate(full_probabilities(self.estimator, rows, classes), self.temperature)


def admit_estimator(estimator: Any) -> None:
    """Refuse what is no classifier with probabilities and weights.

    Raises:
        TypeError: It has no `predict_proba`, or its `fit` takes no `sample_weight`.
        ValueError: It is a text that stands for no classifier.

    Example:
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> admit_estimator(KNeighborsClassifier())
        Traceback (most recent call last):
            ...
        TypeError: estimator: expected a classifier whose fit takes sample_weight, such as
        RandomForestClassifier() or LogisticRegression(), got KNeighborsClassifier
    """
    if isinstance(estimator, str):
        raise ValueError(f"estimator: expected 'network' or a classifier, got {estimator!r}")
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator: expected a classifier of scikit-learn, made with (), got {estimator!r}"
        )
    last = _last_step(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            "estimator: expected a classifier with predict_proba, got "
            f"{type(last).__name__}; CalibratedClassifierCV({type(last).__name__}()) has it"
        )
    if not has_fit_parameter(last, "sample_weight"):
        raise TypeError(
            "estimator: expected a classifier whose fit takes sample_weight, such as "
            f"RandomForestClassifier() or LogisticRegression(), got {type(last).__name__}"
        )


def fit_robust(
    estimator: Any,
    examples: LabelledRows,
    *,
    seed: int,
    n_jobs: int | None = None,
) -> RobustModel:
    """Train a classifier on the posterior of the true classes.

    Args:
        estimator: A classifier of scikit-learn; a copy of it is fitted.
        examples: What to learn from.
        seed: For a `random_state` that the classifier leaves open.
        n_jobs: How many folds to train at a time, as everywhere in scikit-learn.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from labelproof.data.splits import folds
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(2, size=400)
        >>> given = np.where(generator.random(400) < 0.3, 1 - true, true)
        >>> rows = (4.0 * true + generator.normal(size=400))[:, None]
        >>> parts = folds(given, 5, seed=0)
        >>> examples = LabelledRows(rows, given, np.ones(400), np.ones(2), np.arange(2), parts)
        >>> model = fit_robust(LogisticRegression(), examples, seed=0)
        >>> print(f"{np.mean(given != true):.0%} wrong, estimated {model.noise.noise_rate:.0%}")
        27% wrong, estimated 25%
    """
    with limited_threads(n_jobs):
        return _fit_best(seeded(estimator, seed), examples, n_jobs)


def _fit_best(ready: Any, examples: LabelledRows, n_jobs: int | None) -> RobustModel:
    given = np.eye(len(examples.classes))[examples.given]
    if is_too_small(examples):
        right = NoiseModel(np.eye(given.shape[1]), 1.0, 0.0, np.diag(given.mean(axis=0)))
        return RobustModel(fit_labels(ready, examples, given, balanced=True), right)
    told = cross_validate(ready, examples, given, n_jobs)
    models = _noise_models(told, examples)
    best, labels, chosen = told, given, models[0]
    for noise in models:
        posterior = _posterior(told, examples, noise)
        again = cross_validate(ready, examples, posterior, n_jobs)
        if _agreement(again, examples) >= _agreement(best, examples):
            best, labels, chosen = again, posterior, noise
    fitted = fit_labels(ready, examples, labels, balanced=True)
    return RobustModel(fitted, chosen, fit_noise_model(np.log(best), examples.given).temperature)


def limited_threads(n_jobs: int | None) -> Any:
    """Inside, as many threads as jobs: boosting takes all cores unasked and waits for them."""
    return threadpool_limits(effective_n_jobs(n_jobs or 1), "openmp")


def _noise_models(told: NDArray[np.float64], examples: LabelledRows) -> list[NoiseModel]:
    """What the noise may be: a classifier whose doubts are its own, and one that learned the noise.

    Predictions and labels cannot tell these apart; which soft labels predict held-out labels better
    can.
    """
    logits = np.log(told).astype(np.float32)
    plain = fit_noise_model(logits, examples.given)
    read = read_through(logits, examples.given, plain)
    return [plain] if read.reading is None else [plain, read]


def _agreement(told: NDArray[np.float64], examples: LabelledRows) -> float:
    return float(np.average(told.argmax(axis=1) == examples.given, weights=examples.weight))


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
    rows, given, weight = admitted.inputs, admitted.labels, admitted.weight
    together = keep_together(rows, admitted.groups)
    if len(rows) <= SMALL:
        stay, became, weight = merge_duplicates(
            rows.astype(np.float64), given, weight, admitted.groups
        )
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
    return LabelledRows(rows, given, weight, balance, classes, parts, together is not None)


def cross_validate(
    estimator: Any, examples: LabelledRows, labels: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    """The probabilities of each row by a model that was trained without it."""

    def held_out(part: Holdout) -> NDArray[np.float64]:
        fitted = fit_labels(estimator, examples, labels, part.train)
        return full_probabilities(fitted, examples.rows[part.validation], examples.classes)

    told = np.empty(labels.shape)
    found = Parallel(n_jobs=n_jobs)(delayed(held_out)(part) for part in examples.parts)
    for part, table in zip(examples.parts, found, strict=True):
        told[part.validation] = table
    return told


def fit_labels(
    estimator: Any,
    examples: LabelledRows,
    labels: NDArray[np.float64],
    chosen: NDArray[np.int64] | None = None,
    *,
    balanced: bool = False,
) -> Any:
    """A copy of a classifier, trained on a row for each class that it may be of.

    Args:
        estimator: The classifier.
        examples: The rows.
        labels: How probable each class is, `(N, C)`.
        chosen: Which rows to train on; all unless given.
        balanced: Whether classes count by their weights, which would distort the estimated noise
            where it is for that.
    """
    if chosen is None:
        chosen = np.arange(len(labels))
    class_weight = examples.class_weight if balanced else 1.0
    share = labels[chosen] * class_weight
    row, label = np.nonzero((labels[chosen] > _NEGLIGIBLE) & (share > 0))
    weight = share[row, label] * examples.weight[chosen][row]
    if len(np.unique(label)) < 2:  # a fold without the only row of a class
        return DummyClassifier().fit(examples.rows[chosen][row], examples.classes[label])
    fitted: Any = clone(estimator)
    name = "sample_weight"
    if isinstance(fitted, Pipeline):
        name = f"{fitted.steps[-1][0]}__{name}"
    options: dict[str, Any] = {name: weight}
    return fitted.fit(examples.rows[chosen][row], examples.classes[label], **options)


def full_probabilities(
    fitted: Any, rows: NDArray[Any], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """As the classifier has them, with a column for every class."""
    table = np.zeros((len(rows), len(classes)))
    table[:, np.searchsorted(classes, fitted.classes_)] = fitted.predict_proba(rows)
    table = np.maximum(table, _LEAST)
    return table / table.sum(axis=1, keepdims=True)


def _posterior(
    told: NDArray[np.float64], examples: LabelledRows, noise: NoiseModel
) -> NDArray[np.float64]:
    """How probable each class is to be the true one, with the given label known, `(N, C)`."""
    given = examples.given
    word = calibrate(told, noise.temperature)
    if noise.reading is not None:
        word = read_word(word, noise.reading).astype(np.float64)
    joint = word * noise.transition[:, given].T
    joint /= np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    one_hot = np.eye(told.shape[1])[given]
    rare = np.bincount(given, minlength=told.shape[1])[given] < _FEWEST_OF_CLASS
    joint[rare] = one_hot[rare]
    return (1 - _KEPT) * joint + _KEPT * one_hot


def calibrate(table: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Probabilities at a temperature.

    >>> calibrate(np.array([[0.8, 0.2]]), 0.5).round(3)
    array([[0.941, 0.059]])
    """
    powered = np.exp(shift(np.log(table).astype(np.float32)).astype(np.float64) / temperature)
    return powered / powered.sum(axis=1, keepdims=True)


def seeded(estimator: Any, seed: int) -> Any:
    """A copy whose open random states are set."""
    copy: Any = clone(estimator)
    parameters = copy.get_params(deep=True)
    left_open = {
        name: seed
        for name, value in parameters.items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return copy.set_params(**left_open)


def _last_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
