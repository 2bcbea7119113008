"""How the learning rate moves, as text: `cosine:0.001`, `exponential:0.97`, `step:30:0.1`, ..."""

from __future__ import annotations

from dataclasses import dataclass

from labelproof.ranges import suggest, whole, within
from labelproof.schedules import Schedule, constant, cosine, exponential

__all__ = ["LearningRate", "parse_learning_rate"]

_EXPECTED = (
    "schedule: expected cosine, cosine:FLOOR, constant, exponential:FACTOR (each epoch) or "
    "step:EPOCHS:FACTOR"
)
_NUMBERS = {"cosine": (0, 1), "constant": (0,), "exponential": (1,), "step": (2,)}
"""How many numbers may stand behind each kind."""


@dataclass(frozen=True)
class LearningRate:
    """A kind of schedule; prints as text that it can be read from.

    Attributes:
        kind: `cosine` (down to the floor over the run), `constant`, `exponential` or `step`.
        factor: What the rate is multiplied with.
        every: Epochs between two multiplications.
        floor: Where a cosine ends, a learning rate as the initial one is.
    """

    kind: str
    factor: float = 1.0
    every: int = 1
    floor: float = 0.0

    def over(self, initial: float, *, epochs: int) -> Schedule:
        """The schedule of a run; it is asked once an epoch, as the paper steps it.

        >>> schedule = parse_learning_rate("cosine").over(0.1, epochs=100)
        >>> [round(schedule(epoch), 6) for epoch in (0, 50, 100)]
        [0.1, 0.05, 0.0]
        >>> parse_learning_rate("cosine:0.2").over(0.1, epochs=100)
        Traceback (most recent call last):
            ...
        ValueError: schedule: expected a floor of at most the learning rate, 0.1, got 'cosine:0.2'
        """
        if self.kind == "cosine":
            if self.floor > initial:
                raise ValueError(
                    f"schedule: expected a floor of at most the learning rate, {_digits(initial)}, "
                    f"got {str(self)!r}"
                )
            return cosine(initial, self.floor, epochs=epochs)
        if self.kind == "constant":
            return constant(initial)
        return exponential(initial, growth=self.factor, every=self.every)

    def __str__(self) -> str:
        if self.kind == "cosine" and self.floor:
            return f"cosine:{_digits(self.floor)}"
        if self.kind == "exponential":
            return f"exponential:{_digits(self.factor)}"
        return f"step:{self.every}:{_digits(self.factor)}" if self.kind == "step" else self.kind


def parse_learning_rate(text: str) -> LearningRate:
    """Read a schedule.

    >>> parse_learning_rate("step:30:0.1")
    LearningRate(kind='step', factor=0.1, every=30, floor=0.0)
    >>> parse_learning_rate("cosine:0.001").floor
    0.001
    >>> parse_learning_rate("cosin")
    Traceback (most recent call last):
        ...
    ValueError: schedule: expected cosine, cosine:FLOOR, constant, exponential:FACTOR (each epoch)
    or step:EPOCHS:FACTOR, got 'cosin'; did you mean 'cosine'?
    """
    kind, *rest = text.strip().lower().split(":")
    hint = "" if kind in _NUMBERS else suggest(kind, _NUMBERS)
    problem = ValueError(f"{_EXPECTED}, got {text!r}{hint}")
    if len(rest) not in _NUMBERS.get(kind, ()):
        raise problem
    try:
        numbers = [float(part) for part in rest]
    except ValueError:
        raise problem from None
    if not numbers:
        return LearningRate(kind)
    if kind == "cosine":
        return LearningRate(kind, floor=within("schedule floor", numbers[0], 0))
    factor = within("schedule factor", numbers[-1], 0, open_low=True)
    return LearningRate(kind, factor, whole("schedule epochs", numbers[0], 1) if rest[1:] else 1)


def _digits(number: float) -> str:
    return repr(number).removesuffix(".0")  # all of them: a run is made from this text
