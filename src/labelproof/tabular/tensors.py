"""A fitted committee as the plain tensors of a `Blend`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelproof.tabular.candidates import Candidate, Forest, Kernel, Linear
from labelproof.tabular.committee import Committee

_NEVER = -1e4
"""The score of a class that a linear model has not seen; its probability is 0."""


def committee_tensors(committee: Committee) -> dict[str, Tensor]:
    """The tensors of the [`Blend`][labelproof.models.blend.Blend] that predicts the same.

    Raises:
        TypeError: A member is not one of those that `fit` blends.

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
        return "linear", _linear(member)
    if isinstance(member, Kernel):
        return "kernel", {
            "points": member.points,
            "sharpness": np.float64(member.sharpness),
            "coefficients": np.stack(member.fitted),
        }
    if isinstance(member, Forest):
        return "forest", _forest(member)
    raise TypeError(f"member: expected a linear model, kernel or forest, got {member.names[0]}")


def _linear(member: Linear) -> dict[str, NDArray[Any]]:
    """Slopes `(V, F, C)` and intercepts `(V, 1, C)`; a single class has slopes of 0."""
    variants, features = len(member.fitted), len(member.statistics[0])
    slopes = np.zeros((variants, features, member.classes))
    intercepts = np.full((variants, 1, member.classes), _NEVER)
    for number, model in enumerate(member.fitted):
        known = getattr(model, "coef_", np.zeros((0, features)))
        # scikit-learn scores only the second of two classes, and no single class: the first gets 0.
        scored = model.classes_[len(model.classes_) - len(known) :]
        intercepts[number, 0, model.classes_] = 0.0
        slopes[number][:, scored] = known.T
        intercepts[number, 0, scored] = getattr(model, "intercept_", ())
    return {"slopes": slopes, "intercepts": intercepts}


def _forest(member: Forest) -> dict[str, NDArray[Any]]:
    """The nodes of all trees in one table, children after their parents."""
    (forest,) = member.fitted
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
    return {
        "feature": np.where(leaf, 0, feature).astype(np.int32),
        "threshold": _rounded_down(np.where(leaf, 0.0, threshold)),
        "left": np.where(leaf, place, left + first).astype(np.int32),
        "right": np.where(leaf, place, right + first).astype(np.int32),
        "roots": roots.astype(np.int64),
        "value": value[:, :, 0].astype(np.float32),
    }


def _rounded_down(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """Thresholds rounded down to float32, so that they split float32 features as before.

    >>> float(_rounded_down(np.array([0.1]))[0]) <= 0.1
    True
    """
    with np.errstate(over="ignore"):
        near = numbers.astype(np.float32)
    return np.where(near > numbers, np.nextafter(near, np.float32(-np.inf)), near)
