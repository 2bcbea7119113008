"""Losses written elsewhere, torch's own included, taken in as ours."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.modules.loss import _WeightedLoss

from labelproof.losses.base import Loss, LossSettings
from labelproof.losses.inputs import working_precision
from labelproof.losses.outputs import Outputs

__all__ = ["ForeignLoss", "as_loss", "foreign_settings"]


def as_loss(module: nn.Module) -> Loss:
    """Return a loss of this package as it is, and wrap any other module.

    >>> as_loss(nn.CrossEntropyLoss())(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.6931)
    """
    if isinstance(module, Loss):
        return module
    if not isinstance(module, nn.Module):
        raise TypeError(f"loss: expected a torch.nn.Module, got {type(module).__name__}")
    return ForeignLoss(module)


def foreign_settings(module: nn.Module) -> LossSettings:
    """Reduction, class weights and ignored index, where a module names them as torch does.

    Raises:
        TypeError: The module expects log-probabilities, and would be given logits.
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

    Called by itself it is the module. As a part of another loss it is asked for one value per
    example: for the given labels and, where every label's value is needed, once for each class.

    Args:
        module: A loss with torch's `reduction` attribute, or one that returns `(N, ...)` already.
    """

    def __init__(self, module: nn.Module):
        super().__init__(**foreign_settings(module))
        self.module = module
        self.each = _per_example(module)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The module's own answer; one that comes per example is reduced."""
        if hasattr(self.module, "reduction") and isinstance(input, Tensor):
            return self.module(working_precision(input), target)
        return super().forward(input, target)

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the integer labels given, `(N, ...)`."""
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
        """Value for every label an example could have had, `(N, C, ...)`."""
        shape = (outputs.logits.shape[0], *outputs.logits.shape[2:])
        labels = (
            torch.full(shape, label, device=outputs.logits.device)
            for label in range(outputs.num_classes)
        )
        return torch.stack([self.index_values(outputs, label) for label in labels], dim=1)


def _weighs_by_label(module: nn.Module) -> bool:
    """Whether class weights are those of the examples' labels, as in torch's cross entropy.

    Of torch's own losses with weights the others weigh terms within an example and have a plain
    mean; they are left to do so themselves.
    """
    return isinstance(module, nn.CrossEntropyLoss) or not isinstance(module, _WeightedLoss)


def _per_example(module: nn.Module) -> nn.Module:
    """A copy that answers for each example; weights and ignored targets are left to who reduces."""
    each = copy.copy(module)
    # A shallow copy shares the buffers' dictionary, and the caller's module stays untouched.
    each._buffers = dict(module._buffers)
    if isinstance(each._buffers.get("weight"), Tensor) and _weighs_by_label(module):
        each._buffers["weight"] = None
    for name, value in (("reduction", "none"), ("ignore_index", -100)):
        if hasattr(module, name):
            setattr(each, name, value)
    return each
