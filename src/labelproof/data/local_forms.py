"""Dates and numbers as countries write them, as far as it is certain what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from labelproof.data.cells import Parsed, parse_dates

__all__ = ["date_order", "looks_like_date", "marked_numbers", "parse_ordered_dates", "short_year"]

_DATE = re.compile(
    r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d\d)(?P<time> \d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)?"
)
_CURRENCY = r"[$€£¥₹]|(?:USD|EUR|GBP|CHF) ?"
_MARKED = re.compile(
    rf"(?P<sign>[+-]?)(?:{_CURRENCY})? ?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)"
    rf" ?(?:%|{_CURRENCY})?"
)
_ONE_COMMA = re.compile(r"[+-]?\d+,\d+")


def looks_like_date(text: str) -> bool:
    """Whether a text is a date with the year last.

    >>> looks_like_date("18.04.2023 9:30"), looks_like_date("4/18/23"), looks_like_date("1.2.3.4")
    (True, True, False)
    """
    return _DATE.fullmatch(text) is not None


def date_order(texts: Iterable[str]) -> str:
    """What comes first in dates whose year comes last: `"day"`, `"month"`, or `""` if unknown.

    Dates with dots have the day first wherever such are written. With slashes and hyphens both are
    usual: there a number above 12 tells, if all of the column agree. Years of two digits are not
    taken, since they leave the century open, or which of the three is the year.

    Args:
        texts: The dates of one column, all with the same separator.

    Example:
        >>> date_order(["03.04.2023"]), date_order(["3/4/2023", "3/18/2023"])
        ('day', 'month')
        >>> date_order(["3/4/2023"]), date_order(["18/4/2023", "4/18/2023"])
        ('', '')
    """
    matches = [_DATE.fullmatch(text) for text in texts]
    found = [match for match in matches if match is not None and len(match[4]) == 4]
    separators = {match[2] for match in found}
    if len(found) < len(matches) or len(separators) != 1:
        return ""
    day = any(int(match[1]) > 12 for match in found) or separators == {"."}
    month = any(int(match[3]) > 12 for match in found)
    if day == month:
        return ""
    return "day" if day else "month"


def parse_ordered_dates(texts: Sequence[str], order: str) -> Parsed:
    """Read dates with the day or the month first, and international ones among them.

    Args:
        texts: The cells.
        order: What comes first: `"day"` or `"month"`.

    Example:
        >>> parse_ordered_dates(["2.1.1970", "1970-01-03", "5.1.70", ""], "day")
        (array([ 1.,  2., nan, nan]), [2])
    """
    return parse_dates([_international(text, order) for text in texts])


def short_year(text: str) -> bool:
    """Whether a date has a year of two digits.

    >>> short_year("18.04.23"), short_year("18.04.2023")
    (True, False)
    """
    match = _DATE.fullmatch(text)
    return match is not None and len(match[4]) == 2


def marked_numbers(texts: Iterable[str]) -> str:
    """What is in the way of numbers: a currency, a percent sign, thousands commas; else `""`.

    >>> marked_numbers(["$2.70", "$11.07"])
    "numbers written as '$2.70'; write 2.70"
    >>> marked_numbers(["950", "7,804"])
    "numbers written as '7,804'; write 7804, or 7.804 if that is meant"
    >>> marked_numbers(["$2.70", "A4"])
    ''
    """
    reason = ""
    for text in texts:
        match = _MARKED.fullmatch(text)
        if match is None:
            return ""
        plain = match["sign"] + match["digits"].replace(",", "")
        if not reason and plain != text:
            half = text.replace(",", ".")
            other = f", or {half} if that is meant" if _ONE_COMMA.fullmatch(text) else ""
            reason = f"numbers written as {text!r}; write {plain}{other}"
    return reason


def _international(text: str, order: str) -> str:
    match = _DATE.fullmatch(text)
    if match is None or len(match[4]) != 4:
        return text
    day, month = (match[1], match[3]) if order == "day" else (match[3], match[1])
    time = ""
    if match["time"]:
        hour, rest = match["time"].strip().split(":", 1)
        time = f" {hour:0>2}:{rest}"
    return f"{match[4]}-{month:0>2}-{day:0>2}{time}"
