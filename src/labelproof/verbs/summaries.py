"""What fits and audits print before they start and at the end."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelproof.audit.folder import INSIDE, PAGE, SUSPECTS, Audit
from labelproof.data.dataset import Dataset
from labelproof.data.load import Reading
from labelproof.data.notices import count, few, readable
from labelproof.data.table import table_stem
from labelproof.intervals import wilson_interval
from labelproof.models.blend import BLEND
from labelproof.npz import read_npz
from labelproof.report.audit_words import (
    confused_most,
    confusion_counts,
    confusions,
    finding,
    remark,
)
from labelproof.tabular.run import name_blend
from labelproof.training import Configuration, RunRecord
from labelproof.training.run_folder import PREDICTIONS

_NAMED = 3
"""Number of classes that are named, the largest."""


def stem_of(data: str, labels: str | os.PathLike[str] | None = None) -> str:
    """The name for folders of results on some data.

    Corrected labels give another name, so that earlier results stay for comparison.

    >>> stem_of("tables/customers.csv"), stem_of("photos/")
    ('customers', 'photos')
    >>> stem_of("photos/", Path("reviewed.csv")), stem_of("customers.csv.gz")
    ('photos-reviewed', 'customers')
    """
    place = Path(data)
    stem = table_stem(place) if place.suffix and not place.is_dir() else place.resolve().name
    return stem if labels is None else f"{stem}-{table_stem(labels)}"


def what(dataset: Dataset) -> str:
    """The word for one sample of the data."""
    return "row" if dataset.tabular else "image"


def describe_data(dataset: Dataset) -> str:
    """Size, largest classes and groups of the training data.

    >>> from labelproof.data import load_digits
    >>> describe_data(load_digits())
    'Data: 1,347 images, 10 classes (3 137, 1 136, 4 136 and 7 more)'
    """
    sizes = np.bincount(dataset.train.labels, minlength=dataset.num_classes)
    order = np.argsort(-sizes, kind="stable")
    largest = few([f"{dataset.class_names[each]} {sizes[each]:,}" for each in order], shown=_NAMED)
    classes = count(dataset.num_classes, "class", "classes")
    line = f"Data: {count(len(dataset.train), what(dataset))}, {classes} ({largest})"
    if dataset.group is None or dataset.train.groups is None:
        return line
    groups = count(len(np.unique(dataset.train.groups)), "group")
    return f"{line}\nKept together: {groups} by {readable(dataset.group)}"


def of_parts(dataset: Dataset, names: Sequence[str]) -> str:
    """The sizes of some splits of a dataset, in words.

    >>> from labelproof.data import load_digits
    >>> of_parts(load_digits(), ["test"])
    '450 images of test'
    """
    sizes = [count(len(dataset.splits[name]), what(dataset)) for name in names]
    return ", ".join(f"{size} of {readable(name)}" for size, name in zip(sizes, names, strict=True))


def describe_start(
    dataset: Dataset, configuration: Configuration, *, auto: bool = False, folds: int = 0
) -> str:
    """Lines on the data and what is trained on them, by a fit or in the `folds` of an audit."""
    lines, epochs = [describe_data(dataset)], count(configuration.epochs, "epoch")
    loss = "a loss that is chosen first" if auto else configuration.loss
    unused = [name for name in dataset.splits if name != "train"]
    if "test" in unused and not folds:
        unused.remove("test")
        lines.append(f"Measured on: {of_parts(dataset, ['test'])}, never learned from")
    if unused:
        lines.append(f"{'Not audited' if folds else 'Not used'}: {of_parts(dataset, unused)}")
    if configuration.network == BLEND:
        return "\n".join(lines)
    batches = f"in batches of {configuration.batch_size}"
    recipe = f"Recipe: {configuration.network}, {epochs} {batches}, {loss}"
    if folds:
        recipe = (
            f"Cross-validation: {folds} networks ({configuration.network}), each for {epochs} on "
            f"{folds - 1} of {folds} parts, {loss}"
        )
    return "\n".join([*lines, recipe])


def describe_fit(
    record: RunRecord, folder: Path, dataset: Dataset, audit: Audit | None, *, corrected: bool
) -> str:
    """The results of a run, and what to do next."""
    blended = record.configuration["network"] == BLEND
    held = len(dataset.train)  # in a blend, every row is held out once
    if not blended:
        held = len(read_npz(folder / PREDICTIONS, ["held"])["held"])
    accuracy = record.curve["validation_accuracy"][-1]
    low, high = (100 * bound for bound in wilson_interval(round(accuracy * held / 100), held))
    labelled = f"{'corrected ' * corrected}label"
    lines = [
        f"Accuracy: {accuracy:.1f}% on {count(held, f'held-out {labelled}')} "
        f"(95% interval: {low:.1f}% to {high:.1f}%); wrong labels count as errors."
    ]
    if audit is not None:
        lines.append(f"Labels: {finding(audit.findings, seen=audit.seen)}")
        lines += [remark(name, audit) for name in ("caution", "hardly_judged", "after_review")]
    if audit is not None and audit.seen:
        again = ["labelproof", "audit", audit.data, *Reading.of(audit.options).flags()]
        lines.append(f"By a network that has seen them; audit them: {readable(shlex.join(again))}")
    if "test_accuracy" in record.curve:
        lines.append(
            f"Test: {record.curve['test_accuracy'][-1]:.1f}% of {len(dataset.test):,} are "
            "predicted as labelled."
        )
    made = name_blend(record.candidates) if blended else "weights, classes and inputs"
    lines.append(f"Run: {folder} ({made})")
    if audit is not None:
        lines.append(f"Report: {folder / INSIDE / PAGE}")
    new = "NEW.csv" if dataset.tabular else "NEW-IMAGES"
    column = _identifier(dataset)
    place = shlex.quote(str(folder))
    lines.append(f"Next: labelproof predict {place} {new}{column and ' '}{column}")
    if audit is not None and len(audit.findings.suspects):
        lines.append(f"Review: labelproof review {place}")
    return "\n".join(line for line in lines if line)


def _identifier(dataset: Dataset) -> str:
    """The flag that names the column of identifiers, if one was left out as such."""
    column = None if dataset.columns is None else dataset.columns.row_number
    return "" if column is None else f"--id {shlex.quote(column)}"


def describe_audit(audit: Audit, folder: Path) -> str:
    """The findings of an audit, its files, and what to do next."""
    findings = audit.findings
    column = "" if audit.ids or audit.dataset is None else _identifier(audit.dataset)
    some = len(findings.suspects) or findings.estimated_count
    pairs = confusions(findings, confusion_counts(findings)) if some else []
    lines = [
        *(remark(name, audit) for name in ("agreement", "caution", "hardly_judged")),
        finding(findings, seen=audit.seen),
        *(remark(name, audit) for name in ("annotators", "after_review")),
        confused_most(pairs, [readable(name) for name in audit.class_names]),
        f"Suspects: {folder / SUSPECTS}{column and f' ({column} adds that column)'}",
        f"Report: {folder / PAGE}",
    ]
    if len(audit.findings.suspects):
        lines.append(f"Next: labelproof review {shlex.quote(str(folder))}")
    return "\n".join(line for line in lines if line)


def describe_rehearsal(audit: Audit, dataset: Dataset) -> str:
    """How accurate an audit is on labels that were made wrong."""
    findings, truth, caution = audit.findings, dataset.truth, ""
    if truth is None:
        truth = dataset.train.labels
        caution = " Labels that were wrong before count as right."
    actual = truth[audit.index]
    wrong = findings.given != actual
    suspects = findings.suspects
    right = int(np.count_nonzero(wrong[suspects]))
    mended = int(np.count_nonzero(findings.suggested[suspects] == actual[suspects]))
    return (
        f"Rehearsal: {np.count_nonzero(wrong):,} labels were made wrong ({wrong.mean():.1%}). Of "
        f"{len(suspects):,} suspects {right:,} are ({right / max(len(suspects), 1):.1%}), and "
        f"{mended:,} suggestions are right; {right / max(np.count_nonzero(wrong), 1):.1%} of the "
        f"wrong labels were found.{caution}"
    )


def roughly(seconds: float) -> str:
    """A duration in words, rounded.

    >>> roughly(20), roughly(290), roughly(5000), roughly(60 * 3600)
    ('less than a minute', 'about 5 minutes', 'about 83 minutes', 'about 60 hours')
    """
    if seconds < 60:
        return "less than a minute"
    minutes = round(seconds / 60)
    # From two hours on, a forecast is too inexact for minutes.
    number, unit = (minutes, "minute") if minutes < 120 else (round(minutes / 60), "hour")
    return f"about {count(number, unit)}"


def format_settings(configuration: Configuration) -> str:
    """A configuration as TOML, which `labelproof train --config` reads.

    >>> print(format_settings(Configuration("digits")).splitlines()[0])
    data = "digits"
    """
    # JSON values are valid TOML, except for one character that JSON does not escape.
    return "\n".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007F")
        for name, value in configuration.as_values().items()
    )
