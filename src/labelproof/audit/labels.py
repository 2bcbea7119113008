"""The audit itself: labels and what networks say about their samples, in; findings, out."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.audit.anchors import anchor_temperature, read_through
from labelproof.audit.estimate import Estimate
from labelproof.audit.findings import FEWEST, TRUSTED, Findings
from labelproof.audit.logits import admit_logits
from labelproof.audit.named_tables import refuse_other_index, refuse_other_order
from labelproof.audit.noise_model import (
    NoiseModel,
    as_transition,
    fit_noise_model,
    sure_temperature,
)
from labelproof.audit.probabilities import (
    LogProbabilities,
    Table,
    admit_given,
    admit_probabilities,
)
from labelproof.audit.resampling import resample
from labelproof.audit.shared_doubts import share_of_doubts
from labelproof.audit.suspicion import Suspicion, suspect
from labelproof.data.notices import notice
from labelproof.intervals import NORMAL_95, wilson_interval

__all__ = ["audit_labels", "audit_logits"]

_FITTED = 30_000
"""Samples that the noise is estimated from, drawn from all where there are more."""
_RESAMPLED = 400_000
"""Of those, how many predictions of a class the draws behind the intervals are from, at most; but
always of a few thousand samples."""
_TIMES = 40
_COULD_BE = 1.0
"""In how many classes anchors may say more by chance, where it is about the most there could be."""


def audit_labels(probabilities: ArrayLike, given: ArrayLike, *, seed: int = 0) -> Findings:
    """Find the wrong labels by predictions from anywhere.

    The predictions have to be out of sample: each by a model that was not trained on that sample's
    label, as cross-validation gives them. A model that has seen the labels agrees with them.

    Where several samples belong together, such as those of one customer or patient, all of them
    have to be in one part, or a model that has learned a mistake from some defends it on the
    others: with scikit-learn, `cross_val_predict(..., cv=GroupKFold(5), groups=customers)`. See
    [Samples that belong together](../guide/own-data.md#samples-that-belong-together).

    Args:
        probabilities: `(N, C)`: for each sample, the probability of each class.
        given: The labels as they came, `(N)`, class indices: the place of each label's column. Of
            a scikit-learn model that is `numpy.searchsorted(model.classes_, labels)`.
        seed: Of the draws behind the intervals.

    Raises:
        ValueError: They are no probabilities, labels are not those of their rows, or, in tables
            with names, columns are numbered or rows are named in another order.

    Warns:
        DataWarning: So few labels are predicted that what was found is hardly to be believed.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(3, size=600)
        >>> probabilities = generator.dirichlet([0.2, 0.2, 0.2], 600) * 0.2 + 0.8 * np.eye(3)[true]
        >>> given = np.where(np.arange(600) % 10 == 0, (true + 1) % 3, true)
        >>> found = audit_labels(probabilities, given)
        >>> len(found.suspects), set((found.suspects % 10).tolist())
        (60, {0})
    """
    refuse_other_order(probabilities)
    refuse_other_index(probabilities, given)
    table = admit_probabilities(probabilities)
    labels = admit_given(given, samples=len(table), classes=table.shape[1])
    found = audit_logits(LogProbabilities(table), labels, seed=seed)
    _warn_where_little_is_predicted(found)
    return found


def _warn_where_little_is_predicted(found: Findings) -> None:
    # Of a handful the share says nothing.
    if len(found) < FEWEST or found.agreement.value >= TRUSTED:
        return
    notice(
        f"only {found.agreement.value:.0%} of the labels are predicted by the probabilities: are "
        "columns or rows in another order? If not, very many labels are wrong, or the model has "
        "learned too little to be believed"
    )


def audit_logits(
    logits: LogProbabilities | ArrayLike, given: ArrayLike, *, seen: bool = False, seed: int = 0
) -> Findings:
    """As `audit_labels`, of networks' outputs before the softmax.

    Args:
        logits: `(N, C)`; may be a file that is mapped, which is read part by part. Minus infinity
            rules a class out.
        given: The labels as they came, `(N)`, class indices.
        seen: Whether the network was trained on these labels. How sure it is then tells nothing,
            and what it says is taken as it is.
        seed: Of the draws behind the intervals.

    Raises:
        ValueError: Logits are not numbers, or labels are not those of their rows.
    """
    table, labels = admit_logits(logits, given)
    return _audit(table, labels, seen=seen, seed=seed)


def _audit(logits: Table, given: NDArray[np.int64], *, seen: bool, seed: int) -> Findings:
    size = len(logits)
    chosen = np.arange(size)
    if size > _FITTED:
        drawn = np.random.default_rng(seed).choice(size, _FITTED, replace=False)
        chosen = np.sort(drawn)
    with np.errstate(over="ignore"):  # what is too far below for float32 is ruled out
        part, labels = np.asarray(logits[chosen], np.float32), given[chosen]
    plain = fit_noise_model(part, labels, temperature=sure_temperature(part) if seen else None)
    model = plain if seen else read_through(part, labels, plain)
    # By the plain model: noise that the network has learned would pass for shared doubts as well.
    shared = 0.0 if seen else share_of_doubts(part, labels, suspect(part, labels, plain).score)
    suspicion = suspect(logits, given, model, shared=shared)
    drawn_from = min(max(_RESAMPLED // logits.shape[1], 4_000), 10_000)
    few = np.random.default_rng(seed).permutation(len(part))[:drawn_from]
    again = resample(
        part[few],
        labels[few],
        plain,
        times=_TIMES,
        seed=seed,
        shared=shared,
        fixed=seen,
        read=model.reading is not None,
        samples=size,
    )
    # Chance is less by the root of how many more samples there are than were drawn from.
    narrower = math.sqrt(len(few) / size)
    joint = (1 - shared) * model.joint + shared * suspicion.confusion / size
    transition = as_transition(joint, size)
    matrix_spread, rate_spread = _spreads(again, len(few))
    wide = NORMAL_95 * narrower * matrix_spread
    spread = NORMAL_95 * narrower * rate_spread
    return Findings(
        given=given,
        suggested=suspicion.suggested,
        score=suspicion.score,
        noise_rate=_rate(
            suspicion,
            shared,
            spread,
            hidden=0.0 if seen else _hidden(part, labels, plain),
            unread=None if model.reading is None else plain.noise_rate,
        ),
        transition=transition,
        transition_low=np.clip(transition - wide, 0, 1),
        transition_high=np.clip(transition + wide, 0, 1),
        temperature=model.temperature,
        shared_doubts=shared,
        agreed=int(np.trace(suspicion.confusion)),
        predicted=tuple(suspicion.confusion.sum(axis=1).tolist()),
    )


def _hidden(part: NDArray[np.float32], labels: NDArray[np.int64], model: NoiseModel) -> float:
    """What the share of wrong labels would be if the surest samples were beyond doubt."""
    read = read_through(part, labels, model, by_chance=_COULD_BE).noise_rate
    warmest = anchor_temperature(part)
    if warmest >= model.temperature:
        return max(model.noise_rate, read)
    return max(fit_noise_model(part, labels, temperature=warmest).noise_rate, read)


def _rate(
    suspicion: Suspicion, shared: float, spread: float, *, hidden: float, unread: float | None
) -> Estimate:
    """The share of wrong labels, and what it may be if doubts are read in another way.

    Chance moves it little where there are many labels. What is not known is whose the doubts are:
    at the one end they are all the network's own; at the other twice as many are shared, or none of
    them is about the samples that it is surest of.

    Args:
        suspicion: Of each label.
        shared: The share of doubts that was taken to be shared.
        spread: How far chance moves the rate.
        hidden: The rate by a network without doubts about its surest samples.
        unread: The rate by the network's word as it is, where it is read in another way.
    """
    size = len(suspicion.score)
    rate = float(suspicion.score.mean(dtype=np.float64))
    differing = 1 - float(np.trace(suspicion.confusion)) / size
    own = (rate - shared * differing) / (1 - shared)
    counted_low, counted_high = wilson_interval(round(rate * size), size)
    lowest = min(own, rate if unread is None else unread)
    highest = max(2 * rate - own, (1 - shared) * hidden + shared * differing, rate)
    return Estimate(
        rate,
        max(min(lowest - spread, counted_low), 0.0),
        min(max(highest + spread, counted_high), 1.0),
    )


def _spreads(
    again: Iterable[NDArray[np.float64]], samples: int
) -> tuple[NDArray[np.float64] | float, float]:
    """How far the matrix and the rate move from one draw to the next."""
    # Sums, since with a thousand classes forty matrices are a third of a gigabyte.
    total, squares = 0.0, 0.0
    rates: list[float] = []
    for joint in again:
        matrix = as_transition(joint, samples)
        total, squares = total + matrix, squares + matrix**2
        rates.append(1 - float(np.trace(joint)))
    mean = total / len(rates)
    return np.sqrt(np.maximum(squares / len(rates) - mean**2, 0)), float(np.std(rates))
