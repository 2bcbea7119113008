"""Settings as text: one small parser for losses, networks, algorithms, noise and schedules.

Two grammars serve for all of them. Calls, as in `cnn8(width=32)`, of which losses make sums:

    call     = name [ "(" [ argument { "," argument } ] ")" ]
    argument = name "=" ( [ "-" ] number | word )

And forms, as in `symmetric:0.4:exact`: parts joined by colons, in one of several patterns. Nothing
is evaluated, and lengths are bounded: text may come from an untrusted source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from labelproof.ranges import suggest

WORDS: Mapping[str, Any] = {"true": True, "false": False, "none": None}
"""Values of an argument besides numbers."""

_GRAMMAR = (
    r"(?P<space>\s+)|(?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)|(?P<name>{names})"
    r"|(?P<symbol>[-+*(),=])|(?P<other>.)"
)
# Far longer than any real setting.
_LONGEST = 2000
_SHOWN = 60


class TextError(ValueError):
    """Text that cannot be parsed; the message points at the place.

    >>> print(TextError("unknown loss 'cx'", "ce+cx", 3))
    unknown loss 'cx'
      ce+cx
         ^
    """

    def __init__(self, problem: str, text: str, position: int):
        self.problem, self.text, self.position = problem, text, position
        start = max(0, position - _SHOWN)
        # Replace each by one character, so that the caret stays in its place.
        shown = "".join(
            each if each.isprintable() else " " for each in text[start : position + _SHOWN]
        )
        super().__init__(f"{problem}\n  {shown}\n  {' ' * (position - start)}^")

    def __reduce__(self) -> tuple[type[TextError], tuple[str, str, int]]:
        return type(self), (self.problem, self.text, self.position)


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


def parse_call(text: str, *, what: str, words: Mapping[str, Any]) -> Call:
    """Read a name with arguments, such as `cnn8(width=32)`.

    Args:
        text: The text to parse.
        what: The name of the setting, which starts every message.
        words: The words that an argument may be, with their values.

    >>> parse_call("cnn8(width=32)", what="network", words={}).arguments
    (Argument(name='width', value=32.0, position=5),)
    >>> parse_call("cnn8(32)", what="network", words={})
    Traceback (most recent call last):
        ...
    labelproof.text.TextError: network: expected an argument such as name=value
      cnn8(32)
           ^
    """
    parser = Parser(text, what=what, names=r"[A-Za-z_][\w.:/-]*", words=words)
    call = parser.call("a name such as cnn8")
    parser.finish("the end")
    return call


def check_arguments(
    call: Call,
    known: Collection[str],
    text: str,
    *,
    what: str = "",
    error: type[TextError] = TextError,
) -> None:
    """Refuse arguments of a call that are not known."""
    for argument in call.arguments:
        if argument.name not in known:
            takes = ", ".join(known) or "no arguments"
            hint = suggest(argument.name, known, cutoff=0.5)
            problem = f"{what}{call.name} takes {takes}, got {argument.name!r}{hint}"
            raise error(problem, text, argument.position)


def parse_form(
    text: str,
    forms: Sequence[str],
    *,
    what: str,
    words: Mapping[str, Collection[str]] | None = None,
) -> tuple[str, dict[str, Any]]:
    """Read text in one of several forms, whose parts are joined by colons.

    Args:
        text: The text to parse.
        forms: Such as `"step:EPOCHS:FACTOR"`. Parts in capitals stand for numbers, or for `words`;
            the rest is literal, ignoring case.
        what: The name of the setting, which starts every message.
        words: The possible words of a part in capitals.

    Returns:
        The matching form, and the values of its parts by name.

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
    match = re.fullmatch(re.sub(r"\b([A-Z]+)\b", r"(?P<\1>[^:]+)", form), given)
    if match is None:
        return None
    values: dict[str, Any] = match.groupdict()
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


class Parser:
    """Parses calls; larger grammars derive from it.

    Args:
        text: The text to parse.
        what: The name of the setting, which starts every message.
        names: A regular expression that matches names.
        words: The words that an argument may be, with their values.
        error: The exception to raise.
    """

    def __init__(
        self,
        text: str,
        *,
        what: str = "",
        names: str = r"[A-Za-z_]\w*",
        words: Mapping[str, Any] = WORDS,
        error: type[TextError] = TextError,
    ):
        self.text = _admit(text, what or "text", error)
        self.prefix = f"{what}: " if what else ""
        self.words, self.kind = words, error
        self.index = 0
        # Without the flag, \d matches the digits of every script.
        pattern = re.compile(_GRAMMAR.format(names=names), re.ASCII)
        self.tokens: list[_Token] = []
        for match in pattern.finditer(text):
            if match.lastgroup == "other":
                raise self.error(f"unexpected character {match[0]!r}", match.start())
            if match.lastgroup != "space":
                self.tokens.append(_Token(str(match.lastgroup), match[0], match.start()))
        self.tokens.append(_Token("end", "", len(text)))

    def finish(self, expected: str) -> None:
        """Refuse any remaining text."""
        if self.here.kind != "end":
            raise self.error(f"expected {expected}, got {self.here.text!r}")

    def call(self, expected: str) -> Call:
        """A name with its arguments."""
        if self.here.kind != "name":
            got = repr(self.here.text) if self.here.text else "the end"
            raise self.error(f"expected {expected}, got {got}")
        name = self.advance()
        arguments: list[Argument] = []
        if self.accept("(") and not self.accept(")"):
            while not arguments or self.accept(","):
                argument = self._argument()
                if argument.name in {each.name for each in arguments}:
                    raise self.error(
                        f"argument {argument.name!r} is given twice", argument.position
                    )
                arguments.append(argument)
            self.expect(")", "to close the arguments")
        return Call(name.text, tuple(arguments), name.position)

    def _argument(self) -> Argument:
        if self.here.kind != "name":
            raise self.error("expected an argument such as name=value")
        name = self.advance()
        self.expect("=", f"after {name.text!r}")
        negative = self.accept("-")
        if self.here.kind == "number":
            number = float(self.advance().text)
            return Argument(name.text, -number if negative else number, name.position)
        if not negative and self.here.text.lower() in self.words:
            return Argument(name.text, self.words[self.advance().text.lower()], name.position)
        *others, last = ["a number", *self.words]
        hint = suggest(self.here.text.lower(), self.words) if self.here.kind == "name" else ""
        raise self.error(f"expected {', '.join(others)} or {last}{hint}")

    @property
    def here(self) -> _Token:
        """The next token."""
        return self.tokens[self.index]

    def advance(self) -> _Token:
        """Take the next token."""
        self.index += 1
        return self.tokens[self.index - 1]

    def accept(self, symbol: str) -> bool:
        """Take a symbol, if it is next."""
        accepted = self.here.kind == "symbol" and self.here.text == symbol
        self.index += accepted
        return accepted

    def expect(self, symbol: str, why: str) -> None:
        """Take a symbol, which must be next."""
        if not self.accept(symbol):
            raise self.error(f"expected {symbol!r} {why}")

    def error(self, problem: str, position: int | None = None) -> TextError:
        """The exception for a mistake at a position, by default at the next token."""
        place = self.here.position if position is None else position
        return self.kind(f"{self.prefix}{problem}", self.text, place)
