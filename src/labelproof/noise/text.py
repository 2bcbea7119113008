"""Noise as text: `symmetric:0.4`, `pair:0.2:exact`, `instance:0.3`, `human:worse`, `none`."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.noise import matrices
from labelproof.noise.human import HUMAN_LABELS, human_labels
from labelproof.noise.sampling import NoisyLabels, corrupt, corrupt_by_instance
from labelproof.ranges import within
from labelproof.seeds import Seed
from labelproof.text import format_value, parse_form

_BY_MATRIX = ("symmetric", "asymmetric", "asymmetric-reference", "pair")

KINDS = ("none", *_BY_MATRIX, "instance", "human")
"""The kinds of noise."""
_FORMS = [
    "none",
    *(f"{kind}:RATE{exact}" for kind in _BY_MATRIX for exact in ("", ":exact")),
    "instance:RATE",
    "human:WHICH",
]


@dataclass(frozen=True)
class NoiseSpec:
    """A kind of noise and its rate; prints as the text it was read from.

    `asymmetric` flips as in the paper's text, on CIFAR-100 within the super-classes.
    `asymmetric-reference` flips as in the authors' code, on CIFAR-100 within alphabetical groups of
    five classes; the published numbers come from that one. On CIFAR-10 it
    flips one class after the other, so that some cats that became dogs become cats again.

    Attributes:
        kind: One of `KINDS`.
        rate: The intended share of wrong labels; for human labels the published one.
        exact: Whether each class gets exact counts; see `corrupt`.
        which: The set of human labels.
    """

    kind: str
    rate: float
    exact: bool = False
    which: str = ""

    def matrix(self, num_classes: int, *, dataset: str) -> matrices.Matrix:
        """The transition matrix for a number of classes.

        Args:
            num_classes: Number of classes.
            dataset: Name of the dataset, which determines the confusions of asymmetric noise.
        """
        if self.kind in ("instance", "human"):
            raise ValueError(
                f"noise: {self} has no matrix before it is applied; it comes with the result"
            )
        if self.kind == "pair":
            return matrices.pair_matrix(num_classes, self.rate)
        if self.kind.startswith("asymmetric"):
            reference = self.kind == "asymmetric-reference"
            known = matrices.REFERENCE_CONFUSIONS if reference else matrices.CONFUSIONS
            if dataset not in known:
                raise ValueError(
                    f"dataset: expected one of {', '.join(known)} for {self.kind} noise, whose "
                    f"confused classes are known, got {dataset!r}; for other classes use "
                    "asymmetric_matrix"
                )
            return matrices.asymmetric_matrix(
                num_classes,
                self.rate,
                confusions=known[dataset],
                in_turn=reference and dataset in matrices.IN_TURN,
            )
        return matrices.symmetric_matrix(num_classes, self.rate)

    def apply(
        self,
        labels: ArrayLike,
        *,
        num_classes: int,
        seed: Seed,
        dataset: str = "",
        features: NDArray[np.generic] | None = None,
        human: str | PathLike[str] | None = None,
    ) -> NoisyLabels:
        """Apply this noise to labels.

        Args:
            labels: Clean class indices of the training set, `(N)`.
            num_classes: Number of classes.
            seed: A number, or a generator, which is advanced; human labels do not need it.
            dataset: Name of the dataset, needed only for asymmetric noise, whose confusions depend
                on it.
            features: Input of instance-dependent noise, `(N, ...)`, such as the images.
            human: The file of human labels.

        Example:
            >>> noise = parse_noise("pair:0.25:exact")
            >>> noise.apply([0, 0, 0, 0, 1, 1, 1, 1], num_classes=2, seed=1).noisy
            array([0, 0, 1, 0, 1, 0, 1, 1])
        """
        if self.kind == "instance":
            if features is None:
                raise ValueError(f"features: expected the samples for {self}, got none")
            return corrupt_by_instance(
                features, labels, self.rate, num_classes=num_classes, seed=seed
            )
        if self.kind == "human":
            if human is None:
                raise ValueError(
                    f"human: expected the file of {self}, got none; cifar10 has human labels "
                    "(aggregate, random1, random2, random3, worse), and cifar100 (noisy): put "
                    "CIFAR-10_human.pt or CIFAR-100_human.pt, which are at "
                    "github.com/UCSC-REAL/cifar-10-100n, into the folder cifar-n of the data root, "
                    "or name another file (--human-labels, human= in Python)"
                )
            return human_labels(human, self.which, labels=labels)
        matrix = self.matrix(num_classes, dataset=dataset)
        return corrupt(labels, matrix, seed=seed, exact=self.exact)

    def __str__(self) -> str:
        if self.kind == "none":
            return "none"
        if self.kind == "human":
            return f"human:{self.which}"
        return f"{self.kind}:{format_value(self.rate)}" + ":exact" * self.exact


def parse_noise(text: str) -> NoiseSpec:
    """Read `none`, `KIND:RATE`, `KIND:RATE:exact` or `human:WHICH`.

    >>> parse_noise("symmetric:0.4").rate
    0.4
    >>> parse_noise("pair:0.4:exact").exact
    True
    >>> parse_noise("human:worse").which
    'worse'
    >>> parse_noise("symetric:0.4")
    Traceback (most recent call last):
        ...
    ValueError: noise: expected none, symmetric:RATE, symmetric:RATE:exact, asymmetric:RATE,
    asymmetric:RATE:exact, asymmetric-reference:RATE, asymmetric-reference:RATE:exact, pair:RATE,
    pair:RATE:exact, instance:RATE or human:WHICH, with WHICH one of aggregate, random1, random2,
    random3, worse, noisy, got 'symetric:0.4'; did you mean 'symmetric'?
    """
    form, values = parse_form(text, _FORMS, what="noise", words={"WHICH": HUMAN_LABELS})
    kind = form.partition(":")[0]
    if kind == "human":
        return NoiseSpec(kind, HUMAN_LABELS[values["WHICH"]].rate, which=values["WHICH"])
    rate = within("noise rate", values.get("RATE", 0.0), 0, 1)
    return NoiseSpec(kind, rate, exact=form.endswith(":exact"))
