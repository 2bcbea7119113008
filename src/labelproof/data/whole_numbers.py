"""Whole numbers that are written in several ways, as names of classes and samples are."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["alike", "is_whole", "plain_number"]

_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.0*)?")


def is_whole(text: str) -> bool:
    """Whether a text is a whole number without a sign.

    >>> is_whole("007"), is_whole("7.0"), is_whole("²")
    (True, False, False)
    """
    # Only ASCII digits: int() takes others too, and "²" is a digit that it does not take.
    return text.isascii() and text.isdigit()


def plain_number(text: str) -> str:
    """A whole number as a person writes it; anything else as it is.

    >>> [plain_number(text) for text in ("7.0", "007", "-0", "7.5", "line 07")]
    ['7', '7', '0', '7.5', 'line 07']
    """
    # By its digits, since a long number is another one as a float, and int() refuses the longest.
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    digits = match[2].lstrip("0") or "0"
    return f"-{digits}" if match[1] == "-" and digits != "0" else digits


def alike(left: Sequence[str], right: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Two lists of names, written so that they can be compared.

    Software adds `.0` to numbers and takes leading zeros off. Where that would make one name of
    two in a list, both lists stay as they are: there, the zeros mean something.

    >>> alike(["1.0", "2.0"], ["02", "cat"])
    (['1', '2'], ['2', 'cat'])
    >>> alike(["1", "01"], ["1.0"])
    (['1', '01'], ['1.0'])
    """
    plain = [plain_number(name) for name in left], [plain_number(name) for name in right]
    for before, after in zip((left, right), plain, strict=True):
        if len(set(after)) < len(set(before)):
            return left, right
    return plain
