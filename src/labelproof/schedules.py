"""Values that change during training: plain functions from an epoch to a number.

A schedule may be called with a fraction of an epoch, to update at every step. Any callable from a
float to a float works; those here can also be compared, printed and pickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from labelproof.ranges import finite, within

__all__ = ["Schedule", "as_schedule", "constant", "cosine", "exponential", "linear"]

Schedule: TypeAlias = Callable[[float], float]


@dataclass(frozen=True)
class Constant:
    """The same value at every epoch; made by `constant`."""

    value: float

    def __call__(self, epoch: float) -> float:
        return self.value


@dataclass(frozen=True)
class Exponential:
    """`initial * growth ** floor(epoch / every)`, clamped to bounds; made by `exponential`."""

    initial: float
    growth: float
    every: float
    minimum: float
    maximum: float

    def __call__(self, epoch: float) -> float:
        # A step's share of an epoch is rarely exact: 3 / 10 / 0.1 is just under 3.
        updates = math.floor(min(epoch / self.every, 1e15) * (1 + 1e-12))
        try:
            factor = self.growth**updates
        except OverflowError:  # growth ** 10_000 overflows; the bound is still finite
            factor = math.inf
        value = self.initial * factor if self.initial else 0.0
        return min(max(value, self.minimum), self.maximum)


@dataclass(frozen=True)
class Ramp:
    """From `start` to `end` over `epochs`, then `end`; made by `linear` and `cosine`."""

    start: float
    end: float
    epochs: float
    shape: str

    def __call__(self, epoch: float) -> float:
        progress = min(max(epoch / self.epochs, 0.0), 1.0)
        if self.shape == "cosine":
            progress = (1 - math.cos(math.pi * progress)) / 2
        # A weighted mean, not start + difference, so that the last value is exactly the end.
        return self.start * (1 - progress) + self.end * progress


def constant(value: float) -> Constant:
    """The same value at every epoch.

    >>> constant(0.5)(100)
    0.5
    """
    return Constant(finite("value", value))


def exponential(
    initial: float,
    *,
    growth: float,
    every: float = 1,
    minimum: float = 0.0,
    maximum: float = 1e30,
) -> Exponential:
    r"""The paper's schedule, $\lambda_t = \lambda_0\,\rho^{\lfloor t / r \rfloor}$.

    A growth below one is a decay, as the paper suggests for the temperature.

    Args:
        initial: Value at epoch 0 ($\lambda_0$).
        growth: Factor of one update ($\rho$).
        every: Epochs between two updates ($r$).
        minimum: Floor of the value.
        maximum: Ceiling of the value.

    >>> weight = exponential(4, growth=2, every=5)
    >>> [weight(epoch) for epoch in (0, 4, 5, 10)]
    [4.0, 4.0, 8.0, 16.0]
    >>> temperature = exponential(1.0, growth=0.5, minimum=0.1)
    >>> [temperature(epoch) for epoch in range(5)]
    [1.0, 0.5, 0.25, 0.125, 0.1]
    """
    return Exponential(
        initial=within("initial", initial, 0),
        growth=within("growth", growth, 0, open_low=True),
        every=within("every", every, 0, open_low=True),
        minimum=within("minimum", minimum, 0),
        maximum=within("maximum", maximum, minimum),
    )


def linear(start: float, end: float, *, epochs: float) -> Ramp:
    """A straight line from `start` to `end` over `epochs`, then `end`.

    >>> linear(0, 10, epochs=5)(2)
    4.0
    """
    return Ramp(finite("start", start), finite("end", end), _duration(epochs), "linear")


def cosine(start: float, end: float, *, epochs: float) -> Ramp:
    """Half a cosine from `start` to `end` over `epochs`, then `end`.

    >>> round(cosine(1, 0, epochs=10)(5), 6)
    0.5
    """
    return Ramp(finite("start", start), finite("end", end), _duration(epochs), "cosine")


def as_schedule(name: str, value: float | Schedule) -> Schedule:
    """Turn a number into a constant schedule; leave a schedule alone.

    Args:
        name: The argument's name, for the message.
        value: A number or a schedule.

    >>> as_schedule("weight", 3)(7)
    3.0
    """
    if getattr(value, "ndim", 0):
        raise TypeError(
            f"{name}: expected a number or a schedule, got a tensor; class weights are given to "
            "the base loss"
        )
    return value if callable(value) else constant(finite(name, value))


def _duration(epochs: float) -> float:
    return within("epochs", epochs, 0, open_low=True)
