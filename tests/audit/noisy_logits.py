"""Predictions and labels whose noise is known, since it was made."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Made(NamedTuple):
    """What networks would say, the labels, and the truth behind them."""

    logits: NDArray[np.float32]
    given: NDArray[np.int64]
    true: NDArray[np.int64]

    @property
    def rate(self) -> float:
        """The share of wrong labels, as it came out."""
        return float(np.mean(self.given != self.true))


def symmetric(classes: int, rate: float) -> NDArray[np.float64]:
    """Any other class, each as probable."""
    off = rate / (classes - 1)
    return np.full((classes, classes), off) + (1 - rate - off) * np.eye(classes)


def pair(classes: int, rate: float) -> NDArray[np.float64]:
    """The next class, and no other."""
    return (1 - rate) * np.eye(classes) + rate * np.roll(np.eye(classes), 1, axis=1)


def draw_labels(
    true: NDArray[np.int64], transition: NDArray[np.float64], *, seed: int
) -> NDArray[np.int64]:
    """A label for each true class, by the matrix."""
    drawn = np.random.default_rng(seed).random((len(true), 1))
    ends = np.cumsum(transition[true], axis=1)
    return (drawn > ends).sum(axis=1).clip(0, len(transition) - 1).astype(np.int64)


def make(
    samples: int,
    transition: NDArray[np.float64],
    *,
    scale: float = 6.0,
    deviation: float = 1.5,
    seed: int = 0,
) -> Made:
    """Logits that are the truth and normal noise, so that `temperature_of` them is known."""
    classes = len(transition)
    generator = np.random.default_rng(seed)
    true = generator.integers(classes, size=samples)
    logits = scale * np.eye(classes)[true] + deviation * generator.normal(size=(samples, classes))
    given = draw_labels(true, transition, seed=seed + 1000)
    return Made(logits.astype(np.float32), given, true)


def temperature_of(scale: float = 6.0, deviation: float = 1.5) -> float:
    """What such logits have to be divided by to be those of the posterior."""
    return deviation**2 / scale


def softmax(logits: NDArray[np.floating], temperature: float = 1.0) -> NDArray[np.float64]:
    """In float64."""
    scaled = logits.astype(np.float64) / temperature
    scaled -= scaled.max(axis=1, keepdims=True)
    found = np.exp(scaled)
    return found / found.sum(axis=1, keepdims=True)
