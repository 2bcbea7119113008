"""Noisy labels by a transition matrix, at random or in exact counts, or by instance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.noise.matrices import Labels, Matrix, check_matrix, warn_of_rivals
from labelproof.ranges import within
from labelproof.seeds import Seed, admit_labels, as_generator


@dataclass(frozen=True)
class NoisyLabels:
    """Clean and noisy labels, and the intended transition matrix.

    Attributes:
        clean: The labels before, `(N)`.
        noisy: The labels after, `(N)`.
        matrix: The intended transition matrix, `(C, C)`; for instance-dependent noise the mean over
            each class, for human labels the empirical matrix.
    """

    clean: Labels
    noisy: Labels
    matrix: Matrix

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """Which noisy labels are wrong, `(N)`."""
        return self.clean != self.noisy

    @property
    def rate(self) -> float:
        """The actual share of wrong labels, which may differ from the requested one."""
        return np.count_nonzero(self.flipped) / max(len(self.clean), 1)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of labels of each class (row) that became each class (column), `(C, C)`."""
        num_classes = len(self.matrix)
        pairs = np.bincount(self.clean * num_classes + self.noisy, minlength=num_classes**2)
        return pairs.reshape(num_classes, num_classes)

    @property
    def empirical_matrix(self) -> Matrix:
        """The observed transition matrix; a class without labels has a row of zeros."""
        counts = self.counts
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def corrupt(labels: ArrayLike, matrix: Matrix, *, seed: Seed, exact: bool = False) -> NoisyLabels:
    """Corrupt labels by a transition matrix.

    A seed gives the same labels everywhere: only uniform doubles of numpy's PCG64 are used, one
    per label and, for exact counts, one for each entry of the matrix before them.

    Args:
        labels: Clean class indices, `(N)`.
        matrix: Row-stochastic, `(C, C)`.
        seed: A number, or a generator, which is advanced.
        exact: Whether, of the n labels of class i, exactly `round(n * matrix[i, i])` stay and
            `n * matrix[i, j]` to within one become j, and chance only decides which. Otherwise
            every label is drawn independently, and rates vary. Either way, rates hold in each
            class: an equal COUNT of wrong labels in each would ruin small classes.

    Warns:
        UnlearnableClassWarning: If a class is lost at this rate and these class sizes, by expected
            counts, so that it does not depend on the seed.

    Example:
        >>> from labelproof.noise import symmetric_matrix
        >>> corrupt([0, 1, 2, 0, 1, 2], symmetric_matrix(3, 0.5), seed=1).noisy
        array([1, 2, 0, 2, 1, 1])
        >>> corrupt([0] * 10 + [1] * 15, symmetric_matrix(2, 0.2), seed=1, exact=True).counts
        array([[ 8,  2],
               [ 3, 12]])
    """
    matrix = check_matrix(matrix)
    clean = admit_labels(labels, len(matrix))
    sizes = np.bincount(clean, minlength=len(matrix))
    warn_of_rivals(matrix, class_sizes=sizes, stacklevel=2)
    corrupt_labels = deal_labels if exact else draw_labels
    return NoisyLabels(clean, corrupt_labels(clean, matrix, as_generator(seed)), matrix)


def draw_labels(clean: Labels, matrix: Matrix, generator: np.random.Generator) -> Labels:
    """Draw each label from its class's row, by one uniform number on the cumulative row."""
    uniform = generator.random(len(clean))
    noisy = np.empty_like(clean)
    # Class by class, so that each needs one search in one row.
    ends = np.cumsum(np.bincount(clean, minlength=len(matrix)))
    members = np.split(np.argsort(clean, kind="stable"), ends[:-1])
    for row, samples in zip(cumulative_chances(matrix), members, strict=True):
        noisy[samples] = row.searchsorted(uniform[samples], side="right")
    return noisy


def deal_labels(clean: Labels, matrix: Matrix, generator: np.random.Generator) -> Labels:
    """Give each class exactly its counts of labels; chance decides only which sample gets which."""
    num_classes = len(matrix)
    sizes = np.bincount(clean, minlength=num_classes)
    counts = exact_counts(sizes, matrix, generator)
    # By class, and in random order within it.
    order = np.lexsort((generator.random(len(clean)), clean))
    noisy = np.empty_like(clean)
    noisy[order] = np.repeat(np.tile(np.arange(num_classes), num_classes), counts.ravel())
    return noisy


def exact_counts(
    sizes: NDArray[np.int64], matrix: Matrix, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Whole numbers next to `sizes[i] * matrix[i, j]` that add up to the sizes in each row.

    The diagonal is rounded to the nearest, so that the rate is as close as possible. The others are
    rounded down, and what is missing goes to the largest remainders. Ties are broken at random: by
    order, every class of CIFAR-100 would give its odd labels to the same few classes.

    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> exact_counts(np.array([10, 5]), np.array([[0.75, 0.25], [0.5, 0.5]]), generator).sum(axis=1)
    array([10,  5])
    """
    shares = sizes[:, None] * matrix / matrix.sum(axis=1, keepdims=True)
    # Rounding errors differ between platforms, and must not decide between equal shares.
    shares = shares.round(6)
    counts = np.floor(shares).astype(np.int64)
    remainders = shares - counts
    np.fill_diagonal(counts, np.rint(shares.diagonal()).astype(np.int64))
    np.fill_diagonal(remainders, -1)
    rank = np.lexsort((generator.random(shares.shape), -remainders), axis=1).argsort(axis=1)
    missing = sizes - counts.sum(axis=1)
    return counts + (rank < missing[:, None])


def cumulative_chances(matrix: Matrix) -> Matrix:
    """The cumulative probabilities of each row, infinite from its last possible label on.

    A row may add up to slightly less than 1. Without the infinities, a uniform number just below 1
    would select a label of probability 0.

    >>> import numpy as np
    >>> cumulative_chances(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.0, 0.0, 1.0]]))
    array([[0.5 ,  inf,  inf],
           [0.  , 0.25,  inf],
           [0.  , 0.  ,  inf]])
    """
    possible = np.logical_or.accumulate(matrix[:, ::-1] > 0, axis=1)[:, ::-1]
    cumulative = np.cumsum(matrix, axis=1)
    cumulative[:, -1] = np.inf
    cumulative[:, :-1][~possible[:, 1:]] = np.inf
    return cumulative


# 32 MiB of doubles at a time, for any number of samples.
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
    r"""Corrupt labels with probabilities that depend on each sample's features.

    Each sample has a flip rate $q_i$ of its own, drawn from a normal distribution around the rate.
    A random projection $W_c$ of the features, one for each class, decides where a flip leads:

    $$ p_{ij} = q_i \, \mathrm{softmax}_{j \ne y_i} \bigl( x_i^\top W_{y_i} \bigr)_j ,
       \qquad p_{iy_i} = 1 - q_i , \qquad W \sim \mathcal N(0, 1) . $$

    Similar samples of a class are confused with the same other class, and a flip never returns to
    the true one. The normal distribution is truncated to the largest symmetric interval around the
    rate within [0, 1]; the authors truncate it to [0, 1], which turns a rate of 0.1 into 0.13. Here
    the expected rate is exactly `rate`, and the actual one is within five standard deviations,
    $5 \sqrt{\eta (1 - \eta) / N}$, but for one draw in a million.

    Features are not scaled. The larger they are, the surer a sample's flip leads to one class; the
    larger their mean relative to their spread, the more samples of a class share it. The
    authors use raw pixels; features of mean 0 depend more on the sample.

    A seed gives the same labels everywhere but for a sample whose draw lies within the rounding of
    a dot product, one in about $10^{13}$.

    Args:
        features: `(N, ...)`, any numbers, such as images; read in blocks, so that a memory-mapped
            array stays on disk.
        labels: Clean class indices, `(N)`.
        rate: $\eta$, the expected share of wrong labels.
        num_classes: $C$.
        seed: A number, or a generator, which is advanced.
        deviation: Standard deviation of the flip rates before truncation.

    Returns:
        The labels, with the mean probabilities of each class as the intended matrix.

    Warns:
        UnlearnableClassWarning: If a class is lost, as for `corrupt`.

    Example:
        >>> features = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]])
        >>> corrupt_by_instance(features, [0, 0, 1, 1], 0.3, num_classes=3, seed=1).noisy
        array([0, 0, 2, 1])

    Reference:
        Xia et al., "Part-dependent Label Noise: Towards Instance-dependent Label Noise", NeurIPS
        2020, algorithm 2.
    """
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
        # Normal numbers from uniform ones (Box and Muller), since numpy's own may change.
        radius, angle = generator.random((2, width, num_classes))
        projection = np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * np.pi * angle)
        members = np.flatnonzero(clean == label)
        total = np.zeros(num_classes)
        for start in range(0, len(members), rows):
            block = members[start : start + rows]
            # In float32, rounding of the dot product would change some labels between machines.
            scores = samples[block].reshape(len(block), -1).astype(np.float64) @ projection
            scores[:, label] = -np.inf
            # Pixels up to 255 make scores of thousands, whose exponentials overflow.
            probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
            probabilities *= (flip_rates[block] / probabilities.sum(axis=1))[:, None]
            probabilities[:, label] = 1 - flip_rates[block]
            if np.isnan(probabilities).any():
                sample = block[np.isnan(probabilities).any(axis=1).argmax()]
                raise ValueError(f"features: expected finite numbers, got others in row {sample}")
            noisy[block] = (cumulative_chances(probabilities) <= uniform[block, None]).sum(axis=1)
            total += probabilities.sum(axis=0)
        if members.size:
            matrix[label] = total / len(members)
    warn_of_rivals(matrix, class_sizes=np.bincount(clean, minlength=num_classes), stacklevel=2)
    return NoisyLabels(clean, noisy, matrix)


def _flip_rates(uniform: NDArray[np.float64], rate: float, deviation: float) -> NDArray[np.float64]:
    """Normal around the rate, truncated symmetrically so that the mean stays the rate."""
    reach = min(rate, 1 - rate)
    if deviation == 0 or reach == 0:
        return np.full(len(uniform), rate)
    normal = NormalDist()
    # Eight deviations out the distribution function is all but 0 or 1, and at them has no inverse.
    cut = normal.cdf(-min(reach / deviation, 8.0))
    inverse = map(normal.inv_cdf, (cut + uniform * (1 - 2 * cut)).tolist())
    rates = rate + deviation * np.fromiter(inverse, np.float64, len(uniform))
    return rates.clip(rate - reach, rate + reach)
