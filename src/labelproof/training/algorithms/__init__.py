"""Learning algorithms: what each network minimises on a batch.

They are written as text: `supervised`, `co-teaching(rate=0.4,ramp=10)`, `nlnl(negative=0.5)`. To
add one, subclass `Algorithm` in a file here and add its name to `ALGORITHMS`; the trainer, the
command line and the records need no change.
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
"""The class of each algorithm, by name; its `summary` is one line."""

ESTIMATE = "estimate"
"""Written in place of a number that the algorithm is to estimate."""


def format_algorithm(text: str) -> str:
    """The canonical text of an algorithm, defaults written out; its class checks the values.

    >>> format_algorithm("Co-Teaching( ramp = 10, rate = .40 )")
    'co-teaching(rate=0.4,ramp=10,exponent=1)'
    >>> format_algorithm("elr")
    'elr(beta=0.7,lambda=3)'
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
    """The name and the arguments; `None` is a number to estimate."""
    call = parse_call(text, what="algorithm", words={ESTIMATE: None})
    name = call.name.lower()
    if name not in ALGORITHMS:
        raise ValueError(
            f"algorithm: expected one of {', '.join(ALGORITHMS)}, got {name!r}"
            + suggest(name, ALGORITHMS, cutoff=0.5)
        )
    family = ALGORITHMS[name]
    check_arguments(call, family.written, text, what="algorithm: ")
    parameters = inspect.signature(family).parameters
    for key, value, position in call.arguments:
        if value is None and parameters[family.written[key]].default is not None:
            problem = f"algorithm: expected a number for {key} in {name}, got {ESTIMATE!r}"
            raise TextError(problem, text, position)
    given = {argument.name: argument.value for argument in call.arguments}
    defaults = {key: parameters[argument].default for key, argument in family.written.items()}
    # In the order of the class and with defaults, so that equal algorithms have equal texts. A
    # default of None is the known noise rate, unlike `estimate`.
    values = {key: default for key, default in defaults.items() if default is not None} | given
    return name, {key: values[key] for key in defaults if key in values}


def make_algorithm(
    text: str,
    loss: Loss,
    *,
    num_classes: int,
    num_examples: int,
    noise_rate: float | None = None,
    epochs: int | None = None,
) -> Algorithm:
    """Make the algorithm that `text` describes.

    Args:
        text: For instance `"co-teaching(rate=0.4)"`.
        loss: The loss.
        num_classes: Number of classes.
        num_examples: Number of training examples.
        noise_rate: Share of wrong labels, if known; used if the text has no `rate`.
            `rate=estimate` ignores it.
        epochs: Length of the run, for stages given as shares of it.

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
    parameters = inspect.signature(family).parameters
    known: dict[str, Any] = {"noise_rate": noise_rate, "epochs": epochs}
    keywords = {key: value for key, value in known.items() if key in parameters}
    keywords.update({family.written[key]: value for key, value in arguments.items()})
    try:
        return family(loss, num_classes=num_classes, num_examples=num_examples, **keywords)
    except (TypeError, ValueError) as problem:
        argument, colon, rest = str(problem).partition(":")
        key = {value: key for key, value in family.written.items()}.get(argument, argument)
        message = f"algorithm {format_algorithm(text)}: {key}{colon}{rest}"
        raise type(problem)(message) from None
