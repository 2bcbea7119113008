"""How the learning rate moves, as text: `cosine`, `exponential:0.97`, `step:30:0.1`, `constant`."""

from __future__ import annotations

from dataclasses import dataclass

from labelproof.ranges import suggest, whole, within
from labelproof.schedules import Schedule, constant, cosine, exponential

__all__ = ["LearningRate", "parse_learning_rate"]

_EXPECTED = (
    "schedule: expected cosine, constant, exponential:FACTOR (each epoch) or step:EPOCHS:FACTOR"
)
_KINDS = ("cosine", "constant", "exponential", "step")


@dataclass(frozen=True)
class LearningRate:
    """A kind of schedule; prints as the text it was read from.

    Attributes:
        kind: `cosine` (to zero over the run), `constant`, `exponential` or `step`.
        factor: What the rate is multiplied with.
        every: Epochs between two multiplications.
    """

    kind: str
    factor: float = 1.0
    every: int = 1

    def over(self, initial: float, *, epochs: int) -> Schedule:
        """The schedule of a run; it is asked once an epoch, as the paper steps it.

        >>> schedule = parse_learning_rate("cosine").over(0.1, epochs=100)
        >>> [round(schedule(epoch), 6) for epoch in (0, 50, 100)]
        [0.1, 0.05, 0.0]
        """
        if self.kind == "cosine":
            return cosine(initial, 0, epochs=epochs)
        if self.kind == "constant":
            return constant(initial)
        return exponential(initial, growth=self.factor, every=self.every)

    def __str__(self) -> str:
        factor = repr(self.factor).removesuffix(".0")  # all digits: a run is made from this text
        if self.kind == "exponential":
            return f"exponential:{factor}"
        return f"step:{self.every}:{factor}" if self.kind == "step" else self.kind


def parse_learning_rate(text: str) -> LearningRate:
    """Read a schedule.

    >>> parse_learning_rate("step:30:0.1")
    LearningRate(kind='step', factor=0.1, every=30)
    >>> parse_learning_rate("cosin")
    Traceback (most recent call last):
        ...
    ValueError: schedule: expected cosine, constant, exponential:FACTOR (each epoch) or
    step:EPOCHS:FACTOR, got 'cosin'; did you mean 'cosine'?
    """
    kind, *rest = text.strip().lower().split(":")
    hint = "" if kind in _KINDS else suggest(kind, _KINDS)
    problem = ValueError(f"{_EXPECTED}, got {text!r}{hint}")
    if len(rest) != {"cosine": 0, "constant": 0, "exponential": 1, "step": 2}.get(kind, -1):
        raise problem
    try:
        numbers = [float(part) for part in rest]
    except ValueError:
        raise problem from None
    if not numbers:
        return LearningRate(kind)
    factor = within("schedule factor", numbers[-1], 0, open_low=True)
    return LearningRate(kind, factor, whole("schedule epochs", numbers[0], 1) if rest[1:] else 1)
