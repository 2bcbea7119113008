"""Noise that depends on the sample: some are easier to mistake, and each for something else."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.noise.matrices import warn_of_rivals
from labelproof.noise.sampling import NoisyLabels, admit_labels, cumulative_chances
from labelproof.ranges import within
from labelproof.seeds import Seed, as_generator

# 32 MiB of doubles at a time, whatever the number of samples.
_BLOCK = 1 << 22


def corrupt_by_instance(
    features: ArrayLike,
    labels: ArrayLike,
    rate: float,
    *,
    num_classes: int,
    seed: Seed,
    deviation: float = 0.1,
) -> NoisyLabels:
    r"""Write labels anew by chances that each sample's features decide.

    Each sample has a flip rate $q_i$ of its own, drawn from a normal distribution around the rate.
    Where a flip leads is decided by a random projection $W_c$ of the features for each class:

    $$ p_{ij} = q_i \, \mathrm{softmax}_{j \ne y_i} \bigl( x_i^\top W_{y_i} \bigr)_j ,
       \qquad p_{iy_i} = 1 - q_i , \qquad W \sim \mathcal N(0, 1) . $$

    Alike samples of a class are mistaken for the same other class, and a flip never returns to
    the true one. The normal distribution is cut off at the largest interval around the rate that
    lies in [0, 1]; the authors cut it off at 0 and 1 themselves, which makes a rate of 0.1 come
    out as 0.13. Here the expected rate is exactly `rate`, so the actual one is within five
    standard deviations, $5 \sqrt{\eta (1 - \eta) / N}$, but for one draw in a million.

    Features are taken as they are. The larger they are, the surer a sample's flip leads to one
    class; the larger their mean beside their spread, the more samples of a class share it. The
    authors take the raw pixels; features of mean 0 depend more on the sample.

    A seed gives the same labels everywhere but for a sample whose draw lies within the rounding of
    a dot product, one in about $10^{13}$.

    Args:
        features: `(N, ...)`, any numbers, such as images; read in blocks, so that a memory-mapped
            array stays on disk.
        labels: Clean class indices, `(N)`.
        rate: $\eta$, the expected share of wrong labels.
        num_classes: $C$.
        seed: A number, or a generator that is moved on.
        deviation: Standard deviation of the flip rates before they are cut off.

    Returns:
        The labels, with the mean of the chances over each class as the intended matrix.

    Warns:
        UnlearnableClassWarning: Where a class is lost, as for `corrupt`.

    Example:
        >>> features = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]])
        >>> corrupt_by_instance(features, [0, 0, 1, 1], 0.3, num_classes=3, seed=1).noisy
        array([0, 0, 2, 1])

    Reference:
        Xia et al., "Part-dependent Label Noise: Towards Instance-dependent Label Noise", NeurIPS
        2020, algorithm 2.
    """
    if num_classes < 2:
        raise ValueError(f"num_classes: expected at least 2, got {num_classes}")
    rate = within("rate", rate, 0, 1)
    deviation = within("deviation", deviation, 0)
    clean = admit_labels(labels, num_classes)
    samples = np.asarray(features)
    if samples.ndim < 2 or len(samples) != len(clean):
        raise ValueError(
            f"features: expected a row for each of {len(clean)} labels, got shape {samples.shape}"
        )
    generator = as_generator(seed)
    flip_rates = _flip_rates(generator.random(len(clean)), rate, deviation)
    uniform = generator.random(len(clean))
    width = math.prod(samples.shape[1:])
    rows = max(1, _BLOCK // max(width, num_classes, 1))
    noisy = np.empty_like(clean)
    matrix = np.eye(num_classes)
    for label in range(num_classes):
        projection = _normals(generator, (width, num_classes))
        members = np.flatnonzero(clean == label)
        total = np.zeros(num_classes)
        for start in range(0, len(members), rows):
            block = members[start : start + rows]
            chances = _chances(samples[block], projection, label, flip_rates[block])
            if np.isnan(chances).any():
                sample = block[np.isnan(chances).any(axis=1).argmax()]
                raise ValueError(f"features: expected finite numbers, got others in row {sample}")
            noisy[block] = (cumulative_chances(chances) <= uniform[block, None]).sum(axis=1)
            total += chances.sum(axis=0)
        if members.size:
            matrix[label] = total / len(members)
    warn_of_rivals(matrix, class_sizes=np.bincount(clean, minlength=num_classes), stacklevel=2)
    return NoisyLabels(clean, noisy, matrix)


def _chances(
    features: NDArray[np.generic],
    projection: NDArray[np.float64],
    label: int,
    flip_rates: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The chances of each label for samples of one class."""
    # In float32 a dot product's rounding would change a label now and then from machine to machine.
    scores = features.reshape(len(features), -1).astype(np.float64) @ projection
    scores[:, label] = -np.inf
    # Pixels up to 255 make scores of thousands, whose exponentials are past the floats.
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores, out=scores)
    chances *= (flip_rates / chances.sum(axis=1))[:, None]
    chances[:, label] = 1 - flip_rates
    return chances


def _flip_rates(uniform: NDArray[np.float64], rate: float, deviation: float) -> NDArray[np.float64]:
    """Normal around the rate, cut off at equal distances so that the mean stays the rate."""
    reach = min(rate, 1 - rate)
    if deviation == 0 or reach == 0:
        return np.full(len(uniform), rate)
    normal = NormalDist()
    # Eight deviations out the distribution function is all but 0 or 1, and at them has no inverse.
    cut = normal.cdf(-min(reach / deviation, 8.0))
    inverse = map(normal.inv_cdf, (cut + uniform * (1 - 2 * cut)).tolist())
    rates = rate + deviation * np.fromiter(inverse, np.float64, len(uniform))
    return rates.clip(rate - reach, rate + reach)


def _normals(generator: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Normal numbers from uniform ones (Box and Muller), since numpy's own may change."""
    radius, angle = generator.random((2, *shape))
    return np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * np.pi * angle)
