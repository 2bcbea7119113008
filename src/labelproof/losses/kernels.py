# pyright: reportMissingImports=false, reportIndexIssue=false
r"""Sparse regularization on CUDA in two kernels, for losses of the label's probability alone.

Such a loss needs two numbers of each example: $\log u_y$ and $\|u\|_p^p$. One kernel reads the
logits and gives both; one reads them again and writes their gradient. Torch's own operations would
pass over the logits some twenty times and keep five copies.

With $n = \|z\|$ (or 1), $s = z / (n \tau)$, $u = \mathrm{softmax}(s)$, $R = \sum_i u_i^p$, and the
incoming gradients $g$ of $\log u_y$ and $r$ of $R$, the gradient of $s$ is

$$ G_j = g (\delta_{jy} - u_j) + r p (u_j^p - u_j R), $$

and that of the logits, through the norm, $(G_j - \hat z_j D) / (n \tau)$ with $\hat z = z / n$ and
$D = \sum_i \hat z_i G_i$. The sums in $D$ do not depend on $g$ and $r$, so the first kernel
computes them, and the second needs one pass. Under a clamp $c$, $R$ counts $\max(u, c)^p$ and its
gradient comes from the classes with $u_i \ge c$ alone.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from labelproof.losses import penalty
from labelproof.losses.batch import is_plain

_LARGEST_BLOCK = 8192


def fits(logits: Tensor, target: Tensor) -> bool:
    """Whether the kernels apply: a plain batch on CUDA in at most float32."""
    return logits.is_cuda and logits.dtype != torch.float64 and is_plain(logits, target)


def label_and_norm(
    logits: Tensor,
    target: Tensor,
    temperature: Tensor,
    *,
    p: float,
    normalize: bool,
    clamp: float | None,
) -> tuple[Tensor, Tensor]:
    r"""The label's log-probability and the l_p norm of each sharpened output.

    Args:
        logits: `(N, C)` on CUDA, at most float32.
        target: Class indices, `(N)`, all of them valid.
        temperature: A scalar tensor on the same device.
        p: Exponent in (0, 1].
        normalize: Whether the logits are divided by their l2 norm first.
        clamp: Floor of the probabilities in the norm, or `None`.

    Returns:
        $\log u_y$ and $\|u\|_p^p$, float32, `(N)` each.
    """
    return _LabelAndNorm.apply(logits, target, temperature, p, normalize, clamp)  # pyright: ignore


class _LabelAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, temperature, p, normalize, clamp):
        # A row each: log u_y, R, the largest s, 1/(n tau), the part of R that has a gradient, the
        # sums of z^ u and of z^ u^p, 1/n, the logarithm of the sum of exp(s - largest).
        saved = torch.empty((9, len(logits)), dtype=torch.float32, device=logits.device)
        ctx.how = {"p": p, "normalize": normalize, "clamp": clamp}
        _launch(forward, logits.contiguous(), target, temperature, saved, **ctx.how)
        ctx.save_for_backward(logits, target, temperature, saved)
        return saved[0], saved[1]

    @staticmethod
    def backward(ctx, *gradients):
        logits, target, temperature, saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative has to be traced
            traced = penalty.label_and_norm(logits, target, temperature, **ctx.how)
            (gradient,) = torch.autograd.grad(traced, logits, gradients, create_graph=True)
            return gradient, None, None, None, None, None
        kept = logits.contiguous()
        gradient = torch.empty_like(kept)
        incoming = (each.float().contiguous() for each in gradients)
        _launch(backward, kept, target, saved, *incoming, gradient, **ctx.how)
        return gradient, None, None, None, None, None


def _launch(
    kernel: Any, logits: Tensor, *tensors: Tensor, p: float, normalize: bool, clamp: float | None
) -> None:
    rows, classes = logits.shape
    block = min(1 << (classes - 1).bit_length(), _LARGEST_BLOCK)
    with torch.cuda.device(logits.device):
        kernel[(rows,)](
            logits,
            *tensors,
            rows,
            classes,
            p,
            0.0 if clamp is None else clamp,
            NORMALIZE=normalize,
            CLAMP=clamp is not None,
            BLOCK=block,
            num_warps=1 if block <= 128 else 4 if block <= 2048 else 16,
            enable_fp_fusion=False,  # the largest logit minus itself must be exactly 0
        )


@triton.jit
def forward(
    logits,
    target,
    temperature,
    saved,
    rows,
    classes,
    p,
    clamp,
    NORMALIZE: tl.constexpr,  # noqa: N803 (Triton's custom for compile-time arguments)
    CLAMP: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
):
    """One row per program: both results, and what the gradient needs of the row."""
    row = tl.program_id(0)
    start = logits + row.to(tl.int64) * classes
    columns = tl.arange(0, BLOCK)
    norm = 1.0
    if NORMALIZE:
        squares = tl.zeros((BLOCK,), tl.float32)
        for first in range(0, classes, BLOCK):
            here = columns + first
            z = tl.load(start + here, mask=here < classes, other=0.0).to(tl.float32)
            z = tl.where(z == float("-inf"), 0.0, z)  # a masked class is not part of the norm
            squares += z * z
        norm = tl.sqrt(tl.sum(squares))
        norm = tl.where(norm > 0, norm, 1.0)
    scale = 1.0 / (norm * tl.load(temperature))
    # Four sums at once, rescaled when a larger logit turns up: of exp(s), exp(p s), and of both
    # weighted with the unit logits.
    # Finite, since -inf would give exp(-inf + inf) for a block of masked classes.
    largest = -3.4e38
    total = 0.0
    powers = 0.0
    along = 0.0
    along_powers = 0.0
    for first in range(0, classes, BLOCK):
        here = columns + first
        inside = here < classes
        z = tl.load(start + here, mask=inside, other=0.0).to(tl.float32)
        s = tl.where(inside, z * scale, float("-inf"))
        # 0 for a masked class: its weight is 0, and 0 * inf is NaN.
        unit = tl.where(z == float("-inf"), 0.0, z) / norm
        higher = tl.maximum(largest, tl.max(s))
        shrink = tl.exp(largest - higher)
        shrink_powers = tl.exp(p * (largest - higher))
        e = tl.exp(s - higher)
        e_powers = tl.exp(p * (s - higher))
        total = total * shrink + tl.sum(e)
        powers = powers * shrink_powers + tl.sum(e_powers)
        along = along * shrink + tl.sum(unit * e)
        along_powers = along_powers * shrink_powers + tl.sum(unit * e_powers)
        largest = higher
    # Kept apart from the largest logit: their sum would round away digits of log u.
    log_sum = tl.log(total)
    lift = tl.exp(-p * log_sum)
    lp = powers * lift
    counted = lp
    along_powers = along_powers * lift
    if CLAMP:
        floor = tl.exp(p * tl.log(clamp))
        lp = 0.0
        counted = 0.0
        along_powers = 0.0
        for first in range(0, classes, BLOCK):
            here = columns + first
            inside = here < classes
            z = tl.load(start + here, mask=inside, other=0.0).to(tl.float32)
            log_u = (z * scale - largest) - log_sum
            power = tl.exp(p * log_u)
            above = inside & (log_u >= tl.log(clamp))
            lp += tl.sum(tl.where(above, power, tl.where(inside, floor, 0.0)))
            counted += tl.sum(tl.where(above, power, 0.0))
            along_powers += tl.sum(tl.where(above, z / norm * power, 0.0))
    own = tl.load(start + tl.load(target + row)).to(tl.float32)
    label = (own * scale - largest) - log_sum
    tl.store(saved + row, label)
    tl.store(saved + rows + row, lp)
    tl.store(saved + 2 * rows + row, largest)
    tl.store(saved + 3 * rows + row, scale)
    tl.store(saved + 4 * rows + row, counted)
    tl.store(saved + 5 * rows + row, along / total)
    tl.store(saved + 6 * rows + row, along_powers)
    tl.store(saved + 7 * rows + row, 1.0 / norm)
    tl.store(saved + 8 * rows + row, log_sum)


@triton.jit
def backward(
    logits,
    target,
    saved,
    label_gradient,
    norm_gradient,
    gradient,
    rows,
    classes,
    p,
    clamp,
    NORMALIZE: tl.constexpr,  # noqa: N803
    CLAMP: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
):
    """One row per program: the gradient of its logits."""
    row = tl.program_id(0)
    start = logits + row.to(tl.int64) * classes
    label = tl.load(target + row)
    g = tl.load(label_gradient + row)
    r = tl.load(norm_gradient + row) * p
    largest = tl.load(saved + 2 * rows + row)
    log_sum = tl.load(saved + 8 * rows + row)
    scale = tl.load(saved + 3 * rows + row)
    counted = tl.load(saved + 4 * rows + row)
    along = tl.load(saved + 5 * rows + row)
    along_powers = tl.load(saved + 6 * rows + row)
    inverse_norm = 0.0
    d = 0.0
    if NORMALIZE:
        inverse_norm = tl.load(saved + 7 * rows + row)
        unit_label = tl.load(start + label).to(tl.float32) * inverse_norm
        unit_label = tl.where(unit_label == float("-inf"), 0.0, unit_label)
        d = g * (unit_label - along) + r * (along_powers - counted * along)
    columns = tl.arange(0, BLOCK)
    for first in range(0, classes, BLOCK):
        here = columns + first
        inside = here < classes
        z = tl.load(start + here, mask=inside, other=0.0).to(tl.float32)
        log_u = (z * scale - largest) - log_sum
        u = tl.exp(log_u)
        power = tl.exp(p * log_u)
        if CLAMP:
            power = tl.where(log_u >= tl.log(clamp), power, 0.0)
        along_label = tl.where(here == label, g, 0.0)
        value = along_label - g * u + r * (power - u * counted)
        if NORMALIZE:
            value = tl.where(z == float("-inf"), 0.0, value - z * inverse_norm * d)
        value = value * scale
        place = gradient + row.to(tl.int64) * classes + here
        tl.store(place, value.to(gradient.dtype.element_ty), mask=inside)
