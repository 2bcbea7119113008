"""Lines for a person: whole, as they are, on whatever they are shown."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from labelproof.data.notices import readable

__all__ = ["for_flags", "say", "told", "warn"]

_LENIENT = ("fit", "audit")
"""Commands that have --strict where others have --skip-unreadable."""


def say(console: Console, text: str, *, style: str = "") -> None:
    """Print text as it is: nothing coloured, cut, folded, or taken for markup.

    >>> say(Console(), "runs/[a]: 12% of 3 labels")
    runs/[a]: 12% of 3 labels
    """
    # A name that is not UTF-8 must not end a command with an encoding error.
    console.print(readable(text), style=style, highlight=False, markup=False, soft_wrap=True)


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
