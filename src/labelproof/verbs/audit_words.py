"""What is said about an audit in the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.audit.folder import AUDIT, INSIDE, PAGE, SUSPECTS, Audit
from labelproof.data.dataset import Dataset
from labelproof.data.load import Reading
from labelproof.data.notices import count, few, readable
from labelproof.report.audit_tables import confusion_counts, confusions
from labelproof.report.audit_words import (
    after_review,
    agreement,
    caution,
    confused_most,
    finding,
    hardly_judged,
)
from labelproof.training.configuration import Configuration
from labelproof.verbs.audit_forecast import roughly
from labelproof.verbs.fit_words import describe_data, of_parts

__all__ = [
    "describe_audit",
    "describe_course",
    "describe_folder",
    "describe_given",
    "describe_own_audit",
    "describe_plan",
    "describe_rehearsal",
    "describe_run",
]


def describe_plan(dataset: Dataset, configuration: Configuration, parts: int) -> str:
    """What the data are, and what is trained on them: said before it begins, or instead."""
    lines = [describe_data(dataset)]
    others = [name for name in dataset.splits if name != "train"]
    if others:
        lines.append(f"Not audited: {of_parts(dataset, others)}")
    lines.append(
        f"Cross-validation: {parts} networks ({configuration.network}), each for "
        f"{count(configuration.epochs, 'epoch')} on {parts - 1} of {parts} parts, "
        f"{configuration.loss}"
    )
    return "\n".join(lines)


def describe_course(device: torch.device, seconds: float | None, *, begun: bool) -> str:
    """Where networks would be trained, and for how long if that is known.

    >>> describe_course(torch.device("cpu"), 290.0, begun=False)
    'Time: about 5 minutes on cpu, by its first steps'
    """
    if begun:
        return f"Time: what is left of an audit that was begun or finished before, on {device}"
    if seconds is None:
        return f"Time: not known on {device}; the first epochs will tell"
    return f"Time: {roughly(seconds)} on {device}, by its first steps"


def describe_run(run: Path) -> str:
    """What is done for the audit of a run."""
    return f"Data: what {run} was trained on\nIts network is asked about them; nothing is trained"


def describe_given(class_names: Sequence[str], samples: int, probabilities: Path) -> str:
    """What is done for an audit by predictions from elsewhere.

    >>> print(describe_given(["cat", "dog"], 200, Path("p.csv")))
    Data: 200 labels, 2 classes (cat, dog)
    Predictions: p.csv; nothing is trained
    """
    names = [readable(name) for name in class_names]
    classes = count(len(names), "class", "classes")
    return (
        f"Data: {count(samples, 'label')}, {classes} ({few(names, shown=6)})\n"
        f"Predictions: {probabilities}; nothing is trained"
    )


def describe_folder(folder: Path, *, fresh: bool) -> str:
    """Where an audit would be written, and that it was not."""
    there = (folder / AUDIT).exists()
    what = "removed first" if fresh else "there already"
    return f"Folder: {folder}{f' (an audit is {what})' * there}\nA dry run; nothing was written."


def describe_audit(audit: Audit, folder: Path) -> str:
    """The finding in a few lines, where it is written, and what to do next."""
    findings = audit.findings
    some = len(findings.suspects) or findings.estimated_count
    pairs = confusions(findings, confusion_counts(findings)) if some else []
    lines = [
        agreement(audit),
        caution(audit),
        hardly_judged(audit),
        finding(findings, seen=audit.seen, agreed=audit.agreement.value),
        after_review(audit),
        confused_most(pairs, [readable(name) for name in audit.class_names]),
        f"Suspects: {folder / SUSPECTS}",
        f"To look at: {folder / PAGE}",
    ]
    if len(audit.findings.suspects):
        lines.append(f"Next: labelproof review {shlex.quote(str(folder))}")
    return "\n".join(line for line in lines if line)


def describe_own_audit(audit: Audit, run: Path) -> str:
    """What a run that has just been trained says about the labels it was trained on."""
    folder = run / INSIDE
    lines = [
        f"Labels: {finding(audit.findings, seen=True)}",
        caution(audit),
        hardly_judged(audit),
        f"By a network that has seen them and agrees with {audit.agreement.value:.1%}: what it "
        "memorised is missing, and what it never learned is among the suspects.",
        f"By networks that have not: {readable(shlex.join(_again(audit)))}",
        f"To look at: {folder / PAGE}",
    ]
    if len(audit.findings.suspects):
        lines.append(f"To decide: labelproof review {shlex.quote(str(run))}")
    return "\n".join(line for line in lines if line)


def _again(audit: Audit) -> list[str]:
    """The command that audits the same data by cross-validation."""
    return ["labelproof", "audit", audit.data, *Reading.of(audit.options).flags()]


def describe_rehearsal(audit: Audit, true: NDArray[np.int64]) -> str:
    """How right the audit is about labels that were made wrong.

    Args:
        audit: What was found.
        true: The true label of every sample of the training split.
    """
    findings = audit.findings
    actual = true[audit.index]
    wrong = findings.given != actual
    suspects = findings.suspects
    right = int(np.count_nonzero(wrong[suspects]))
    mended = int(np.count_nonzero(findings.suggested[suspects] == actual[suspects]))
    return (
        f"Rehearsal: {np.count_nonzero(wrong):,} labels were made wrong ({wrong.mean():.1%}). Of "
        f"{len(suspects):,} suspects {right:,} are ({right / max(len(suspects), 1):.1%}), and "
        f"{mended:,} suggestions are right; {right / max(np.count_nonzero(wrong), 1):.1%} of the "
        "wrong labels were found."
    )
