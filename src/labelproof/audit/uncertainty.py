"""How far chance moves a noise model: the fit to all samples, and its intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import betaincinv
from torch import Tensor

from labelproof.audit.noise_model import (
    COOLEST,
    HOTTEST,
    IMPOSSIBLE,
    NoiseModel,
    expected_shares,
    normalised,
    prior_weight,
    pseudo_counts,
)
from labelproof.audit.predictions import Table

__all__ = ["Uncertainty", "refine"]

_CHUNK = 1 << 15
_EXACT = 200
"""Classes up to which the curvature of the likelihood is computed: it has their cube of numbers."""
_ROUNDS, _ROUNDS_OF_MANY = 12, 3
_MANY = 50_000
_CONVERGED = 0.02
"""Change of the rate, in standard deviations, at which the fit to all samples has converged."""
_FACTOR = 4.0
"""A cell becomes at most so many times larger or smaller in one step."""
_FEW_OF_CLASS = 30
"""Samples' worth of evidence below which a row of the matrix is not told."""
_MISCALIBRATED = 1.6
"""Standard deviations of a cell for each share of its class by which predictions are off; by
simulation."""
_BIAS = 1.5
"""Labels for each class by which doubtful predictions may be fitted too well; by simulation."""


@dataclass(frozen=True)
class Uncertainty:
    """How far chance moves the estimates of a noise model.

    Attributes:
        low: The lower ends of the 95% intervals of the matrix, `(C, C)`; 0 with an upper end of 1
            where a class has too few samples to tell.
        high: The upper ends.
        rate: The variance of the share of wrong labels.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rate: float


def refine(
    logits: Table, given: NDArray[np.int64], model: NoiseModel, *, fixed: bool = False
) -> tuple[NoiseModel, Uncertainty]:
    """Fit a noise model to all samples by Newton's method, part by part.

    Args:
        logits: `(N, C)`; a mapped file is read part by part.
        given: The labels as they came, `(N)`.
        model: From `fit_noise_model`, of these samples or of some of them.
        fixed: Whether the temperature stays as it is.

    Example:
        >>> from labelproof.audit.noise_model import fit_noise_model
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(3, size=3000)
        >>> given = np.where(generator.random(3000) < 0.3, (true + 1) % 3, true)
        >>> logits = (6 * np.eye(3)[true] + generator.normal(size=(3000, 3))).astype(np.float32)
        >>> model, chance = refine(logits, given, fit_noise_model(logits, given))
        >>> bool(chance.low[0, 1] < 0.3 < chance.high[0, 1])
        True
    """
    matrix, temperature, size = model.transition, model.temperature, len(given)
    before = math.inf
    rounds = _ROUNDS_OF_MANY if size > _MANY else _ROUNDS
    while True:
        found = _Curvature(logits, given, matrix, temperature)
        model = replace(
            model,
            transition=matrix,
            temperature=temperature,
            joint=found.joint,
            likelihood=found.likelihood,
        )
        solved = _Newton(found, matrix, model.concentration, temperature, fixed=fixed)
        rounds -= 1
        if not rounds or abs(found.rate - before) <= _CONVERGED * math.sqrt(solved.rate):
            break
        before = found.rate
        matrix, temperature = solved.matrix, solved.temperature
    posterior = solved.posterior
    mean = normalised(posterior)
    # No cell is known better than if each sample's true class were known.
    variance = np.maximum(
        solved.variance, mean * (1 - mean) / (posterior.sum(axis=1, keepdims=True) + 1)
    )
    # Classes that are predicted too often are calibrated by no temperature.
    variance += mean * (1 - mean) * np.minimum(_MISCALIBRATED * found.bias, 1)[:, None] ** 2
    low, high = _beta_interval(mean, variance)
    low = np.where(found.evidence < 1, 0.0, np.minimum(low, model.transition))
    few = found.evidence.sum(axis=1) < _FEW_OF_CLASS
    low[few], high[few] = 0.0, 1.0
    return model, Uncertainty(
        low,
        np.maximum(high, model.transition),
        solved.rate + (_BIAS * len(mean) / size * found.doubt) ** 2,
    )


def _beta_interval(
    mean: NDArray[np.float64], variance: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of the 95% interval of a beta distribution by its mean and variance."""
    strength = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-16) - 1, 1e-3)
    shapes = np.maximum(mean * strength, 1e-9), np.maximum((1 - mean) * strength, 1e-9)
    return betaincinv(*shapes, 0.025), betaincinv(*shapes, 0.975)


class _Curvature:
    r"""The log-likelihood of all labels near a matrix and a temperature, to second order.

    With \(u_i = q(x_i) / P(y_i \mid x_i)\), the derivative by column \(k\) of the matrix is the
    sum of \(u_i\) over the samples labelled \(k\), and the second one that of
    \(-u_i u_i^\top\): columns are independent but for the rows' sums and the temperature.
    """

    def __init__(
        self,
        logits: Table,
        given: NDArray[np.int64],
        matrix: NDArray[np.float64],
        temperature: float,
    ):
        size, classes = logits.shape
        self.size, self.exact = size, classes <= _EXACT
        self.gradient = np.zeros((classes, classes))
        """By label (row) and true class, as everything here."""
        self.blocks = np.zeros((classes, classes, classes if self.exact else 1))
        """The curvature of each label's column; only its diagonal where there are many classes."""
        self.mixed = np.zeros((classes, classes))
        self.sums = torch.zeros(7, dtype=torch.float64)
        self.predicted = np.zeros((2, classes))
        """Sums of the probabilities of each class, and of their squares."""
        columns = torch.from_numpy(matrix.T.astype(np.float32))
        for begin in range(0, size, _CHUNK):
            part = slice(begin, begin + _CHUNK)
            with np.errstate(over="ignore"):
                chunk = torch.from_numpy(np.array(logits[part], dtype=np.float32))
            labels, order = torch.from_numpy(given[part]).sort()
            self._add(chunk[order], labels, columns, temperature)
        likelihood, self.slope, self.bend, wrong, unsure, self.rate_slope, doubt = (
            self.sums.tolist()
        )
        self.likelihood, self.rate, self.doubt = likelihood / size, wrong / size, doubt / size
        self.chance = unsure / size**2
        self.joint = matrix * self.gradient.T / size
        diagonal = (
            np.diagonal(self.blocks, axis1=1, axis2=2) if self.exact else self.blocks[:, :, 0]
        )
        self.evidence = matrix**2 * diagonal.T
        """Samples' worth of evidence in each cell, by true class and label."""
        samples, (mean, squares) = size * self.joint.sum(axis=1), self.predicted
        # Of calibrated predictions the differences are chance, and their variance is below this.
        surplus = (samples - mean) ** 2 - 4 * (mean - squares)
        self.bias = np.sqrt(np.maximum(surplus, 0)) / np.maximum(samples, 1)
        """By which share of its samples each class is predicted too often, or not often enough."""

    def _add(self, scaled: Tensor, labels: Tensor, columns: Tensor, temperature: float) -> None:
        scaled -= scaled.amax(dim=1, keepdim=True)
        scaled.clamp_(min=IMPOSSIBLE).div_(temperature)
        word = torch.softmax(scaled, dim=1)
        largest = word.amax(dim=1)
        self.predicted += torch.stack([word.sum(dim=0), word.square().sum(dim=0)]).numpy()
        column = columns[labels]
        mean = torch.linalg.vecdot(word, scaled)
        joint = column.mul_(word)
        told = joint.sum(dim=1).clamp_(min=1e-30)
        # The derivative of the log-likelihood by the logarithm of the temperature.
        slope = mean - torch.linalg.vecdot(scaled, joint) / told
        right = joint.gather(1, labels[:, None])[:, 0] / told
        own = scaled.gather(1, labels[:, None])[:, 0]
        terms = (
            told.log(),
            slope,
            slope * slope,
            1 - right,
            right * (1 - right),
            right * (own - mean + slope),
            1 - largest,
        )
        self.sums += torch.stack([term.sum(dtype=torch.float64) for term in terms])
        word.div_(told[:, None])
        counts = torch.bincount(labels, minlength=len(columns)).tolist()
        for label, rows in enumerate(word.split(counts)):
            if len(rows):
                self.gradient[label] += rows.sum(dim=0).numpy()
                product = rows.T @ rows if self.exact else (rows * rows).sum(dim=0)[:, None]
                self.blocks[label] += product.numpy()
        for label, rows in enumerate(word.mul_(slope[:, None]).split(counts)):
            if len(rows):
                self.mixed[label] += rows.sum(dim=0).numpy()


class _Newton:
    """One step of Newton's method, and the variances that the curvature implies.

    Unknowns are the matrix, column by column; a multiplier for the sum of each row; the logarithm
    of the temperature; and the diagonal share of the prior, which follows the matrix in a step, and
    whose doubt adds to the variances.
    """

    def __init__(
        self,
        found: _Curvature,
        matrix: NDArray[np.float64],
        concentration: float,
        temperature: float,
        *,
        fixed: bool,
    ):
        size, classes = found.size, len(matrix)
        prior = pseudo_counts(found.joint, concentration)
        self.posterior = size * found.joint + prior
        wanted = normalised(expected_shares(self.posterior)) * self.posterior.sum(
            axis=1, keepdims=True
        )
        if not found.exact:
            self.matrix, self.temperature = normalised(wanted), temperature
            known = found.evidence.sum(axis=1, keepdims=True) + concentration
            mean = normalised(self.posterior)
            self.variance = mean * (1 - mean) / (known + 1)
            self.rate = found.chance
            return
        cells = matrix.T
        blocks = found.blocks.copy()
        index = np.arange(classes)
        blocks[:, index, index] += prior.T / cells**2
        self.inverse = np.linalg.inv(blocks)
        towards = np.full((classes, classes), -1 / (classes - 1))
        np.fill_diagonal(towards, 1.0)
        beforehand = prior_weight(size)
        self.edges = np.stack([found.mixed, -concentration * towards / cells], axis=2)
        bends = [
            found.bend + max(beforehand, 1e-3),
            concentration**2 * float((towards**2 / prior).sum()),
        ]
        product = self.inverse @ self.edges
        self.solved = np.concatenate([self.inverse, product], axis=2)
        corner = np.diag(bends) - np.einsum("kjr,kjs->rs", self.edges, product)
        side = -product.sum(axis=0)
        self.schur = np.block([[-self.inverse.sum(axis=0), side], [side.T, corner]])
        self.classes = classes
        slope = found.slope - beforehand * math.log(temperature)
        free = [] if fixed else [0]
        step, (warmer, _) = self._solve(wanted.T / cells, [slope, 0.0], free)
        new = np.clip(cells + step, cells / _FACTOR, _FACTOR * cells)
        self.matrix = normalised(new.T)
        warmer = math.exp(min(max(warmer, -0.5), 0.5))
        self.temperature = min(max(temperature * warmer, COOLEST), HOTTEST)
        kept, schur = self._schur([*free, 1])
        chosen = self.solved[:, :, kept]
        own = np.diagonal(self.inverse, axis1=1, axis2=2)
        self.variance = np.maximum(own + ((chosen @ schur) * chosen).sum(axis=2), 0).T
        # The derivative of the mean score by the matrix and by the temperature.
        by_cells = np.diag(matrix)[:, None] * found.blocks[index, index]
        by_cells[index, index] -= np.diag(found.gradient)
        by_heat = [found.rate_slope / size, 0.0]
        moved, others = self._solve(by_cells / size, by_heat, [*free, 1])
        moves = float((by_cells / size * moved).sum()) + float(np.dot(by_heat, others))
        self.rate = max(moves, 0.0) + found.chance

    def _schur(self, free: list[int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        kept = np.concatenate([np.arange(self.classes), self.classes + np.array(free, np.int64)])
        return kept, np.linalg.inv(self.schur[np.ix_(kept, kept)])

    def _solve(
        self, cells: NDArray[np.float64], others: list[float], free: list[int]
    ) -> tuple[NDArray[np.float64], list[float]]:
        kept, schur = self._schur(free)
        first = (self.inverse @ cells[:, :, None])[:, :, 0]
        edge = others - np.einsum("kjr,kj->r", self.edges, first)
        found = schur @ np.concatenate([-first.sum(axis=0), edge])[kept]
        all_others = [0.0, 0.0]
        for place, value in zip(free, found[self.classes :].tolist(), strict=True):
            all_others[place] = value
        return first - self.solved[:, :, kept] @ found, all_others
