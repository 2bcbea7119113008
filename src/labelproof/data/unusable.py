"""Samples that cannot be used: what is wrong with them, and apart from it what can be done."""

from __future__ import annotations

__all__ = ["UnusableSamplesError"]


class UnusableSamplesError(ValueError):
    """Some of the data cannot be used, and was not to be left out.

    What can be done depends on who reads the data: a training may leave them out, while predictions
    that are matched row by row must not. So the advice is apart from the reason.

    Args:
        reason: What cannot be used, and where it is.
        advice: What to do about it.

    Example:
        >>> error = UnusableSamplesError("t.csv: 1 of 9 rows without a label", "mend it")
        >>> str(error), error.reason
        ('t.csv: 1 of 9 rows without a label; mend it', 't.csv: 1 of 9 rows without a label')
    """

    def __init__(self, reason: str, advice: str):
        super().__init__(reason, advice)
        self.reason = reason
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.reason}; {self.advice}"
