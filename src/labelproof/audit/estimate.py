"""A number that was estimated, and how sure of it one can be."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval.

    Attributes:
        value: The estimate.
        low: The interval's lower end.
        high: Its upper end.

    Example:
        >>> print(Estimate(0.2, 0.181, 0.2204).as_percent())
        20.0% (18.1% to 22.0%)
    """

    value: float
    low: float
    high: float

    def as_percent(self) -> str:
        """As text, for a share of 0 to 1."""
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"
