"""Warnings and errors about data, and how they show names and counts."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Sequence
from itertools import takewhile

_INSIDE = (os.path.dirname(os.path.dirname(__file__)) + os.sep, functools.__file__)
"""This package, and what calls its cached properties."""


class DataWarning(UserWarning):
    """A problem in the data that was handled, and that its owner should know about."""


def notice(message: str) -> None:
    """Warn about the data, at the line that called labelproof."""
    callers = inspect.stack(context=0)
    inside = takewhile(lambda caller: caller.filename.startswith(_INSIDE), callers)
    warnings.warn(message, DataWarning, stacklevel=1 + sum(1 for _ in inside))


def leave_out(reason: str, on_error: str) -> None:
    """Raise, or warn that samples are left out."""
    if on_error == "raise":
        raise ValueError(f"{reason}; fix them, or use on_error='skip'")
    notice(f"{reason}; left out")


def few(names: Sequence[str], *, shown: int = 3) -> str:
    """The first few of many names, and how many more there are."""
    rest = len(names) - shown
    listed = ", ".join(readable(name)[:200] for name in names[:shown])
    return f"{listed} and {rest:,} more" if rest > 0 else listed


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun, such as `1 row` or `2 rows`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def quoted(text: str, *, length: int = 40) -> str:
    """A text in quotes, a long one shortened."""
    return repr(text if len(text) <= length else text[: length - 1].rstrip() + "…")


def readable(name: str) -> str:
    """A file name that can be printed: bytes that are not UTF-8 become escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
