"""From predictions to an audit: what was found, about which samples, and how."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from labelproof.audit.cross_validation import Predictions
from labelproof.audit.folder import Audit
from labelproof.audit.labels import audit_logits
from labelproof.audit.row_marks import marks_of
from labelproof.data.dataset import Dataset
from labelproof.data.sample_names import sample_names

__all__ = ["conclude"]


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
    )
