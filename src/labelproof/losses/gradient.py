"""The mean loss of a batch and its gradient in one go, without a graph.

A graph is made for every step anew. For a small batch on the CPU, making it and walking back
through it costs more than the arithmetic.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch import Tensor, nn

from labelproof.losses.base import Loss, PointwiseLoss, of_label, sees_label_alone
from labelproof.losses.closed_form import logits_gradient, sharpen_and_measure
from labelproof.losses.inputs import working_precision
from labelproof.losses.sharpening import power_sum, sharpen
from labelproof.losses.sparse import SparseRegularized

__all__ = ["MeanAndGradient", "has_gradient", "mean_and_gradient", "mean_with_gradient"]


def has_gradient(loss: Loss) -> bool:
    """Whether `mean_and_gradient` knows a loss: one of the label's probability, regularised or not.

    >>> from labelproof import parse_loss
    >>> [has_gradient(parse_loss(text)) for text in ("ce", "gce(q=0.7)+sr", "nce+mae")]
    [True, True, False]
    """
    base: object = loss
    if type(loss) is SparseRegularized and loss.vector is None and loss.smoothing == 0:
        base = loss.base
    return (
        sees_label_alone(base)
        and loss.reduction == "mean"
        and loss.class_weight is None
        and not loss.check
    )


class MeanAndGradient(NamedTuple):
    """Of a batch."""

    mean: Tensor
    """The loss, a scalar."""
    gradient: Tensor
    """That of the logits, `(N, C)`."""
    log_probabilities: Tensor
    """Of the sharpened output where it is sharpened, `(N, C)`."""
    penalty: Tensor | None
    """The l_p norm of each output, `(N, 1)`, where it counts."""


def mean_and_gradient(
    loss: Loss, logits: Tensor, target: Tensor, *, weight: Tensor | None = None
) -> MeanAndGradient:
    """The mean loss of a batch, and its gradient with respect to the logits.

    Args:
        loss: One of which `has_gradient` says so.
        logits: `(N, C)`, float32 or float64.
        target: Class indices, `(N)`, all of them valid and none to be ignored.
        weight: How much each example counts, `(N)`; the mean is over the number of examples.

    Example:
        >>> from labelproof import CrossEntropy
        >>> found = mean_and_gradient(CrossEntropy(), torch.zeros(1, 2), torch.tensor([1]))
        >>> found.mean, found.gradient
        (tensor(0.6931), tensor([[ 0.5000, -0.5000]]))
    """
    logits = logits.detach()
    share: Tensor | float = 1 / target.shape[0]
    if weight is not None:
        weight = weight.to(logits.dtype).unsqueeze(1)
        share = weight * share
    if not isinstance(loss, SparseRegularized):
        assert isinstance(loss, PointwiseLoss)  # noqa: S101
        return _plain(loss, logits, target.unsqueeze(1), share, weight)
    base, temperature, penalty_weight = loss.base, loss.temperature, loss.weight
    assert isinstance(base, PointwiseLoss)  # noqa: S101
    how = {"temperature": temperature, "p": loss.p, "normalize": loss.normalize}
    label, norm, sharpened = sharpen_and_measure(logits, target, **how, clamp=loss.clamp)
    values, slope = _value_and_slope(base, label)
    values = torch.add(values, norm, alpha=penalty_weight)
    slope = slope * share
    gradient = logits_gradient(sharpened, target, slope, penalty_weight * share, **how)
    mean = _mean(values, weight)
    return MeanAndGradient(mean, gradient, sharpened.log_probabilities, norm)


def mean_with_gradient(loss: SparseRegularized, logits: Tensor, target: Tensor) -> Tensor | None:
    """The mean loss of a batch as a part of torch's graph, its gradient found along with it.

    Args:
        loss: Any that is regularised.
        logits: `(N, C)`, in any precision.
        target: Class indices, `(N)`, all of them valid and none to be ignored.

    Returns:
        `None` for a loss that has to be traced.
    """
    if not (has_gradient(loss) and _is_ours(type(loss.base))):
        return None
    return _Mean.apply(logits, target, loss)  # pyright: ignore


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, loss):
        found = mean_and_gradient(loss, working_precision(logits), target)
        ctx.save_for_backward(logits, target, found.gradient)
        # The epoch may move before the gradient is asked for.
        ctx.loss, ctx.temperature, ctx.weight = loss, loss.temperature, loss.weight
        return found.mean

    @staticmethod
    def backward(ctx, *gradients):
        logits, target, gradient = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return (gradient * gradients[0]).to(logits.dtype), None, None
        loss = ctx.loss  # a gradient of the gradient is asked for
        sharp = sharpen(
            working_precision(logits), temperature=ctx.temperature, normalize=loss.normalize
        )
        likely = torch.log_softmax(sharp, dim=1)
        values = loss.base.pointwise(of_label(likely, target))
        mean = (values + ctx.weight * power_sum(likely, loss.p, loss.clamp)).mean()
        return *torch.autograd.grad(mean, logits, gradients, create_graph=True), None, None


def _value_and_slope(loss: PointwiseLoss, log_probability: Tensor) -> tuple[Tensor, Tensor]:
    if _slope_is_of_another(type(loss)):
        return PointwiseLoss.value_and_slope(loss, log_probability)
    return loss.value_and_slope(log_probability)


@functools.cache
def _slope_is_of_another(kind: type[PointwiseLoss]) -> bool:
    """Whether a class overrides `pointwise` but not the slope that came with the one before."""
    pointwise, slope = _home(kind, "pointwise"), _home(kind, "value_and_slope")
    return pointwise is not slope and issubclass(pointwise, slope)


@functools.cache
def _is_ours(kind: type[nn.Module]) -> bool:
    """Whether `pointwise` is this package's; another may hold parameters that want a gradient."""
    return _home(kind, "pointwise").__module__.startswith("labelproof.losses.")


def _home(kind: type[nn.Module], name: str) -> type[nn.Module]:
    return next(each for each in kind.__mro__ if name in vars(each))


def _plain(
    loss: PointwiseLoss,
    logits: Tensor,
    target: Tensor,
    share: Tensor | float,
    weight: Tensor | None,
) -> MeanAndGradient:
    log_probabilities = torch.log_softmax(logits, dim=1)
    label = log_probabilities.gather(1, target)
    values, slope = _value_and_slope(loss, label)
    slope = slope * share
    mean = _mean(values, weight)
    gradient = log_probabilities.exp().mul_(-slope).scatter_add_(1, target, slope)
    return MeanAndGradient(mean, gradient, log_probabilities, None)


def _mean(values: Tensor, weight: Tensor | None) -> Tensor:
    return (values if weight is None else values * weight).mean()
