"""Sparse regularization on CUDA without the intermediate copies; `kernels` has the derivation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labelproof.losses.inputs import is_plain

kernels: Any
try:
    from labelproof.losses import kernels
except ImportError:  # Triton comes with CUDA builds of torch only
    kernels = None

__all__ = ["fits", "label_and_norm"]

_LARGEST_BLOCK = 8192


def fits(logits: Tensor, target: Tensor) -> bool:
    """Whether the kernels serve: a plain batch on CUDA in at most float32."""
    return (
        kernels is not None
        and logits.is_cuda
        and logits.dtype != torch.float64
        and is_plain(logits, target)
    )


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
    def forward(ctx, given, target, temperature, p, normalize, clamp):
        logits = given.contiguous()
        rows, classes = logits.shape
        # A row each: log u_y, R, the largest s, 1/(n tau), the part of R that has a gradient, the
        # sums of z^ u and of z^ u^p, 1/n, the logarithm of the sum of exp(s - largest).
        saved = torch.empty((9, rows), dtype=torch.float32, device=logits.device)
        block = min(1 << (classes - 1).bit_length(), _LARGEST_BLOCK)
        with torch.cuda.device(logits.device):
            kernels.forward[(rows,)](
                logits,
                target,
                temperature,
                saved,
                rows,
                classes,
                p,
                0.0 if clamp is None else clamp,
                NORMALIZE=normalize,
                CLAMP=clamp is not None,
                BLOCK=block,
                num_warps=_warps(block),
                enable_fp_fusion=False,  # the largest logit minus itself must be 0, not a rounding
            )
        ctx.save_for_backward(given, target, temperature, saved)
        ctx.settings = (p, normalize, clamp, block)
        return saved[0], saved[1]

    @staticmethod
    def backward(ctx, *gradients):
        given, target, temperature, saved = ctx.saved_tensors
        p, normalize, clamp, block = ctx.settings
        if torch.is_grad_enabled():  # a gradient of the gradient is asked for
            return _differentiable(given, target, temperature, p, normalize, clamp, gradients)
        logits = given.contiguous()
        rows, classes = logits.shape
        gradient = torch.empty_like(logits)
        with torch.cuda.device(logits.device):
            kernels.backward[(rows,)](
                logits,
                target,
                saved,
                gradients[0].float().contiguous(),
                gradients[1].float().contiguous(),
                gradient,
                rows,
                classes,
                p,
                0.0 if clamp is None else clamp,
                NORMALIZE=normalize,
                CLAMP=clamp is not None,
                BLOCK=block,
                num_warps=_warps(block),
                enable_fp_fusion=False,  # the largest logit minus itself must be 0, not a rounding
            )
        return gradient, None, None, None, None, None


def _differentiable(logits, target, temperature, p, normalize, clamp, gradients):
    from labelproof.losses.base import of_label
    from labelproof.losses.sparse import lp_norm, sharpen

    with torch.enable_grad():
        sharp = sharpen(logits.float(), temperature=temperature.float(), normalize=normalize)
        log_probabilities = torch.log_softmax(sharp, dim=1)
        results = of_label(log_probabilities, target), lp_norm(log_probabilities, p=p, clamp=clamp)
        (gradient,) = torch.autograd.grad(results, logits, gradients, create_graph=True)
    return gradient, None, None, None, None, None


def _warps(block: int) -> int:
    return 1 if block <= 128 else 4 if block <= 2048 else 16
