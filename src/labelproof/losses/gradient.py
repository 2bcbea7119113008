"""The mean loss of a batch and its gradient in one go, without a graph.

For a training loop that has the rest of the gradient written down too. A graph is made for every
step anew, and for a network of two small layers that is half of the step.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from labelproof.losses.base import Loss, PointwiseLoss, sees_label_alone
from labelproof.losses.closed_form import logits_gradient, sharpen_and_measure
from labelproof.losses.sparse import SparseRegularized

__all__ = ["MeanAndGradient", "has_gradient", "mean_and_gradient"]


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
    values = torch.add(base.each_pointwise(label), norm, alpha=penalty_weight)
    slope = base.slope(label) * share
    gradient = logits_gradient(sharpened, target, slope, penalty_weight * share, **how)
    mean = _mean(values, weight)
    return MeanAndGradient(mean, gradient, sharpened.log_probabilities, norm)


def _plain(
    loss: PointwiseLoss,
    logits: Tensor,
    target: Tensor,
    share: Tensor | float,
    weight: Tensor | None,
) -> MeanAndGradient:
    log_probabilities = torch.log_softmax(logits, dim=1)
    label = log_probabilities.gather(1, target)
    slope = loss.slope(label) * share
    mean = _mean(loss.each_pointwise(label), weight)
    gradient = log_probabilities.exp().mul_(-slope).scatter_add_(1, target, slope)
    return MeanAndGradient(mean, gradient, log_probabilities, None)


def _mean(values: Tensor, weight: Tensor | None) -> Tensor:
    return (values if weight is None else values * weight).mean()
