"""What pulls on the logits under sparse regularization, and a loss that is a case of it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from labelproof.losses import SymmetricCrossEntropy, sharpen
from labelproof.losses.batch import working_precision
from labelproof.losses.symmetric import LOG_ZERO
from labelproof.ranges import within
from labelproof.theory.distributions import admit_labels, admit_tensor

__all__ = ["GradientTerms", "as_symmetric_cross_entropy", "gradient_terms"]


class GradientTerms(NamedTuple):
    """What pulls on the logits of sparse-regularized cross entropy, `(N, k)` each."""

    fitting: Tensor
    """Towards the given label; away from it where `weight * p * u_y ** p` is above 1."""
    complementary: Tensor
    """Away from the other labels together, which raises the given one in passing."""


def gradient_terms(
    logits: Tensor, target: Tensor, *, weight: float, p: float, temperature: float = 1.0
) -> GradientTerms:
    r"""The two parts of the gradient of $-\log u_y + \lambda \|u\|_p^p$, $u = \sigma(z / \tau)$.

    With $\partial u_j / \partial z_i = u_j (\delta_{ij} - u_i) / \tau$ they are

    $$ -\frac{1 - \lambda p\, u_y^p}{\tau} (\delta_{iy} - u_i) \qquad\text{and}\qquad
       \frac{\lambda p}{\tau} \sum_{j \ne y} u_j^p (\delta_{ij} - u_i), $$

    where no power is negative: nothing overflows when a probability underflows.

    Args:
        logits: $z$, `(N, k)`.
        target: Class indices $y$, `(N)`.
        weight: $\lambda \ge 0$.
        p: Exponent of the norm in (0, 1].
        temperature: $\tau > 0$.

    Returns:
        Both terms, `(N, k)` each. They add up to the gradient of each example's own loss; that of a
        batch's mean is $1/N$ of it.

    Example:
        >>> logits, target = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([0])
        >>> terms = gradient_terms(logits, target, weight=5, p=0.1)
        >>> terms.fitting
        tensor([[-0.1741,  0.0468,  0.1273]])
        >>> terms.complementary
        tensor([[-0.5504,  0.3185,  0.2319]])

    Reference:
        Section 2.4.
    """
    weight, p = within("weight", weight, 0), within("p", p, 0, 1, open_low=True)
    temperature = within("temperature", temperature, 0, open_low=True)
    admit_tensor("logits", logits)
    if logits.ndim != 2 or not logits.shape[1]:
        raise ValueError(f"logits: expected shape (N, k), got {tuple(logits.shape)}")
    target = admit_labels(
        "target",
        target,
        shape=(logits.shape[0],),
        num_classes=logits.shape[1],
        rows=f"logits (N, k) of shape {tuple(logits.shape)}",
    )
    sharp = sharpen(working_precision(logits), temperature=temperature, normalize=False)
    log_u = torch.log_softmax(sharp, dim=1)
    given = F.one_hot(target, logits.shape[1]).bool()
    u, powers = log_u.exp(), (p * log_u).exp()
    own = torch.where(given, powers, 0).sum(dim=1, keepdim=True)
    others = torch.where(given, 0, powers)
    # expm1 keeps the digits of 1 - u_y that a subtraction loses once the label is learnt.
    towards = torch.where(given, -torch.expm1(log_u), -u)
    fitting = (weight * p * own - 1) / temperature * towards
    complementary = weight * p / temperature * (others - u * others.sum(dim=1, keepdim=True))
    return GradientTerms(fitting, complementary)


def as_symmetric_cross_entropy(
    *, alpha: float, weight: float, log_zero: float = LOG_ZERO
) -> SymmetricCrossEntropy:
    r"""Symmetric cross entropy as sparse regularization with $p = 1$.

    For $L(u, y) = -\alpha \log u_y - \lambda u_y$ and $\|u\|_1 = 1$,

    $$ L(u, y) + \lambda \|u\|_1 = -\alpha \log u_y + \lambda (1 - u_y)
       = \alpha\,\mathrm{CE} + \frac{\lambda}{-A}\,\mathrm{RCE}, $$

    with nothing left over: $\beta = -\lambda / A$, where $A$ stands for $\log 0$.

    Args:
        alpha: Weight of cross entropy.
        weight: $\lambda \ge 0$, of the norm and of the linear part alike.
        log_zero: $A < 0$.

    Returns:
        The loss with that $\beta$.

    Example:
        >>> from labelproof import lp_norm
        >>> u = torch.tensor([[0.7, 0.2, 0.1]])
        >>> -0.1 * u[:, 0].log() - 6 * u[:, 0] + 6 * lp_norm(u.log(), p=1)
        tensor([1.8357])
        >>> as_symmetric_cross_entropy(alpha=0.1, weight=6)(u.log(), torch.tensor([0]))
        tensor(1.8357)

    Reference:
        Section 2.3.
    """
    beta = within("weight", weight, 0) / within("-log_zero", -log_zero, 0, open_low=True)
    return SymmetricCrossEntropy(alpha, beta, log_zero=log_zero)
