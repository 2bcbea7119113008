"""Learning algorithms: how the labels of a batch become what each network minimises.

They are written as text: `supervised`, `co-teaching(rate=0.4,ramp=10)`, `nlnl(negative=0.5)`. A new
algorithm is one file here, with a subclass of `Algorithm`, and one line in `ALGORITHMS`, with the
name it is written by. The engine, the command line and the records need not hear of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from labelproof.losses import Loss
from labelproof.ranges import suggest
from labelproof.text import TextError, check_arguments, format_value, parse_call
from labelproof.training.algorithms.base import (
    Algorithm,
    Batch,
    Objectives,
    Supervised,
    selected_mean,
)
from labelproof.training.algorithms.co_teaching import CoTeaching, estimate_noise_rate, smallest
from labelproof.training.algorithms.elr import EarlyLearning
from labelproof.training.algorithms.negative import NegativeToPositive

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Batch",
    "CoTeaching",
    "EarlyLearning",
    "NegativeToPositive",
    "Objectives",
    "Supervised",
    "estimate_noise_rate",
    "format_algorithm",
    "make_algorithm",
    "selected_mean",
    "smallest",
]

ALGORITHMS: Mapping[str, type[Algorithm]] = {
    "supervised": Supervised,
    "co-teaching": CoTeaching,
    "nlnl": NegativeToPositive,
    "elr": EarlyLearning,
}
"""Every algorithm by the name it is written with; its class has a one-line `summary`."""

ESTIMATE = "estimate"
"""Written for a number that the algorithm is to find out by itself."""


def format_algorithm(text: str) -> str:
    """Write an algorithm in the one way that records compare by; values are judged by its class.

    >>> format_algorithm("Co-Teaching( ramp = 10, rate = .40 )")
    'co-teaching(rate=0.4,ramp=10)'
    >>> format_algorithm("co-teching")
    Traceback (most recent call last):
        ...
    ValueError: algorithm: expected one of supervised, co-teaching, nlnl, elr, got 'co-teching'; did
    you mean 'co-teaching'?
    """
    name, arguments = _parse(text)
    written = [
        f"{key}={ESTIMATE if value is None else format_value(value)}"
        for key, value in arguments.items()
    ]
    return f"{name}({','.join(written)})" if written else name


def _parse(text: str) -> tuple[str, dict[str, float | None]]:
    """The name and the arguments, `None` for a number that is to be estimated."""
    call = parse_call(text, what="algorithm", words={ESTIMATE: None})
    name = call.name.lower()
    if name not in ALGORITHMS:
        raise ValueError(
            f"algorithm: expected one of {', '.join(ALGORITHMS)}, got {name!r}"
            + suggest(name, ALGORITHMS, cutoff=0.5)
        )
    family = ALGORITHMS[name]
    check_arguments(call, family.written, text, what="algorithm: ")
    takes = inspect.signature(family).parameters
    for key, value, position in call.arguments:
        if value is None and takes[family.written[key]].default is not None:
            problem = f"algorithm: expected a number for {key} in {name}, got {ESTIMATE!r}"
            raise TextError(problem, text, position)
    given = {argument.name: argument.value for argument in call.arguments}
    # In the order of the class, so that equal algorithms are equal texts.
    return name, {key: given[key] for key in family.written if key in given}


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
    name, arguments = _parse(text)
    family = ALGORITHMS[name]
    takes = inspect.signature(family).parameters
    known: dict[str, Any] = {"noise_rate": noise_rate, "epochs": epochs}
    keywords = {key: value for key, value in known.items() if key in takes}
    keywords.update({family.written[key]: value for key, value in arguments.items()})
    try:
        return family(loss, num_classes=num_classes, num_examples=num_examples, **keywords)
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"algorithm {format_algorithm(text)}: {problem}") from None
