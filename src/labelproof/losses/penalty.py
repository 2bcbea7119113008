r"""The sharpened output, and the penalties that push it towards one-hot or another fixed vector."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labelproof.losses.batch import class_axis, may_read, working_precision
from labelproof.losses.numerics import clamp_log_probability, of_label
from labelproof.ranges import within

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
    # Classes may be masked: three more passes, which few batches need.
    masked = logits == -math.inf
    # Also for the gradient, in which 0 * inf is NaN.
    kept = torch.where(masked, 0, logits)
    norm = torch.linalg.vector_norm(kept, dim=class_axis(kept), keepdim=True)
    return torch.where(masked, -math.inf, kept / (_divisor(norm) * temperature))


def _divisor(norm: Tensor) -> Tensor:
    # A network with a zero-initialised head starts at z = 0, where z / |z| has no useful
    # gradient; dividing by 1 there gives it one that starts training.
    return torch.where(norm > 0, norm, 1)


def lp_norm(log_probabilities: Tensor, *, p: float, clamp: float | None = None) -> Tensor:
    r"""The penalty $\|u\|_p^p = \sum_i u_i^p$ of each example.

    On the simplex it is at least 1 and, for $p < 1$, 1 for one-hot outputs alone. It is computed as
    $\sum_i \exp(p \log u_i)$, whose gradient is finite where that of $u^p$ is not.

    Args:
        log_probabilities: $\log u$, `(N, C)`, `(N, C, d1, ...)` or `(C)`.
        p: Exponent in (0, 1].
        clamp: Floor of $u$, with no gradient below it; off by default.

    Returns:
        One value per example.

    Example:
        >>> lp_norm(torch.tensor([[0.5, 0.5]]).log(), p=0.5)
        tensor([1.4142])
    """
    # The exponent is not checked: in a compiled loss it may be symbolic.
    floored = clamp_log_probability(log_probabilities, clamp)
    return (p * floored).exp().sum(dim=class_axis(floored))


def label_and_norm(
    logits: Tensor,
    target: Tensor,
    temperature: float | Tensor,
    p: float,
    normalize: bool,
    clamp: float | None,
) -> tuple[Tensor, Tensor]:
    r"""$\log u_y$ and $\|u\|_p^p$ of each sharpened output, as `kernels.label_and_norm`, traced."""
    sharp = sharpen(working_precision(logits), temperature=temperature, normalize=normalize)
    log_probabilities = torch.log_softmax(sharp, dim=1)
    norm = lp_norm(log_probabilities, p=p, clamp=clamp)
    return of_label(log_probabilities, target), norm


def sparse_rate(log_probabilities: Tensor) -> Tensor:
    """Whether each output counts as one-hot (largest probability above 0.99), as 0 or 1.

    >>> sparse_rate(torch.tensor([[0.995, 0.005], [0.5, 0.5]]).log())
    tensor([1., 0.])
    """
    largest = log_probabilities.detach().amax(dim=class_axis(log_probabilities))
    return (largest.exp() > SPARSE).to(log_probabilities.dtype)


CUSP = 1e-3
"""Below this distance |w| ** p is smoothed: its infinite slope at 0 would prevent convergence."""


def smoothing_vector(
    num_classes: int,
    smoothing: float,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Tensor:
    """A peak with the share `smoothing`, in [0, 1], spread evenly over the other classes.

    >>> smoothing_vector(5, 0.2)
    tensor([0.8000, 0.0500, 0.0500, 0.0500, 0.0500])
    """
    if num_classes < 2:
        raise ValueError(f"num_classes: expected at least 2, got {num_classes}")
    # Not by assigning a number to an element: a copy from the host fails in a CUDA graph.
    peak = torch.full((1,), 1 - smoothing, dtype=dtype, device=device)
    others = torch.full((1,), smoothing / (num_classes - 1), dtype=dtype, device=device)
    return torch.cat([peak, others.expand(num_classes - 1)])


def permutation_penalty(
    probabilities: Tensor, *, p: float, vector: Tensor | float, cusp: float = CUSP
) -> Tensor:
    r"""Penalty that is smallest if the output is a permutation of a fixed vector.

    Args:
        probabilities: Network outputs $u$, `(N, C, ...)`.
        p: Exponent in (0, 1].
        vector: The fixed vector $v$, `(C)`, or a share for `smoothing_vector`.
        cusp: Distance below which $|w|^p$ is smoothed, as $(w^2 + \epsilon^2)^{p/2}$. With 0 it is
            not, and the gradient at an exact match is NaN.

    Returns:
        One value per example.

    Example:
        >>> outputs = torch.tensor([[0.1, 0.8, 0.1], [0.4, 0.3, 0.3]])
        >>> permutation_penalty(outputs, p=0.5, vector=0.2, cusp=0)
        tensor([1.0000, 1.6690])
    """
    num_classes = probabilities.shape[1]
    if not isinstance(vector, Tensor):
        # Made where it is used: a copy from the host cannot be recorded in a CUDA graph.
        like = {"dtype": probabilities.dtype, "device": probabilities.device}
        vector = smoothing_vector(num_classes, vector, **like)
    if vector.shape[0] != num_classes:
        raise ValueError(
            f"vector: expected one number for each of {num_classes} classes, got {vector.shape[0]}"
        )
    shift = vector.to(probabilities).sort(descending=True).values
    shift = torch.cat([shift[:1] - 1, shift[1:]]).view(1, -1, *(1,) * (probabilities.ndim - 2))
    difference = probabilities.sort(dim=1, descending=True).values - shift
    magnitude = difference.abs() if cusp == 0 else (difference.square() + cusp**2).sqrt()
    return (magnitude**p).sum(dim=1)


def check_vector(vector: Tensor | float | None) -> tuple[float, Tensor | None]:
    """Split the argument into a smoothing share and a tensor, and refuse what is neither."""
    if vector is None:
        return 0.0, None
    if not isinstance(vector, Tensor):
        return within("vector", vector, 0, 1), None
    # "not <=" rather than ">", which a NaN would pass.
    if vector.ndim != 1 or bool((vector < 0).any()) or not abs(float(vector.sum()) - 1) <= 1e-5:
        raise ValueError(
            "vector: expected one number of at least 0 per class, adding up to 1, got shape "
            f"{tuple(vector.shape)} with sum {float(vector.sum()):g}"
        )
    return 0.0, vector
