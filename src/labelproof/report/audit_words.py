"""The findings of an audit as tables and sentences."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.findings import DOUBTFUL, FEWEST, Estimate, Findings
from labelproof.audit.folder import Audit
from labelproof.audit.noise_model import count_pairs
from labelproof.data.load import Reading
from labelproof.data.notices import count, few, readable
from labelproof.report.page import render_words

SHOWN_PAIRS = 12


@dataclass(frozen=True)
class Pair:
    """A confusion of two classes.

    Attributes:
        true: The true class.
        given: The given label.
        about: The estimated number of such labels.
        share: Their share of the true class.
        suspects: The number of such suspects.
    """

    true: int
    given: int
    about: Estimate
    share: Estimate
    suspects: int


def confusion_counts(findings: Findings) -> NDArray[np.int64]:
    """How often each label is suggested (row) where another is given (column).

    Off the diagonal are suspects; on it, all labels for which none is suggested.
    """
    suspect = findings.score > DOUBTFUL
    suggested = np.where(suspect, findings.suggested, findings.given)
    return count_pairs(suggested, findings.given, findings.num_classes).astype(np.int64)


def most_frequent(matrix: NDArray[Any], most: int) -> list[tuple[int, int]]:
    """The largest entries off the diagonal, as row and column, without zeros.

    >>> most_frequent(np.array([[9, 1], [2, 9]]), 12)
    [(1, 0), (0, 1)]
    """
    off = np.where(np.eye(len(matrix), dtype=bool), 0, matrix)
    # Stable, so that ties come in the order of the classes wherever it is computed.
    order = np.argsort(-off, axis=None, kind="stable")[:most].tolist()
    pairs = [divmod(cell, len(off)) for cell in order]
    return [pair for pair in pairs if off[pair]]


def confusions(findings: Findings, counts: NDArray[np.int64]) -> list[Pair]:
    """The most frequent confusions, with an estimate of at least one label."""
    # The true classes are not known; suggested labels are the best estimate.
    sizes = np.bincount(findings.suggested, minlength=findings.num_classes)
    about = findings.transition * sizes[:, None]
    return [
        Pair(
            true,
            given,
            share(findings, true, given, of=int(sizes[true])),
            share(findings, true, given),
            int(counts[true, given]),
        )
        for true, given in most_frequent(about, SHOWN_PAIRS)
        if about[true, given] >= 0.5
    ]


def share(findings: Findings, true: int, given: int, *, of: int = 1) -> Estimate:
    """The share of a true class with a given label, times `of`, with its interval."""
    matrices = findings.transition, findings.transition_low, findings.transition_high
    return Estimate(*(of * float(matrix[true, given]) for matrix in matrices))


_MISSED = 0.1
"""A class with fewer predictions than this share of its labels was not learned."""

_LONG = 40
"""Characters to which a class name is cut in a sentence."""


def finding(findings: Findings, *, seen: bool = False) -> str:
    """How many labels are wrong, with an interval, and how many are flagged.

    If the network has `seen` the labels, all that is known of a suspect is that the network
    predicts another class. If so few labels are predicted that `remark` warns, suspects are not
    called wrong: many of them may be samples that are hard to learn. Nor are labels, if the
    interval includes that none is.

    Example:
        >>> matrix = np.array([[0.9, 0.1], [0.3, 0.7]])
        >>> labels = np.array([0, 0, 1, 1])
        >>> findings = Findings(
        ...     given=labels, suggested=np.array([0, 0, 1, 0]), score=np.array([0, 0, 0, 0.9]),
        ...     noise_rate=Estimate(0.25, 0.1, 0.6), transition=matrix, transition_low=matrix,
        ...     transition_high=matrix, temperature=1.0, likeliest=np.array([[0], [0], [1], [0]]),
        ...     probability=np.ones((4, 1)))
        >>> print(finding(findings))
        About 1 of 4 labels is wrong: 25.0% (10.0% to 60.0%). 1 label is flagged: it is more likely
        wrong than right.
    """
    trusted = findings.trusted and not seen
    # Not if the interval begins at 0.0%, as it is printed.
    sure = trusted and findings.noise_rate.low >= 0.0005
    values = {"findings": findings, "seen": seen, "trusted": trusted, "sure": sure, "count": count}
    return render_words("findings.txt", part="audit", **values)


def confused_most(pairs: Sequence[Pair], names: Sequence[str]) -> str:
    """The most frequent confusions in words; empty if there are none.

    Example:
        >>> pair = Pair(0, 1, Estimate(120.2, 90, 150), Estimate(0.12, 0.09, 0.15), suspects=118)
        >>> confused_most([pair], ["cat", "dog"])
        'The most frequent confusion: cat labelled dog, about 120.'
    """
    short = [name if len(name) <= _LONG else f"{name[: _LONG - 1]}…" for name in names]
    phrases = [
        f"{short[pair.true]} labelled {short[pair.given]}, about {pair.about.value:,.0f}"
        for pair in pairs[:3]
    ]
    if not phrases:
        return ""
    what = "confusion" if len(phrases) == 1 else "confusions"
    return f"The most frequent {what}: {'; '.join(phrases)}."


def remark(part: str, audit: Audit) -> str:
    """A remark on an audit, which may be empty; the text is in `audit_words.txt`.

    Args:
        part: `"how"` its labels were judged, `"agreement"`: the share of them that is predicted,
            `"caution"` if too little was learned, `"hardly_judged"` on small classes,
            `"annotators"` on those who labelled, `"after_review"` on reviewed labels, or
            `"limits"`: what the interval does not cover.
        audit: The audit.
    """
    names, findings = map(readable, audit.class_names), audit.findings
    classes = list(zip(names, findings.predicted, findings.labelled, strict=True))
    return render_words(
        "audit_words.txt",
        part=part,
        audit=audit,
        method=audit.method,
        count=count,
        few=few,
        readable=readable,
        fewest=FEWEST,
        small=[f"{name} ({number:,})" for name, _, number in classes if 0 < number < FEWEST],
        missed=[
            f"{name} ({guesses:,} predicted, {number:,} labelled)"
            for name, guesses, number in classes
            if number >= FEWEST and guesses < _MISSED * number
        ],
    )


def commands(audit: Audit, folder: Path) -> Sequence[tuple[str, str]]:
    """The next steps for an audit in a folder: for each, the reason and the command."""
    review, export = ["labelproof", "review", str(folder)], export_name(audit)
    what = "suspects" if len(audit.findings.suspects) else "most suspicious samples"
    steps = [
        (f"Look at the {what} and decide:", shlex.join(review)),
        ("Write down what you have decided:", shlex.join([*review, "--export", export])),
    ]
    if audit.kind == "unknown" or audit.cells is not None:
        return steps
    reading = replace(Reading.of(audit.options), labels=None)
    words = ["labelproof", "fit", audit.data, "--labels", export, *reading.flags()]
    return [*steps, ("Train on it:", shlex.join(words))]


def export_name(audit: Audit) -> str:
    """The file name for the reviewed labels, other than that of the review before."""
    before = Path(audit.options.get("labels") or "").name
    match = re.fullmatch(r"reviewed(?:-(\d+))?\.csv", before)
    return "reviewed.csv" if match is None else f"reviewed-{int(match[1] or 1) + 1}.csv"
