"""What a loader says about data that is not as it should be, in words a person can act on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

__all__ = ["DataWarning", "count", "few", "notice", "quoted", "readable"]


class DataWarning(UserWarning):
    """Something about the data that was dealt with, and that its owner should know."""


def notice(message: str) -> None:
    """Warn about the data.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     notice("photos: 2 files are not images")
    >>> print(caught[0].category.__name__, caught[0].message)
    DataWarning photos: 2 files are not images
    """
    # Three levels up is the loader's caller in most cases, a line that its reader knows.
    warnings.warn(message, DataWarning, stacklevel=4)


def few(names: Sequence[str], *, shown: int = 3) -> str:
    """The first few of many names, and how many more there are.

    >>> few(["a.jpg", "b.jpg", "c.jpg", "d.jpg", "e.jpg"])
    'a.jpg, b.jpg, c.jpg and 2 more'
    """
    rest = len(names) - shown
    listed = ", ".join(readable(name) for name in names[:shown])
    return f"{listed} and {rest:,} more" if rest > 0 else listed


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number and what it counts.

    >>> count(1, "image"), count(1200, "image"), count(2, "class", "classes")
    ('1 image', '1,200 images', '2 classes')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def quoted(text: str, *, length: int = 40) -> str:
    """A text in quotes; of a long one its beginning, and a sign that it goes on.

    >>> quoted("red"), quoted("customer complained about the price", length=20)
    ("'red'", "'customer complained…'")
    """
    return repr(text if len(text) <= length else text[: length - 1].rstrip() + "…")


def readable(name: str) -> str:
    r"""A file's name that can be printed and written, even one that is not UTF-8.

    Such a name comes from the system with half characters that no file can be written with; they
    are shown as the bytes they stand for.

    >>> print(readable(os.fsdecode(b"caf\xe9.jpg")), readable("café.jpg"))
    caf\xe9.jpg café.jpg
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")
