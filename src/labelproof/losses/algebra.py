"""Losses made of other losses: sums, foreign modules, and logit clipping."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.loss import _WeightedLoss

from labelproof.losses.base import Loss, LossSettings
from labelproof.losses.batch import Outputs, working_precision
from labelproof.ranges import within


class WeightedSum(Loss):
    """A sum of losses with non-negative coefficients; written with `*` and `+`.

    The parts must agree on reduction, class weights and ignored index, which become the sum's.

    Args:
        terms: Pairs of a coefficient and a loss; of a sum, each of its parts becomes a term.

    Example:
        >>> from labelproof import CrossEntropy, MeanAbsoluteError, Normalized
        >>> loss = 10 * Normalized(CrossEntropy()) + 0.1 * MeanAbsoluteError()
        >>> loss(torch.zeros(1, 4), torch.tensor([1]))
        tensor(2.5750)
    """

    def __init__(self, terms: Sequence[tuple[float, Loss]]):
        if not terms:
            raise ValueError("terms: expected at least one loss, got none")
        flat = [
            (within("coefficient", factor, 0) * number, part)
            for factor, loss in terms
            for number, part in _terms(loss)
        ]
        losses = [part for _, part in flat]
        _check_agreement(losses)
        super().__init__(**losses[0].settings)
        self.check = any(loss.check for loss in losses)
        self.coefficients = [number for number, _ in flat]
        self.parts = nn.ModuleList(losses)

    @property
    def terms(self) -> list[tuple[float, Loss]]:
        """Pairs of a coefficient and a loss."""
        return [
            (number, cast(Loss, loss))
            for number, loss in zip(self.coefficients, self.parts, strict=True)
        ]

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every possible label, `(N, C, ...)`."""
        return reduce(add, [each * loss.label_values(outputs) for each, loss in self.terms])

    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the given labels, each part by its own rule."""
        return reduce(add, [each * loss.values(outputs, target) for each, loss in self.terms])

    def extra_repr(self) -> str:
        """Coefficients, for printing."""
        return f"coefficients={self.coefficients}"


def _terms(loss: object) -> list[tuple[float, Loss]]:
    if not isinstance(loss, Loss):
        raise TypeError(
            f"only losses of labelproof add up, got {type(loss).__name__}; wrap another module "
            "with labelproof.losses.as_loss(module)"
        )
    return loss.terms if isinstance(loss, WeightedSum) else [(1.0, loss)]


def _check_agreement(losses: Sequence[Loss]) -> None:
    first: Any = losses[0].settings
    for other in losses[1:]:
        for name in ("reduction", "ignore_index", "weight"):
            mine, theirs = first.get(name), other.settings.get(name)
            if isinstance(mine, Tensor) and isinstance(theirs, Tensor):
                agree = torch.equal(mine, theirs)
            else:
                agree = mine is theirs or mine == theirs
            if not agree:
                raise ValueError(
                    f"{name}: losses that are added must agree, got {mine} and {theirs}"
                )


def as_loss(module: nn.Module) -> Loss:
    """Return a loss of this package as it is, and wrap any other module.

    >>> as_loss(nn.CrossEntropyLoss())(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.6931)
    """
    if isinstance(module, Loss):
        return module
    require_module("loss", module)
    return ForeignLoss(module)


def require_module(argument: str, module: object) -> None:
    """Refuse what is not a module, such as a function of torch, and say how to make it one."""
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"{argument}: expected a torch.nn.Module, got {type(module).__name__}; a function of "
            "(logits, target) becomes one by 'class Mine(torch.nn.Module): forward = "
            "staticmethod(function)' and Mine()"
        )


def foreign_settings(module: nn.Module) -> LossSettings:
    """Reduction, class weights and ignored index, if a module names them as torch does.

    Raises:
        TypeError: The module expects log-probabilities, not logits.
    """
    if isinstance(module, nn.NLLLoss):
        raise TypeError(
            "base: nn.NLLLoss takes log-probabilities, and losses here are given logits; use "
            "CrossEntropy() or nn.CrossEntropyLoss()"
        )
    weight = getattr(module, "weight", None) if _weighs_by_label(module) else None
    reduction = getattr(module, "reduction", "mean")
    return LossSettings(
        reduction=reduction if reduction in ("none", "mean", "sum") else "mean",
        weight=weight if isinstance(weight, Tensor) and weight.ndim == 1 else None,
        ignore_index=getattr(module, "ignore_index", -100),
    )


class ForeignLoss(Loss):
    """A module over (logits, target) that can return one value per example.

    Called by itself it is the module. As a part of another loss it returns one value per
    example: for the given labels and, where every label's value is needed, once for each class.

    Args:
        module: A loss with torch's `reduction` attribute, or one that returns `(N, ...)` already.
    """

    def __init__(self, module: nn.Module):
        super().__init__(**foreign_settings(module))
        self.module = module
        self.each = _per_example(module)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The module's own value; one value per example is reduced."""
        if hasattr(self.module, "reduction") and isinstance(input, Tensor):
            return self.module(working_precision(input), target)
        return super().forward(input, target)

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the given integer labels, `(N, ...)`."""
        if self.class_weight is not None and getattr(self.module, "label_smoothing", 0):
            raise ValueError(
                f"loss: {type(self.module).__name__} with class weights and label smoothing cannot "
                "be a part of another loss: smoothed, an example is no longer its label's weight "
                "times a value; leave out one of the two"
            )
        values = self.each(outputs.logits, target)
        if values.shape != target.shape:
            raise ValueError(
                f"loss: {type(self.module).__name__} returned shape {tuple(values.shape)} where "
                f"one value per example, {tuple(target.shape)}, is needed; give it reduction='none'"
            )
        return values

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every possible label, `(N, C, ...)`."""
        shape = (outputs.logits.shape[0], *outputs.logits.shape[2:])
        labels = (
            torch.full(shape, label, device=outputs.logits.device)
            for label in range(outputs.num_classes)
        )
        return torch.stack([self.index_values(outputs, label) for label in labels], dim=1)


def _weighs_by_label(module: nn.Module) -> bool:
    """Whether class weights apply to an example by its label, as in torch's cross entropy.

    torch's other weighted losses weigh terms within an example and take a plain mean; they apply
    the weights themselves.
    """
    return isinstance(module, nn.CrossEntropyLoss) or not isinstance(module, _WeightedLoss)


def _per_example(module: nn.Module) -> nn.Module:
    """A copy that returns one value per example, without class weights and ignored targets."""
    each = copy.copy(module)
    # A shallow copy shares the dictionary of buffers; the caller's module must not change.
    each._buffers = dict(module._buffers)
    if isinstance(each._buffers.get("weight"), Tensor) and _weighs_by_label(module):
        each._buffers["weight"] = None
    for name, value in (("reduction", "none"), ("ignore_index", -100)):
        if hasattr(module, name):
            setattr(each, name, value)
    return each


class LogitClip(Loss):
    r"""A loss of logits whose l2 norm is at most $\delta$: longer ones are scaled down to it.

    Bounded logits bound any loss, and so the effect of wrong labels. The prediction is still the
    argmax of the logits.

    Args:
        base: A loss of this package, or a module over (logits, target) that can return one value
            per example. Its reduction and class weights become this loss's.
        delta: Largest norm, above 0.

    Example:
        >>> from labelproof import CrossEntropy
        >>> LogitClip(CrossEntropy(), delta=1)(torch.tensor([[30.0, 40.0]]), torch.tensor([0]))
        tensor(0.7981)

    Reference:
        Wei et al., "Mitigating Memorization of Noisy Labels by Clipping the Model Prediction",
        ICML 2023.
    """

    def __init__(self, base: nn.Module, delta: float = 1.0):
        base = as_loss(base)
        super().__init__(**base.settings)
        self.base = base
        self.delta = within("delta", delta, 1e-6, 1e6)

    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the given labels, the base's by its own rule."""
        return self.base.values(self._clip(outputs), target)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every possible label, `(N, C, ...)`."""
        return self.base.label_values(self._clip(outputs))

    def _clip(self, outputs: Outputs) -> Outputs:
        masked = outputs.logits == -math.inf  # such a class does not count in the norm
        kept = torch.where(masked, 0, outputs.logits)
        norm = torch.linalg.vector_norm(kept, dim=1, keepdim=True)
        clipped = torch.where(masked, -math.inf, kept * (self.delta / norm.clamp_min(self.delta)))
        return Outputs(clipped, counted=outputs.counted)
