"""Noise as text: `symmetric:0.4`, `pair:0.2`, `asymmetric:0.3`, `none`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelproof.noise.confusions import CONFUSIONS
from labelproof.noise.matrices import asymmetric_matrix, pair_matrix, symmetric_matrix
from labelproof.ranges import within

__all__ = ["KINDS", "NoiseSpec", "parse_noise"]

KINDS = ("none", "symmetric", "asymmetric", "pair")
"""The kinds of noise that can be written."""


@dataclass(frozen=True)
class NoiseSpec:
    """A kind of noise and its rate; prints as the text it was read from."""

    kind: str
    rate: float

    def matrix(self, num_classes: int, *, dataset: str) -> NDArray[np.float64]:
        """The transition matrix for a number of classes.

        Args:
            num_classes: Number of classes.
            dataset: Name of the dataset, which says what asymmetric noise confuses.
        """
        if self.kind == "pair":
            return pair_matrix(num_classes, self.rate)
        if self.kind == "asymmetric":
            if dataset not in CONFUSIONS:
                raise ValueError(
                    f"noise: no classes of {dataset!r} are known to be confused; asymmetric noise "
                    f"is there for {', '.join(CONFUSIONS)}"
                )
            return asymmetric_matrix(num_classes, self.rate, confusions=CONFUSIONS[dataset])
        return symmetric_matrix(num_classes, self.rate)

    def __str__(self) -> str:
        return self.kind if self.kind == "none" else f"{self.kind}:{self.rate:g}"


def parse_noise(text: str) -> NoiseSpec:
    """Read a kind and a rate.

    >>> parse_noise("symmetric:0.4")
    NoiseSpec(kind='symmetric', rate=0.4)
    >>> parse_noise("symetric:0.4")
    Traceback (most recent call last):
        ...
    ValueError: noise: expected KIND:RATE with KIND one of none, symmetric, asymmetric, pair
    (such as symmetric:0.4), got 'symetric:0.4'
    """
    kind, colon, rate = text.strip().lower().partition(":")
    problem = (
        f"noise: expected KIND:RATE with KIND one of {', '.join(KINDS)} (such as symmetric:0.4), "
        f"got {text!r}"
    )
    if kind not in KINDS or (kind == "none") == bool(colon):
        raise ValueError(problem)
    if kind == "none":
        return NoiseSpec("none", 0.0)
    try:
        number = float(rate)
    except ValueError:
        raise ValueError(problem) from None
    return NoiseSpec(kind, within("noise rate", number, 0, 1))
