"""The audit: from labels and predictions to findings."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from labelproof.audit.anchors import (
    anchor_temperature,
    correct_by_anchors,
    share_of_doubts,
    trust_in_model,
)
from labelproof.audit.cross_validation import Predictions
from labelproof.audit.findings import DOUBTFUL, FEWEST, Estimate, Findings, reorder, suspect, temper
from labelproof.audit.folder import Audit
from labelproof.audit.least_squares import fit_least_squares, rate_at
from labelproof.audit.noise_model import (
    Groups,
    as_transition,
    search_temperature,
    shift,
    softmax,
    warmest,
)
from labelproof.audit.predictions import (
    LogProbabilities,
    PredictionSource,
    Table,
    admit_logits,
    match_predictions,
    name_samples,
    read_part,
)
from labelproof.audit.samples import (
    confirm_texts,
    copies_of,
    features_of,
    find_neighbours,
    mark_rows,
    read_cells,
)
from labelproof.data.annotators import JudgedVotes, judge_votes
from labelproof.data.dataset import Dataset, are_text, as_indices
from labelproof.data.notices import notice
from labelproof.intervals import NORMAL_95, matrix_interval, wilson_interval

_FITTED = 30_000
"""Most samples that the noise is estimated from, drawn at random."""
_PIECES = 16
"""Parts in which these are read from a file, so that it is never in memory as a whole."""
_PRODUCTS = 4e9
"""Most products of two probabilities in least squares; at least 5,000 samples are used."""
_PER_ENTRY = 5
"""Samples per entry of the matrix from which on the likelihood alone chooses the temperature."""
_SURE = 0.999
"""Mean confidence of a network that has seen the labels: its temperature cannot be estimated from
labels that it was trained on."""
_ENOUGH = 30
"""Fewest held-out samples of a run that say something about all samples."""
_BY_CHANCE = 1.0
"""As `by_chance` of `correct_by_anchors`, for the upper end of the noise rate's interval."""


def audit_labels(probabilities: PredictionSource, given: ArrayLike, *, seed: int = 0) -> Findings:
    """Find the wrong labels from the predictions of any model.

    The predictions have to be out of sample: each by a model that was not trained on that sample's
    label, as cross-validation gives them. A model that has seen the labels agrees with them. Keep
    samples that belong together, such as those of one patient, in one fold: with scikit-learn,
    `cross_val_predict(..., cv=GroupKFold(5), groups=patients)`. See
    [Samples that belong together](../guide/own-data.md#samples-that-belong-together).

    Args:
        probabilities: `(N, C)`: for each sample, the probability of each class, as an array, a
            DataFrame whose columns are named as the classes, or a file of either.
        given: The given labels, `(N)`: class indices, or class names; the columns of an array are
            then the names in sorted order, as in `model.classes_` of scikit-learn.
        seed: Random seed; the noise is estimated from 30,000 samples if there are more.

    Warns:
        DataWarning: The predictions agree with so few labels that the findings are unreliable.

    Example:
        >>> generator = np.random.default_rng(0)
        >>> true = generator.integers(3, size=600)
        >>> probabilities = generator.dirichlet([0.2, 0.2, 0.2], 600) * 0.2 + 0.8 * np.eye(3)[true]
        >>> given = np.where(np.arange(600) % 10 == 0, (true + 1) % 3, true)
        >>> found = audit_labels(probabilities, given)
        >>> len(found.suspects), set((found.suspects % 10).tolist())
        (60, {0})
    """
    matched = match_predictions(probabilities, given)
    findings = audit_logits(LogProbabilities(matched.probabilities), matched.labels, seed=seed)
    if len(findings) >= FEWEST and not findings.trusted:
        notice(
            f"the probabilities agree with only {findings.agreement.value:.0%} of the labels: are "
            "columns or rows in another order? If not, very many labels are wrong, or the model "
            "has learned too little to be trusted"
        )
    return findings


def audit_given(
    probabilities: PredictionSource,
    labels: Dataset | ArrayLike,
    *,
    data: str | os.PathLike[str] = "labels",
    id: str | None = None,
    class_names: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Audit:
    """As `audit_labels`, with the names of samples and classes: an audit that can be written.

    Arguments are those of [`match_predictions`][labelproof.audit.predictions.match_predictions],
    and `options`, what is needed to read the data again; see `Audit`.

    Example:
        >>> table = np.array([[0.9, 0.1], [0.2, 0.8], [0.8, 0.2], [0.1, 0.9]])
        >>> audit = audit_given(table, ["cat", "dog", "cat", "dog"], data="labels.npy")
        >>> audit.samples, audit.class_names
        (['0', '1', '2', '3'], ('cat', 'dog'))
    """
    matched = match_predictions(probabilities, labels, data=data, id=id, class_names=class_names)
    logits = LogProbabilities(matched.probabilities)
    findings = audit_logits(logits, matched.labels)
    more: Any = {"method": {"predictions": "given"}, "options": options or {}, "ids": matched.ids}
    return _describe(findings, logits, labels, data, matched.class_names, **more)


def _describe(
    findings: Findings,
    logits: Table | None,
    labels: Dataset | ArrayLike,
    data: str | os.PathLike[str],
    class_names: tuple[str, ...],
    *,
    index: NDArray[np.int64] | None = None,
    **described: Any,
) -> Audit:
    """The findings with the names of samples and classes; `index` selects the samples.

    Votes of several annotators are judged by the `logits`, if these are out of sample.
    """
    dataset = labels if isinstance(labels, Dataset) else None
    kind = "unknown"
    samples = name_samples(labels, data)
    index = np.arange(len(samples)) if index is None else index
    samples = [samples[place] for place in index.tolist()]
    cells = read_cells(labels, data)
    in_memory = dataset is not None and dataset.frame is not None
    if dataset is not None and dataset.train.votes is not None:
        columns = as_indices([*dataset.class_names, ""], class_names)
        votes = columns[dataset.train.votes[index]]  # the last column is of no class: -1
        table = None if logits is None else softmax(shift(read_part(logits, slice(None))), 1.0)
        judged = judge_votes(votes, len(class_names), table)
        findings = findings if table is None else with_votes(findings, judged)
        described |= {"votes": votes, "annotators": describe_annotators(dataset, votes, judged)}
    if dataset is not None:
        findings = settle_copies(findings, copies_of(dataset.train)[index])
        kind = "rows" if dataset.tabular else "images"
        if (features := features_of(dataset.train, index, dataset.columns)) is not None:
            found = find_neighbours(features)
            if not cells.empty and dataset.columns is not None and dataset.columns.texts:
                texts = cells.loc[samples, [*dataset.columns.texts]].agg(" ".join, axis=1)
                found = confirm_texts(found, texts.tolist())
            described |= found._asdict()
    return Audit(
        name=Path(data).stem if dataset is None else dataset.name,
        data=str(data),
        kind=kind,
        text_labels=are_text(labels) if dataset is None else dataset.text_labels,
        class_names=class_names,
        samples=samples,
        index=index,
        findings=findings,
        marks=mark_rows(cells, samples),
        cells=cells.loc[samples] if in_memory and not cells.empty else None,
        dataset=dataset,
        rows=labels.index if isinstance(labels, pd.Series) else None,
        left_out=() if dataset is None else dataset.left_out,
        **described,
    )


def with_votes(findings: Findings, judged: JudgedVotes) -> Findings:
    """The findings about labels that several annotators' votes speak for or against."""
    given, posterior = findings.given, judged.posterior.astype(np.float32)
    rows = np.arange(len(given))
    score = np.clip(1 - posterior[rows, given], 0, 1)
    posterior[rows, given] = -1.0
    rate = float(score.mean(dtype=np.float64))
    low, high = wilson_interval(round(rate * len(given)), len(given))
    before = findings.noise_rate
    return replace(
        findings,
        score=score,
        suggested=np.where(score > DOUBTFUL, posterior.argmax(axis=1), given),
        noise_rate=Estimate(rate, min(low, before.low), max(high, before.high)),
    )


def describe_annotators(
    dataset: Dataset, votes: NDArray[np.int64], judged: JudgedVotes
) -> pd.DataFrame:
    """How many labels each annotator gave, and the share that is right, with its interval."""
    labels = (votes >= 0).sum(axis=0)
    bounds = [
        wilson_interval(round(share * size), max(size, 1))
        for share, size in zip(judged.accuracy.tolist(), labels.tolist(), strict=True)
    ]
    table = {"annotator": dataset.annotators, "labels": labels, "accuracy": judged.accuracy}
    return pd.DataFrame({**table, "low": [a for a, _ in bounds], "high": [b for _, b in bounds]})


def settle_copies(findings: Findings, copies: NDArray[np.int64]) -> Findings:
    """Flag labels of copied images with certainty: of different labels at most one is right.

    The most plausible one stays. `copies` has the same number for copies of an image, else -1.
    """
    score, suggested, given = findings.score.copy(), findings.suggested.copy(), findings.given
    for number in np.unique(copies[copies >= 0]).tolist():
        group = np.flatnonzero(copies == number)
        right = np.bincount(given[group], weights=1 - score[group])
        wrong = group[given[group] != right.argmax()]
        score[wrong], suggested[wrong] = 1.0, right.argmax()
    return replace(findings, score=score, suggested=suggested)


# On parts that fit into the cache, threads wait for each other longer than they compute.
@threadpool_limits.wrap(limits=1)
def audit_logits(
    logits: LogProbabilities | ArrayLike,
    given: ArrayLike,
    *,
    unseen: NDArray[np.bool_] | None = None,
    seed: int = 0,
) -> Findings:
    """As `audit_labels`, from a network's outputs before the softmax.

    Args:
        logits: `(N, C)`; a mapped file is read part by part. Minus infinity rules a class out.
        given: The given labels, `(N)`.
        unseen: Which samples a network has held out that was trained on the others, `(N)`. By
            default it was trained on none. Its confidence is judged by these samples, as it says
            nothing about the others; with fewer than 30, predictions count as nearly certain.
        seed: Random seed; the noise is estimated from 30,000 samples if there are more.
    """
    table, codes = admit_logits(logits, given)
    size, generator = table.shape[0], np.random.default_rng(seed)
    chosen = np.sort(generator.choice(size, min(size, _FITTED), replace=False))
    pieces = [read_part(table, rows) for rows in np.array_split(chosen, _PIECES)]
    samples = Groups(np.concatenate(pieces), codes[chosen])
    seen = unseen is not None
    start = _temperature(samples, None if unseen is None else unseen[chosen])
    few = samples.some(max(int(_PRODUCTS / samples.classes**2), 5_000))
    squares = fit_least_squares(few, start, fixed=seen)
    temperature, prior = start, squares.prior
    # With few samples for each entry the likelihood favours temperatures that are too low.
    if len(chosen) < _PER_ENTRY * samples.classes**2:
        margin, centre = NORMAL_95 * squares.temperature_error, math.log(squares.temperature)
        temperature = math.exp(min(max(math.log(start), centre - margin), centre + margin))
    plain = samples.fit(temperature, prior=prior)
    model, shared, hidden, trust = plain, 0.0, 0.0, 1.0
    if not seen:  # a network is confident of labels that it has memorised, right or wrong
        model = correct_by_anchors(samples, plain)
        # By the plain model: noise that the network has learned would look like shared doubts.
        score = suspect(samples.logits, samples.given, plain).score
        shared, trust = share_of_doubts(samples, score), trust_in_model(samples)
        # The share of wrong labels if the most confident predictions were beyond doubt.
        coolest = min(anchor_temperature(samples), plain.temperature)
        learned = correct_by_anchors(samples, plain, by_chance=_BY_CHANCE).noise_rate
        hidden = max(rate_at(samples, coolest), learned)
    suspicion = suspect(table, codes, model, shared=shared)
    if not seen:
        suspicion = reorder(suspicion, trust)
    agreed = int(np.trace(suspicion.confusion))
    joint = (1 - shared) * model.joint + shared * suspicion.confusion / size
    transition = as_transition(joint, size, prior)
    # Least squares', widened to contain the reported matrix. Its difference from the one without
    # shared doubts and learned noise counts as a standard error.
    difference = transition - as_transition(plain.joint, size, prior)
    spread = np.sqrt(squares.variance + difference**2)
    low, high = matrix_interval(squares.transition, spread, squares.worth)
    rates = [squares.rate] if model.correction is None else [squares.rate, plain.noise_rate]
    error = NORMAL_95 * squares.rate_error
    findings = Findings(
        given=codes,
        suggested=np.where(suspicion.score > DOUBTFUL, suspicion.other, codes),
        score=suspicion.score if seen else temper(suspicion.score),
        noise_rate=_rate(suspicion.score, 1 - agreed / size, shared, error, hidden, rates),
        transition=transition,
        transition_low=np.minimum(low, transition),
        transition_high=np.maximum(high, transition),
        temperature=model.temperature,
        shared_doubts=shared,
        likeliest=suspicion.likeliest,
        probability=suspicion.probability,
    )
    if seen or findings.trusted:
        return findings
    # A weak model mistakes its errors for wrong labels, or its predictions mean what they say.
    rate = findings.noise_rate
    lowest = min(rate.low, max(rate_at(samples, 1.0), 0.0))
    return replace(findings, noise_rate=replace(rate, low=lowest))


def _temperature(samples: Groups, unseen: NDArray[np.bool_] | None) -> float:
    """The temperature by the labels that the network was not trained on, if there are enough."""
    if unseen is None:
        return search_temperature(samples).temperature
    held = unseen[samples.order]
    if held.sum() < _ENOUGH:
        return warmest(samples.logits, _SURE)
    return search_temperature(Groups(samples.logits[held], samples.given[held])).temperature


def _rate(
    score: NDArray[np.float32],
    differing: float,
    shared: float,
    error: float,
    hidden: float,
    others: Sequence[float],
) -> Estimate:
    """The share of wrong labels, in an interval of what the network's doubts may mean.

    At its low end all doubts are the network's own. At its high end annotators share twice as many,
    or the most confident predictions are beyond doubt, as in `hidden`. `others` are further
    estimates, `error` theirs, and `differing` the share of labels that are not predicted.
    """
    size, rate = len(score), float(score.mean(dtype=np.float64))
    own = (rate - shared * differing) / (1 - shared)
    counted_low, counted_high = wilson_interval(round(rate * size), size)
    lowest = min(own, rate, *others)
    highest = max(2 * rate - own, (1 - shared) * hidden + shared * differing, rate, *others)
    return Estimate(
        rate,
        max(min(lowest - error, counted_low), 0.0),
        min(max(highest + error, counted_high), 1.0),
    )


def conclude(
    dataset: Dataset,
    predictions: Predictions,
    *,
    data: str | os.PathLike[str],
    method: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> Audit:
    """Audit the labels of a dataset by predictions of its samples.

    `data` is where it was read from, `method` how the predictions were made, and `options` what is
    needed to read it again; see `Audit`.
    """
    seen = predictions.unseen is not None
    findings = audit_logits(predictions.logits, predictions.given, unseen=predictions.unseen)
    return _describe(
        _with_unseen(findings, predictions),
        None if seen else predictions.logits,
        dataset,
        data,
        dataset.class_names,
        index=predictions.index,
        method=method,
        options=options or {},
    )


def _with_unseen(findings: Findings, predictions: Predictions) -> Findings:
    """The findings, with the noise rate corrected by the samples that the run held out.

    A network is confident of its training samples, so whatever it failed to learn looks like a
    wrong label. Held-out samples show how far to trust it; the fewer, the wider the interval.
    """
    unseen = predictions.unseen
    if unseen is None or int(unseen.sum()) < _ENOUGH:
        return findings
    fresh = audit_logits(predictions.logits[unseen], predictions.given[unseen]).noise_rate
    rate = findings.noise_rate
    value = min(max(rate.value, fresh.low), fresh.high)
    wider = Estimate(value, min(rate.low, fresh.low), max(rate.high, fresh.high))
    return replace(findings, noise_rate=wider)
