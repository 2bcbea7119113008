"""Lines for a person: whole, as they are, on whatever they are shown."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["say", "told"]


def say(console: Console, text: str, *, style: str = "") -> None:
    """Print text as it is: nothing coloured, cut, folded, or taken for markup.

    >>> say(Console(), "runs/[a]: 12% of 3 labels")
    runs/[a]: 12% of 3 labels
    """
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def told() -> Iterator[None]:
    """Inside, warnings become lines on the error stream, without the code they come from."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            console = Console(stderr=True)
            for warning in caught:
                say(console, f"warning: {warning.message}", style="yellow")
