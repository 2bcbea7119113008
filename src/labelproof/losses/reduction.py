"""From one value per example to what the optimiser sees, as `torch.nn.CrossEntropyLoss` does it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from labelproof.losses.inputs import is_probabilities

__all__ = ["Reduction", "check_reduction", "fit_weight", "reduce_values", "replace_ignored"]

Reduction: TypeAlias = Literal["none", "mean", "sum"]


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that is none of the three."""
    if reduction not in get_args(Reduction):
        raise ValueError(f"reduction: expected 'none', 'mean' or 'sum', got {reduction!r}")


def fit_weight(class_weight: Tensor, values: Tensor) -> Tensor:
    """The class weights in the values' precision, and with them on `meta`.

    A loss that is moved there keeps its weights, for which that device has no memory.
    """
    device = "meta" if values.device.type == "meta" else class_weight.device
    return class_weight.to(device, values.dtype)


def replace_ignored(target: Tensor, ignore_index: int) -> Tensor:
    """Point ignored targets at class 0, so that a gather is safe; `reduce_values` drops them."""
    if is_probabilities(target):
        return target
    return torch.where(target == ignore_index, 0, target)


def reduce_values(
    values: Tensor,
    target: Tensor,
    *,
    reduction: Reduction,
    class_weight: Tensor | None,
    ignore_index: int,
    weigh: bool = True,
    counted: bool = False,
) -> Tensor:
    """Weigh the values by class, drop the ignored ones, and reduce.

    The mean is over the examples that count, weighted by class as torch does it. When none
    counts, since all are ignored or the batch is empty, the mean is 0, not torch's NaN, so that one
    such batch does not end a run.

    Args:
        values: One value per example, `(N, ...)`.
        target: Class indices `(N, ...)` or probabilities `(N, C, ...)`.
        reduction: `"none"`, `"mean"` or `"sum"`.
        class_weight: Weight of each class, `(C)`, or `None`.
        ignore_index: Target value that does not count.
        weigh: Whether the class weights are still to be applied to probability targets.
        counted: Whether every target is known to count, of which there is at least one.
    """
    if counted and class_weight is None:
        if reduction == "none":
            return values
        return values.mean() if reduction == "mean" else values.sum()
    if is_probabilities(target):
        if class_weight is not None and weigh:
            shape = (1, -1) + (1,) * (target.ndim - 2)
            values = values * (target * fit_weight(class_weight, values).view(shape)).sum(dim=1)
        if reduction == "none":
            return values
        # The sum of no values is 0, and their mean NaN.
        return values.mean() if reduction == "mean" and values.numel() else values.sum()
    target = target.long()  # another's loss takes uint8, in which 156 equals -100
    kept = target != ignore_index
    weight = None
    if class_weight is not None:
        weight = fit_weight(class_weight, values)[replace_ignored(target, ignore_index)] * kept
        values = values * weight
    # `where` rather than a product: an ignored example may hold an infinity, and inf * 0 is NaN.
    values = torch.where(kept, values, 0)
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    if weight is None:
        return values.sum() / kept.sum().clamp_min(1)
    total = weight.sum()
    return values.sum() / torch.where(total > 0, total, 1)
