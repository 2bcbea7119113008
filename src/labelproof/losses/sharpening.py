r"""The sharpened output and what is measured of it: its l_p norm, and whether it is one-hot."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labelproof.losses.clamp import clamp_log_probability
from labelproof.losses.inputs import class_axis, may_read
from labelproof.ranges import within

__all__ = ["SPARSE", "lp_norm", "overflow_scale", "power_sum", "sharpen", "sparse_rate"]

SPARSE = 0.99
"""An output counts as one-hot when its largest probability is above this (the paper's figure 3)."""


def sharpen(logits: Tensor, *, temperature: float | Tensor, normalize: bool = True) -> Tensor:
    r"""Logits of the sharpened output, $\bar z / \tau$.

    Args:
        logits: `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        temperature: $\tau$; below 1 it sharpens.
        normalize: Divide each example's logits by their l2 norm first, so that the network cannot
            become sharp by scaling. An example whose logits are all zero is left as it is. A class
            that is masked with a logit of minus infinity does not count in the norm.

    Returns:
        Logits of the same shape, whose softmax is the sharpened output.

    Example:
        >>> sharpen(torch.tensor([[3.0, 4.0]]), temperature=0.5)
        tensor([[1.2000, 1.6000]])
    """
    if not isinstance(temperature, Tensor):
        temperature = within("temperature", temperature, 0, open_low=True)
    if not normalize:
        return logits / temperature
    norm = torch.linalg.vector_norm(logits, dim=class_axis(logits), keepdim=True)
    if may_read(norm) and math.isfinite(norm.detach().sum()):
        return logits / (_divisor(norm) * temperature)
    return _sharpen_unmasked(logits, temperature)


def _sharpen_unmasked(logits: Tensor, temperature: float | Tensor) -> Tensor:
    """As `sharpen`, where classes may be masked: three more passes that most batches do without."""
    masked = logits == -math.inf
    # Out of the way of the gradient too, in which 0 * inf is NaN.
    kept = torch.where(masked, 0, logits)
    norm = torch.linalg.vector_norm(kept, dim=class_axis(kept), keepdim=True)
    # Only where it can be seen to be needed: one pass more would be felt in compiled code.
    if may_read(norm) and bool(norm.isinf().any()):
        kept = kept / overflow_scale(kept, norm)
        norm = torch.linalg.vector_norm(kept, dim=class_axis(kept), keepdim=True)
    return torch.where(masked, -math.inf, kept / (_divisor(norm) * temperature))


def overflow_scale(logits: Tensor, norm: Tensor) -> Tensor:
    """What to divide each example's logits by before their norm is taken.

    It is 1 but where the squares are past the floats, in float32 from 1e19 on: there it is the
    largest magnitude, without which every direction would have an infinite norm and become 0.

    Args:
        logits: `(N, C, ...)` or `(C)`, none of them minus infinity.
        norm: Their norm, with an axis of 1 for the classes.

    >>> logits = torch.tensor([[3e20, 4e20], [3.0, 4.0]])
    >>> overflow_scale(logits, torch.tensor([[float("inf")], [5.0]]))
    tensor([[4.0000e+20],
            [1.0000e+00]])
    """
    logits, norm = logits.detach(), norm.detach()
    largest = logits.abs().amax(dim=class_axis(logits), keepdim=True)
    return torch.where(norm.isinf(), largest, 1)


def _divisor(norm: Tensor) -> Tensor:
    # A network with a zero-initialised head starts at z = 0, where z / |z| has no gradient that
    # means anything; dividing by 1 there gives it one that starts training.
    return torch.where(norm > 0, norm, 1)


def lp_norm(log_probabilities: Tensor, *, p: float, clamp: float | None = None) -> Tensor:
    r"""The penalty $\|u\|_p^p = \sum_i u_i^p$ of each example.

    On the simplex it is at least 1 and, for $p < 1$, 1 for one-hot outputs alone. It is computed as
    $\sum_i \exp(p \log u_i)$, whose gradient is finite where that of $u^p$ is not.

    Args:
        log_probabilities: $\log u$, `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        p: Exponent in (0, 1].
        clamp: Floor of $u$, with no gradient below it; off unless given.

    Returns:
        One value per example.

    Example:
        >>> lp_norm(torch.tensor([[0.5, 0.5]]).log(), p=0.5)
        tensor([1.4142])
    """
    return power_sum(log_probabilities, within("p", p, 0, 1, open_low=True), clamp)


def power_sum(log_probabilities: Tensor, p: float, clamp: float | None) -> Tensor:
    """As `lp_norm`, of an exponent that was checked before.

    A compiled loss comes here: the compiler may take the exponent for a number that is not known
    yet, so that the next loss need not be compiled anew, and such a number cannot be checked.
    """
    floored = clamp_log_probability(log_probabilities, clamp)
    return (p * floored).exp().sum(dim=class_axis(floored))


def sparse_rate(log_probabilities: Tensor) -> Tensor:
    """Whether each output counts as one-hot (largest probability above 0.99), as 0 or 1.

    >>> sparse_rate(torch.tensor([[0.995, 0.005], [0.5, 0.5]]).log())
    tensor([1., 0.])
    """
    largest = log_probabilities.detach().amax(dim=class_axis(log_probabilities))
    return (largest.exp() > SPARSE).to(log_probabilities.dtype)
