"""What an audit found: which labels are wrong, how many are, and which classes are confused."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelproof.audit.estimate import Estimate
from labelproof.intervals import wilson_interval

__all__ = ["DOUBTFUL", "FEWEST", "TRUSTED", "Findings"]

DOUBTFUL = 0.5
"""The probability to be wrong from which on a label is a suspect."""

FEWEST = 10
"""Samples of a class from which on it can be judged: smaller ones are hardly learned."""

TRUSTED = 0.7
"""Share of labels that are predicted from which on predictions are believed without a warning."""


@dataclass(frozen=True, repr=False)
class Findings:
    """The outcome of an audit of `N` labels in `C` classes.

    Attributes:
        given: The labels as they came, `(N)`, int64.
        suggested: The label that each sample should probably have, `(N)`, int64: of a suspect the
            most probable other one, else the given one.
        score: The probability that the given label is wrong, `(N)`, float32 between 0 and 1.
        noise_rate: The share of labels that are wrong.
        transition: Row `i`, column `j`: the share of samples truly of class `i` that are labelled
            `j`, `(C, C)`; its rows sum to 1.
        transition_low: The lower ends of the 95% intervals, entry by entry.
        transition_high: The upper ends.
        temperature: What the logits were divided by, so that probabilities mean what they say.
        shared_doubts: Which share of its doubts the network has in common with whoever wrote the
            labels.
        agreed: How many labels are what the network predicts.
        predicted: How many samples each class is predicted for, `(C)`; none where that is not
            known.
    """

    given: NDArray[np.int64]
    suggested: NDArray[np.int64]
    score: NDArray[np.float32]
    noise_rate: Estimate
    transition: NDArray[np.float64]
    transition_low: NDArray[np.float64]
    transition_high: NDArray[np.float64]
    temperature: float
    shared_doubts: float = 0.0
    agreed: int = 0
    predicted: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        # Counted along with what is predicted; without, nothing is known of it.
        agreed = f", {self.agreement.value:.0%} predicted" if self.predicted else ""
        return (
            f"Findings({len(self):,} labels, {len(self.suspects):,} suspects, "
            f"wrong: {self.noise_rate.as_percent()}{agreed})"
        )

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.transition)

    @functools.cached_property
    def suspects(self) -> NDArray[np.int64]:
        """Samples whose label is more probably wrong than right, the most suspicious first."""
        order = self.order
        return order[self.score[order] > DOUBTFUL]

    @functools.cached_property
    def order(self) -> NDArray[np.int64]:
        """All samples, the most suspicious first."""
        return np.argsort(-self.score, kind="stable")

    @property
    def labelled(self) -> list[int]:
        """How many samples have each class for their label."""
        return np.bincount(self.given, minlength=self.num_classes).tolist()

    @property
    def agreement(self) -> Estimate:
        """The share of labels that the network predicts."""
        return Estimate(self.agreed / len(self), *wilson_interval(self.agreed, len(self)))

    @property
    def estimated_count(self) -> int:
        """How many labels are wrong by the estimated rate."""
        return round(self.noise_rate.value * len(self))
