r"""The paper's lemma, theorems and bounds as functions to evaluate, plot and test.

Notation: $u \in [0, 1]^k$ is a network's output (probabilities of $k$ classes), $L(u, i)$ its loss
for label $i$, $S(u) = \sum_i L(u, i)$ the sum over all labels, $\mathcal P_v$ the permutations of a
vector $v$, and $\eta$ the noise rate. Functions of outputs keep their precision: pass float64 if
seven digits are too few. Losses are evaluated on the outputs as given; for `SparseRegularized` pass
its base loss and the sharpened outputs.

Reference:
    Zhou et al., "Learning with Noisy Labels via Sparse Regularization", ICCV 2021.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from labelproof.losses import Loss, Outputs, SymmetricCrossEntropy, sharpen
from labelproof.losses.batch import admit, working_precision
from labelproof.losses.cross_entropy import LOG_ZERO
from labelproof.losses.penalty import SPARSE
from labelproof.ranges import whole, within


def symmetry_gap(loss: Loss, outputs: Tensor) -> Tensor:
    r"""How far a loss is from the symmetric condition, $\max_u S(u) - \min_u S(u)$.

    It is 0 exactly if the sum over all labels is the same for every output given. If a sum is
    infinite, as that of cross entropy is at a one-hot output, the gap is `inf`.
    The symmetric condition, section 2.1 of the paper.

    Args:
        loss: Any loss of this package.
        outputs: Probabilities, `(..., k)`; the gap is over all of them together.

    Example:
        >>> from labelproof import CrossEntropy, MeanAbsoluteError
        >>> outputs = torch.tensor([[0.5, 0.3, 0.2], [0.8, 0.1, 0.1]], dtype=torch.float64)
        >>> round(float(symmetry_gap(MeanAbsoluteError(), outputs)), 6)
        0.0
        >>> round(float(symmetry_gap(CrossEntropy(), outputs)), 6)
        1.321756
    """
    sums = _label_values(loss, outputs).sum(dim=-1)
    return sums.max() - sums.min() if bool(sums.isfinite().all()) else sums.new_tensor(math.inf)


def permutation_set(vector: Tensor) -> Tensor:
    r"""All distinct permutations of a vector, $\mathcal P_v$.

    On them $S(u) = S(v)$ for every loss of the form $\ell_1(u_i) + \sum_{j \ne i} \ell_2(u_j)$:
    whatever the loss, restricting the outputs makes it symmetric.
    Definition 1 and lemma 1, section 2.2 of the paper.

    Args:
        vector: Any numbers, `(k)`, at most 9 of them.

    Returns:
        `(M, k)`, largest numbers first; `M` is $k!$ if all differ, $k$ for a one-hot vector.

    Example:
        >>> permutation_set(torch.tensor([0.5, 0.5, 0.0]))
        tensor([[0.5000, 0.5000, 0.0000],
                [0.5000, 0.0000, 0.5000],
                [0.0000, 0.5000, 0.5000]])
    """
    if vector.ndim != 1 or len(vector) > 9:
        raise ValueError(f"vector: expected 9 numbers or fewer, got {tuple(vector.shape)}")
    return vector.new_tensor(sorted(set(itertools.permutations(vector.tolist())), reverse=True))


def permutation_distance(outputs: Tensor, *, vector: Tensor | None = None) -> Tensor:
    r"""Distance of each output to the permutations of a vector, $\min_{w \in P_v} \|u - w\|_2$.

    The nearest permutation is the one in the output's own order (rearrangement inequality), so
    sorting both finds it among the $k!$.
    The relaxed hypothesis class of theorem 3, section 2.2 of the paper.

    Args:
        outputs: `(..., k)`.
        vector: `(k)`; one-hot by default.

    Example:
        >>> permutation_distance(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]))
        tensor([0.0000, 0.7071])
    """
    if vector is None:
        vector = F.one_hot(torch.tensor(0), outputs.shape[-1])
    nearest = vector.to(outputs).sort(descending=True).values
    ordered = outputs.sort(dim=-1, descending=True).values
    return torch.linalg.vector_norm(ordered - nearest, dim=-1)


def confidence_epsilon(confidence: float = SPARSE) -> float:
    r"""How far from one-hot an output can be when its largest probability is at least $m$.

    It is $\sqrt 2 (1 - m)$, reached when one other class has all the rest.
    The sparse rate of figure 3, section 3.1 of the paper.

    Args:
        confidence: $m$ in [0.5, 1]; by default what counts as one-hot in the sparse rate.

    Example:
        >>> round(confidence_epsilon(), 6)
        0.014142
    """
    return math.sqrt(2) * (1 - within("confidence", confidence, 0.5, 1))


def risk(loss: Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    r"""Mean loss on clean labels, $R_L = \mathbb E\, L(u, y)$.

    Takes the arguments of `noisy_risk` and returns one value per classifier.

    Example:
        >>> from labelproof import MeanAbsoluteError
        >>> risk(MeanAbsoluteError(), torch.tensor([[0.75, 0.25]]), torch.tensor([0]))
        tensor(0.2500)
    """
    return noisy_risk(loss, outputs, labels, transition=torch.eye(outputs.shape[-1]))


def noisy_risk(loss: Loss, outputs: Tensor, labels: Tensor, *, transition: Tensor) -> Tensor:
    r"""Mean loss on randomly corrupted labels, $R_L^\eta = \mathbb E \sum_i T_{yi} L(u, i)$.

    Section 2.1 of the paper.

    Args:
        loss: Any loss of this package; its class weights and reduction are ignored.
        outputs: Probabilities, `(..., N, k)`; leading axes are different classifiers, each with
            one value in the result.
        labels: Clean labels $y$, `(N)`.
        transition: $T$, `(k, k)`: row $y$ holds the probabilities of the labels that $y$ becomes;
            a matrix of `labelproof.noise` works, too.

    Example:
        >>> from labelproof import MeanAbsoluteError
        >>> swap = torch.tensor([[0.8, 0.2], [0.2, 0.8]])
        >>> outputs, labels = torch.tensor([0.75, 0.25]), torch.tensor(0)
        >>> noisy_risk(MeanAbsoluteError(), outputs, labels, transition=swap)
        tensor(0.3500)
    """
    values = _label_values(loss, outputs)
    num_classes = values.shape[-1]
    known = {*labels.flatten().tolist()} <= {*range(num_classes)}
    if labels.shape != values.shape[-2:-1] or not known:
        raise ValueError(
            f"labels: expected class indices from 0 to {num_classes - 1}, one for each of the "
            f"outputs {tuple(values.shape)}, got shape {tuple(labels.shape)}"
        )
    probability = _admit_transition(transition, num_classes=num_classes).to(values)[labels]
    # A label of probability 0 adds nothing, even if its loss is infinite; 0 * inf is NaN.
    return torch.where(probability > 0, probability * values, 0).sum(dim=-1).mean(dim=-1)


class RiskLine(NamedTuple):
    """The noisy risk as a linear function of the clean risk."""

    slope: float
    """Share of a difference in clean risk that remains in the noisy risk."""
    intercept: float
    """What noise adds, whatever the classifier."""


def noisy_risk_line(loss: Loss, *, vector: Tensor, rate: float) -> RiskLine:
    r"""The noisy risk of outputs in $\mathcal P_v$ under symmetric noise, from the clean risk.

    $$ R_L^\eta = \Bigl(1 - \frac{\eta k}{k - 1}\Bigr) R_L + \frac{\eta}{k - 1} S(v) $$

    While the slope is positive both risks rank all classifiers alike, which is noise tolerance.
    Theorem 1, proof in the supplement of the paper.

    Args:
        loss: Any loss of this package.
        vector: Probabilities $v$, `(k)`.
        rate: $\eta$ in [0, 1]; every wrong label is equally likely.

    Example:
        >>> from labelproof import MeanAbsoluteError
        >>> noisy_risk_line(MeanAbsoluteError(), vector=torch.tensor([1.0, 0.0]), rate=0.25)
        RiskLine(slope=0.5, intercept=0.25)
    """
    rate = within("rate", rate, 0, 1)
    total = float(_label_values(loss, vector, name="vector").sum())
    others = len(vector) - 1
    return RiskLine(1 - rate * (others + 1) / others, rate / others * total if rate > 0 else 0.0)


def transition_is_tolerable(transition: Tensor) -> bool:
    r"""Whether theorem 2 covers a transition matrix, $\eta_{yi} < 1 - \eta_y$ for all $i \ne y$.

    In words: in no class is a wrong label as frequent as the right one.
    Theorem 2, section 2.2 of the paper.

    Args:
        transition: `(k, k)`: row $y$ holds the probabilities of the labels that $y$ becomes.

    Example:
        >>> transition_is_tolerable(torch.tensor([[0.6, 0.4], [0.0, 1.0]]))
        True
        >>> transition_is_tolerable(torch.tensor([[0.4, 0.6], [0.0, 1.0]]))
        False
    """
    transition = _admit_transition(transition)
    wrong = transition.clone().fill_diagonal_(-math.inf).amax(dim=1)
    return bool((wrong < transition.diagonal()).all())


def loss_is_bounded(loss: Loss, *, vector: Tensor) -> bool:
    r"""Whether theorem 2 covers a loss on $\mathcal P_v$, $0 \le L(v, i) \le S(v) / (k - 1)$.

    With its other premise, a classifier of risk 0, this leaves vectors that cost nothing for one
    label and the same for all others: one-hot ones, and losses that are finite there.
    Theorem 2, section 2.2 of the paper.

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
    """
    values = _label_values(loss, vector, name="vector")
    ceiling = values.sum() / (len(vector) - 1)
    # Equality is the usual case, and a sum of k equal numbers has some rounding error.
    slack = 1 + len(vector) * torch.finfo(values.dtype).eps
    # The lower bound follows: were a value below 0, the others' mean would be above the ceiling.
    return bool(values.isfinite().all()) and bool((values <= ceiling * slack).all())


def noise_factor(rate: float, *, num_classes: int) -> float:
    r"""How much symmetric noise magnifies asymmetry, $c = \eta / ((1 - \eta) k - 1)$.

    For any set of classifiers the one that is best on noisy labels has a clean risk at most
    $c$ times the `symmetry_gap` of their outputs above the best.
    Theorem 3, section 2.2 of the paper.

    Args:
        rate: $\eta$ in $[0, 1 - 1/k)$.
        num_classes: $k$.

    Example:
        >>> noise_factor(0.4, num_classes=10)
        0.08
    """
    # Multiplied out, since 1 - 1/3 rounds to more than 2/3.
    if within("rate", rate, 0, 1) * whole("num_classes", num_classes, 2) >= num_classes - 1:
        raise ValueError(
            f"rate: expected less than 1 - 1/{num_classes} = {1 - 1 / num_classes:.4g}, from which "
            f"on labels of {num_classes} classes carry no information, got {rate!r}"
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

    For vectors other than one-hot, use `symmetry_gap`. Theorem 3, section 2.2 of the paper.

    Args:
        loss: A loss with a convex sum over labels; others are refused if a test on a grid finds it.
        epsilon: Largest l2 distance, at least 0.
        num_classes: $k$.

    Returns:
        $\delta$, computed in float64; `inf` if $S(e)$ is infinite (cross entropy, focal loss):
        such a loss has a bound only on outputs that are kept away from one-hot.

    Example:
        >>> from labelproof import CrossEntropy, GeneralizedCrossEntropy
        >>> round(one_hot_deviation(GeneralizedCrossEntropy(0.7), epsilon=0.01, num_classes=10), 4)
        0.0965
        >>> one_hot_deviation(CrossEntropy(), epsilon=0.01, num_classes=10)
        inf
    """
    most_even = 1 - 1 / whole("num_classes", num_classes, 2)
    share = min(within("epsilon", epsilon, 0) * math.sqrt(most_even), most_even)
    # Log-spaced from one-hot through uniform to the far face, since clamps act near 0.
    shares = torch.logspace(-12, 0, 241, dtype=torch.float64)
    sums = _label_values(loss, _peaks(shares, num_classes)).sum(dim=1)
    before, here, after = shares[:-2], shares[1:-1], shares[2:]
    chord = torch.lerp(sums[:-2], sums[2:], (here - before) / (after - before))
    if bool((sums[1:-1] > chord + 1e-9 * (1 + chord.abs())).any()):
        raise ValueError(
            f"loss: expected a sum over labels that is convex in the outputs, which that of {loss} "
            "is not; leave out its clamp, or measure symmetry_gap on outputs of your own"
        )
    shares = torch.tensor([0, share], dtype=torch.float64)
    one_hot, spread = _label_values(loss, _peaks(shares, num_classes))
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
    Theorem 3, section 2.2 of the paper.

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
    """
    factor = noise_factor(rate, num_classes=num_classes)
    deviation = one_hot_deviation(loss, epsilon=epsilon, num_classes=num_classes)
    return 2 * factor * deviation if factor > 0 else 0.0


def _peaks(shares: Tensor, num_classes: int) -> Tensor:
    """Outputs, `(M, k)`, in which all classes but the first share `shares`, `(M)`, evenly."""
    others = (shares / (num_classes - 1)).unsqueeze(1).expand(-1, num_classes - 1)
    return torch.cat([1 - shares.unsqueeze(1), others], dim=1)


class GradientTerms(NamedTuple):
    """The gradient terms of sparse-regularized cross entropy, `(N, k)` each."""

    fitting: Tensor
    """Pulls towards the given label; away from it where `weight * p * u_y ** p` is above 1."""
    complementary: Tensor
    """Pushes away from the other labels together, which also raises the given one."""


def gradient_terms(
    logits: Tensor, target: Tensor, *, weight: float, p: float, temperature: float = 1.0
) -> GradientTerms:
    r"""The two parts of the gradient of $-\log u_y + \lambda \|u\|_p^p$, $u = \sigma(z / \tau)$.

    With $\partial u_j / \partial z_i = u_j (\delta_{ij} - u_i) / \tau$ they are

    $$ -\frac{1 - \lambda p\, u_y^p}{\tau} (\delta_{iy} - u_i) \qquad\text{and}\qquad
       \frac{\lambda p}{\tau} \sum_{j \ne y} u_j^p (\delta_{ij} - u_i), $$

    where no power is negative: nothing overflows when a probability underflows.
    Section 2.4 of the paper.

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
    """
    weight, p = within("weight", weight, 0), within("p", p, 0, 1, open_low=True)
    temperature = within("temperature", temperature, 0, open_low=True)
    if logits.ndim != 2:
        raise ValueError(f"logits: expected shape (N, k), got {tuple(logits.shape)}")
    logits, target, _ = admit(logits, target, ignore_index=0)
    sharp = sharpen(working_precision(logits), temperature=temperature, normalize=False)
    log_u = torch.log_softmax(sharp, dim=1)
    given = F.one_hot(target, logits.shape[1]).bool()
    u, powers = log_u.exp(), (p * log_u).exp()
    own = torch.where(given, powers, 0).sum(dim=1, keepdim=True)
    others = torch.where(given, 0, powers)
    # expm1 keeps the digits of 1 - u_y that a subtraction loses when u_y is close to 1.
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
    Section 2.3 of the paper.

    Args:
        alpha: Weight of cross entropy.
        weight: $\lambda \ge 0$, of the norm and of the linear part alike.
        log_zero: $A < 0$.

    Example:
        >>> from labelproof import lp_norm
        >>> u = torch.tensor([[0.7, 0.2, 0.1]])
        >>> -0.1 * u[:, 0].log() - 6 * u[:, 0] + 6 * lp_norm(u.log(), p=1)
        tensor([1.8357])
        >>> as_symmetric_cross_entropy(alpha=0.1, weight=6)(u.log(), torch.tensor([0]))
        tensor(1.8357)
    """
    beta = within("weight", weight, 0) / within("-log_zero", -log_zero, 0, open_low=True)
    return SymmetricCrossEntropy(alpha, beta, log_zero=log_zero)


def _label_values(loss: Loss, outputs: Tensor, *, name: str = "outputs") -> Tensor:
    if not isinstance(loss, Loss):
        raise TypeError(
            f"loss: expected a loss of labelproof, got {type(loss).__name__}; "
            "labelproof.as_loss wraps any other module"
        )
    outputs = working_precision(outputs)
    valid = outputs.ndim == 1 or (outputs.ndim > 1 and name != "vector")
    if not valid or outputs.shape[-1] < 2 or not outputs.numel() or not _are_distributions(outputs):
        raise ValueError(
            f"{name}: expected probabilities of 2 or more classes on the last axis, that add up to "
            f"1, got shape {tuple(outputs.shape)}; torch.softmax makes them from logits"
        )
    flat = outputs.reshape(-1, outputs.shape[-1])
    return loss.label_values(Outputs(flat.log())).reshape(outputs.shape)


def _admit_transition(transition: Tensor, *, num_classes: int | None = None) -> Tensor:
    transition = torch.as_tensor(transition)  # labelproof.noise makes its matrices with numpy
    size = num_classes or len(transition)
    if tuple(transition.shape) != (size, size) or not _are_distributions(transition):
        raise ValueError(
            f"transition: expected shape ({size}, {size}) with rows of probabilities, each adding "
            f"up to 1, got shape {tuple(transition.shape)}"
        )
    return transition


def _are_distributions(rows: Tensor) -> bool:
    # A thousandth admits half precision and rounded tables, and still refuses logits.
    return bool((rows >= 0).all()) and bool(((rows.sum(dim=-1) - 1).abs() < 1e-3).all())
