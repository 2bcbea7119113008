"""A fitted committee as the plain tensors of a `Blend`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from torch import Tensor

from labelproof.tabular.candidates import Boosting, Candidate, Forest, Kernel, Linear, Network
from labelproof.tabular.committee import Committee

_NEVER = -1e4
"""The score of a class that a linear model has not seen; its probability is 0."""


def committee_tensors(committee: Committee) -> dict[str, Tensor]:
    """The tensors of the [`Blend`][labelproof.models.blend.Blend] that predicts the same.

    Raises:
        TypeError: A member is none of labelproof's own candidates.

    Example:
        >>> from labelproof.data.splits import folds
        >>> from labelproof.models.blend import Blend
        >>> from labelproof.tabular.committee import fit_committee
        >>> from labelproof.tabular.rows import LabelledRows
        >>> rows, given = np.arange(60.0)[:, None], np.arange(60) // 30
        >>> cuts = [folds(given, 5, seed=0)]
        >>> examples = LabelledRows(rows, given, np.ones(60), np.ones(2), cuts)
        >>> committee = fit_committee([Linear(), Forest()], examples)
        >>> found = Blend(committee_tensors(committee))(torch.from_numpy(rows)).exp().numpy()
        >>> np.allclose(found, committee.predict_proba(rows), atol=1e-6)
        True
    """
    mean, std = committee.members[0].statistics
    arrays: dict[str, Any] = {
        "mean": mean,
        "std": std,
        "weights": committee.weights,
        "temperatures": committee.temperatures,
        "mixing": committee.mixing,
        "prior": committee.prior,
        "temperature": committee.temperature,
    }
    for place, member in enumerate(committee.members):
        kind, parts = _parts(member)
        arrays |= {f"{place}.{kind}.{name}": part for name, part in parts.items()}
    # A copy: safetensors refuses tensors that share memory.
    return {name: torch.from_numpy(np.array(part)).clone() for name, part in arrays.items()}


def _parts(member: Candidate) -> tuple[str, Mapping[str, Any]]:
    if isinstance(member, Linear):
        slopes, intercepts = zip(*(_linear(model, member) for model in member.fitted), strict=True)
        return "linear", {"slopes": np.stack(slopes), "intercepts": np.stack(intercepts)}
    if isinstance(member, Kernel):
        return "kernel", {
            "points": member.points,
            "sharpness": np.float64(member.sharpness),
            "coefficients": np.stack(member.fitted),
        }
    if isinstance(member, Network):
        (layers,) = member.fitted
        return "network", {
            f"{name}{number}": part
            for number, layer in enumerate(layers)
            for name, part in zip(("weight", "bias"), layer, strict=True)
        }
    if isinstance(member, Forest):
        (forest,) = member.fitted
        return "forest", _join([_tree(each.tree_) for each in forest.estimators_])
    if isinstance(member, Boosting):
        return "boosting", _boosting(member)
    raise TypeError(f"member: expected one of labelproof's candidates, got {type(member).__name__}")


def _linear(model: Any, member: Linear) -> tuple[NDArray[Any], NDArray[Any]]:
    """Slopes `(F, C)` and intercepts `(1, C)`; a single class has slopes of 0."""
    slopes = np.zeros((len(member.statistics[0]), member.classes))
    intercepts = np.full((1, member.classes), _NEVER)
    known = getattr(model, "coef_", np.zeros((0, len(slopes))))
    # scikit-learn scores only the second of two classes, and no single class: the first gets 0.
    scored = model.classes_[len(model.classes_) - len(known) :]
    intercepts[0, model.classes_] = 0.0
    slopes[:, scored], intercepts[0, scored] = known.T, getattr(model, "intercept_", ())
    return slopes, intercepts


_Tree: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""Feature, threshold, left, right and value of a tree's nodes, children after their parents."""


def _tree(tree: Any) -> _Tree:
    """A tree of a forest, whose leaves hold a number for each class."""
    value = tree.value[:, :, 0]
    return tree.feature, tree.threshold, tree.children_left, tree.children_right, value


def _boosting(member: Boosting) -> dict[str, Any]:
    (model,) = member.fitted
    stages = np.array(member.chosen)
    if isinstance(model, DummyClassifier):
        # A single class: a tree of one leaf, and a score that makes the class certain.
        leaf = np.zeros(1, np.int64)
        trees = [(leaf, np.zeros(1), leaf - 1, leaf - 1, np.zeros(1))]
        baseline = np.array([-_NEVER])
        stages, classes = np.ones_like(stages), np.repeat(model.classes_, 2)
    else:
        trees = [_boosted(each.nodes) for stage in model._predictors for each in stage]
        baseline, classes = model._baseline_prediction.ravel(), model.classes_
    baseline, spread = baseline.astype(np.float64), np.eye(member.classes)[classes]
    return {**_join(trees), "baseline": baseline, "stages": stages, "spread": spread}


def _boosted(nodes: Any) -> _Tree:
    """A tree of boosting, whose leaves hold one number."""
    inner = nodes["is_leaf"] == 0
    left, right = (np.where(inner, nodes[side].astype(np.int64), -1) for side in ("left", "right"))
    return nodes["feature_idx"], nodes["num_threshold"], left, right, nodes["value"]


def _join(trees: Sequence[_Tree]) -> dict[str, Any]:
    """All trees in one table of nodes."""
    sizes = [len(tree[0]) for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    first = np.repeat(roots, sizes)
    place = np.arange(len(first))
    feature, threshold, left, right, value = map(np.concatenate, zip(*trees, strict=True))
    leaf = left < 0
    return {
        "feature": np.where(leaf, 0, feature).astype(np.int32),
        "threshold": _rounded_down(np.where(leaf, 0.0, threshold)),
        "left": np.where(leaf, place, left + first).astype(np.int32),
        "right": np.where(leaf, place, right + first).astype(np.int32),
        "roots": roots.astype(np.int64),
        "value": value.astype(np.float64 if value.ndim == 1 else np.float32),
    }


def _rounded_down(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """Thresholds rounded down to float32, so that they split float32 features as before.

    >>> float(_rounded_down(np.array([0.1]))[0]) <= 0.1
    True
    """
    with np.errstate(over="ignore"):
        near = numbers.astype(np.float32)
    return np.where(near > numbers, np.nextafter(near, np.float32(-np.inf)), near)
