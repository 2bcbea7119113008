"""Numbers as countries write them: decimal commas, and what stands between thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence

from labelproof.data.cells import Parsed, is_missing, parse_numbers

__all__ = [
    "commas_alone",
    "dots_between_thousands",
    "has_decimal_commas",
    "has_decimal_points",
    "has_thousands_commas",
    "parse_local_numbers",
    "unclear_number",
]

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_DECIMAL_COMMA = re.compile(rf"[+-]?\d*,\d+{_EXPONENT}")
_POINT = re.compile(rf"[+-]?(?:\d+\.\d*|\.\d+){_EXPONENT}")
# No number begins with 0 and goes on with thousands: 0.125 has a decimal point.
_DOTS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?P<comma>,\d+)?")
_COMMAS = re.compile(r"[+-]?[1-9]\d{0,2}(?P<groups>(?:,\d{3})+)(?P<point>\.\d*)?")
_ONE_COMMA = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_ONE_DOT = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_WHOLE = re.compile(r"[+-]?\d+")


def has_decimal_commas(texts: Sequence[str]) -> bool:
    """Whether what is no plain number has a comma for the decimal point, and can mean nothing else.

    Args:
        texts: The cells of a column that `parse_numbers` does not read.

    Example:
        >>> has_decimal_commas(["1,5", "1,500"]), has_decimal_commas(["3.237,140"])
        (True, True)

        Alone, 1,500 could be a thousand and a half; but 1037,500 and 0,500 could not.

        >>> has_decimal_commas(["1,500"]), has_decimal_commas(["1,5", "about 3"])
        (False, False)
        >>> has_decimal_commas(["937,500", "1037,500"]), has_decimal_commas(["0,500"])
        (True, True)
    """
    certain = False
    for text in texts:
        if _DECIMAL_COMMA.fullmatch(text):
            certain = certain or not _COMMAS.fullmatch(text)
        elif match := _DOTS.fullmatch(text):
            certain = certain or match["comma"] is not None
        else:
            return False
    return certain


def has_thousands_commas(texts: Sequence[str]) -> bool:
    """Whether what is no plain number has commas between thousands, and can mean nothing else.

    >>> has_thousands_commas(["3,237.14", "7,804"]), has_thousands_commas(["1,234,567"])
    (True, True)
    >>> has_thousands_commas(["7,804"]), has_thousands_commas(["3,237.14", "1,5"])
    (False, False)
    """
    matches = [_COMMAS.fullmatch(text) for text in texts]
    return all(matches) and any(
        match["point"] is not None or len(match["groups"]) > 4 for match in matches if match
    )


def has_decimal_points(texts: Sequence[str]) -> bool:
    """Whether some number has a dot that cannot stand between thousands.

    >>> has_decimal_points(["3.237", "1.5"]), has_decimal_points(["3.237", "red"])
    (True, False)
    """
    return any(_POINT.fullmatch(text) and not _DOTS.fullmatch(text) for text in texts)


def dots_between_thousands(texts: Sequence[str]) -> bool:
    """Whether every dot could stand between thousands, and there are some.

    >>> dots_between_thousands(["987", "3.237", ""]), dots_between_thousands(["0.125", "3.237"])
    (True, False)
    """
    # Most columns have none, and are not looked at cell by cell.
    if "." not in "".join(texts):
        return False
    found = False
    for text in texts:
        if "." in text and not is_missing(text):
            if not _DOTS.fullmatch(text):
                return False
            found = True
        elif not (text.lstrip("+-").isdecimal() or is_missing(text)):
            return False
    return found


def commas_alone(texts: Sequence[str]) -> bool:
    """Whether every comma could be a decimal one or stand between thousands, and there are some.

    >>> commas_alone(["987", "3,237", ""]), commas_alone(["3,237", "1,5"])
    (True, False)
    """
    if "," not in "".join(texts):
        return False
    return all(
        _ONE_COMMA.fullmatch(text) if "," in text else _WHOLE.fullmatch(text) or is_missing(text)
        for text in texts
    )


def unclear_number(texts: Sequence[str], *, comma: bool) -> str:
    """A number whose mark could be a decimal one as well, where no other cell tells; or `""`.

    Args:
        texts: New cells of a column that has commas in its training rows.
        comma: Whether they are decimal commas there, so that dots stand between thousands.

    Example:
        >>> unclear_number(["982.750", "7"], comma=True), unclear_number(["982,750"], comma=False)
        ('982.750', '982,750')
        >>> unclear_number(["982.750", "0,5"], comma=True), unclear_number(["982.75"], comma=True)
        ('', '')
    """
    between = _ONE_DOT if comma else _ONE_COMMA
    marked = [text for text in texts if ("," in text or "." in text) and not is_missing(text)]
    if not marked or not all(between.fullmatch(text) for text in marked):
        return ""
    return marked[0]


def parse_local_numbers(
    texts: Sequence[str], *, comma: bool = False, thousands: bool = False
) -> Parsed:
    """Read text as numbers, as a country writes them.

    With decimal commas, dots before three digits stand between thousands, unless another cell shows
    that dots are decimal points here.

    Args:
        texts: The cells.
        comma: Whether the comma is the decimal point.
        thousands: Whether commas stand between thousands.

    Example:
        >>> parse_local_numbers(["3.237,5", "12.500", "0,5"], comma=True)[0].tolist()
        [3237.5, 12500.0, 0.5]
        >>> parse_local_numbers(["3,237.5", "12,500", "1,5"], thousands=True)
        (array([ 3237.5, 12500. ,     nan]), [2])
    """
    if comma:
        dots = not has_decimal_points(texts)
        return parse_numbers([_with_point(text, dots=dots) for text in texts])
    if thousands:
        return parse_numbers(
            [text.replace(",", "") if _COMMAS.fullmatch(text) else text for text in texts]
        )
    return parse_numbers(texts)


def _with_point(text: str, *, dots: bool) -> str:
    if match := _DOTS.fullmatch(text):
        return text.replace(".", "").replace(",", ".") if dots or match["comma"] else text
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text
