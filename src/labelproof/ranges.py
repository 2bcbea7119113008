"""Validation of arguments, with messages that say what was expected and what was given."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection
from numbers import Integral, Real


def finite(name: str, value: object) -> float:
    """Return `value` as a float if it is a finite number, else raise.

    >>> finite("weight", 2)
    2.0
    >>> finite("weight", "2")
    Traceback (most recent call last):
        ...
    TypeError: weight: expected a number, got '2' (str)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: expected a number, got {value!r} ({type(value).__name__})")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name}: expected a finite number, got {number}")
    return number


def within(
    name: str, value: object, low: float, high: float = math.inf, *, open_low: bool = False
) -> float:
    """Return `value` as a float if it is between `low` and `high`, else raise.

    Args:
        name: The argument's name, for the message.
        value: The argument.
        low: Smallest value allowed; excluded if `open_low`.
        high: Largest value allowed.
        open_low: Whether `low` itself is excluded.

    >>> within("q", 0.7, 0, 1, open_low=True)
    0.7
    >>> within("q", 0, 0, 1, open_low=True)
    Traceback (most recent call last):
        ...
    ValueError: q: expected a number in (0, 1], got 0
    """
    number = finite(name, value)
    if number < low or (open_low and number == low) or number > high:
        bracket = "(" if open_low else "["
        interval = (
            f"{bracket}{low:g}, {high:g}]" if math.isfinite(high) else f"{bracket}{low:g}, ∞)"
        )
        raise ValueError(f"{name}: expected a number in {interval}, got {value!r}")
    return number


def flag(name: str, value: object) -> bool:
    """Return `value` if it is a bool, else raise.

    >>> flag("detach", True)
    True
    >>> flag("detach", 1)
    Traceback (most recent call last):
        ...
    TypeError: detach: expected true or false, got 1 (int)
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected true or false, got {value!r} ({type(value).__name__})")
    return value


def whole(name: str, value: object, low: float = -math.inf) -> int:
    """Return `value` as an int if it is a whole number of at least `low`, else raise.

    >>> whole("samples", 2.0, 1)
    2
    >>> whole("samples", 0, 1)
    Traceback (most recent call last):
        ...
    ValueError: samples: expected a whole number of at least 1, got 0
    """
    number = finite(name, value)
    if not number.is_integer() or number < low:
        least = f" of at least {low:g}" if math.isfinite(low) else ""
        raise ValueError(f"{name}: expected a whole number{least}, got {value!r}")
    # Past 2**53 a float is rounded, and a seed would become another seed.
    return int(value) if isinstance(value, Integral) else int(number)


def choose(name: str, value: str, known: Collection[str]) -> str:
    """Return `value` if it is one of `known`, else raise and suggest the nearest.

    >>> choose("optimizer", "sgd", ("sgd", "adamw"))
    'sgd'
    >>> choose("optimizer", "adam", ("sgd", "adamw"))
    Traceback (most recent call last):
        ...
    ValueError: optimizer: expected one of sgd, adamw, got 'adam'; did you mean 'adamw'?
    """
    if value not in known:
        hint = suggest(value, known)
        raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}{hint}")
    return value


ELSEWHERE = {
    "bs": "batch_size",
    "dataset": "data",
    "growth": "rho",
    "lr": "learning_rate",
    "model": "network",
    "temperature": "tau",
    "wd": "weight_decay",
    "weight": "lambda0",
}
"""What other programs, or the Python functions, call a setting."""


def suggest(value: str, known: Collection[str], *, cutoff: float = 0.65) -> str:
    """The end of a message about an unknown name: the nearest known one, or `""`.

    Args:
        value: The unknown name; for a number there is no suggestion.
        known: The known names.
        cutoff: Smallest similarity, from 0 to 1.

    >>> suggest("epoch", ["epochs", "seed"])
    "; did you mean 'epochs'?"
    >>> suggest("nope", ["income"])
    ''
    >>> suggest("0.3", ["0.4", "0.8"])
    ''
    >>> suggest("lr", ["learning_rate", "l1"])
    "; did you mean 'learning_rate'?"
    """
    # Numbers with similar digits need not be close.
    number = value.strip().replace(".", "", 1).isdecimal()
    names = [] if number else list(known)
    close = [ELSEWHERE[value]] if ELSEWHERE.get(value) in names else []
    close = close or difflib.get_close_matches(value, names, n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""
