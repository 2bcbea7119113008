"""Risk under label noise, and which noise and losses the theorems cover."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from labelproof.losses import Loss
from labelproof.ranges import within
from labelproof.theory.distributions import (
    admit_classes,
    admit_labels,
    admit_tensor,
    admit_transition,
    label_values,
    vector_values,
)

__all__ = [
    "RiskLine",
    "loss_is_bounded",
    "noisy_risk",
    "noisy_risk_line",
    "rate_is_tolerable",
    "risk",
    "transition_is_tolerable",
]


def risk(loss: Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    r"""Mean loss for the right labels, $R_L = \mathbb E\, L(u, y)$.

    Args:
        loss: Any loss of this package; its class weights and reduction are left aside.
        outputs: Probabilities, `(..., N, k)`; leading axes are further classifiers.
        labels: Right labels, `(N)`.

    Returns:
        One value per classifier, `(...)`.

    Example:
        >>> from labelproof import MeanAbsoluteError
        >>> risk(MeanAbsoluteError(), torch.tensor([[0.75, 0.25]]), torch.tensor([0]))
        tensor(0.2500)

    Reference:
        Section 2.1.
    """
    admit_tensor("outputs", outputs)
    return noisy_risk(loss, outputs, labels, transition=torch.eye(outputs.shape[-1]))


def noisy_risk(loss: Loss, outputs: Tensor, labels: Tensor, *, transition: Tensor) -> Tensor:
    r"""Mean loss when labels go wrong at random, $R_L^\eta = \mathbb E \sum_i T_{yi} L(u, i)$.

    Args:
        loss: Any loss of this package; its class weights and reduction are left aside.
        outputs: Probabilities, `(..., N, k)`; leading axes are further classifiers.
        labels: Right labels $y$, `(N)`.
        transition: $T$, `(k, k)`: row $y$ holds the probabilities of what $y$ is turned into; a
            matrix of `labelproof.noise` is taken as it is.

    Returns:
        One value per classifier, `(...)`.

    Example:
        >>> from labelproof import MeanAbsoluteError
        >>> swap = torch.tensor([[0.8, 0.2], [0.2, 0.8]])
        >>> outputs, labels = torch.tensor([[0.75, 0.25]]), torch.tensor([0])
        >>> noisy_risk(MeanAbsoluteError(), outputs, labels, transition=swap)
        tensor(0.3500)

    Reference:
        Section 2.1.
    """
    values = label_values(loss, outputs)
    labels = admit_labels(
        "labels",
        labels,
        shape=tuple(values.shape[-2:-1]),
        num_classes=values.shape[-1],
        rows=f"outputs (..., N, k) of shape {tuple(outputs.shape)}",
    )
    chance = admit_transition(transition, num_classes=values.shape[-1]).to(values)[labels]
    # A label that cannot come costs nothing even where its loss is infinite; 0 * inf is NaN.
    return torch.where(chance > 0, chance * values, 0).sum(dim=-1).mean(dim=-1)


class RiskLine(NamedTuple):
    """The noisy risk as a straight line over the clean one."""

    slope: float
    """How much of a difference in clean risk is left in the noisy one."""
    intercept: float
    """What noise adds whatever the classifier."""


def noisy_risk_line(loss: Loss, *, vector: Tensor, rate: float) -> RiskLine:
    r"""The noisy risk of outputs in $\mathcal P_v$ under symmetric noise, from the clean risk.

    $$ R_L^\eta = \Bigl(1 - \frac{\eta k}{k - 1}\Bigr) R_L + \frac{\eta}{k - 1} S(v) $$

    While the slope is positive both risks rank all classifiers alike, which is noise tolerance.

    Args:
        loss: Any loss of this package.
        vector: Probabilities $v$, `(k)`.
        rate: $\eta$ in [0, 1]; every wrong label is equally likely.

    Returns:
        Slope and intercept.

    Example:
        >>> from labelproof import MeanAbsoluteError
        >>> noisy_risk_line(MeanAbsoluteError(), vector=torch.tensor([1.0, 0.0]), rate=0.25)
        RiskLine(slope=0.5, intercept=0.25)

    Reference:
        Theorem 1, proof in the supplement.
    """
    rate = within("rate", rate, 0, 1)
    total = float(vector_values(loss, vector).sum())
    others = len(vector) - 1
    return RiskLine(1 - rate * (others + 1) / others, rate / others * total if rate > 0 else 0.0)


def rate_is_tolerable(rate: float, *, num_classes: int) -> bool:
    r"""Whether theorem 1 covers a rate of symmetric noise, $\eta < 1 - 1/k$.

    Below it the right label is still the most frequent one; at it labels say nothing.

    Args:
        rate: $\eta$ in [0, 1].
        num_classes: $k$.

    Example:
        >>> rate_is_tolerable(0.8, num_classes=10), rate_is_tolerable(0.9, num_classes=10)
        (True, False)

    Reference:
        Theorem 1, section 2.2.
    """
    # Multiplied out, since 1 - 1/3 rounds to more than 2/3.
    return within("rate", rate, 0, 1) * admit_classes(num_classes) < num_classes - 1


def transition_is_tolerable(transition: Tensor) -> bool:
    r"""Whether theorem 2 covers a transition matrix, $\eta_{yi} < 1 - \eta_y$ for all $i \ne y$.

    In words: whatever the class, no wrong label is as frequent as the right one.

    Args:
        transition: `(k, k)`: row $y$ holds the probabilities of what $y$ is turned into.

    Example:
        >>> transition_is_tolerable(torch.tensor([[0.6, 0.4], [0.0, 1.0]]))
        True
        >>> transition_is_tolerable(torch.tensor([[0.4, 0.6], [0.0, 1.0]]))
        False

    Reference:
        Theorem 2, section 2.2.
    """
    transition = admit_transition(transition)
    wrong = transition.clone().fill_diagonal_(-math.inf).amax(dim=1)
    return bool((wrong < transition.diagonal()).all())


def loss_is_bounded(loss: Loss, *, vector: Tensor) -> bool:
    r"""Whether theorem 2 covers a loss on $\mathcal P_v$, $0 \le L(v, i) \le S(v) / (k - 1)$.

    With its other premise, a classifier of risk 0, this leaves vectors that cost nothing for one
    label and the same for all others: one-hot ones, and losses that are finite there.

    Args:
        loss: Any loss of this package.
        vector: Probabilities $v$, `(k)`.

    Example:
        >>> from labelproof import CrossEntropy, GeneralizedCrossEntropy
        >>> one_hot = torch.tensor([1.0, 0.0, 0.0])
        >>> loss_is_bounded(GeneralizedCrossEntropy(), vector=one_hot)
        True
        >>> loss_is_bounded(CrossEntropy(), vector=one_hot)
        False

    Reference:
        Theorem 2, section 2.2.
    """
    values = vector_values(loss, vector)
    ceiling = values.sum() / (len(vector) - 1)
    # Equality is the usual case, and a sum of k equal numbers is off by some roundings.
    slack = 1 + len(vector) * torch.finfo(values.dtype).eps
    # The lower bound follows: were a value below 0, the others' mean would be above the ceiling.
    return bool(values.isfinite().all()) and bool((values <= ceiling * slack).all())
