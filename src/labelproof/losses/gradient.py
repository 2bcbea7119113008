r"""The mean loss of a batch with an explicit gradient, for losses of the label's probability.

On a small batch on the CPU, autograd costs more than the arithmetic. If the loss is a function of
$\log u_y$, with or without sparse regularization, both passes are a handful of operations here.
`LabelForm` describes such losses; `kernels` has the same gradient on CUDA.

With $c$ the gradient of $\log u_y$ and $r$ that of $R = \|u\|_p^p$, that of $\log u$ is
$g = r p\,u^p + c\,\delta_y$, that of $s = z / (n \tau)$ is $G = g - u \sum_i g_i$, and that of the
logits, through the norm, $(G - \tau^2 s \sum_i s_i G_i) / (n \tau)$.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from labelproof.losses.batch import is_plain, working_precision
from labelproof.losses.numerics import of_label
from labelproof.losses.penalty import label_and_norm

if TYPE_CHECKING:
    from labelproof.losses.base import Loss, PointwiseLoss

# torch's own backward operation, which has no public name; looked up once.
_through_log_softmax = torch.ops.aten._log_softmax_backward_data.default


class Sharpening(NamedTuple):
    """How the output is sharpened and penalised, at one epoch."""

    temperature: float
    p: float
    normalize: bool
    clamp: float | None
    weight: float


class LabelForm(NamedTuple):
    """A loss that is `base.pointwise` of its label's log-probability, plus any penalty."""

    base: PointwiseLoss
    sharpening: Sharpening | None = None


class MeanAndGradient(NamedTuple):
    """The mean loss of a batch, its gradient and intermediate results."""

    mean: Tensor
    """The loss, a scalar."""
    gradient: Tensor
    """Gradient of the logits, `(N, C)`."""
    log_probabilities: Tensor
    """Log-probabilities of the output, sharpened if the loss sharpens it, `(N, C)`."""
    penalty: Tensor | None
    """The l_p norm of each output, `(N, 1)`, if the loss has a penalty."""


def has_gradient(loss: Loss) -> bool:
    """Whether `mean_and_gradient` can compute a loss."""
    plain = loss.reduction == "mean" and loss.class_weight is None and not loss.check
    return plain and loss.label_form() is not None


def mean_and_gradient(
    loss: Loss, logits: Tensor, target: Tensor, *, weight: Tensor | None = None
) -> MeanAndGradient:
    """The mean loss of a batch, and its gradient with respect to the logits.

    Args:
        loss: One for which `has_gradient` is true.
        logits: `(N, C)`, float32 or float64.
        target: Class indices, `(N)`, all of them valid and none ignored or masked.
        weight: Weight of each example, `(N)`; the mean is over the number of examples.
    """
    form = loss.label_form()
    assert form is not None  # noqa: S101 (the caller checked `has_gradient`)
    return _of_form(form, logits.detach(), target.unsqueeze(1), weight)


def mean_with_gradient(form: LabelForm, logits: Tensor, target: Tensor) -> Tensor | None:
    """The mean loss of a batch as a node of torch's graph, with its gradient computed at once.

    Args:
        form: The form of the loss.
        logits: In any precision.
        target: Class indices, `(N)`, all of them valid and none ignored.

    Returns:
        `None` if torch has to trace the loss, or no gradient is needed.
    """
    needed = logits.requires_grad and torch.is_grad_enabled() and logits.device.type == "cpu"
    if not (needed and is_plain(logits, target)):
        return None
    normalized = form.sharpening is not None and form.sharpening.normalize
    # Masked classes and overflowing squares are left to `sharpen`.
    if normalized and not torch.linalg.vector_norm(logits.detach()).item() < math.inf:
        return None
    return _Mean.apply(logits, target, form)  # pyright: ignore


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, form):
        result = _of_form(form, working_precision(logits), target.unsqueeze(1), None)
        ctx.save_for_backward(logits, target, result.gradient)
        ctx.form = form
        return result.mean

    @staticmethod
    def backward(ctx, *gradients):
        logits, target, gradient = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return (gradient * gradients[0]).to(logits.dtype), None, None
        base, how = ctx.form  # a second derivative has to be traced
        if how is None:
            values = base.pointwise(of_label(working_precision(logits).log_softmax(dim=1), target))
        else:
            *sharpening, weight = how
            label, norm = label_and_norm(logits, target, *sharpening)
            values = base.pointwise(label) + weight * norm
        return *torch.autograd.grad(values.mean(), logits, gradients, create_graph=True), None, None


def _of_form(
    form: LabelForm, logits: Tensor, target: Tensor, weight: Tensor | None
) -> MeanAndGradient:
    """As `mean_and_gradient`, with the target `(N, 1)`."""
    base, how = form
    share: Tensor | float = 1 / target.shape[0]
    if weight is not None:
        weight = weight.to(logits.dtype).unsqueeze(1)
        share = weight * share
    sharp, length, norm = logits, how.temperature if how else 1.0, None
    if how is not None:
        if how.normalize:
            norms = torch.linalg.vector_norm(logits, dim=1, keepdim=True)
            # 1 in place of 0, as in `sharpen`.
            length = torch.threshold_(norms, 0, 1).mul_(how.temperature)
        sharp = logits / length
    log_probabilities = torch.log_softmax(sharp, dim=1)
    values, slope = base.value_and_slope(log_probabilities.gather(1, target))
    slope = slope * share
    if how is None:
        gradient = log_probabilities.exp().mul_(-slope).scatter_add_(1, target, slope)
    else:
        powers = (log_probabilities * how.p).exp_()  # where they have a gradient
        if how.clamp is None:
            norm = powers.sum(dim=1, keepdim=True)
        else:
            below = log_probabilities < math.log(how.clamp)
            norm = powers.masked_fill(below, how.clamp**how.p).sum(dim=1, keepdim=True)
            powers.masked_fill_(below, 0)
        values = torch.add(values, norm, alpha=how.weight)
        gradient = powers * (how.weight * share * how.p)
        gradient.scatter_add_(1, target, slope)
        gradient = _through_log_softmax(gradient, log_probabilities, 1, log_probabilities.dtype)
        if how.normalize:
            along = (sharp * gradient).sum(dim=1, keepdim=True)
            gradient.addcmul_(sharp, along, value=-(how.temperature**2))
        gradient.div_(length)
    mean = (values if weight is None else values * weight).mean()
    return MeanAndGradient(mean, gradient, log_probabilities, norm)
