"""The classifiers that `estimator="auto"` compares: linear, kernel, forest, boosting and network.

Each learns from soft labels, `(N, C)`: the given labels at first, then the probability of each true
class. A candidate has several variants (penalties, numbers of trees) that share most of the work.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed
from typing_extensions import Self

from labelproof.data.images import Statistics
from labelproof.data.splits import Holdout
from labelproof.fitting.recipe import (
    choose_batch_size,
    choose_epochs,
    choose_weight_decay,
    complete_loss,
)
from labelproof.losses import parse_loss
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
_LARGEST_GROUP = 3
"""Rows of the largest group that one tree in twenty still leaves out whole."""


class SoftRows(NamedTuple):
    """Rows `(N, F)`, the probability of each class `(N, C)`, and the weight of each row `(N)`."""

    rows: Floats
    labels: Floats
    weight: Floats

    def take(self, kept: NDArray[np.int64]) -> SoftRows:
        """The rows at these indices."""
        return SoftRows(self.rows[kept], self.labels[kept], self.weight[kept])


@dataclass
class Candidate:
    """A kind of classifier in several variants.

    Attributes:
        seed: Random seed.
        n_jobs: Number of trees or folds to train in parallel.
        folded: Whether its out-of-sample predictions depend on how the rows are cut into folds.
    """

    folded: ClassVar[bool] = True
    seed: int = 0
    n_jobs: int | None = None
    fitted: list[Any] = field(default_factory=list, init=False, repr=False)
    statistics: Statistics = field(default=((), ()), init=False, repr=False)
    classes: int = field(default=0, init=False)

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

    def predict(self, rows: Floats) -> Floats:
        """The probabilities of each fitted variant, `(V, N, C)`."""
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
        raise TypeError(f"member: {self.names[0]} is none of those that a run blends")

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        raise NotImplementedError

    def _predict(self, model: Any, rows: Floats) -> Floats:
        raise NotImplementedError

    def _standardized(self, rows: Floats) -> Floats:
        mean, std = self.statistics
        return np.clip((rows - mean) / std, -FARTHEST, FARTHEST)

    def _classify(self, model: Any, examples: SoftRows) -> Any:
        """Train on a copy of each row for every class that is likely, with its probability."""
        rows, labels, weight = examples
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
    points: Floats = field(default_factory=lambda: np.zeros((0, 0)), init=False, repr=False)

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
class Forest(Candidate):
    """A forest on soft labels: on these, the squared error of regression is the Gini criterion.

    Each tree leaves out a third of the rows, so no cross-validation is needed: the trees that have
    seen none of a row's group predict it. Groups larger than `_LARGEST_GROUP` are rarely left out
    whole, and are predicted by folds.
    """

    # The mean of many trees varies little, and training them again is slow.
    folded: ClassVar[bool] = False
    leaf: int = 5
    extra: bool = False
    groups: NDArray[np.int64] | None = None
    of_fold: bool = False
    _whole: Any = field(default=None, init=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """A single one."""
        return (f"{'extra trees' if self.extra else 'forest'} (leaf={self.leaf})",)

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
        forest = self._make().fit(*examples)
        rows, predicted = examples.rows.astype(np.float32), np.zeros_like(examples.labels)
        groups = np.arange(len(rows)) if self.groups is None else self.groups
        for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            seen = np.zeros(groups.max() + 1, np.bool_)
            seen[groups[drawn]] = True
            out = np.flatnonzero(~seen[groups])
            predicted[out] += tree.predict(rows[out]).reshape(len(out), -1)
        predicted[predicted.sum(axis=1) == 0] = 1.0  # no tree has left it out
        return forest, as_probabilities(predicted / predicted.sum(axis=1, keepdims=True))

    def _make(self) -> Any:
        make: Any = ExtraTreesRegressor if self.extra else RandomForestRegressor
        return make(
            _TREES_OF_FOLD if self.of_fold else TREES,
            min_samples_leaf=self.leaf,
            max_features="sqrt",
            bootstrap=True,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        whole, self._whole = self._whole, None
        if whole is not None and all(a is b for a, b in zip(whole[0], examples, strict=True)):
            yield whole[1]  # it was trained on all rows already
        else:
            yield self._make().fit(*examples)

    def _predict(self, model: Any, rows: Floats) -> Floats:
        return model.predict(rows).reshape(len(rows), -1)

    def tensors(self) -> tuple[str, dict[str, Any]]:
        """The nodes of all trees in one table, children after their parents."""
        (forest,) = self.fitted
        trees = [each.tree_ for each in forest.estimators_]
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
            "roots": roots.astype(np.int64),
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

    If many labels are wrong and classes are far apart, it is far more accurate than the first.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """A single one."""
        return (f"forest of confirmed labels (leaf={self.leaf})",)

    def held_out(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        """By folds, whose labels neither forest has seen."""
        return self._by_folds(examples, parts)

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        predicted = self._out_of_bag(examples)[1]
        given = examples.labels.argmax(axis=1)
        # Relative to the class frequencies, or rare classes would never be confirmed.
        kept = (predicted / examples.labels.mean(axis=0).clip(1e-6)).argmax(axis=1) == given
        lost = np.setdiff1d(given, given[kept])
        yield self._make().fit(*examples.take(np.flatnonzero(kept | np.isin(given, lost))))


@dataclass
class Boosting(Candidate):
    """Histogram gradient boosting, after several numbers of rounds."""

    stages: tuple[int, ...] = (15, 40, 100)
    chosen: list[int] = field(default_factory=list, init=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """One for each number of rounds."""
        return tuple(f"boosting ({stage} rounds)" for stage in self.stages)

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        make: Any = HistGradientBoostingClassifier
        model = make(
            max_iter=self.stages[max(chosen)],
            max_leaf_nodes=16,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=self.seed,
        )
        self.chosen = [self.stages[index] for index in chosen]
        yield self._classify(model, examples)

    def predict(self, rows: Floats) -> Floats:
        """The probabilities after each chosen number of rounds, `(V, N, C)`."""
        (model,) = self.fitted
        if isinstance(model, DummyClassifier):
            predicted = dict.fromkeys(self.chosen, self._spread(model, model.predict_proba(rows)))
        else:
            staged = enumerate(model.staged_predict_proba(rows), 1)
            predicted = {
                at: self._spread(model, table) for at, table in staged if at in self.chosen
            }
        return np.stack([as_probabilities(predicted[stage]) for stage in self.chosen])


@dataclass
class Network(Candidate):
    """Multilayer perceptrons with a loss of this package, trained all at once by batched products.

    Attributes:
        loss: As text; `sr` without arguments is set for the number of epochs.
        hidden: Units of a hidden layer.
        depth: Number of hidden layers.
        copies: Number of networks whose mean predicts.
    """

    loss: str = "ce"
    hidden: int = 64
    depth: int = 2
    copies: int = 4

    @property
    def names(self) -> tuple[str, ...]:
        """A single one."""
        return (f"network ({self.loss})",)

    def held_out(self, examples: SoftRows, parts: Sequence[Holdout]) -> Floats:
        """By one network for each fold."""
        self.statistics = row_statistics(examples.rows, examples.weight)
        masks = np.zeros((len(parts), len(examples.rows)))
        for mask, part in zip(masks, parts, strict=True):
            mask[part.train] = 1.0
        layers = self._fit_layers(examples._replace(weight=masks * examples.weight))
        ready = self._standardized(examples.rows)
        predicted = [
            _forward([(w[fold], b[fold]) for w, b in layers], ready[part.validation])
            for fold, part in enumerate(parts)
        ]
        return as_probabilities(np.concatenate(predicted))[None]

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        yield self._fit_layers(examples._replace(weight=np.tile(examples.weight, (self.copies, 1))))

    def _predict(self, model: Any, rows: Floats) -> Floats:
        ready = self._standardized(rows)
        copies = range(len(model[0][0]))
        predicted = [_forward([(w[copy], b[copy]) for w, b in model], ready) for copy in copies]
        return np.mean(predicted, axis=0)

    def _fit_layers(self, examples: SoftRows) -> list[tuple[Floats, Floats]]:
        """The weights and biases of each layer; one network for each row of `weight`."""
        rows, labels, weight = examples
        generator = torch.Generator().manual_seed(self.seed)
        count, total, classes = len(weight), len(rows), labels.shape[1]
        inputs = torch.from_numpy(self._standardized(rows).astype(np.float32))
        target = torch.from_numpy(labels.astype(np.float32))
        share = torch.from_numpy((weight / weight.mean()).astype(np.float32))
        parameters = _draw_layers(
            [inputs.shape[1], *[self.hidden] * self.depth, classes], count, generator
        )
        batch = choose_batch_size(total)
        epochs = choose_epochs(total, batch)
        steps = epochs * -(-total // batch)
        loss = parse_loss(complete_loss(self.loss, epochs=epochs), reduction="none")
        optimizer = torch.optim.SGD(
            parameters,
            lr=0.02,
            momentum=0.9,
            weight_decay=choose_weight_decay((inputs.shape[1],), total),
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for epoch in range(epochs):
            loss.set_epoch(epoch)
            for index in torch.randperm(total, generator=generator).split(batch):
                value = inputs[index].expand(count, -1, -1)
                for layer in range(0, 2 * self.depth, 2):
                    value = torch.baddbmm(parameters[layer + 1], value, parameters[layer]).relu()
                scores = torch.baddbmm(parameters[-1], value, parameters[-2])
                each = loss(scores.reshape(-1, classes), target[index].repeat(count, 1))
                optimizer.zero_grad()
                ((each * share[:, index].reshape(-1)).sum() / len(index)).backward()
                optimizer.step()
                schedule.step()
        arrays = [tensor.detach().double().numpy() for tensor in parameters]
        return list(zip(arrays[::2], arrays[1::2], strict=True))


def _draw_layers(
    sizes: Sequence[int], count: int, generator: torch.Generator
) -> list[torch.Tensor]:
    """Random weights and biases of each layer, for `count` networks."""
    parameters: list[torch.Tensor] = []
    for fan_in, fan_out in pairwise(sizes):
        for shape, scale in (((count, fan_in, fan_out), 3**0.5), ((count, 1, fan_out), 1.0)):
            drawn = torch.rand(shape, generator=generator) * 2 - 1
            parameters.append((drawn * fan_in**-0.5 * scale).requires_grad_())
    return parameters


def _forward(layers: Sequence[tuple[Floats, Floats]], rows: Floats) -> Floats:
    value = rows
    for number, (weights, bias) in enumerate(layers):
        value = (np.maximum(value, 0.0) if number else value) @ weights + bias
    value = np.exp(value - value.max(axis=1, keepdims=True))
    return value / value.sum(axis=1, keepdims=True)


def as_probabilities(table: NDArray[Any]) -> Floats:
    """Numbers raised to at least `LEAST`, then scaled to a sum of 1 in each row.

    >>> as_probabilities(np.array([[3.0, 1.0], [1.2, -0.2]])).round(4)
    array([[7.500e-01, 2.500e-01],
           [9.999e-01, 1.000e-04]])
    """
    kept = np.maximum(table, LEAST)
    return kept / kept.sum(axis=-1, keepdims=True)
