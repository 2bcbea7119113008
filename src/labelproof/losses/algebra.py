"""Losses as values: `10 * a + 0.1 * b` is a loss again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from labelproof.losses.base import Loss
from labelproof.losses.outputs import Outputs
from labelproof.ranges import within

__all__ = ["WeightedSum", "added", "scaled"]


class WeightedSum(Loss):
    """A sum of losses with non-negative coefficients; written with `*` and `+`.

    The parts must agree on reduction, class weights and ignored index, which become the sum's.

    Args:
        terms: Pairs of a coefficient and a loss.

    Example:
        >>> from labelproof import CrossEntropy, MeanAbsoluteError, Normalized
        >>> loss = 10 * Normalized(CrossEntropy()) + 0.1 * MeanAbsoluteError()
        >>> loss(torch.zeros(1, 4), torch.tensor([1]))
        tensor(2.5750)
    """

    def __init__(self, terms: Sequence[tuple[float, Loss]]):
        if not terms:
            raise ValueError("terms: expected at least one loss, got none")
        _check_agreement([loss for _, loss in terms])
        super().__init__(**terms[0][1].settings)
        self.check = any(loss.check for _, loss in terms)
        self.coefficients = [within("coefficient", number, 0) for number, _ in terms]
        self.parts = nn.ModuleList(loss for _, loss in terms)

    @property
    def terms(self) -> list[tuple[float, Loss]]:
        """Pairs of a coefficient and a loss."""
        return [
            (number, cast(Loss, loss))
            for number, loss in zip(self.coefficients, self.parts, strict=True)
        ]

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the integer labels given, `(N, ...)`."""
        return _total([number * loss.index_values(outputs, target) for number, loss in self.terms])

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every label an example could have had, `(N, C, ...)`."""
        return _total([number * loss.label_values(outputs) for number, loss in self.terms])

    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the labels given, each part by its own rule."""
        return _total([number * loss.values(outputs, target) for number, loss in self.terms])

    def extra_repr(self) -> str:
        """Coefficients, for printing."""
        return f"coefficients={self.coefficients}"


def scaled(coefficient: float, loss: Loss) -> WeightedSum:
    """`coefficient * loss`."""
    factor = within("coefficient", coefficient, 0)
    return WeightedSum([(factor * number, part) for number, part in _terms(loss)])


def added(left: Loss, right: object) -> WeightedSum:
    """`left + right`."""
    if not isinstance(right, Loss):
        raise TypeError(
            f"only losses of labelproof add up, got {type(right).__name__}; wrap another module "
            "with labelproof.losses.as_loss(module)"
        )
    return WeightedSum([*_terms(left), *_terms(right)])


def _terms(loss: Loss) -> list[tuple[float, Loss]]:
    return loss.terms if isinstance(loss, WeightedSum) else [(1.0, loss)]


def _total(values: list[Tensor]) -> Tensor:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _check_agreement(losses: Sequence[Loss]) -> None:
    first = losses[0]
    for other in losses[1:]:
        for name in ("reduction", "ignore_index"):
            if getattr(first, name) != getattr(other, name):
                raise ValueError(
                    f"{name}: losses that are added must agree, got {getattr(first, name)!r} and "
                    f"{getattr(other, name)!r}"
                )
        if (first.class_weight is None) != (other.class_weight is None) or (
            first.class_weight is not None
            and other.class_weight is not None
            and not torch.equal(first.class_weight, other.class_weight)
        ):
            raise ValueError("weight: losses that are added must have the same class weights")
