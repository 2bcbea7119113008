"""From predictions to an audit: what was found, about which samples, and how."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from labelproof.audit.cross_validation import Predictions
from labelproof.audit.estimate import Estimate
from labelproof.audit.findings import Findings
from labelproof.audit.folder import Audit
from labelproof.audit.labels import audit_logits
from labelproof.audit.samples import marks_of
from labelproof.data.dataset import Dataset
from labelproof.data.images import sample_names

__all__ = ["conclude"]

_ENOUGH = 30
"""Samples that a run held out from which on they say something about all."""


def conclude(
    dataset: Dataset,
    predictions: Predictions,
    *,
    data: str | os.PathLike[str],
    method: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> Audit:
    """Audit the labels of a dataset by what networks say about its samples.

    Args:
        dataset: Whose labels.
        predictions: About all of its training samples, or some.
        data: Where it was read from.
        method: How the predictions were made; see `Audit`.
        options: What is needed to read it again.
    """
    seen = method.get("predictions") == "run"
    findings = audit_logits(predictions.logits, predictions.given, seen=seen)
    if seen:
        findings = _with_unseen(findings, predictions)
    names = sample_names(dataset.train, data)
    samples = [names[index] for index in predictions.index.tolist()]
    return Audit(
        name=dataset.name,
        data=str(data),
        kind="rows" if dataset.tabular else "images",
        class_names=dataset.class_names,
        samples=samples,
        index=predictions.index,
        findings=findings,
        agreement=findings.agreement,
        method=method,
        curves=predictions.curves,
        options=options or {},
        left_out=dataset.left_out,
        marks=marks_of(dataset, data, samples),
        dataset=dataset,
    )


def _with_unseen(findings: Findings, predictions: Predictions) -> Findings:
    """The share of wrong labels with what the samples say that the network has not seen.

    What a network was trained on it is sure of, right or wrong, so that all it never learned passes
    for wrong labels. Of the samples that the run held out it can be told how far to trust it. They
    are few, and the interval becomes as wide as they make it.
    """
    unseen = predictions.unseen
    if unseen is None or int(unseen.sum()) < _ENOUGH:
        return findings
    fresh = audit_logits(predictions.logits[unseen], predictions.given[unseen]).noise_rate
    rate = findings.noise_rate
    value = min(max(rate.value, fresh.low), fresh.high)
    low, high = min(rate.low, fresh.low), max(rate.high, fresh.high)
    return replace(findings, noise_rate=Estimate(value, low, high))
