"""Lines for a person: whole, as they are, on whatever they are shown."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console

from labelproof.verbs.progress import Reporter, say

__all__ = ["Terminal", "for_flags", "say", "told", "warn"]

_LENIENT = ("fit", "audit")
"""Commands that have --strict where others have --skip-unreadable."""


def warn(text: str) -> None:
    """Say on the error stream what someone may want to do something about."""
    say(Console(stderr=True), f"warning: {text}", style="yellow")


def for_flags(message: str, *, command: str = "") -> str:
    """A message of the library's as who uses the program needs it: with flags, not arguments.

    Args:
        message: The library's.
        command: Which command was run; some leave out what cannot be read unless told not to.

    >>> for_flags("mend them, or leave them out with on_error='skip'")
    'mend them, or leave them out with --skip-unreadable'
    >>> for_flags("mend them, or leave them out with on_error='skip'", command="fit")
    'mend them, or leave them out with the default, which is without --strict'
    """
    lenient = command in _LENIENT
    skipped = "the default, which is without --strict" if lenient else "--skip-unreadable"
    return message.replace("on_error='skip'", skipped).replace(" (label='NAME')", "")


@contextmanager
def told() -> Iterator[None]:
    """Inside, warnings become lines on the error stream, without the code they come from."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for warning in caught:
                warn(for_flags(str(warning.message)))


class Terminal(Reporter):
    """Tells a person: results and progress on standard output, warnings on the error stream."""

    def __init__(self, console: Console | None = None):
        super().__init__(console or Console(), aside=Console(stderr=True))

    def reading(self) -> AbstractContextManager[None]:
        """Inside, warnings become lines."""
        return told()
