"""Where a cell of a table is, and what is said of one that cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labelproof.data.notices import notice
from labelproof.data.unusable import UnusableSamplesError
from labelproof.ranges import choose

__all__ = ["Where"]


@dataclass(frozen=True)
class Where:
    """How messages name a cell, and whether one that cannot be used is an error."""

    table: str
    places: Sequence[str] | None
    on_error: str

    def __post_init__(self) -> None:
        choose("on_error", self.on_error, ("raise", "skip", "quiet"))

    def row(self, index: int) -> str:
        """How a person finds a row."""
        return f"row {index}" if self.places is None else self.places[index]

    def complain(self, name: str, problem: str) -> None:
        """Refuse the table, or warn that cells are taken for missing."""
        message = f"{self.table}: column {name!r}: {problem}"
        if self.on_error == "raise":
            raise UnusableSamplesError(
                message, "mend them, or take them for missing: on_error='skip'"
            )
        if self.on_error != "quiet":
            notice(f"{message}; taken for missing")

    def tell(self, name: str, message: str) -> None:
        """Warn about a column, unless no warnings are wanted."""
        if self.on_error != "quiet":
            notice(f"{self.table}: column {name!r}: {message}")
