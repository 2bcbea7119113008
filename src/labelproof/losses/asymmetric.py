r"""Asymmetric losses: robust when the true label is still the most frequent one of its class.

A symmetric loss weighs all labels alike. An asymmetric one follows the most frequent label only,
which is enough for robustness and leaves room to learn faster.

References:
    Zhou et al., "Asymmetric Loss Functions for Learning with Noisy Labels", ICML 2021, for the
    first three; Wang et al., "Joint Asymmetric Loss for Learning with Noisy Labels", ICCV 2025, for
    the squared error.
"""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import FormulaLoss, LossSettings, PointwiseLoss
from labelproof.losses.batch import Outputs
from labelproof.losses.numerics import complement, log_mixed, others, own
from labelproof.ranges import within


class AsymmetricGeneralizedCrossEntropy(PointwiseLoss):
    r"""Asymmetric generalised cross entropy, $[(a + 1)^q - (a + u_y)^q] / q$.

    Args:
        a: Shift, above 0; a larger one is closer to mean absolute error.
        q: Exponent, above 0; at 1 it is mean absolute error for any `a`.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> loss = AsymmetricGeneralizedCrossEntropy(a=1, q=2)
        >>> loss(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.8750)
    """

    def __init__(self, a: float = 0.6, q: float = 0.6, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        self.a, self.q = within("a", a, 1e-6, 1e3), within("q", q, 1e-6, 10)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        mixed = complement(self.q * log_mixed(log_probability, self.a))
        return mixed * ((self.a + 1) ** self.q / self.q)


class AsymmetricUnhinged(PointwiseLoss):
    r"""Asymmetric unhinged loss, $[(a - u_y)^q - (a - 1)^q] / q$.

    Args:
        a: Shift, at least 1.001; a larger one is closer to mean absolute error.
        q: Exponent, above 0; at 1 it is mean absolute error for any `a`.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> AsymmetricUnhinged(a=2, q=2)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6250)
    """

    def __init__(self, a: float = 5.5, q: float = 3.0, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        self.a, self.q = within("a", a, 1.001, 1e3), within("q", q, 1e-6, 10)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        # (a - u) / (a - 1) = 1 + (1 - u) / (a - 1), so that nothing cancels near u = 1.
        growth = torch.log1p(complement(log_probability) / (self.a - 1))
        return torch.expm1(self.q * growth) * ((self.a - 1) ** self.q / self.q)


class AsymmetricExponential(PointwiseLoss):
    r"""Asymmetric exponential loss, $\exp(-u_y / a)$.

    Args:
        a: Scale, at least 0.01; a larger one is closer to mean absolute error.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> AsymmetricExponential(a=0.5)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.3679)
    """

    def __init__(self, a: float = 2.5, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        self.a = within("a", a, 0.01, 1e3)

    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability."""
        return (log_probability.exp() / -self.a).exp()


class AsymmetricSquaredError(FormulaLoss):
    r"""Asymmetric mean squared error, $\|a e_y - u\|^2 / k$ of $k$ classes.

    Args:
        a: Target of the label's probability, at least 1, which is plain squared error.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> AsymmetricSquaredError(a=2)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(1.2500)
    """

    def __init__(self, a: float = 30.0, **settings: Unpack[LossSettings]):
        super().__init__(**settings)
        self.a = within("a", a, 1, 1e3)

    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """Value for the labels, or for every label."""
        log_probabilities = outputs.log_probabilities
        rest = others(log_probabilities.exp().square(), labels)
        missing = complement(own(log_probabilities, labels)) + (self.a - 1)
        return (missing.square() + rest) / outputs.num_classes
