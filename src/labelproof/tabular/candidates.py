"""The classifiers that `estimator="auto"` compares: linear models, kernels and forests.

Each learns from soft labels, `(N, C)`: the given labels at first, then the probability of each true
class. A candidate has several variants (penalties) that share most of the work.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, hstack
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed
from typing_extensions import Self

from labelproof.data.images import Statistics
from labelproof.data.splits import Holdout, folds
from labelproof.data.texts import term_rarity, weigh_terms
from labelproof.models.blend import FARTHEST, LEAST
from labelproof.tabular.rows import row_statistics

Floats = NDArray[np.float64]
TREES = 100
_TREES_OF_FOLD = 33
"""Trees of a forest for one held-out fold: five of these are faster than two full forests."""
_NEGLIGIBLE = 0.01
"""Probability of a class up to which a row is not repeated for it."""
_FEW_COEFFICIENTS = 100
"""Number of coefficients up to which Newton's method is faster than a quasi-Newton one."""
_NEVER = -1e4
"""The score of a class that a linear model has not seen; its probability is 0."""
_MOST_STEPS = 100
"""Of conjugate gradients; most take 20 to 60."""
_WIDE = 32
"""Features that a split of a wide forest chooses from."""
_LARGEST_GROUP = 3
"""Rows of the largest group that one tree in twenty still leaves out whole."""


class SoftRows(NamedTuple):
    """Rows `(N, F)`, the probability of each class `(N, C)`, and the weight of each row `(N)`.

    `terms`, `(N, L)`, are the ids of the terms of its texts.
    """

    rows: Floats
    labels: Floats
    weight: Floats
    terms: NDArray[np.int32] = np.zeros((0, 0), np.int32)

    def take(self, kept: NDArray[np.int64]) -> SoftRows:
        """The rows at these indices."""
        terms = self.terms[kept] if len(self.terms) else self.terms
        return SoftRows(self.rows[kept], self.labels[kept], self.weight[kept], terms)


@dataclass
class Candidate:
    """A kind of classifier in several variants.

    Attributes:
        seed: Random seed.
        n_jobs: Number of trees or folds to train in parallel.
        folded: Whether its out-of-sample predictions depend on how the rows are cut into folds.
        prior: The weight of each variant before labels are looked at.
    """

    folded: ClassVar[bool] = True
    prior: ClassVar[float] = 1.0
    seed: int = 0
    n_jobs: int | None = None
    fitted: list[Any] = field(default_factory=list, init=False, repr=False)
    statistics: Statistics = field(init=False, repr=False)
    classes: int = field(init=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variants."""
        raise NotImplementedError

    def fit(self, examples: SoftRows, chosen: Sequence[int] | None = None) -> Self:
        """Train the chosen variants, or all of them."""
        self.statistics = row_statistics(examples.rows, examples.weight)
        self.classes = examples.labels.shape[1]
        self.fitted = list(self._train(examples, chosen or range(len(self.names))))
        return self

    def predict(self, rows: Floats, terms: NDArray[np.int32] | None = None) -> Floats:
        """The probabilities of each fitted variant, `(V, N, C)`; only `Words` reads terms."""
        return np.stack([as_probabilities(self._predict(model, rows)) for model in self.fitted])

    def held_out(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        """The out-of-sample probabilities of each variant, `(V, M, C)`, part after part."""
        tables: Any = Parallel(self.n_jobs)(
            delayed(self._predict_part)(examples, part) for part in parts
        )
        return np.concatenate(tables, axis=1)

    def _predict_part(self, examples: SoftRows, part: Holdout) -> Floats:
        """Predictions of a part by a copy that is trained on the rest."""
        return replace(self).fit(examples.take(part.train)).predict(examples.rows[part.validation])

    def tensors(self) -> tuple[str, dict[str, Any]]:
        """Its kind in a [`Blend`][labelproof.models.blend.Blend], and the arrays that it needs."""
        raise NotImplementedError

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        raise NotImplementedError

    def _predict(self, model: Any, rows: Floats) -> Floats:
        raise NotImplementedError

    def _standardized(self, rows: Floats) -> Floats:
        mean, std = self.statistics
        return np.clip((rows - mean) / std, -FARTHEST, FARTHEST)

    def _classify(self, model: Any, examples: SoftRows) -> Any:
        """Train on a copy of each row for every class that is likely, with its probability."""
        rows, labels, weight = examples[:3]
        row, label = np.nonzero(labels > _NEGLIGIBLE)
        if len(np.unique(label)) < 2:
            model = DummyClassifier()
        name = "sample_weight"
        if isinstance(model, Pipeline):
            name = f"{model.steps[-1][0]}__{name}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(rows[row], label, **{name: labels[row, label] * weight[row]})

    def _spread(self, model: Any, predicted: Any) -> Floats:
        """The probabilities of a classifier, with a column for every class."""
        table = np.zeros((len(predicted), self.classes))
        table[:, model.classes_] = predicted
        return table


@dataclass
class Linear(Candidate):
    """Logistic regression."""

    strengths: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)

    @property
    def names(self) -> tuple[str, ...]:
        """One for each strength."""
        return tuple(f"linear (C={strength:g})" for strength in self.strengths)

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        ready = examples._replace(rows=self._standardized(examples.rows))
        # Newton's method takes few steps, but each solves for all coefficients at once.
        few = self.classes * ready.rows.shape[1] <= _FEW_COEFFICIENTS
        solver = "newton-cholesky" if few else "lbfgs"
        for index in chosen:
            model = LogisticRegression(C=self.strengths[index], max_iter=200, solver=solver)
            yield self._classify(model, ready)

    def _predict(self, model: Any, rows: Floats) -> Floats:
        return self._spread(model, model.predict_proba(self._standardized(rows)))

    def tensors(self) -> tuple[str, dict[str, Any]]:
        """Slopes `(V, F, C)` and intercepts `(V, 1, C)`; a single class has slopes of 0."""
        variants, features = len(self.fitted), len(self.statistics[0])
        slopes = np.zeros((variants, features, self.classes))
        intercepts = np.full((variants, 1, self.classes), _NEVER)
        for number, model in enumerate(self.fitted):
            known = getattr(model, "coef_", np.zeros((0, features)))
            # scikit-learn scores only the second of two classes, and no single one: the first is 0.
            scored = model.classes_[len(model.classes_) - len(known) :]
            intercepts[number, 0, model.classes_] = 0.0
            slopes[number][:, scored] = known.T
            intercepts[number, 0, scored] = getattr(model, "intercept_", ())
        return "linear", {"slopes": slopes, "intercepts": intercepts}


@dataclass
class Kernel(Candidate):
    r"""Ridge regression of the labels on a Gaussian kernel and the features themselves.

    The kernel \(\exp(-s \lVert x - x' \rVert^2 / F)\) compares standardised rows with a random
    subset of them, the landmarks (Nystroem's method). Smooth functions average wrong labels out.
    """

    sharpness: float = 1.0
    ridges: tuple[float, ...] = (0.03, 0.3, 3.0, 15.0, 80.0)
    landmarks: int = 500
    points: Floats = field(init=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """One for each ridge."""
        return tuple(f"kernel {self.sharpness:g} (ridge={ridge:g})" for ridge in self.ridges)

    def held_out(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        """From one Gram matrix of all rows, minus that of each part.

        Landmarks have no labels, so they may include rows of the part.
        """
        self.statistics = row_statistics(examples.rows, examples.weight)
        features, penalty = self._choose_landmarks(examples.rows)
        whole = _normal_equations(features, examples)
        predicted = []
        for part in parts:
            out = part.validation
            gram, target = _normal_equations(features[out], examples.take(out))
            rest = whole[0] - gram, whole[1] - target
            solved = self._solve(*rest, penalty, len(part.train), range(len(self.ridges)))
            predicted.append([as_probabilities(features[out] @ each) for each in solved])
        return np.concatenate(predicted, axis=1)

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        features, penalty = self._choose_landmarks(examples.rows)
        yield from self._solve(
            *_normal_equations(features, examples), penalty, len(features), chosen
        )

    def _choose_landmarks(self, rows: Floats) -> tuple[Floats, Floats]:
        """Choose landmarks; return the features of all rows and the penalty matrix."""
        picked = np.random.default_rng(self.seed).permutation(len(rows))[: self.landmarks]
        self.points = self._standardized(rows[picked]) / np.sqrt(rows.shape[1])
        features = self._features(rows)
        size = len(picked)
        penalty = np.eye(features.shape[1])
        penalty[:size, :size] = features[picked, :size]
        penalty[-1, -1] = 0.0  # the constant
        return features, penalty

    def _solve(
        self, gram: Floats, target: Floats, penalty: Floats, count: int, chosen: Sequence[int]
    ) -> Iterator[Floats]:
        # Similar landmarks would make the matrix singular.
        jitter = 1e-6 * count * np.eye(len(gram))
        for index in chosen:
            ridged = gram + self.ridges[index] * penalty + jitter
            yield cho_solve(cho_factor(ridged, overwrite_a=True), target)

    def _predict(self, model: Any, rows: Floats) -> Floats:
        return self._features(rows) @ model

    def _features(self, rows: Floats) -> Floats:
        ready = self._standardized(rows) / np.sqrt(rows.shape[1])
        square = (ready**2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1)
        near = np.exp(-self.sharpness * np.maximum(square - 2 * ready @ self.points.T, 0.0))
        return np.column_stack([near, ready, np.ones(len(ready))])

    def tensors(self) -> tuple[str, dict[str, Any]]:
        """Landmarks, sharpness, and the coefficients of each variant."""
        sharpness, coefficients = np.float64(self.sharpness), np.stack(self.fitted)
        return "kernel", {
            "points": self.points,
            "sharpness": sharpness,
            "coefficients": coefficients,
        }


def _normal_equations(features: Floats, examples: SoftRows) -> tuple[Floats, Floats]:
    """Both sides of the normal equations of weighted least squares."""
    weighted = (features * examples.weight[:, None]).T
    return weighted @ features, weighted @ examples.labels


@dataclass
class Words(Candidate):
    r"""Ridge regression of the labels on the terms of texts, and on the features beside them.

    Squared errors average wrong labels out, and conjugate gradients solve for all classes at once,
    in a hundredth of the time of logistic regression.

    Attributes:
        words: Features that stand for words, which are left out.
    """

    words: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    ridges: tuple[float, ...] = (0.5, 2.0, 6.0, 20.0)
    rarity: Floats = field(init=False, repr=False)
    beside: NDArray[np.int64] = field(init=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """One for each ridge."""
        return tuple(f"words (ridge={ridge:g})" for ridge in self.ridges)

    def held_out(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        """By folds. How rare a term is needs no labels, so that all rows count."""
        inputs = self._learn(examples)
        predicted = []
        for part in parts:
            solved = self._solve(inputs[part.train], examples.take(part.train), self.ridges)
            tables = [inputs[part.validation] @ slopes + mean for slopes, mean in solved]
            predicted.append(as_probabilities(np.stack(tables)))
        return np.concatenate(predicted, axis=1)

    def _learn(self, examples: SoftRows) -> csr_array:
        self.statistics = row_statistics(examples.rows, examples.weight)
        self.beside = np.setdiff1d(np.arange(examples.rows.shape[1]), self.words)
        self.rarity = term_rarity(examples.terms)
        return self._inputs(examples.rows, examples.terms)

    def _inputs(self, rows: Floats, terms: NDArray[np.int32]) -> csr_array:
        """A sparse matrix of the terms' weights and the features beside them."""
        ready = self._standardized(rows)[:, self.beside] / max(len(self.beside), 1) ** 0.5
        return csr_array(hstack([weigh_terms(terms, self.rarity), csr_array(ready)]))

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        yield from self._solve(
            self._learn(examples), examples, [self.ridges[index] for index in chosen]
        )

    def _solve(
        self, inputs: csr_array, examples: SoftRows, ridges: Iterable[float]
    ) -> Iterator[tuple[Floats, Floats]]:
        """For each ridge, slopes `(F, C)` and the mean of the labels."""
        weight = examples.weight[:, None]
        mean = (weight * examples.labels).sum(axis=0) / weight.sum()
        flipped = inputs.T.tocsr()
        target = flipped @ (weight * (examples.labels - mean))
        for ridge in ridges:
            slopes, left = np.zeros_like(target), target
            step, size = left, (left**2).sum(axis=0)
            enough = 1e-6 * size
            for _ in range(_MOST_STEPS):
                curved = flipped @ (weight * (inputs @ step)) + ridge * step
                far = size / np.maximum((step * curved).sum(axis=0), LEAST**4)
                slopes, left = slopes + far * step, left - far * curved
                before, size = size, (left**2).sum(axis=0)
                if (size <= enough).all():
                    break
                step = left + size / np.maximum(before, LEAST**4) * step
            yield slopes, mean

    def predict(self, rows: Floats, terms: NDArray[np.int32] | None = None) -> Floats:
        """The probabilities of each fitted variant, `(V, N, C)`."""
        inputs = self._inputs(rows, np.zeros((0, 0), np.int32) if terms is None else terms)
        return as_probabilities(np.stack([inputs @ slopes + mean for slopes, mean in self.fitted]))

    def tensors(self) -> tuple[str, dict[str, Any]]:
        """The weight of each term, slopes of terms and of features, and the mean of the labels."""
        slopes = np.stack([each for each, _ in self.fitted])
        terms, features = np.split(slopes, [len(self.rarity)], axis=1)
        return "words", {
            "rarity": self.rarity,
            "slopes": terms.astype(np.float32),
            "beside": self.beside,
            "features": features,
            "mean": self.fitted[0][1],
        }


@dataclass
class Forest(Candidate):
    """A forest on soft labels: on these, the squared error of regression is the Gini criterion.

    Each tree leaves out a third of the rows, so no cross-validation is needed: the trees that have
    seen none of a row's group predict it. Groups larger than `_LARGEST_GROUP` are rarely left out
    whole, and are predicted by folds.

    A split chooses from as many features as the square root of their number, in a `wide` forest
    from 32: it finds rules that combine few of them, such as one feature or else another.
    """

    # The mean of many trees varies little, and training them again is slow.
    folded: ClassVar[bool] = False
    leaf: int = 5
    groups: NDArray[np.int64] | None = None
    wide: bool = False
    of_fold: bool = False
    _whole: Any = field(default=None, init=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """A single one."""
        return (f"forest (leaf={self.leaf}{', wide' * self.wide})",)

    def held_out(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        """By the trees that have seen none of a row's group, or by folds where groups are large."""
        if self.groups is not None and np.bincount(self.groups).max() > _LARGEST_GROUP:
            return self._by_folds(examples, parts)
        forest, predicted = self._out_of_bag(examples)
        self._whole = examples, forest
        return predicted[np.concatenate([part.validation for part in parts])][None]

    def _by_folds(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        smaller = replace(self, of_fold=True)
        # One after another, since each trains its trees in parallel.
        return np.concatenate([smaller._predict_part(examples, part) for part in parts], axis=1)

    def _out_of_bag(self, examples: SoftRows) -> tuple[Any, Floats]:
        """A forest, and predictions of each row by the trees that have seen none of its group."""
        forest = self._make(examples).fit(*examples[:3])
        rows, predicted = examples.rows.astype(np.float32), np.zeros_like(examples.labels)
        groups = np.arange(len(rows)) if self.groups is None else self.groups
        for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            seen = np.zeros(groups.max() + 1, np.bool_)
            seen[groups[drawn]] = True
            out = np.flatnonzero(~seen[groups])
            if len(out):  # a tree of a few rows may have seen them all
                predicted[out] += tree.predict(rows[out]).reshape(len(out), -1)
        predicted[predicted.sum(axis=1) == 0] = 1.0  # no tree has left it out
        return forest, as_probabilities(predicted / predicted.sum(axis=1, keepdims=True))

    def _make(self, examples: SoftRows) -> Any:
        make: Any = RandomForestRegressor
        return make(
            _TREES_OF_FOLD if self.of_fold else TREES,
            min_samples_leaf=self.leaf,
            max_features=min(_WIDE, examples.rows.shape[1]) if self.wide else "sqrt",
            bootstrap=True,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        whole, self._whole = self._whole, None
        if whole is not None and all(a is b for a, b in zip(whole[0], examples, strict=True)):
            yield whole[1]  # it was trained on all rows already
        else:
            yield self._make(examples).fit(*examples[:3])

    def _predict(self, model: Any, rows: Floats) -> Floats:
        return model.predict(rows).reshape(len(rows), -1)

    def tensors(self) -> tuple[str, dict[str, Any]]:
        """The nodes of all trees in one table, children after their parents."""
        trees = [each.tree_ for forest in self.fitted for each in forest.estimators_]
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        first = np.repeat(roots, sizes)
        place = np.arange(len(first))
        feature, threshold, left, right, value = (
            np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("feature", "threshold", "children_left", "children_right", "value")
        )
        leaf = left < 0
        return "forest", {
            "feature": np.where(leaf, 0, feature).astype(np.int32),
            "threshold": _rounded_down(np.where(leaf, 0.0, threshold)),
            "left": np.where(leaf, place, left + first).astype(np.int32),
            "right": np.where(leaf, place, right + first).astype(np.int32),
            "roots": roots.astype(np.int64).reshape(len(self.fitted), -1),
            "value": value[:, :, 0].astype(np.float32),
        }


def _rounded_down(numbers: Floats) -> NDArray[np.float32]:
    """Thresholds rounded down to float32, so that they split float32 features as before.

    >>> float(_rounded_down(np.array([0.1]))[0]) <= 0.1
    True
    """
    with np.errstate(over="ignore"):
        near = numbers.astype(np.float32)
    return np.where(near > numbers, np.nextafter(near, np.float32(-np.inf)), near)


@dataclass
class Confirmed(Forest):
    """A forest of the rows whose labels a first forest predicts out of bag.

    If many labels are wrong and classes are far apart, it is far more accurate than the first. A
    second round trains on the rows whose labels this forest predicts, and so on.
    """

    prior: ClassVar[float] = 3.0
    rounds: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """One for each round."""
        name = f"forest of confirmed labels (leaf={self.leaf})"
        return tuple(
            f"{name}, round {number + 1}" if number else name for number in range(self.rounds)
        )

    def held_out(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        """By folds, whose labels no forest has seen."""
        return self._by_folds(examples, parts)

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        _, predicted = self._out_of_bag(examples)
        last = max(chosen)
        for number in range(last):
            kept = _confirmed(examples, predicted)
            forest, unseen = self._out_of_bag(examples.take(kept))
            if number in chosen:
                yield forest
            predicted = self._predict(forest, examples.rows)
            predicted[kept] = unseen
        kept = examples.take(_confirmed(examples, predicted))
        yield self._make(kept).fit(*kept[:3])


@dataclass
class ConfirmedKernel(Kernel):
    """Kernel regression of the rows whose labels a first one predicts out of sample.

    If nearly half of the labels of two classes are wrong, a few hundred cannot tell which candidate
    is best. This one starts with most weight, since it has seen fewer of the wrong ones.
    """

    prior: ClassVar[float] = 10.0
    sharpness: float = 0.5
    ridges: tuple[float, ...] = (80.0,)
    landmarks: int = 200  # enough for what is so smooth

    @property
    def names(self) -> tuple[str, ...]:
        """One for each ridge."""
        return tuple(f"{name} of confirmed labels" for name in super().names)

    def held_out(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        """By folds, whose labels neither has seen."""
        return Candidate.held_out(self, examples, parts)

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        parts = folds(examples.labels.argmax(axis=1), 5, seed=self.seed)
        predicted = np.empty_like(examples.labels)
        order = np.concatenate([part.validation for part in parts])
        predicted[order] = super().held_out(examples, parts).mean(axis=0)
        kept = _confirmed(examples, predicted, shrunk=True)
        yield from super()._train(examples.take(kept), chosen)


def _confirmed(examples: SoftRows, predicted: Floats, *, shrunk: bool = False) -> NDArray[np.int64]:
    """The rows whose labels are predicted, and all rows of a class of which none is.

    Predictions count relative to the class frequencies, or rare classes would never be confirmed.
    If regression has `shrunk` them towards these, the border between two classes is halfway to even
    odds; at the frequencies themselves, too many rows of a rare class would be confirmed.
    """
    given = examples.labels.argmax(axis=1)
    frequency = examples.labels.mean(axis=0).clip(1e-6)
    kept = (predicted / frequency ** (0.5 if shrunk else 1.0)).argmax(axis=1) == given
    lost = np.setdiff1d(given, given[kept])
    return np.flatnonzero(kept | np.isin(given, lost))


def as_probabilities(table: NDArray[Any]) -> Floats:
    """Numbers raised to at least `LEAST`, then scaled to a sum of 1 in each row.

    >>> as_probabilities(np.array([[3.0, 1.0], [1.2, -0.2]])).round(4)
    array([[7.500e-01, 2.500e-01],
           [9.999e-01, 1.000e-04]])
    """
    kept = np.maximum(table, LEAST)
    return kept / kept.sum(axis=-1, keepdims=True)
