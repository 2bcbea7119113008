"""What is said about an audit in the terminal."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.folder import INSIDE, PAGE, SUSPECTS, Audit
from labelproof.data.notices import readable
from labelproof.report.audit_tables import confusion_counts, confusions
from labelproof.report.audit_words import agreement, caution, confused_most, finding

__all__ = ["describe_audit", "describe_own_audit", "describe_rehearsal"]


def describe_audit(audit: Audit, folder: Path) -> str:
    """The finding in a few lines, where it is written, and what to do next."""
    pairs = confusions(audit.findings, confusion_counts(audit.findings))
    lines = [
        agreement(audit),
        caution(audit),
        finding(audit.findings),
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
        f"Labels: {finding(audit.findings)}",
        "By a network that has seen them, so what it memorised is missing.",
        f"By networks that have not: {readable(shlex.join(_again(audit)))}",
        f"To look at: {folder / PAGE}",
    ]
    if len(audit.findings.suspects):
        lines.append(f"To decide: labelproof review {shlex.quote(str(run))}")
    return "\n".join(lines)


def _again(audit: Audit) -> list[str]:
    """The command that audits the same data by cross-validation."""
    words = ["labelproof", "audit", audit.data]
    for flag, name in (("--label", "label"), ("--labels", "labels"), ("--data-root", "data_root")):
        if audit.options.get(name):
            words += [flag, str(audit.options[name])]
    return words


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
