r"""Other vectors than one-hot for the output to be drawn to: the paper's future work.

Any loss is robust when the outputs are permutations of one fixed vector $v$, one-hot or not
(Theorem 1). Match the sorted output to the sorted $v$ and write $w = u_\downarrow - v_\downarrow
+ e_1$. The entries of $w$ sum to 1, so $\sum_i |w_i|^p \ge 1$ for $p \le 1$ and, for $p < 1$, it is
1 exactly where $u$ is a permutation of $v$. For a one-hot $v$ this is $\|u\|_p^p$ itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labelproof.ranges import within

__all__ = [
    "check_vector",
    "permutation_penalty",
    "shift_penalty",
    "smoothing_values",
    "smoothing_vector",
    "write_vector",
]

CUSP = 1e-3
"""Below this distance |w| ** p is rounded off: its slope at 0 is infinite and never settles."""


def smoothing_vector(
    num_classes: int,
    smoothing: float,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Tensor:
    """A peak with the share `smoothing` spread evenly over the other classes.

    >>> smoothing_vector(5, 0.2)
    tensor([0.8000, 0.0500, 0.0500, 0.0500, 0.0500])
    """
    return _spread(num_classes, within("smoothing", smoothing, 0, 1), dtype, device)


def smoothing_values(outputs: Tensor, smoothing: float) -> Tensor:
    """As `smoothing_vector`, for the outputs `(N, C, ...)` and of a share that was checked before.

    Made where it is used: a copy from the host cannot be recorded in a CUDA graph.
    """
    return _spread(outputs.shape[1], smoothing, outputs.dtype, outputs.device)


def _spread(
    num_classes: int, smoothing: float, dtype: torch.dtype, device: torch.device | str
) -> Tensor:
    if num_classes < 2:
        raise ValueError(f"num_classes: expected at least 2, got {num_classes}")
    # Without putting a number of the host's in a place: that cannot be recorded in a CUDA graph.
    peak = torch.full((1,), 1 - smoothing, dtype=dtype, device=device)
    others = torch.full((1,), smoothing / (num_classes - 1), dtype=dtype, device=device)
    return torch.cat([peak, others.expand(num_classes - 1)])


def permutation_penalty(
    probabilities: Tensor, *, p: float, vector: Tensor | float, cusp: float = CUSP
) -> Tensor:
    r"""Penalty that is smallest where the output is a permutation of a fixed vector.

    Args:
        probabilities: Network outputs $u$, `(N, C, ...)`.
        p: Exponent in (0, 1].
        vector: The fixed vector $v$, `(C)`, or a share for `smoothing_vector`.
        cusp: Distance below which $|w|^p$ is rounded off, as $(w^2 + \epsilon^2)^{p/2}$. With 0 it
            is not, and the gradient at an exact match is not a number.

    Returns:
        One value per example.

    Example:
        >>> outputs = torch.tensor([[0.1, 0.8, 0.1], [0.4, 0.3, 0.3]])
        >>> permutation_penalty(outputs, p=0.5, vector=0.2, cusp=0)
        tensor([1.0000, 1.6690])
    """
    p, cusp = within("p", p, 0, 1, open_low=True), within("cusp", cusp, 0)
    if not isinstance(vector, Tensor):
        vector = smoothing_values(probabilities, within("vector", vector, 0, 1))
    return shift_penalty(probabilities, vector, p=p, cusp=cusp)


def shift_penalty(probabilities: Tensor, vector: Tensor, *, p: float, cusp: float = CUSP) -> Tensor:
    """As `permutation_penalty`, of numbers that were checked before."""
    num_classes = probabilities.shape[1]
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


def write_vector(smoothing: float, vector: Tensor | None) -> str:
    """What `check_vector` gave, for printing; of a long vector its first numbers.

    >>> write_vector(0.0, None), write_vector(0.2, None), write_vector(0.0, torch.ones(12) / 12)
    ('None', '0.2', '[0.0833, 0.0833, 0.0833, 0.0833, ...]')
    """
    if vector is None:
        return f"{smoothing:g}" if smoothing else "None"
    numbers = [f"{number:.3g}" for number in vector.tolist()]
    return f"[{', '.join([*numbers[:4], '...'] if len(numbers) > 8 else numbers)}]"
