"""The risk that noise costs when outputs are near one-hot, and no more."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labelproof.losses import Loss
from labelproof.ranges import within
from labelproof.theory.distributions import admit_classes, label_values
from labelproof.theory.risk import rate_is_tolerable

__all__ = ["noise_factor", "one_hot_deviation", "risk_bound"]


def noise_factor(rate: float, *, num_classes: int) -> float:
    r"""How much symmetric noise magnifies asymmetry, $c = \eta / ((1 - \eta) k - 1)$.

    For any set of classifiers the one that is best on noisy labels has a clean risk at most
    $c$ times the `symmetry_gap` of their outputs above the best.

    Args:
        rate: $\eta$ in $[0, 1 - 1/k)$.
        num_classes: $k$.

    Example:
        >>> noise_factor(0.4, num_classes=10)
        0.08

    Reference:
        Theorem 3, section 2.2.
    """
    if not rate_is_tolerable(rate, num_classes=num_classes):
        raise ValueError(
            f"rate: expected less than 1 - 1/{num_classes} = {1 - 1 / num_classes:.4g}, where "
            f"labels of {num_classes} classes still say something, got {rate!r}"
        )
    return rate / ((1 - rate) * num_classes - 1)


def one_hot_deviation(loss: Loss, *, epsilon: float, num_classes: int) -> float:
    r"""Largest deviation from symmetry near one-hot, $\delta = \max |S(u) - S(e)|$.

    The maximum is over outputs within $\varepsilon$ of a one-hot vector $e$. Where $S$ is convex,
    as for every loss here that has no clamp, it is exact: $S(e)$ is the largest value of all, and
    sharing what $e$'s class lacks evenly among the others lowers both $S$ and the distance, so
    the lowest value is at

    $$ u = \Bigl(1 - t, \frac{t}{k-1}, \dots, \frac{t}{k-1}\Bigr), \qquad
       t = \min\Bigl(\varepsilon \sqrt{\tfrac{k-1}{k}}, \tfrac{k-1}{k}\Bigr). $$

    Other vectors than one-hot have no such extreme output; measure the `symmetry_gap` there.

    Args:
        loss: A loss with a convex sum over labels; others are refused where that shows.
        epsilon: Largest l2 distance, at least 0.
        num_classes: $k$.

    Returns:
        $\delta$, computed in float64; `inf` where $S(e)$ is infinite (cross entropy, focal loss):
        such a loss has a bound only on outputs that are kept away from one-hot.

    Example:
        >>> from labelproof import CrossEntropy, GeneralizedCrossEntropy
        >>> round(one_hot_deviation(GeneralizedCrossEntropy(0.7), epsilon=0.01, num_classes=10), 4)
        0.0965
        >>> one_hot_deviation(CrossEntropy(), epsilon=0.01, num_classes=10)
        inf

    Reference:
        Theorem 3, section 2.2.
    """
    most_even = 1 - 1 / admit_classes(num_classes)
    share = min(within("epsilon", epsilon, 0) * math.sqrt(most_even), most_even)
    _check_convex(loss, num_classes)
    shares = torch.tensor([0, share], dtype=torch.float64)
    one_hot, spread = label_values(loss, _peaks(shares, num_classes))
    # Before subtracting: at distance 0 the difference of two infinities would be NaN.
    if not bool(one_hot.isfinite().all()):
        return math.inf
    return max(0.0, float((one_hot - spread).sum()))


def risk_bound(loss: Loss, *, rate: float, epsilon: float, num_classes: int) -> float:
    r"""Clean risk that symmetric noise costs near one-hot, at most $2 c \delta$.

    $$ R_L(f^*_\eta) - R_L(f^*) \le 2 c \delta $$

    $f^*_\eta$ and $f^*$ are the best classifiers on noisy and on clean labels among those whose
    outputs are all within $\varepsilon$ of one-hot. Since $S$ deviates to one side only there, half
    of the bound already holds; the factor 2 is the paper's, for any vector.

    Args:
        loss: A loss with a convex sum over labels, as `one_hot_deviation` takes.
        rate: $\eta$ in $[0, 1 - 1/k)$.
        epsilon: Largest l2 distance to one-hot, at least 0.
        num_classes: $k$.

    Returns:
        The bound; `inf` for a loss whose sum over labels is infinite at one-hot.

    Example:
        >>> from labelproof import GeneralizedCrossEntropy, MeanAbsoluteError
        >>> from labelproof.theory import confidence_epsilon
        >>> setting = {"rate": 0.4, "epsilon": confidence_epsilon(), "num_classes": 10}
        >>> round(risk_bound(GeneralizedCrossEntropy(0.7), **setting), 4)
        0.0195
        >>> round(risk_bound(MeanAbsoluteError(), **setting), 4)
        0.0

    Reference:
        Theorem 3, section 2.2.
    """
    factor = noise_factor(rate, num_classes=num_classes)
    deviation = one_hot_deviation(loss, epsilon=epsilon, num_classes=num_classes)
    return 2 * factor * deviation if factor > 0 else 0.0


def _peaks(shares: Tensor, num_classes: int) -> Tensor:
    """Outputs whose first class leaves `shares`, `(M)`, evenly to the others, `(M, k)`."""
    others = (shares / (num_classes - 1)).unsqueeze(1).expand(-1, num_classes - 1)
    return torch.cat([1 - shares.unsqueeze(1), others], dim=1)


def _check_convex(loss: Loss, num_classes: int) -> None:
    """Refuse a loss whose sum over labels is seen to be not convex, as with a clamp."""
    # Log-spaced from one-hot through uniform to the far face, since clamps act near 0.
    shares = torch.logspace(-12, 0, 241, dtype=torch.float64)
    sums = label_values(loss, _peaks(shares, num_classes)).sum(dim=1)
    before, here, after = shares[:-2], shares[1:-1], shares[2:]
    chord = torch.lerp(sums[:-2], sums[2:], (here - before) / (after - before))
    if bool((sums[1:-1] > chord + 1e-9 * (1 + chord.abs())).any()):
        advice = "leave out its clamp, or " if _is_clamped(loss) else ""
        raise ValueError(
            f"loss: expected a sum over labels that is convex in the outputs, which that of {loss} "
            f"is not; {advice}measure symmetry_gap on outputs of your own"
        )


def _is_clamped(loss: Loss) -> bool:
    """Whether a loss, or one that it is made of, has a clamp set."""
    # Someone's own loss may have a method of that name.
    return any(isinstance(getattr(part, "clamp", None), float) for part in loss.modules())
