r"""Classifiers chosen, blended and calibrated by the noisy labels alone.

1. Every candidate predicts rows that it was not trained on.
2. The weights of the blend minimise the mean log loss of the given labels of those rows, as far as
   these tell: the search starts from the candidates' priors and stops early. With more than two
   classes, some labels are taken to be random.
3. The noise model of the audit is fitted to the blend's predictions and the given labels: a
   transition matrix \(T\), and a temperature that calibrates the blend to the true labels.
4. A blend that has learned the noise predicts it. If the labels of the most confident predictions
   show that classes are confused one way only, the blend's probabilities \(p\) of given labels
   become those of true classes: the \(q\) whose \(q\,T\) is nearest to \(p\).

A classifier that the user gave has nothing to be blended with. It is trained a second time, on the
posterior of each row's true class as soft labels: proportional to \(q_j(x)\, T_{jk}\) for the given
label \(k\), by Bayes' rule. Soft labels are kept if they predict held-out labels no worse.

Reference:
    Smyth and Wolpert, "Linearly combining density estimators via stacking", Machine Learning 1999.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from threadpoolctl import threadpool_limits

from labelproof.audit.anchors import correct, correct_by_anchors, one_sidedness
from labelproof.audit.noise_model import Groups, NoiseModel, fit_noise_model
from labelproof.models.blend import take_back
from labelproof.tabular.candidates import (
    Candidate,
    Confirmed,
    ConfirmedKernel,
    Floats,
    Forest,
    Kernel,
    Linear,
    SoftRows,
    Words,
    as_probabilities,
)
from labelproof.tabular.rows import LabelledRows, split_ids

_KEPT = 0.03
"""Weight of the given label in a soft label, so that no class is without rows."""
_FEWEST_OF_CLASS = 5
"""Classes with fewer labels keep them all: a model that has seen two rows of a class rarely
predicts it, and would call all of its labels wrong."""
_STEPS = 200
"""Of expectation maximisation; with more, the weights overfit the noise."""
_STEPS_OF_SHARE = 40
"""Of expectation maximisation for the share of random labels."""
_NEGLIGIBLE = 0.05
"""Weight below which a variant is left out of the blend: fitting it on all rows takes time."""
_TINY = 2_000
"""Number of rows up to which starting processes takes longer than they save."""
_SMALL = 5_000
"""Number of rows up to which threads slow matrix products down."""
_MOST_OF_ONE = 10_000
"""Number of rows up to which a forest may have leaves of one row."""
_FEWEST_OF_WIDE, _MOST_OF_WIDE = 1_000, 5_000
"""Numbers of rows for which a wide forest is tried: wrong labels of fewer rows hide its mistakes,
and with more it is slow."""
_CONFIRMED = 5_000
"""Number of rows up to which confirmed labels are tried; with more, ten forests are slow."""
_UNSURE = 2_000
"""Number of rows up to which wrong labels may hide which of the candidates is best."""
_PREDICTED = 0.75
"""Agreement with the labels above which few can be wrong: leaving out those that are not confirmed
would cost more than it gains."""
_AS_WELL = 2.0
"""Log-likelihood by which a step may be below the best one; see `_border`."""
_ONE_SIDED = 0.35
"""How one-sided the confusions of anchors have to be to be more than chance."""
_LEANING = 0.8
"""How one-sided those of all samples may be, relative to anchors: above, the blend is biased. Both
were chosen on the tables of `benchmarks/tables.py`."""


@dataclass(frozen=True)
class Committee:
    """Fitted candidates whose weighted mean predicts.

    Attributes:
        members: The candidates.
        weights: Of all fitted variants, member after member; sum to 1.
        temperatures: Of each variant, to calibrate it to the given labels.
        mixing: The transition matrix that the blend has learned and that `predict_proba` undoes,
            `(C, C)`; the identity if it has not.
        prior: What the probabilities are divided by after that, `(C)`; see `_border`.
        temperature: Of the result, to calibrate it to the true labels.
        noise: The noise model, by the out-of-sample predictions.
        scores: Of each variant: the mean `log_loss` of held-out labels, its `agreement` with them,
            and its `weight`.
        held_out: Out-of-sample probabilities of the GIVEN labels of the training rows, `(N, C)`, as
            they were before equal ones were merged.
        ids: The features that hold the ids of terms.
    """

    members: list[Candidate]
    weights: Floats
    temperatures: Floats
    mixing: Floats
    prior: Floats
    temperature: float
    noise: NoiseModel
    scores: dict[str, dict[str, float]]
    held_out: NDArray[np.float32]
    ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def predict_proba(self, rows: NDArray[Any]) -> Floats:
        """The probability of each true class, `(N, C)`."""
        rest, terms = split_ids(rows, self.ids)
        wide = rest.astype(np.float64)
        tables = (table for member in self.members for table in member.predict(wide, terms))
        calibrated = map(calibrate, tables, self.temperatures)
        mean = sum(weight * each for weight, each in zip(self.weights, calibrated, strict=True))
        true = take_back(torch.from_numpy(mean), torch.from_numpy(self.mixing)).numpy()
        return calibrate(true / self.prior, self.temperature)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors of the [`Blend`][labelproof.models.blend.Blend] that predicts the same."""
        names = ("weights", "temperatures", "mixing", "prior", "temperature")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in names}
        arrays["mean"], arrays["std"] = self.members[0].statistics
        arrays |= {"ids": self.ids} if len(self.ids) else {}
        for place, member in enumerate(self.members):
            kind, parts = member.tensors()
            arrays |= {f"{place}.{kind}.{name}": part for name, part in parts.items()}
        # A copy: safetensors refuses tensors that share memory.
        return {name: torch.from_numpy(np.array(part)).clone() for name, part in arrays.items()}


def choose_candidates(examples: LabelledRows, *, seed: int, n_jobs: int | None) -> list[Candidate]:
    """The candidates, from rigid to flexible: the more noise, the more rigid the best one."""
    several = n_jobs if len(examples.rows) > _TINY else None
    common: dict[str, Any] = {"seed": seed, "n_jobs": several}
    # Leaves of one row are best if most labels are right; with many rows, they make large files.
    leaves = (1, 5, 60) if len(examples.rows) <= _MOST_OF_ONE else (5, 20, 60)
    texts = examples.terms.size > 0
    candidates = [
        Words(**common, words=examples.words) if texts else Linear(**common),
        Kernel(**common, sharpness=0.5),
        Kernel(**common, sharpness=4.0),
        *(Forest(**common, leaf=leaf, groups=examples.groups) for leaf in leaves),
    ]
    if _FEWEST_OF_WIDE <= len(examples.rows) <= _MOST_OF_WIDE:
        candidates.append(Forest(**common, leaf=5, groups=examples.groups, wide=True))
    if len(examples.rows) <= _CONFIRMED and not examples.too_few:
        # Of two classes, a second round may confirm a single one.
        two = len(examples.class_weight) == 2
        candidates.append(Confirmed(**common, rounds=1 if two else 2))
        if two and len(examples.rows) <= _UNSURE:
            candidates.append(ConfirmedKernel(**common))
    return candidates


def fit_committee(
    candidates: Sequence[Candidate],
    examples: LabelledRows,
    *,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Committee:
    """Blend the candidates by the given labels; a single one is trained on soft labels.

    Args:
        candidates: One or more.
        examples: The training data.
        n_jobs: Number of threads of libraries that would use all cores.
        verbose: Whether to print a line for each candidate.

    Example:
        >>> from labelproof.data.splits import folds
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(2, size=400)
        >>> given = np.where(generator.random(400) < 0.3, 1 - true, true)
        >>> rows = (4.0 * true + generator.normal(size=400))[:, None]
        >>> cuts = [folds(given, 5, seed=0)]
        >>> examples = LabelledRows(rows, given, np.ones(400), np.ones(2), cuts)
        >>> committee = fit_committee([Linear(), Kernel()], examples)
        >>> print(f"{np.mean(given != true):.0%} wrong, estimated {committee.noise.noise_rate:.0%}")
        27% wrong, estimated 25%
    """
    jobs = effective_n_jobs(n_jobs or 1)
    # Threads of small matrix products wait for each other longer than they compute.
    small = len(examples.rows) <= _SMALL
    with threadpool_limits({"openmp": 1, "blas": 1} if small else {"openmp": jobs}):
        if examples.too_few:
            return _trust_labels(candidates, examples)
        if len(candidates) == 1:  # nothing is chosen, and the user's classifier may be slow
            examples = replace(examples, cuts=examples.cuts[:1])
        compared = _compare(candidates, examples, verbose=verbose)
        return _make_committee(candidates, examples, compared)


class OutOfSample(NamedTuple):
    """The out-of-sample predictions of a variant."""

    table: Floats
    """Probabilities of the given labels, calibrated, `(N, C)`."""
    temperature: float
    """The temperature of that calibration."""
    likelihood: Floats
    """The probability of each given label, `(N)`, if some labels are random: see `_with_random`."""
    loss: float
    """Their mean log loss."""
    agreement: float
    """The share of the given labels that it predicts."""


Compared: TypeAlias = "dict[tuple[int, int], OutOfSample]"
"""The predictions of each variant, by the numbers of the candidate and of its variant."""


def _compare(candidates: Sequence[Candidate], examples: LabelledRows, *, verbose: bool) -> Compared:
    compared: Compared = {}
    for number, candidate in enumerate(candidates):
        started = time.perf_counter()
        held, share = examples.held_labels, examples.held_share
        agreement = max((each.agreement for each in compared.values()), default=0.0)
        if isinstance(candidate, Confirmed | ConfirmedKernel) and agreement > _PREDICTED:
            continue
        tables = _held_out(candidate, examples, examples.labels)
        for variant, table in enumerate(tables):
            compared[number, variant] = _calibrate_to_labels(table, held, share)
        if verbose:
            seconds = time.perf_counter() - started
            best = min(each.loss for each in compared.values())
            print(f"{candidate.names[0]}: best log loss {best:.4f}, {seconds:.1f} s", flush=True)
    return compared


def _make_committee(
    candidates: Sequence[Candidate], examples: LabelledRows, compared: Compared
) -> Committee:
    given, held, share = examples.given, examples.held_labels, examples.held_share
    priors = np.array([candidates[number].prior for number, _ in compared])
    weights = _blend(compared, priors, share)
    blended = np.sum([weight * compared[key].table for key, weight in weights.items()], axis=0)
    mean = _over_cuts(blended, examples)
    noise = fit_noise_model(np.log(mean), given)
    labels, temperature, prior = examples.labels, noise.temperature, _border(mean, given)
    temperatures = np.array([compared[key].temperature for key in weights])
    mixing = np.eye(len(prior))
    samples = Groups(np.log(mean).astype(np.float32), given)
    anchored = correct_by_anchors(samples, noise)
    if len(compared) > 1 and _confused_one_way(samples):
        noise, mixing, prior, temperature = anchored, anchored.transition, np.ones_like(prior), 1.0
    if len(compared) == 1:
        best = blended
        # A classifier may be unsure by itself, or have learned the noise. Its predictions do not
        # tell which; training on the soft labels of either and predicting held-out labels does.
        for model in [noise] if anchored.correction is None else [noise, anchored]:
            posterior = _posterior(mean, examples, model)
            retrained = _held_out(candidates[0], examples, posterior)[0]
            if _agreement(retrained, held, share) >= _agreement(best, held, share):
                best, labels, noise, temperatures = retrained, posterior, model, np.ones(1)
        best = _over_cuts(best, examples)
        temperature, prior = fit_noise_model(np.log(best), given).temperature, _border(best, given)
    weighted = _weigh(labels, examples)
    chosen: dict[int, list[int]] = {}
    for number, variant in weights:
        chosen.setdefault(number, []).append(variant)
    members = [candidates[number].fit(weighted, variants) for number, variants in chosen.items()]
    scores = {
        candidates[number].names[variant]: {
            "log_loss": each.loss,
            "agreement": each.agreement,
            "weight": float(weights.get((number, variant), 0.0)),
        }
        for (number, variant), each in compared.items()
    }
    shares, held_out = np.array(list(weights.values())), mean.astype(np.float32)[examples.became]
    return Committee(
        members,
        shares,
        temperatures,
        mixing,
        prior,
        temperature,
        noise,
        scores,
        held_out,
        examples.ids,
    )


def _confused_one_way(samples: Groups) -> bool:
    """Whether classes are confused one way only, and not because the blend is biased."""
    beyond_doubt, every = one_sidedness(samples)
    return beyond_doubt > _ONE_SIDED and every < _LEANING * beyond_doubt


def _trust_labels(candidates: Sequence[Candidate], examples: LabelledRows) -> Committee:
    """The mean of all candidates, for rows too few to hold some out: no label counts as wrong."""
    weighted = _weigh(examples.labels, examples)
    members = [candidate.fit(weighted, [0]) for candidate in candidates]
    even, prior = np.ones(len(members)), np.ones(len(examples.class_weight))
    right = np.diag(prior)
    noise = NoiseModel(right, 1.0, 0.0, np.diag(examples.labels.mean(axis=0)))
    given = as_probabilities(examples.labels).astype(np.float32)[examples.became]
    return Committee(
        members, even / len(members), even, right, prior, 1.0, noise, {}, given, examples.ids
    )


def _held_out(candidate: Candidate, examples: LabelledRows, labels: Floats) -> Floats:
    """The out-of-sample predictions of each variant, `(V, cuts * N, C)`."""
    tables = []
    for parts in examples.cuts if candidate.folded else examples.cuts[:1]:
        found = candidate.held_out(
            SoftRows(examples.rows, labels, examples.weight, examples.terms), parts
        )
        table = np.empty_like(found)
        table[:, np.concatenate([part.validation for part in parts])] = found
        tables.append(table)
    repeats = len(examples.cuts) // len(tables)
    return np.concatenate(tables * repeats, axis=1)


def _over_cuts(predicted: Floats, examples: LabelledRows) -> Floats:
    """The mean prediction of each row over the cuts, `(N, C)`."""
    return predicted.reshape(len(examples.cuts), len(examples.rows), -1).mean(axis=0)


def _calibrate_to_labels(table: Floats, given: NDArray[np.int64], share: Floats) -> OutOfSample:
    """Predictions at the temperature with the least log loss of the given labels."""
    rows, chance = np.arange(len(given)), 1 / table.shape[1]

    def likelihood(heat: float) -> Floats:
        return calibrate(table, np.exp(heat))[rows, given]

    def with_random(heat: float) -> Floats:
        return _with_random(likelihood(heat), chance, share)

    heat, found = _least_loss(likelihood, share)
    calibrated = calibrate(table, np.exp(heat))
    if table.shape[1] > 2:  # of two classes, both are always possible
        _, found = _least_loss(with_random, share)
    agreement, loss = _agreement(calibrated, given, share), -float(share @ np.log(found))
    return OutOfSample(calibrated, np.exp(heat), found, loss, agreement)


def _least_loss(likelihood: Callable[[float], Floats], share: Floats) -> tuple[float, Floats]:
    """The logarithm of the temperature with the least log loss, and the likelihood there."""
    found: Any = minimize_scalar(
        lambda heat: -float(share @ np.log(likelihood(heat))),
        bounds=np.log([0.1, 30.0]),
        options={"xatol": 0.05},
    )
    return float(found.x), likelihood(found.x)


def _with_random(likelihood: Floats, chance: float, share: Floats) -> Floats:
    """The probabilities of labels of which some are random, as many as is most probable.

    Without random labels, a rigid classifier that thinks any class possible would be preferred to
    an accurate one that wrong labels surprise.

    >>> _with_random(np.array([0.99, 0.99, 0.001]), 0.1, np.ones(3) / 3).round(2)
    array([0.67, 0.67, 0.04])
    """
    random = 0.2
    for _ in range(_STEPS_OF_SHARE):
        random = float(share @ (random * chance / ((1 - random) * likelihood + random * chance)))
    return (1 - random) * likelihood + random * chance


def calibrate(table: Floats, temperature: float) -> Floats:
    """Probabilities whose logarithms are divided by a temperature.

    >>> calibrate(np.array([[0.8, 0.2]]), 0.5).round(3)
    array([[0.941, 0.059]])
    """
    scores = np.log(table) / temperature
    powered = np.exp(scores - scores.max(axis=1, keepdims=True))
    return as_probabilities(powered / powered.sum(axis=1, keepdims=True))


def _agreement(table: Floats, given: NDArray[np.int64], share: Floats) -> float:
    return float(share @ (table.argmax(axis=1) == given))


def _blend(compared: Compared, priors: Floats, share: Floats) -> dict[tuple[int, int], float]:
    """The weight of each variant in the blend, by expectation maximisation.

    It starts from the priors and stops early: few labels say little about which is best.
    """
    likelihoods = np.stack([each.likelihood for each in compared.values()])
    weights = priors / priors.sum()
    for _ in range(_STEPS):
        weights *= likelihoods @ (share / (weights @ likelihoods))
    weights[weights < min(_NEGLIGIBLE, weights.max())] = 0.0
    weights /= weights.sum()
    return {key: float(weight) for key, weight in zip(compared, weights, strict=True) if weight}


def _border(predicted: Floats, given: NDArray[np.int64]) -> Floats:
    """What to divide probabilities of given labels by, to decide between true classes at one half.

    If one of two classes is mislabelled more often than the other, given labels have even odds away
    from the border of the true classes. That border may be any step in the log odds whose
    log-likelihood of the given labels is within `_AS_WELL` of the best. The decision moves halfway
    to the nearest of these steps, or stays if they lie on both sides: with much noise, few rows
    say little about the border.
    With more than two classes nothing moves: the noise of a pair is not known well enough.

    >>> odds = np.linspace(-3, 3, 1001)
    >>> table = np.column_stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))])
    >>> moved = _border(table, (odds > 1).astype(np.int64))
    >>> round(float(np.log(moved[1] / moved[0])), 1)
    0.5
    >>> _border(table, np.arange(1001) % 2)
    array([1., 1.])
    """
    if predicted.shape[1] != 2:
        return np.ones(predicted.shape[1])
    odds = np.log(predicted[:, 1] / predicted[:, 0])
    order = np.argsort(odds, kind="stable")
    count = len(order)
    margin = max(count // 20, 1)
    below = np.arange(margin, count - margin)
    ones = np.cumsum(given[order])
    explained = _step_likelihood(ones[below - 1], below) + _step_likelihood(
        ones[-1] - ones[below - 1], count - below
    )
    likely = below[explained >= explained.max() - _AS_WELL]
    steps = (odds[order[likely - 1]] + odds[order[likely]]) / 2
    border = steps[np.abs(steps).argmin()] if (steps > 0).all() or (steps < 0).all() else 0.0
    return np.exp(np.array([-border, border]) / 4)


def _step_likelihood(ones: NDArray[np.int64], count: NDArray[np.int64]) -> Floats:
    """The log-likelihood of `count` labels of which `ones` are 1, at that rate."""
    return xlogy(ones, ones / count) + xlogy(count - ones, 1 - ones / count)


def _posterior(predicted: Floats, examples: LabelledRows, noise: NoiseModel) -> Floats:
    """The probability of each true class given the row's label, `(N, C)`."""
    given, labels = examples.given, examples.labels
    probabilities = calibrate(predicted, noise.temperature)
    if noise.correction is not None:
        probabilities = correct(probabilities, noise.correction).astype(np.float64)
    posterior = probabilities * noise.transition[:, given].T
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    rare = np.bincount(given, minlength=labels.shape[1])[given] < _FEWEST_OF_CLASS
    posterior[rare] = labels[rare]
    return (1 - _KEPT) * posterior + _KEPT * labels


def _weigh(labels: Floats, examples: LabelledRows) -> SoftRows:
    """The rows with class weights multiplied into their soft labels and weights."""
    if (examples.class_weight == 1).all():
        return SoftRows(examples.rows, labels, examples.weight, examples.terms)
    weighted = labels * examples.class_weight
    total = weighted.sum(axis=1)
    weighted = np.where(total[:, None] > 0, weighted / np.maximum(total[:, None], 1e-300), labels)
    return SoftRows(examples.rows, weighted, examples.weight * total, examples.terms)
