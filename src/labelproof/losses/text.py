"""Losses as text: `parse_loss` reads it, `format_loss` writes it.

    10*nce+0.1*mae
    gce(q=0.7,clamp=1e-7)
    fl(gamma=0.5,detach=true)+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1)

A sum of terms, each a name with arguments in parentheses and an optional factor in front. `+sr` and
`+clip` bind to the whole sum on their left, once each; parentheses group; `normalized(...)` takes
any sum. Nothing is evaluated: names come from a table, values are numbers, `true`, `false`, `none`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import mul
from typing import Any

from torch import nn
from typing_extensions import Unpack

from labelproof.losses.algebra import LogitClip, WeightedSum
from labelproof.losses.base import Loss, LossSettings
from labelproof.losses.cross_entropy import LOG_ZERO, CrossEntropy
from labelproof.losses.names import (
    LOSS_FILES,
    SPOKEN,
    SUFFIXES,
    VERSION,
    WRITTEN,
    known_losses,
    loss_arguments,
)
from labelproof.losses.normalized import Normalized
from labelproof.losses.sparse import SparseRegularized
from labelproof.ranges import suggest
from labelproof.schedules import Constant, Exponential, exponential
from labelproof.text import Call, Parser, TextError, check_arguments, format_value

UNBOUNDED = exponential(1, growth=1)
"""A schedule with the default bounds."""


class LossSyntaxError(TextError):
    """Text that is not a loss; the message points at the place."""


class OwnLossError(LossSyntaxError):
    """A user's own loss, in a version of its code that is not available."""


def parse_loss(
    text: str, *, losses: Mapping[str, type[Loss]] | None = None, **settings: Unpack[LossSettings]
) -> Loss:
    """Build the loss that `text` describes.

    Args:
        text: For instance `"10*nce+0.1*mae"` or `"gce(q=0.7)+sr(tau=0.5,p=0.1)"`.
        losses: The known names; extend them to use a loss of your own:
            `parse_loss("mine", losses={**LOSSES, "mine": MyLoss})`. By default those of this
            package and of the files in the environment variable `LABELPROOF_LOSSES`.
        **settings: `reduction`, `weight`, `ignore_index`, `check` for every part.

    Raises:
        LossSyntaxError: The text is not a loss; the message points at the place.

    Example:
        >>> parse_loss("gce(q=0.7)")
        GeneralizedCrossEntropy(q=0.7, clamp=None)
        >>> parse_loss("10*nce+0.1*may")
        Traceback (most recent call last):
            ...
        labelproof.losses.text.LossSyntaxError: unknown loss 'may'; did you mean 'mae'?
          10*nce+0.1*may
                     ^
    """
    CrossEntropy(**settings)  # raises errors in the settings, which are none in the text
    known = known_losses() if losses is None else losses
    parser = _Parser(text, known, settings)
    loss = parser.sum()
    parser.finish("'+' or the end")
    return loss


_METHODS = {
    "apl": "nce+mae",
    "anl": "5*nce+5*negce",
    "jal": "nce+amse(a=30)",
    "nlnl": "nl",
    "elr": "ce and --algorithm elr",
    "l1": "--l1 5e-5 instead",
}
"""How methods of the tables, such as JAL-CE, are written."""

_DEEPEST = 50
"""More nested parentheses than any real loss has."""


class _Parser(Parser):
    """Builds a loss as it reads.

    sum    = term { "+" term }
    term   = [ number "*" ] factor
    factor = call | "normalized" "(" sum ")" | "(" sum ")"
    """

    def __init__(self, text: str, losses: Mapping[str, type[Loss]], settings: LossSettings):
        # A name may include the version of its code.
        super().__init__(text, names=r"[A-Za-z_]\w*(@[0-9a-f]{6})?", error=LossSyntaxError)
        self.settings, self.depth = settings, 0
        # A name without a version means the current code.
        current = {key.partition(VERSION)[0]: family for key, family in losses.items()}
        self.families = {**losses, **current}

    def sum(self) -> Loss:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} levels of parentheses")
        total: Loss | None = None
        suffixes: set[str] = set()
        while total is None or self.accept("+"):
            position, coefficient = self.here.position, None
            if self.here.kind == "number":
                coefficient = float(self.advance().text)
                self.expect("*", "between a number and the loss it weighs")
            name = self.here.text.lower()
            if name in SUFFIXES:
                if total is None or coefficient is not None or name in suffixes:
                    number = {"sr": "lambda0", "clip": "delta"}[name]
                    problem = f"{name!r} comes once, after a sum; its strength is {number}"
                    raise self.error(problem, position)
                suffixes.add(name)
                given = SUFFIXES[name] | self.arguments(self.call("a loss"), SUFFIXES[name])
                suffix = _sparse if name == "sr" else LogitClip
                total = self.guarded(position, partial(suffix, total, **given))
                continue
            loss = self.factor()
            if coefficient is not None:
                loss = self.guarded(position, partial(mul, coefficient, loss))
            total = loss if total is None else total + loss
        self.depth -= 1
        return total

    def factor(self) -> Loss:
        normalized = self.here.text.lower() == "normalized"
        if normalized:
            self.advance()
        if normalized or self.here.text == "(":
            self.expect("(", "after 'normalized'")
            inner = self.sum()
            self.expect(")", "to close the parenthesis")
            return Normalized(inner) if normalized else inner
        call = self.call("a loss")
        family, normalized = self.find(call)
        given = self.arguments(call, loss_arguments(family))
        keywords = {SPOKEN.get(key, key): value for key, value in given.items()}
        loss = self.guarded(call.position, partial(family, **keywords, **self.settings))
        return Normalized(loss) if normalized else loss

    def find(self, call: Call) -> tuple[type[Loss], bool]:
        """The class that a name stands for, and whether it is normalised; case is ignored."""
        for name in (call.name, call.name.lower()):
            if name in self.families:
                return self.families[name], False
            if name[:1].lower() == "n" and name[1:] in self.families:
                return self.families[name[1:]], True
        raise self.unknown(call)

    def unknown(self, call: Call) -> LossSyntaxError:
        name, place = call.name, (self.text, call.position)
        if VERSION in name:
            problem = (
                f"{name!r} is a loss from a file: its code has changed since, or --loss-file (or "
                f"{LOSS_FILES} in the environment) does not name the file"
            )
            return OwnLossError(problem, *place)
        known = [*self.families, *(f"n{key}" for key in self.families), *SUFFIXES]
        known.append("normalized")
        # Torch's names and ours are spelled out: cross_entropy, CrossEntropyLoss.
        spelled = {family.__name__.lower(): key for key, family in self.families.items()}
        plain = name.lower().replace("_", "").removesuffix("loss")
        if plain in spelled:
            near = f"; did you mean {spelled[plain]!r}?"
        elif plain == "auto":
            near = "; 'labelproof fit' takes it, and 'labelproof tune' searches for a loss"
        elif plain in _METHODS:
            near = f"; for the method of that name, write {_METHODS[plain]}"
        else:
            near = suggest(name.lower(), known, cutoff=0.5)
            near = near or "; one from a file of your own is known by --loss-file"
        return LossSyntaxError(f"unknown loss {name!r}{near}", *place)

    def arguments(self, call: Call, known: Mapping[str, Any]) -> dict[str, Any]:
        check_arguments(call, known, self.text, error=LossSyntaxError)
        return {argument.name: argument.value for argument in call.arguments}

    def guarded(self, position: int, make: Callable[[], Loss]) -> Loss:
        """Turn a constructor's error about a value into one that points into the text."""
        try:
            return make()
        except (TypeError, ValueError) as error:
            raise LossSyntaxError(_renamed(error, _WRITTEN), self.text, position) from error


_WRITTEN = {
    **WRITTEN,
    "vector": "smoothing",
    "temperature at epoch 0": "tau",
    "weight at epoch 0": "lambda0",
}


def _renamed(error: Exception, written: Mapping[str, str]) -> str:
    """An error's message with the argument's name as it stands in the text."""
    name, colon, problem = str(error).partition(":")
    return f"{written.get(name, name)}{colon}{problem}"


def _sparse(base: Loss, **values: Any) -> Loss:
    highest = UNBOUNDED.maximum if values["lambda_max"] is None else values["lambda_max"]
    values = {**values, "lambda_max": highest}
    weight = _schedule(values, initial="lambda0", growth="rho", every="r", maximum="lambda_max")
    temperature = _schedule(values, initial="tau", growth="tau_rho", every="r", minimum="tau_min")
    return SparseRegularized(
        base,
        temperature(0) if temperature.growth == 1 else temperature,
        values["p"],
        weight,
        values["normalize"],
        clamp=values["clamp"],
        vector=values["smoothing"] or None,
    )


def _schedule(values: Mapping[str, Any], **written: str) -> Exponential:
    try:
        return exponential(**{argument: values[name] for argument, name in written.items()})
    except (TypeError, ValueError) as error:
        raise type(error)(_renamed(error, written)) from error


def format_loss(loss: Loss, *, losses: Mapping[str, type[Loss]] | None = None) -> str:
    r"""Write a loss as the text that `parse_loss` reads.

    Hyperparameters are written out, so that a record stays true when a default changes; options
    that are off are not, nor is the customary $A = \log 10^{-4}$.

    Raises:
        ValueError: The loss has a part without a text form, such as a user's own schedule.

    Example:
        >>> from labelproof import parse_loss
        >>> format_loss(parse_loss("10*nce + mae + sr(p=0.01)"))
        '10*nce+mae+sr(tau=0.5,p=0.01,lambda0=1.2,rho=1.03,r=1,normalize=true)'
    """
    known = known_losses() if losses is None else losses
    return _format(loss, {family: key for key, family in reversed([*known.items()])})


def _format(loss: nn.Module, names: Mapping[type[nn.Module], str]) -> str:
    if isinstance(loss, WeightedSum):
        return "+".join(
            _format_term(number, part, first=index == 0, names=names)
            for index, (number, part) in enumerate(loss.terms)
        )
    if isinstance(loss, SparseRegularized | LogitClip):
        base = _format(loss.base, names)
        if type(loss) in _suffixes(loss.base):
            base = f"({base})"
        if isinstance(loss, LogitClip):
            return f"{base}+clip(delta={format_value(loss.delta)})"
        return f"{base}+sr({_format_sparse(loss)})"
    if isinstance(loss, Normalized):
        base = loss.base
        while isinstance(base, WeightedSum) and base.coefficients == [1.0]:
            ((_, base),) = base.terms  # `1*loss` is written as the loss itself
        inner = _format(base, names)
        return f"n{inner}" if type(base) in names else f"normalized({inner})"
    if not isinstance(loss, Loss) or type(loss) not in names:
        raise ValueError(f"loss: {type(loss).__name__} has no text form")
    return f"{names[type(loss)]}{_format_arguments(loss)}"


def _suffixes(loss: nn.Module) -> set[type[nn.Module]]:
    """The kinds of `+sr` and `+clip` that a loss is written with outside of parentheses."""
    if isinstance(loss, WeightedSum):
        number, first = loss.terms[0]
        return _suffixes(first) if number == 1 else set()
    if isinstance(loss, SparseRegularized | LogitClip):
        return {type(loss), *_suffixes(loss.base)}
    return set()


def _format_term(
    number: float, part: Loss, *, first: bool, names: Mapping[type[nn.Module], str]
) -> str:
    text = _format(part, names)
    # A suffix in the middle of a sum would also apply to the terms before it.
    if isinstance(part, SparseRegularized | LogitClip) and not (first and number == 1):
        text = f"({text})"
    return text if number == 1 else f"{format_value(number)}*{text}"


def _format_arguments(loss: Loss) -> str:
    written = []
    for name in loss_arguments(type(loss)):
        value = getattr(loss, SPOKEN.get(name, name))
        if value is None or value is False or (name, value) == (WRITTEN["log_zero"], LOG_ZERO):
            continue
        written.append(f"{name}={format_value(value)}")
    return f"({','.join(written)})" if written else ""


def _format_sparse(loss: SparseRegularized) -> str:
    weight, temperature = loss.weight_schedule, loss.temperature_schedule
    every = getattr(weight, "every", getattr(temperature, "every", 1))
    weight, temperature = (
        exponential(each.value, growth=1, every=every) if isinstance(each, Constant) else each
        for each in (weight, temperature)
    )
    if (
        not (isinstance(weight, Exponential) and isinstance(temperature, Exponential))
        or weight.every != temperature.every
        or weight.minimum != UNBOUNDED.minimum
        or temperature.maximum != UNBOUNDED.maximum
        or loss.vector is not None
    ):
        raise ValueError("loss: only the paper's schedules and vectors have a text form")
    values = {
        "tau": temperature.initial,
        "p": loss.p,
        "lambda0": weight.initial,
        "rho": weight.growth,
        "r": weight.every,
        "normalize": loss.normalize,
    }
    options = {
        "lambda_max": (weight.maximum, UNBOUNDED.maximum),
        "tau_rho": (temperature.growth, 1),
        "tau_min": (temperature.minimum, UNBOUNDED.minimum),
        "clamp": (loss.clamp, None),
        "smoothing": (loss.smoothing, 0),
    }
    values |= {name: value for name, (value, off) in options.items() if value != off}
    return ",".join(f"{name}={format_value(value)}" for name, value in values.items())
