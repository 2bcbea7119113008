r"""The gradient of the losses that see one label's probability, written down instead of traced.

`kernels` has the derivation. On a CPU and a batch of a table's rows every small operation costs
some microseconds, and as much again in the backward pass; here both passes are a handful each.

With $c$ the gradient of $\log u_y$ and $r$ that of $R = \|u\|_p^p$, that of $\log u$ is
$g = r p\,u^p + c\,\delta_y$, that of $s = z / (n \tau)$ is $G = g - u \sum_i g_i$, and that of the
logits, through the norm, $(G - \tau^2 s \sum_i s_i G_i) / (n \tau)$.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from labelproof.losses.inputs import is_plain
from labelproof.losses.sharpening import lp_norm, overflow_scale, sharpen

__all__ = ["Sharpened", "fits", "label_and_norm", "logits_gradient", "sharpen_and_measure"]

# Torch's own, which has no name in Python; looked up once.
_through_log_softmax = torch.ops.aten._log_softmax_backward_data.default


class Sharpened(NamedTuple):
    """What the gradient of a batch's sharpened outputs is made of."""

    log_probabilities: Tensor
    r"""$\log u$, `(N, C)`."""
    powers: Tensor
    r"""$u^p$ where it has a gradient, else 0, `(N, C)`."""
    logits: Tensor
    """$s$, 0 for a class that is masked, `(N, C)`."""
    length: Tensor | float
    r"""$n \tau$, `(N, 1)`, or a number where the logits are not normalised."""
    masked: Tensor | None
    """Which logits are minus infinity, `(N, C)`, where the norm leaves some out."""


def fits(logits: Tensor, target: Tensor) -> bool:
    """Whether these serve: a plain batch on the CPU."""
    return logits.device.type == "cpu" and is_plain(logits, target)


def sharpen_and_measure(
    logits: Tensor,
    target: Tensor,
    *,
    temperature: float,
    p: float,
    normalize: bool,
    clamp: float | None,
) -> tuple[Tensor, Tensor, Sharpened]:
    r"""The label's log-probability and the l_p norm of each sharpened output; keeps no graph.

    Args:
        logits: `(N, C)`, float32 or float64.
        target: Class indices, `(N)`, all of them valid.
        temperature: $\tau$.
        p: Exponent in (0, 1].
        normalize: Whether the logits are divided by their l2 norm first.
        clamp: Floor of the probabilities in the norm, or `None`.

    Returns:
        $\log u_y$ and $\|u\|_p^p$, `(N, 1)` each, and what their gradient is made of.

    Example:
        >>> how = {"temperature": 0.5, "p": 0.5, "normalize": True, "clamp": None}
        >>> sharpen_and_measure(torch.zeros(1, 2), torch.tensor([1]), **how)[:2]
        (tensor([[-0.6931]]), tensor([[1.4142]]))
    """
    length: Tensor | float = temperature
    masked: Tensor | None = None
    scale: Tensor | None = None
    if normalize:
        norms = torch.linalg.vector_norm(logits, dim=1, keepdim=True)
        if not norms.max().item() < math.inf:  # infinite, or NaN beside what may be infinite
            masked = logits == -math.inf
            kept = logits.masked_fill(masked, 0)
            norms = torch.linalg.vector_norm(kept, dim=1, keepdim=True)
            if norms.isinf().any():
                scale = overflow_scale(kept, norms)
                norms = torch.linalg.vector_norm(kept.div_(scale), dim=1, keepdim=True)
        # 1 in the place of 0, as `sharpen` has it.
        length = torch.threshold_(norms, 0, 1).mul_(temperature)
    sharp = (logits if scale is None else logits / scale) / length
    if scale is not None:
        length = length * scale
    log_probabilities = torch.log_softmax(sharp, dim=1)
    if masked is not None:
        sharp.masked_fill_(masked, 0)  # as a factor of a gradient of 0 it would make a NaN
    powers = (log_probabilities * p).exp_()
    if clamp is None:
        norm = powers.sum(dim=1, keepdim=True)
    else:
        below = log_probabilities < math.log(clamp)
        norm = powers.masked_fill(below, clamp**p).sum(dim=1, keepdim=True)
        powers.masked_fill_(below, 0)
    label = log_probabilities.gather(1, target.unsqueeze(1))
    return label, norm, Sharpened(log_probabilities, powers, sharp, length, masked)


def logits_gradient(
    sharpened: Sharpened,
    target: Tensor,
    label_gradient: Tensor,
    norm_gradient: Tensor | float,
    *,
    temperature: float,
    p: float,
    normalize: bool,
) -> Tensor:
    """The gradient of the logits, from those of `label` and `norm`.

    Args:
        sharpened: What `sharpen_and_measure` gave.
        target: Class indices, `(N)`.
        label_gradient: `(N, 1)`.
        norm_gradient: `(N, 1)` or a number.
        temperature: As it was given there, as are the exponent and whether to normalise.
        p: Exponent.
        normalize: Whether the logits were divided by their norm.
    """
    likely, powers, sharp, length, masked = sharpened
    gradient = powers * (norm_gradient * p)
    gradient.scatter_add_(1, target.unsqueeze(1), label_gradient)
    gradient = _through_log_softmax(gradient, likely, 1, likely.dtype)
    if normalize:
        along = (sharp * gradient).sum(dim=1, keepdim=True)
        gradient.addcmul_(sharp, along, value=-(temperature**2))
    if masked is not None:
        gradient.masked_fill_(masked, 0)  # of a label that is masked, too
    return gradient.div_(length)


def label_and_norm(
    logits: Tensor,
    target: Tensor,
    temperature: float,
    *,
    p: float,
    normalize: bool,
    clamp: float | None,
) -> tuple[Tensor, Tensor]:
    r"""As `fused.label_and_norm`, on the CPU: $\log u_y$ and $\|u\|_p^p$ with their gradient."""
    return _LabelAndNorm.apply(logits, target, temperature, p, normalize, clamp)  # pyright: ignore


class _LabelAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, temperature, p, normalize, clamp):
        how = {"temperature": temperature, "p": p, "normalize": normalize}
        label, norm, sharpened = sharpen_and_measure(logits, target, **how, clamp=clamp)
        if not normalize:  # a number cannot be saved as a tensor can
            sharpened = sharpened._replace(length=None)
        ctx.save_for_backward(logits, target, *sharpened)
        ctx.how, ctx.clamp = how, clamp
        return label.squeeze(1), norm.squeeze(1)

    @staticmethod
    def backward(ctx, *gradients):
        logits, target, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of the gradient is asked for
            gradient = _differentiable(logits, target, gradients, clamp=ctx.clamp, **ctx.how)
        else:
            sharpened = Sharpened(*kept)
            if sharpened.length is None:
                sharpened = sharpened._replace(length=ctx.how["temperature"])
            of_label, of_norm = (each.unsqueeze(1) for each in gradients)
            gradient = logits_gradient(sharpened, target, of_label, of_norm, **ctx.how)
        return gradient, None, None, None, None, None


def _differentiable(logits, target, gradients, *, temperature, p, normalize, clamp):
    from labelproof.losses.base import of_label

    with torch.enable_grad():
        sharp = sharpen(logits, temperature=temperature, normalize=normalize)
        log_probabilities = torch.log_softmax(sharp, dim=1)
        results = of_label(log_probabilities, target), lp_norm(log_probabilities, p=p, clamp=clamp)
        return torch.autograd.grad(results, logits, gradients, create_graph=True)[0]
