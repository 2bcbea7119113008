"""The losses straight from their formulas, in float64, for the tests to compare with.

Nothing here is clever: probabilities come from a softmax, every formula is written as the papers
print it, and no code is shared with the package. A loss is a function from probabilities `(N, C)`
and labels `(N)` to one value per example.

The second half is the field's published scripts, clamps included, in plain float64 torch so that
their gradients can be compared as well.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

Array: TypeAlias = NDArray[Any]
Formula: TypeAlias = Callable[[Array, Array], Array]

LOG_ZERO = math.log(1e-4)


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def of_label(probabilities: Array, label: Array) -> Array:
    return probabilities[np.arange(len(label)), label]


def cross_entropy(probabilities: Array, label: Array) -> Array:
    return -np.log(of_label(probabilities, label))


def focal(gamma: float) -> Formula:
    def formula(probabilities: Array, label: Array) -> Array:
        given = of_label(probabilities, label)
        return -((1 - given) ** gamma) * np.log(given)

    return formula


def absolute_error(probabilities: Array, label: Array) -> Array:
    return 1 - of_label(probabilities, label)


def reverse_cross_entropy(log_zero: float = LOG_ZERO) -> Formula:
    """Minus the sum of u_i log (e_y)_i, where log 1 is 0 and log 0 is `log_zero`."""

    def formula(probabilities: Array, label: Array) -> Array:
        logarithms = np.full_like(probabilities, log_zero)
        logarithms[np.arange(len(label)), label] = 0
        return -(probabilities * logarithms).sum(axis=1)

    return formula


def generalized(q: float, clamp: float = 0) -> Formula:
    def formula(probabilities: Array, label: Array) -> Array:
        given = np.maximum(of_label(probabilities, label), clamp)
        if q < 1e-4:  # 1 - u ** q has no digits left in float64; the series has them all
            step = q * np.log(given)
            return -(step + step**2 / 2 + step**3 / 6 + step**4 / 24) / q
        return (1 - given**q) / q

    return formula


def symmetric(alpha: float, beta: float, log_zero: float = LOG_ZERO) -> Formula:
    return weighted((alpha, cross_entropy), (beta, reverse_cross_entropy(log_zero)))


def huberized(tau: float) -> Formula:
    def formula(probabilities: Array, label: Array) -> Array:
        given = of_label(probabilities, label)
        return np.where(given > 1 / tau, -np.log(given), -tau * given + math.log(tau) + 1)

    return formula


def negative(clamp: float = 0) -> Formula:
    """The mean of -log(1 - u_c) over the labels c that were not given."""

    def formula(probabilities: Array, label: Array) -> Array:
        values = np.zeros(len(label))
        num_classes = probabilities.shape[1]
        for other in range(num_classes):
            # 1 - u_c as the sum of the rest, which keeps its digits where u_c is near 1
            complement = np.delete(probabilities, other, axis=1).sum(axis=1)
            penalty = -np.log(np.maximum(complement, clamp))
            values += np.where(label == other, 0, penalty) / (num_classes - 1)
        return values

    return formula


def asymmetric_generalized(a: float, q: float) -> Formula:
    return lambda probabilities, label: (
        ((a + 1) ** q - (a + of_label(probabilities, label)) ** q) / q
    )


def asymmetric_unhinged(a: float, q: float) -> Formula:
    return lambda probabilities, label: (
        ((a - of_label(probabilities, label)) ** q - (a - 1) ** q) / q
    )


def asymmetric_exponential(a: float) -> Formula:
    return lambda probabilities, label: np.exp(-of_label(probabilities, label) / a)


def asymmetric_squared(a: float) -> Formula:
    def formula(probabilities: Array, label: Array) -> Array:
        target = a * np.eye(probabilities.shape[1])[label]
        return ((target - probabilities) ** 2).mean(axis=1)

    return formula


def negative_normalized(active: Formula, floor: float = 1e-7) -> Formula:
    """1 minus the label's share of L(floor) - L(u_i), the probabilities lifted to the floor."""

    def formula(probabilities: Array, label: Array) -> Array:
        highest = active(np.array([[floor]]), np.array([0]))
        turned = highest[:, None] - every_label(active, np.maximum(probabilities, floor))
        return 1 - of_label(turned, label) / turned.sum(axis=1)

    return formula


def epsilon_softmax(base: Formula, m: float, clamp: float = 0) -> Formula:
    def formula(probabilities: Array, label: Array) -> Array:
        raised = probabilities.copy()
        raised[np.arange(len(label)), probabilities.argmax(axis=1)] += m
        return base(np.maximum(raised / (m + 1), clamp), label)

    return formula


def jensen_shannon(pi: float) -> Formula:
    def formula(probabilities: Array, label: Array) -> Array:
        target = np.eye(probabilities.shape[1])[label]
        mixture = pi * target + (1 - pi) * probabilities
        own = np.log(1 / of_label(mixture, label))
        others = (probabilities * np.log(probabilities / mixture)).sum(axis=1)
        return (pi * own + (1 - pi) * others) / (-(1 - pi) * math.log(1 - pi))

    return formula


def taylor(terms: int) -> Formula:
    def formula(probabilities: Array, label: Array) -> Array:
        distance = 1 - of_label(probabilities, label)
        return np.sum([distance**power / power for power in range(1, terms + 1)], axis=0)

    return formula


def tempered_softmax(logits: Array, t: float) -> Array:
    """exp_t(z - lambda), with lambda bisected until the sum is 1."""

    def outputs(shift: Array) -> Array:
        if t == 1:
            return np.exp(logits - shift)
        return (1 + (1 - t) * (logits - shift)) ** (1 / (1 - t))

    low = logits.max(axis=1, keepdims=True)
    high = low + logits.shape[1] ** max(t - 1, 1) / max(t - 1, 1e-2) + 100
    for _ in range(200):
        middle = (low + high) / 2
        above = outputs(middle).sum(axis=1, keepdims=True) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return outputs((low + high) / 2)


def bi_tempered(logits: Array, label: Array, t1: float, t2: float) -> Array:
    outputs = tempered_softmax(logits, t2)
    own = of_label(outputs, label)
    logarithm = np.log(own) if t1 == 1 else (own ** (1 - t1) - 1) / (1 - t1)
    return -logarithm - (1 - (outputs ** (2 - t1)).sum(axis=1)) / (2 - t1)


def clipped(logits: Array, delta: float) -> Array:
    norm = np.sqrt((logits**2).sum(axis=1, keepdims=True))
    return np.where(norm > delta, delta * logits / norm, logits)


def every_label(formula: Formula, probabilities: Array) -> Array:
    """The loss for each label in turn, `(N, C)`."""
    count, num_classes = probabilities.shape
    columns = [formula(probabilities, np.full(count, label)) for label in range(num_classes)]
    return np.stack(columns, axis=1)


def normalized(formula: Formula) -> Formula:
    def divided(probabilities: Array, label: Array) -> Array:
        return formula(probabilities, label) / every_label(formula, probabilities).sum(axis=1)

    return divided


def weighted(*terms: tuple[float, Formula]) -> Formula:
    def added(probabilities: Array, label: Array) -> Array:
        return np.sum([number * term(probabilities, label) for number, term in terms], axis=0)

    return added


def sharpened(logits: Array, *, temperature: float, normalize: bool) -> Array:
    if normalize:
        logits = logits / np.sqrt((logits**2).sum(axis=1, keepdims=True))
    return softmax(logits / temperature)


def norm_penalty(probabilities: Array, *, p: float, clamp: float = 0) -> Array:
    return (np.maximum(probabilities, clamp) ** p).sum(axis=1)


def permutation_penalty(probabilities: Array, *, p: float, vector: Array, cusp: float) -> Array:
    """Sum of |u - v + e_1| ** p with u and v sorted from large to small, its cusp rounded off."""
    distance = np.sort(probabilities, axis=1)[:, ::-1] - np.sort(vector)[::-1]
    distance[:, 0] += 1
    return ((distance**2 + cusp**2) ** (p / 2)).sum(axis=1)


def decayed(initial: float, growth: float, every: float, epoch: float) -> float:
    return initial * growth ** math.floor(epoch / every)


# The published scripts. `eps` is their floor under probabilities.


def published_probabilities(logits: Tensor, eps: float = 1e-7) -> Tensor:
    return torch.clamp(F.softmax(logits, dim=1), min=eps, max=1.0)


def published_generalized(logits: Tensor, label: Tensor, q: float) -> Tensor:
    one_hot = F.one_hot(label, logits.shape[1])
    return (1 - torch.sum(one_hot * published_probabilities(logits), dim=1) ** q) / q


def published_normalized_generalized(logits: Tensor, label: Tensor, q: float) -> Tensor:
    one_hot = F.one_hot(label, logits.shape[1])
    pred = published_probabilities(logits)
    numerator = 1 - torch.sum(one_hot * pred, dim=1) ** q
    return numerator / (logits.shape[1] - (pred**q).sum(dim=1))


def published_reverse(logits: Tensor, label: Tensor) -> Tensor:
    one_hot = F.one_hot(label, logits.shape[1]).to(logits.dtype)
    one_hot = torch.clamp(one_hot, min=1e-4, max=1.0)
    return -1 * torch.sum(published_probabilities(logits) * torch.log(one_hot), dim=1)


def published_symmetric(logits: Tensor, label: Tensor, alpha: float, beta: float) -> Tensor:
    ce = F.cross_entropy(logits, label, reduction="none")
    return alpha * ce + beta * published_reverse(logits, label)


def published_focal(logits: Tensor, label: Tensor, gamma: float) -> Tensor:
    """The factor is computed from values alone, so no gradient flows through it."""
    log_pt = F.log_softmax(logits, dim=1).gather(1, label.view(-1, 1)).view(-1)
    return -1 * (1 - log_pt.detach().exp()) ** gamma * log_pt


def published_normalized_focal(logits: Tensor, label: Tensor, gamma: float) -> Tensor:
    log_pred = F.log_softmax(logits, dim=1)
    every = -1 * (1 - log_pred.detach().exp()) ** gamma * log_pred
    return published_focal(logits, label, gamma) / every.sum(dim=1)


def published_norm(logits: Tensor, p: float) -> Tensor:
    return torch.sum(published_probabilities(logits) ** p, dim=1)


def published_sparse(
    logits: Tensor,
    label: Tensor,
    base: Callable[[Tensor, Tensor], Tensor],
    *,
    temperature: float,
    p: float,
    weight: float,
    normalize: bool,
) -> Tensor:
    outputs = F.normalize(logits, dim=1) if normalize else logits
    outputs = outputs / temperature
    return base(outputs, label) + weight * published_norm(outputs, p)
