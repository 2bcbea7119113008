"""Algorithms as text: `supervised`, `co-teaching(rate=0.4,ramp=10)`, `nlnl(negative=0.5)`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labelproof.losses import Loss
from labelproof.ranges import suggest
from labelproof.text import TextError, format_value, parse_call
from labelproof.training.algorithms.base import Algorithm
from labelproof.training.algorithms.co_teaching import CoTeaching
from labelproof.training.algorithms.elr import EarlyLearning
from labelproof.training.algorithms.negative import NegativeToPositive
from labelproof.training.algorithms.supervised import Supervised

ALGORITHMS: Mapping[str, type[Algorithm]] = {
    "supervised": Supervised,
    "co-teaching": CoTeaching,
    "nlnl": NegativeToPositive,
    "elr": EarlyLearning,
}
"""Every algorithm by the name it is written with; its class has a one-line `summary`."""

ESTIMATE = "estimate"
"""Written for a number that the algorithm is to find out by itself."""


@dataclass(frozen=True)
class AlgorithmSpec:
    """An algorithm's name and the arguments that were written; prints as that text.

    Attributes:
        name: One of `ALGORITHMS`.
        arguments: As written, `None` where the number is to be estimated.
    """

    name: str
    arguments: tuple[tuple[str, float | None], ...] = ()

    def __str__(self) -> str:
        if not self.arguments:
            return self.name
        written = (
            f"{name}={ESTIMATE if value is None else format_value(value)}"
            for name, value in self.arguments
        )
        return f"{self.name}({','.join(written)})"


def parse_algorithm(text: str) -> AlgorithmSpec:
    """Read `NAME` or `NAME(ARGUMENT=NUMBER,...)`; values are judged by `make_algorithm`.

    >>> str(parse_algorithm("Co-Teaching( ramp = 10, rate = .40 )"))
    'co-teaching(rate=0.4,ramp=10)'
    >>> parse_algorithm("co-teching")
    Traceback (most recent call last):
        ...
    ValueError: algorithm: expected one of supervised, co-teaching, nlnl, elr, got 'co-teching'; did
    you mean 'co-teaching'?
    """
    call = parse_call(text, what="algorithm", words={ESTIMATE: None})
    name = call.name.lower()
    if name not in ALGORITHMS:
        raise ValueError(
            f"algorithm: expected one of {', '.join(ALGORITHMS)}, got {name!r}"
            + suggest(name, ALGORITHMS, cutoff=0.5)
        )
    family = ALGORITHMS[name]
    given: dict[str, float | None] = {}
    for argument in call.arguments:
        key, problem = argument.name.lower(), ""
        if key not in family.written:
            takes = ", ".join(family.written) or "no arguments"
            hint = suggest(key, family.written, cutoff=0.5)
            problem = f"{name} takes {takes}, got {key!r}{hint}"
        elif argument.value is None and not _can_be_estimated(family, key):
            problem = f"expected a number for {key} in {name}, got {ESTIMATE!r}"
        if problem:
            raise TextError(f"algorithm: {problem}", text, argument.position)
        given[key] = argument.value
    # In the order of the class, so that equal algorithms are equal texts.
    return AlgorithmSpec(name, tuple((key, given[key]) for key in family.written if key in given))


def make_algorithm(
    text: str,
    loss: Loss,
    *,
    num_classes: int,
    num_examples: int,
    noise_rate: float | None = None,
    epochs: int | None = None,
) -> Algorithm:
    """Build the algorithm that `text` describes, with what the run knows.

    Args:
        text: For instance `"co-teaching(rate=0.4)"`.
        loss: What an example costs.
        num_classes: Number of classes.
        num_examples: Number of training examples.
        noise_rate: Share of wrong labels where the run knows it; serves where the text gives no
            `rate`. `rate=estimate` does without it.
        epochs: Length of the run, for stages that are written as shares of it.

    Example:
        >>> from labelproof import CrossEntropy
        >>> algorithm = make_algorithm(
        ...     "co-teaching(ramp=5)",
        ...     CrossEntropy(),
        ...     num_classes=10,
        ...     num_examples=100,
        ...     noise_rate=0.5,
        ... )
        >>> algorithm.noise_rate
        tensor(0.5000)
    """
    spec = parse_algorithm(text)
    family = ALGORITHMS[spec.name]
    takes = inspect.signature(family).parameters
    known: dict[str, Any] = {"noise_rate": noise_rate, "epochs": epochs}
    keywords = {name: value for name, value in known.items() if name in takes}
    keywords.update({family.written[key]: value for key, value in spec.arguments})
    try:
        return family(loss, num_classes=num_classes, num_examples=num_examples, **keywords)
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"algorithm {spec}: {problem}") from None


def _can_be_estimated(family: type[Algorithm], key: str) -> bool:
    return inspect.signature(family).parameters[family.written[key]].default is None
