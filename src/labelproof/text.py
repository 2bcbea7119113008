"""Settings as text: one small parser for losses, networks, algorithms, noise and schedules.

Two grammars serve for all of them. Calls and their sums, as in `10*nce+gce(q=0.7)`:

    sum      = term { "+" term }
    term     = [ number "*" ] factor
    factor   = call | "normalized" "(" sum ")" | "(" sum ")"
    call     = name [ "(" [ argument { "," argument } ] ")" ]
    argument = name "=" ( [ "-" ] number | word )

And forms, as in `symmetric:0.4:exact`: values joined by colons, where the first says how many there
are. Nothing is evaluated, and lengths and depths are bounded: text may come from a
stranger.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from labelproof.ranges import suggest

__all__ = [
    "Argument",
    "Call",
    "Group",
    "Node",
    "Sum",
    "Term",
    "TextError",
    "format_value",
    "parse_call",
    "parse_form",
    "parse_sum",
]

WORDS: Mapping[str, Any] = {"true": True, "false": False, "none": None}
"""What an argument may be besides a number."""

_GRAMMAR = (
    r"(?P<space>\s+)|(?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)|(?P<name>{names})"
    r"|(?P<symbol>[-+*(),=])"
)
# Without the flag \d takes the digits of every script. A name may have the version of its code.
_SUM_TOKEN = re.compile(_GRAMMAR.format(names=r"[A-Za-z_]\w*(@[0-9a-f]{6})?"), re.ASCII)
_CALL_TOKEN = re.compile(_GRAMMAR.format(names=r"[A-Za-z_][\w.:/-]*"), re.ASCII)
# No setting that is meant comes near these.
_DEEPEST = 50
_LONGEST = 2000
_SHOWN = 60


class TextError(ValueError):
    """Text that says nothing that can be meant, with the place.

    >>> print(TextError("unknown loss 'cx'", "ce+cx", 3))
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

    def __reduce__(self) -> tuple[type[TextError], tuple[str, str, int]]:
        return type(self), (self.problem, self.text, self.position)


def _printable(text: str) -> str:
    """One character for one character, so that the caret stays under its place."""
    return "".join(character if character.isprintable() else " " for character in text)


class Argument(NamedTuple):
    """`name=value` inside a call."""

    name: str
    value: Any
    position: int


class Call(NamedTuple):
    """A name with its arguments."""

    name: str
    arguments: tuple[Argument, ...]
    position: int


class Group(NamedTuple):
    """A sum in parentheses, plain or under `normalized`."""

    inner: Sum
    normalized: bool


class Term(NamedTuple):
    """A factor with an optional coefficient."""

    coefficient: float | None
    factor: Call | Group
    position: int


class Sum(NamedTuple):
    """Terms joined by `+`."""

    terms: tuple[Term, ...]


Node: TypeAlias = Sum | Group | Call


def parse_sum(text: str, *, error: type[TextError] = TextError) -> Sum:
    """Read a sum of losses into a tree.

    >>> [term.coefficient for term in parse_sum("10*nce+mae").terms]
    [10.0, None]
    """
    parser = _Parser(text, "text", _SUM_TOKEN, WORDS, error)
    return parser.finish(parser.sum(), "'+' or the end")


def parse_call(text: str, *, what: str, words: Mapping[str, Any] = WORDS) -> Call:
    """Read a name with arguments, such as `cnn8(width=32)`.

    Args:
        text: What was written.
        what: The setting it is for, which begins every message.
        words: The words that an argument may be, and what they stand for.

    >>> parse_call("cnn8(width=32)", what="network").arguments
    (Argument(name='width', value=32.0, position=5),)
    >>> parse_call("cnn8(32)", what="network")
    Traceback (most recent call last):
        ...
    labelproof.text.TextError: network: expected an argument such as width=32
      cnn8(32)
           ^
    """
    parser = _Parser(text, what, _CALL_TOKEN, words, TextError)
    return parser.finish(parser.call("a name such as cnn8"), "the end")


def parse_form(
    text: str,
    forms: Sequence[str],
    *,
    what: str,
    words: Mapping[str, Collection[str]] | None = None,
) -> tuple[str, dict[str, Any]]:
    """Read text in one of several forms, whose parts are joined by colons.

    Args:
        text: What was written.
        forms: Such as `"step:EPOCHS:FACTOR"`. What is in capitals stands for a number; the rest is
            written as it is, in any case.
        what: The setting it is for, which begins every message.
        words: What the parts in capitals may be that stand for words.

    Returns:
        The form, and the values by their names in it.

    >>> parse_form("pair:0.2:exact", ["none", "pair:RATE", "pair:RATE:exact"], what="noise")
    ('pair:RATE:exact', {'RATE': 0.2})
    >>> parse_form("par:0.2", ["none", "pair:RATE"], what="noise")
    Traceback (most recent call last):
        ...
    ValueError: noise: expected none or pair:RATE, got 'par:0.2'; did you mean 'pair'?
    """
    given = re.sub(r"\s*:\s*", ":", _admit(text, what).strip().lower())
    words = words or {}
    for form in forms:
        values = _match(form, given, words)
        if values is not None:
            return form, values
    kinds = [form.partition(":")[0] for form in forms]
    *others, last = forms
    choices = "".join(f", with {name} one of {', '.join(each)}" for name, each in words.items())
    kind = given.partition(":")[0]
    hint = "" if kind in kinds else suggest(kind, kinds)
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    expected = f"{', '.join(others)} or {last}{choices}"
    raise ValueError(f"{what}: expected {expected}, got {shown!r}{hint}")


def _match(form: str, given: str, words: Mapping[str, Collection[str]]) -> dict[str, Any] | None:
    found = re.fullmatch(re.sub(r"\b([A-Z]+)\b", r"(?P<\1>[^:]+)", form), given)
    if found is None:
        return None
    values: dict[str, Any] = found.groupdict()
    try:
        values |= {name: float(value) for name, value in values.items() if name not in words}
    except ValueError:
        return None
    return values if all(values[name] in words[name] for name in values.keys() & words) else None


def format_value(value: object) -> str:
    """Write an argument's value as these parsers read it, with all its digits.

    >>> format_value(1e-7), format_value(32.0), format_value(True), format_value(None)
    ('1e-7', '32', 'true', 'none')
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    text = repr(float(cast(float, value))).removesuffix(".0")
    return text.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def _admit(text: str, what: str, error: type[TextError] = TextError) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{what}: expected a string, got {type(text).__name__}")
    if len(text) > _LONGEST:
        raise error(
            f"{what}: expected at most {_LONGEST:,} characters, got {len(text):,}", text, _LONGEST
        )
    return text


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class _Parser:
    def __init__(
        self,
        text: str,
        what: str,
        pattern: re.Pattern[str],
        words: Mapping[str, Any],
        error: type[TextError],
    ):
        self.text = _admit(text, what, error)
        self.prefix = "" if what == "text" else f"{what}: "
        self.words, self.kind = words, error
        self.index = self.depth = 0
        self.tokens = self.tokenize(pattern)

    def tokenize(self, pattern: re.Pattern[str]) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while position < len(self.text):
            match = pattern.match(self.text, position)
            if match is None:
                raise self.error(f"unexpected character {self.text[position]!r}", position)
            if match.lastgroup != "space":
                tokens.append(_Token(str(match.lastgroup), match.group(), position))
            position = match.end()
        tokens.append(_Token("end", "", len(self.text)))
        return tokens

    def finish(self, result: Any, expected: str) -> Any:
        if self.here.kind != "end":
            raise self.error(f"expected {expected}, got {self.here.text!r}")
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
        if self.here.text.lower() == "normalized":
            self.advance()
            self.expect("(", "after 'normalized'")
            return self.group(normalized=True)
        return self.call("a loss")

    def group(self, *, normalized: bool) -> Group:
        inner = self.sum()
        self.expect(")", "to close the parenthesis")
        return Group(inner, normalized)

    def call(self, expected: str) -> Call:
        if self.here.kind != "name":
            came = repr(self.here.text) if self.here.text else "the end"
            raise self.error(f"expected {expected}, got {came}")
        name = self.advance()
        return Call(name.text, self.arguments() if self.accept("(") else (), name.position)

    def arguments(self) -> tuple[Argument, ...]:
        if self.accept(")"):
            return ()
        found = [self.argument()]
        while self.accept(","):
            found.append(self.argument())
            if found[-1].name in {each.name for each in found[:-1]}:
                raise self.error(f"argument {found[-1].name!r} is given twice", found[-1].position)
        self.expect(")", "to close the arguments")
        return tuple(found)

    def argument(self) -> Argument:
        if self.here.kind != "name":
            raise self.error(
                f"expected an argument such as {'width=32' if self.prefix else 'q=0.7'}"
            )
        name = self.advance()
        self.expect("=", f"after {name.text!r}")
        return Argument(name.text, self.value(), name.position)

    def value(self) -> Any:
        negative = self.accept("-")
        if self.here.kind == "number":
            number = float(self.advance().text)
            return -number if negative else number
        if not negative and self.here.text.lower() in self.words:
            return self.words[self.advance().text.lower()]
        *others, last = ["a number", *self.words]
        hint = suggest(self.here.text.lower(), self.words) if self.here.kind == "name" else ""
        raise self.error(f"expected {', '.join(others)} or {last}{hint}")

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

    def error(self, problem: str, position: int | None = None) -> TextError:
        place = self.here.position if position is None else position
        return self.kind(f"{self.prefix}{problem}", self.text, place)
