r"""The paper's lemma, theorems and bounds as functions that can be asked, plotted and tested.

Notation: $u \in [0, 1]^k$ is a network's output (probabilities of $k$ classes), $L(u, i)$ its loss
for label $i$, $S(u) = \sum_i L(u, i)$ the sum over all labels, $\mathcal P_v$ the permutations of a
vector $v$, and $\eta$ the noise rate. Functions of outputs keep their precision: give float64 where
seven digits are too few. A loss here sees the outputs as they are; for `SparseRegularized` give its
base loss and the sharpened outputs.

Reference:
    Zhou et al., "Learning with Noisy Labels via Sparse Regularization", ICCV 2021.
"""

from labelproof.theory.bound import noise_factor, one_hot_deviation, risk_bound
from labelproof.theory.gradients import GradientTerms, as_symmetric_cross_entropy, gradient_terms
from labelproof.theory.risk import (
    RiskLine,
    loss_is_bounded,
    noisy_risk,
    noisy_risk_line,
    rate_is_tolerable,
    risk,
    transition_is_tolerable,
)
from labelproof.theory.symmetry import (
    confidence_epsilon,
    permutation_distance,
    permutation_set,
    symmetry_gap,
)

__all__ = [
    "GradientTerms",
    "RiskLine",
    "as_symmetric_cross_entropy",
    "confidence_epsilon",
    "gradient_terms",
    "loss_is_bounded",
    "noise_factor",
    "noisy_risk",
    "noisy_risk_line",
    "one_hot_deviation",
    "permutation_distance",
    "permutation_set",
    "rate_is_tolerable",
    "risk",
    "risk_bound",
    "symmetry_gap",
    "transition_is_tolerable",
]
