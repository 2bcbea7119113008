"""The grammar of losses as text: from characters to a small tree, with errors that point.

sum      = term { "+" term }
term     = [ number "*" ] factor
factor   = name [ "(" [ argument { "," argument } ] ")" ] | "normalized" "(" sum ")" | "(" sum ")"
argument = name "=" value
value    = [ "-" ] number | "true" | "false" | "none"

A name may have a version, `@` and six digits: those of the user's own losses are written so.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Argument",
    "Call",
    "Group",
    "LossSyntaxError",
    "Node",
    "OwnLossError",
    "Sum",
    "Term",
    "nearest",
    "parse",
]

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*(@[0-9a-f]{6})?)|(?P<symbol>[-+*(),=])",
    re.ASCII,  # without it \d takes the digits of every script
)
# Text may come from a stranger; no loss that is meant comes near these.
_DEEPEST = 50
_LONGEST = 2000
_MOST_LOSSES = 100
_LONGEST_NUMBER = 40
_SHOWN = 60


class LossSyntaxError(ValueError):
    """Text that is not a loss, with the place.

    >>> print(LossSyntaxError("unknown loss 'cx'", "ce+cx", 3))
    unknown loss 'cx'
      ce+cx
         ^
    """

    def __init__(self, problem: str, text: str, position: int):
        self.problem, self.text, self.position = problem, text, position
        start = max(0, position - _SHOWN)
        before = _printable(text[start:position])
        after = _printable(text[position : position + _SHOWN])
        if start > 0:
            before = "..." + before
        if position + _SHOWN < len(text):
            after += "..."
        super().__init__(f"{problem}\n  {before}{after}\n  {' ' * len(before)}^")

    def __reduce__(self) -> tuple[type[LossSyntaxError], tuple[str, str, int]]:
        return type(self), (self.problem, self.text, self.position)


class OwnLossError(LossSyntaxError):
    """A loss from a file of the user's own, written with a version of its code that is not here."""


@dataclass(frozen=True)
class Argument:
    """`name=value` inside a call."""

    name: str
    value: float | bool | None
    position: int


@dataclass(frozen=True)
class Call:
    """A name with its arguments."""

    name: str
    arguments: tuple[Argument, ...]
    position: int


@dataclass(frozen=True)
class Group:
    """A sum in parentheses, plain or under `normalized`."""

    inner: Sum
    normalized: bool


@dataclass(frozen=True)
class Term:
    """A factor with an optional coefficient."""

    coefficient: float | None
    factor: Call | Group
    position: int


@dataclass(frozen=True)
class Sum:
    """Terms joined by `+`."""

    terms: tuple[Term, ...]


Node: TypeAlias = Sum | Group | Call


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int


def parse(text: str) -> Sum:
    """Read a loss's text into a tree.

    >>> [term.coefficient for term in parse("10*nce+mae").terms]
    [10.0, None]
    """
    if not isinstance(text, str):
        raise TypeError(f"text: expected a string, got {type(text).__name__}")
    if len(text) > _LONGEST:
        raise LossSyntaxError(
            f"expected at most {_LONGEST:,} characters, got {len(text):,}", text, _LONGEST
        )
    return _Parser(text).parse()


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that names the closest known name, or nothing.

    >>> nearest("gcee", ["ce", "gce"])
    ", did you mean 'gce'?"
    """
    close = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""


def _printable(text: str) -> str:
    """One character for one character, so that the caret stays under its place."""
    return "".join(character if character.isprintable() else " " for character in text)


class _Parser:
    def __init__(self, text: str):
        self.text = text
        self.tokens = self.tokenize()
        self.index = 0
        self.depth = 0
        self.losses = 0

    def tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self.error(f"unexpected character {self.text[position]!r}", position)
            if match.lastgroup == "number" and match.end() - position > _LONGEST_NUMBER:
                raise self.error(
                    f"expected a number of at most {_LONGEST_NUMBER} characters", position
                )
            if match.lastgroup != "space":
                tokens.append(_Token(str(match.lastgroup), match.group(), position))
            position = match.end()
        tokens.append(_Token("end", "", len(self.text)))
        return tokens

    def parse(self) -> Sum:
        result = self.sum()
        if self.here.kind != "end":
            raise self.error(f"expected '+' or the end, got {self.here.text!r}")
        return result

    def sum(self) -> Sum:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} levels of parentheses")
        terms = [self.term()]
        while self.accept("+"):
            terms.append(self.term())
        self.depth -= 1
        return Sum(tuple(terms))

    def term(self) -> Term:
        position = self.here.position
        coefficient = None
        if self.here.kind == "number":
            coefficient = float(self.advance().text)
            self.expect("*", "between a number and the loss it weighs")
        return Term(coefficient, self.factor(), position)

    def factor(self) -> Call | Group:
        if self.accept("("):
            return self.group(normalized=False)
        if self.here.kind != "name":
            came = repr(self.here.text) if self.here.text else "the end"
            raise self.error(f"expected a loss, got {came}")
        token = self.advance()
        self.losses += 1
        if self.losses > _MOST_LOSSES:
            raise self.error(f"more than {_MOST_LOSSES} losses", token.position)
        if token.text.lower() == "normalized":
            self.expect("(", "after 'normalized'")
            return self.group(normalized=True)
        return Call(token.text, self.arguments() if self.accept("(") else (), token.position)

    def group(self, *, normalized: bool) -> Group:
        inner = self.sum()
        self.expect(")", "to close the parenthesis")
        return Group(inner, normalized)

    def arguments(self) -> tuple[Argument, ...]:
        if self.accept(")"):
            return ()
        found = [self.argument()]
        while self.accept(","):
            found.append(self.argument())
        self.expect(")", "to close the arguments")
        return tuple(found)

    def argument(self) -> Argument:
        if self.here.kind != "name":
            raise self.error("expected an argument such as q=0.7")
        name = self.advance()
        self.expect("=", f"after {name.text!r}")
        return Argument(name.text, self.value(), name.position)

    def value(self) -> float | bool | None:
        words = {"true": True, "false": False, "none": None}
        sign = -1 if self.accept("-") else 1
        if self.here.kind == "number":
            return sign * float(self.advance().text)
        if sign == 1 and self.here.text.lower() in words:
            return words[self.advance().text.lower()]
        raise self.error("expected a number, true, false or none")

    @property
    def here(self) -> _Token:
        return self.tokens[self.index]

    def advance(self) -> _Token:
        token = self.here
        self.index += 1
        return token

    def accept(self, symbol: str) -> bool:
        if self.here.kind == "symbol" and self.here.text == symbol:
            self.index += 1
            return True
        return False

    def expect(self, symbol: str, why: str) -> None:
        if not self.accept(symbol):
            raise self.error(f"expected {symbol!r} {why}")

    def error(self, problem: str, position: int | None = None) -> LossSyntaxError:
        return LossSyntaxError(
            problem, self.text, self.here.position if position is None else position
        )
