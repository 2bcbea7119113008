"""The symmetric condition, the outputs on which every loss meets it, and the distance to them."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labelproof.losses import Loss
from labelproof.losses.penalty import SPARSE
from labelproof.ranges import within
from labelproof.theory.distributions import label_values

__all__ = ["confidence_epsilon", "permutation_distance", "permutation_set", "symmetry_gap"]

LARGEST_SET = 500_000
"""Most rows that `permutation_set` makes; nine different numbers have 362,880 permutations."""


def symmetry_gap(loss: Loss, outputs: Tensor) -> Tensor:
    r"""How far a loss is from the symmetric condition, $\max_u S(u) - \min_u S(u)$.

    It is 0 exactly where the sum over all labels is the same for every output given. Where a sum is
    infinite, as that of cross entropy is at a one-hot output, no constant exists: the gap is `inf`.

    Args:
        loss: Any loss of this package.
        outputs: Probabilities, `(..., k)`; the gap is over all of them together.

    Returns:
        A scalar.

    Example:
        >>> from labelproof import CrossEntropy, MeanAbsoluteError
        >>> outputs = torch.tensor([[0.5, 0.3, 0.2], [0.8, 0.1, 0.1]], dtype=torch.float64)
        >>> round(float(symmetry_gap(MeanAbsoluteError(), outputs)), 6)
        0.0
        >>> round(float(symmetry_gap(CrossEntropy(), outputs)), 6)
        1.321756

    Reference:
        The symmetric condition, section 2.1.
    """
    sums = label_values(loss, outputs).sum(dim=-1)
    return sums.max() - sums.min() if bool(sums.isfinite().all()) else sums.new_tensor(math.inf)


def permutation_set(vector: Tensor) -> Tensor:
    r"""All distinct permutations of a vector, $\mathcal P_v$.

    On them $S(u) = S(v)$ for every loss of the form $\ell_1(u_i) + \sum_{j \ne i} \ell_2(u_j)$:
    whatever the loss, restricting the outputs makes it symmetric.

    Args:
        vector: Any numbers, `(k)`.

    Returns:
        `(M, k)`, largest numbers first; `M` is $k!$ where all differ, $k$ for a one-hot vector.

    Example:
        >>> permutation_set(torch.tensor([0.5, 0.5, 0.0]))
        tensor([[0.5000, 0.5000, 0.0000],
                [0.5000, 0.0000, 0.5000],
                [0.0000, 0.5000, 0.5000]])

    Reference:
        Definition 1 and lemma 1, section 2.2.
    """
    if vector.ndim != 1 or vector.numel() == 0:
        raise ValueError(f"vector: expected shape (k), got {tuple(vector.shape)}")
    values, counts = vector.unique(return_counts=True)
    values, counts = values.flip(0), counts.flip(0)
    # Logarithms, since 171! is past the floats.
    log_size = math.lgamma(len(vector) + 1) - sum(math.lgamma(m + 1) for m in counts.tolist())
    if log_size > math.log(LARGEST_SET):
        raise ValueError(
            f"vector: expected at most {LARGEST_SET:,} distinct permutations, got {len(vector)} "
            f"numbers with about 1e{log_size / math.log(10):.0f}"
        )
    # Every prefix grows by each number that it has not used up, so no row is ever made twice.
    rows, left = values.new_empty(1, 0), counts.unsqueeze(0)
    for _ in range(len(vector)):
        parent, choice = left.nonzero(as_tuple=True)
        rows = torch.cat([rows[parent], values[choice].unsqueeze(1)], dim=1)
        left = left[parent] - F.one_hot(choice, len(values))
    return rows


def permutation_distance(outputs: Tensor, *, vector: Tensor | None = None) -> Tensor:
    r"""Distance of each output to the permutations of a vector, $\min_{w \in P_v} \|u - w\|_2$.

    The nearest permutation is the one in the output's own order (rearrangement inequality), so
    sorting both finds it among the $k!$.

    Args:
        outputs: `(..., k)`.
        vector: `(k)`; one-hot unless given.

    Returns:
        One value per output, `(...)`.

    Example:
        >>> permutation_distance(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]))
        tensor([0.0000, 0.7071])

    Reference:
        The relaxed hypothesis class of theorem 3, section 2.2.
    """
    if vector is None:
        vector = F.one_hot(torch.tensor(0), outputs.shape[-1])
    if vector.shape != outputs.shape[-1:]:
        raise ValueError(
            f"vector: expected shape {tuple(outputs.shape[-1:])} as the outputs' last axis, got "
            f"{tuple(vector.shape)}"
        )
    nearest = vector.to(outputs).sort(descending=True).values
    ordered = outputs.sort(dim=-1, descending=True).values
    return torch.linalg.vector_norm(ordered - nearest, dim=-1)


def confidence_epsilon(confidence: float = SPARSE) -> float:
    r"""How far from one-hot an output can be when its largest probability is at least $m$.

    It is $\sqrt 2 (1 - m)$, reached when one other class has all the rest.

    Args:
        confidence: $m$ in [0.5, 1]; what counts as one-hot in the sparse rate unless given.

    Returns:
        $\varepsilon$.

    Example:
        >>> round(confidence_epsilon(), 6)
        0.014142

    Reference:
        The sparse rate of figure 3, section 3.1.
    """
    return math.sqrt(2) * (1 - within("confidence", confidence, 0.5, 1))
