"""An audit's numbers, arranged as the page's tables want them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.findings import DOUBTFUL, Estimate, Findings

__all__ = [
    "Cell",
    "Pair",
    "confusion_counts",
    "confusion_rows",
    "confusions",
    "noise_rows",
    "off_diagonal",
]

SHOWN_PAIRS = 12
_DEEPEST = 0.7
"""How strong the strongest colour of a cell is: the number on it must stay readable."""


@dataclass(frozen=True)
class Pair:
    """One way for a label to be wrong.

    Attributes:
        true: The class that samples really are of.
        given: The class they are labelled as.
        about: How many there are, by the estimate.
        share: Which share of the true class that is.
        suspects: How many samples are suspected of it.
    """

    true: int
    given: int
    about: Estimate
    share: Estimate
    suspects: int


@dataclass(frozen=True)
class Cell:
    """A cell of a matrix, `depth` saying how strong its colour is, between 0 and 1."""

    true: int
    given: int
    depth: float
    count: int
    share: Estimate


def confusion_counts(findings: Findings) -> NDArray[np.int64]:
    """How often each label is suggested (row) where another is given (column).

    Off the diagonal are suspects; on it, all labels for which none is suggested.

    Example:
        >>> import numpy as np
        >>> from labelproof.audit.findings import Estimate
        >>> findings = Findings(
        ...     given=np.array([0, 0, 1, 1]), suggested=np.array([0, 0, 1, 0]),
        ...     score=np.array([0, 0, 0, 0.9]), noise_rate=Estimate(0.25, 0.1, 0.6),
        ...     transition=np.eye(2), transition_low=np.eye(2), transition_high=np.eye(2),
        ...     temperature=1.0)
        >>> confusion_counts(findings).tolist()
        [[2, 1], [0, 1]]
    """
    counts = np.zeros((findings.num_classes,) * 2, dtype=np.int64)
    suspect = findings.score > DOUBTFUL
    suggested = np.where(suspect, findings.suggested, findings.given)
    np.add.at(counts, (suggested, findings.given), 1)
    return counts


def confusions(findings: Findings, counts: NDArray[np.int64]) -> list[Pair]:
    """The most frequent ways to be wrong, by the estimate: those that there is at least one of."""
    # What the classes really are is not known; the suggested labels are the best guess there is.
    sizes = np.bincount(findings.suggested, minlength=findings.num_classes)
    about = findings.transition * sizes[:, None]
    np.fill_diagonal(about, 0)
    # Stable, so that ties come in the order of the classes wherever the page is made.
    order = np.argsort(-about, axis=None, kind="stable")[:SHOWN_PAIRS].tolist()
    pairs = [divmod(cell, findings.num_classes) for cell in order]
    return [
        Pair(
            true,
            given,
            _scaled(_share(findings, true, given), int(sizes[true])),
            _share(findings, true, given),
            int(counts[true, given]),
        )
        for true, given in pairs
        if about[true, given] >= 0.5
    ]


def confusion_rows(findings: Findings, counts: NDArray[np.int64]) -> list[list[Cell]]:
    """The counts with colours: the strongest is the most frequent confusion."""
    off = off_diagonal(counts)
    return _rows(findings, counts, off / max(int(off.max(initial=0)), 1))


def noise_rows(findings: Findings, counts: NDArray[np.int64]) -> list[list[Cell]]:
    """The noise matrix with colours, the diagonal with the rest: its rows sum to 1."""
    return _rows(findings, counts, findings.transition)


def off_diagonal(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """A copy without the diagonal."""
    off = counts.copy()
    np.fill_diagonal(off, 0)
    return off


def _rows(
    findings: Findings, counts: NDArray[np.int64], strength: NDArray[np.float64]
) -> list[list[Cell]]:
    classes = range(findings.num_classes)
    # The root, so that small ones are seen beside a large one.
    depth = _DEEPEST * np.sqrt(np.clip(strength, 0, 1))
    return [
        [
            Cell(
                true,
                given,
                float(depth[true, given]),
                int(counts[true, given]),
                _share(findings, true, given),
            )
            for given in classes
        ]
        for true in classes
    ]


def _share(findings: Findings, true: int, given: int) -> Estimate:
    return Estimate(
        float(findings.transition[true, given]),
        float(findings.transition_low[true, given]),
        float(findings.transition_high[true, given]),
    )


def _scaled(share: Estimate, size: int) -> Estimate:
    return Estimate(share.value * size, share.low * size, share.high * size)
