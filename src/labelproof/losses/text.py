"""Losses as text: `parse_loss` reads it, `format_loss` writes it.

    10*nce+0.1*mae
    gce(q=0.7,clamp=1e-7)
    fl(gamma=0.5,detach=true)+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1)

A sum of terms, each a name with arguments in parentheses and an optional factor in front. `+sr` and
`+clip` bind to the whole sum on their left, once each; parentheses group; `normalized(...)` takes
any sum. Nothing is evaluated: names come from a table, values are numbers, `true`, `false`, `none`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import Unpack

from labelproof.losses.algebra import LogitClip, WeightedSum
from labelproof.losses.base import Loss, LossSettings, refuse_unknown
from labelproof.losses.cross_entropy import CrossEntropy
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
from labelproof.losses.symmetric import LOG_ZERO
from labelproof.ranges import suggest
from labelproof.schedules import Constant, Exponential, exponential
from labelproof.text import Call, Group, Node, Sum, TextError, format_value, parse_sum


class LossSyntaxError(TextError):
    """Text that is not a loss, with the place."""


class OwnLossError(LossSyntaxError):
    """A loss from a file of the user's own, written with a version of its code that is not here."""


def parse_loss(
    text: str,
    *,
    losses: Mapping[str, type[Loss]] | None = None,
    **settings: Unpack[LossSettings],
) -> Loss:
    """Build the loss that `text` describes.

    Args:
        text: For instance `"10*nce+0.1*mae"` or `"gce(q=0.7)+sr(tau=0.5,p=0.1)"`.
        losses: The names that are known; extend it to write a loss of your own:
            `parse_loss("mine", losses={**LOSSES, "mine": MyLoss})`. Those of this package and of
            the files that the environment's `LABELPROOF_LOSSES` names, unless given.
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
    refuse_unknown(settings, "parse_loss", beside="the text and losses")
    CrossEntropy(**settings)  # a mistake in the settings is none in the text, and is said as such
    known = known_losses() if losses is None else losses
    return _Builder(text, known, settings).build(parse_sum(text, error=LossSyntaxError))


class _Builder:
    def __init__(self, text: str, losses: Mapping[str, type[Loss]], settings: LossSettings):
        self.text, self.losses, self.settings = text, losses, settings
        # A name without a version means the current code.
        current = {key.partition(VERSION)[0]: family for key, family in losses.items()}
        self.families = {**losses, **current}

    def build(self, node: Node) -> Loss:
        if isinstance(node, Sum):
            return self.build_sum(node)
        if isinstance(node, Group):
            inner = self.build(node.inner)
            return Normalized(inner) if node.normalized else inner
        return self.build_call(node)

    def build_sum(self, node: Sum) -> Loss:
        total: Loss | None = None
        suffixes: set[str] = set()
        for term in node.terms:
            name = term.factor.name.lower() if isinstance(term.factor, Call) else ""
            if isinstance(term.factor, Call) and name in SUFFIXES:
                if total is None or term.coefficient is not None or name in suffixes:
                    number = {"sr": "lambda0", "clip": "delta"}[name]
                    problem = f"{name!r} comes once, after a sum, without a factor but {number}"
                    raise LossSyntaxError(problem, self.text, term.position)
                total = self.build_suffix(name, total, term.factor)
                suffixes.add(name)
                continue
            loss = self.build(term.factor)
            if term.coefficient is not None:
                loss = self.guarded(term.position, lambda c=term.coefficient, loss=loss: c * loss)
            total = loss if total is None else total + loss
        assert total is not None  # noqa: S101 (the grammar has at least one term)
        return total

    def build_call(self, call: Call) -> Loss:
        family, normalized = self.find(call)
        given = self.arguments(call, loss_arguments(family))
        keywords = {SPOKEN.get(key, key): value for key, value in given.items()}
        loss = self.guarded(call.position, lambda: family(**keywords, **self.settings))
        return Normalized(loss) if normalized else loss

    def find(self, call: Call) -> tuple[type[Loss], bool]:
        """The family a name stands for, and whether it is normalised; capitals do not matter."""
        for name in (call.name, call.name.lower()):
            if name in self.families:
                return self.families[name], False
            if name[:1].lower() == "n" and name[1:] in self.families:
                return self.families[name[1:]], True
        raise self.unknown(call)

    def unknown(self, call: Call) -> LossSyntaxError:
        name, place = call.name, (self.text, call.position)
        stem, own, _ = name.partition(VERSION)
        if own:
            changed = bool({stem, stem[1:]} & self.families.keys())
            missing = f"--loss-file or {LOSS_FILES} in the environment has to name its file"
            why = "its code has changed since" if changed else missing
            return OwnLossError(f"{name!r} is a loss of someone's own: {why}", *place)
        known = [*self.families, *(f"n{key}" for key in self.families), *SUFFIXES]
        known.append("normalized")
        # Torch's names and ours are spelled out: cross_entropy, CrossEntropyLoss.
        spelled = {family.__name__.lower(): key for key, family in self.families.items()}
        plain = name.lower().replace("_", "").removesuffix("loss")
        if plain in spelled:
            near = f"; did you mean {spelled[plain]!r}?"
        else:
            near = suggest(name.lower(), known, cutoff=0.5)
            near = near or "; one from a file of your own is known by --loss-file"
        return LossSyntaxError(f"unknown loss {name!r}{near}", *place)

    def build_suffix(self, name: str, base: Loss, call: Call) -> Loss:
        values = SUFFIXES[name] | self.arguments(call, SUFFIXES[name])
        if name == "clip":
            return self.guarded(call.position, lambda: LogitClip(base, **values))
        return self.build_sparse(base, values, call)

    def build_sparse(self, base: Loss, values: Mapping[str, Any], call: Call) -> Loss:
        weight = self.guarded(
            call.position,
            lambda: exponential(
                values["lambda0"],
                growth=values["rho"],
                every=values["r"],
                maximum=1e30 if values["lambda_max"] is None else values["lambda_max"],
            ),
            {"initial": "lambda0", "growth": "rho", "every": "r", "maximum": "lambda_max"},
        )
        temperature = self.guarded(
            call.position,
            lambda: exponential(
                values["tau"],
                growth=values["tau_rho"],
                every=values["r"],
                minimum=values["tau_min"],
            ),
            {"initial": "tau", "growth": "tau_rho", "every": "r", "minimum": "tau_min"},
        )
        return self.guarded(
            call.position,
            lambda: SparseRegularized(
                base,
                temperature=temperature(0) if values["tau_rho"] == 1 else temperature,
                p=values["p"],
                weight=weight,
                normalize=values["normalize"],
                clamp=values["clamp"],
                vector=values["smoothing"] or None,
            ),
            {
                "vector": "smoothing",
                "temperature at epoch 0": "tau",
                "weight at epoch 0": "lambda0",
            },
        )

    def arguments(self, call: Call, known: Mapping[str, Any]) -> dict[str, Any]:
        for argument in call.arguments:
            if argument.name not in known:
                takes = f"; {call.name} takes {', '.join(known)}" if known else " and takes none"
                hint = suggest(argument.name, known, cutoff=0.5) or takes
                problem = f"unknown argument {argument.name!r}{hint}"
                raise LossSyntaxError(problem, self.text, argument.position)
        return {argument.name: argument.value for argument in call.arguments}

    def guarded(self, position: int, make: Any, written: Mapping[str, str] = WRITTEN) -> Any:
        """Turn a constructor's complaint about a value into one that points into the text.

        Args:
            position: Where.
            make: Makes it.
            written: What its arguments are called there.
        """
        try:
            return make()
        except (TypeError, ValueError) as error:
            name, colon, problem = str(error).partition(":")
            problem = f"{written.get(name, name)}{colon}{problem}"
            raise LossSyntaxError(problem, self.text, position) from error


def format_loss(loss: Loss, *, losses: Mapping[str, type[Loss]] | None = None) -> str:
    r"""Write a loss as the text that `parse_loss` reads.

    Hyperparameters are written out, so that a record stays true when a default changes; options
    that are off are not, nor is the customary $A = \log 10^{-4}$.

    Raises:
        ValueError: The loss holds something that has no text, such as a schedule of the user's.

    Example:
        >>> from labelproof import parse_loss
        >>> format_loss(parse_loss("10*nce + mae + sr(p=0.01)"))
        '10*nce+mae+sr(tau=0.5,p=0.01,lambda0=1.2,rho=1.03,r=1,normalize=true)'
    """
    losses = known_losses() if losses is None else losses
    if isinstance(loss, WeightedSum):
        return "+".join(
            _format_term(number, part, first=index == 0, losses=losses)
            for index, (number, part) in enumerate(loss.terms)
        )
    if isinstance(loss, SparseRegularized | LogitClip):
        if not isinstance(loss.base, Loss):
            raise ValueError(f"loss: {type(loss.base).__name__} has no text form")
        base = format_loss(loss.base, losses=losses)
        if type(loss) in _suffixes(loss.base):
            base = f"({base})"
        if isinstance(loss, LogitClip):
            return f"{base}+clip(delta={format_value(loss.delta)})"
        return f"{base}+sr({_format_sparse(loss)})"
    if isinstance(loss, Normalized):
        base = _unwrapped(loss.base)
        for key, family in losses.items():
            if type(base) is family:
                return f"n{key}{_format_arguments(base)}"
        return f"normalized({format_loss(base, losses=losses)})"
    for key, family in losses.items():
        if type(loss) is family:
            return f"{key}{_format_arguments(loss)}"
    raise ValueError(f"loss: {type(loss).__name__} has no text form")


def _suffixes(loss: Loss) -> set[type[Loss]]:
    """The kinds of `+sr` and `+clip` that a loss is written with outside of parentheses."""
    if isinstance(loss, WeightedSum):
        number, first = loss.terms[0]
        return _suffixes(first) if number == 1 else set()
    if isinstance(loss, SparseRegularized | LogitClip) and isinstance(loss.base, Loss):
        return {type(loss), *_suffixes(loss.base)}
    return set()


def _unwrapped(loss: Loss) -> Loss:
    """`1*loss` is written as the loss itself, so it is treated as it."""
    while isinstance(loss, WeightedSum) and loss.coefficients == [1.0]:
        ((_, loss),) = loss.terms
    return loss


def _format_term(
    number: float, part: Loss, *, first: bool, losses: Mapping[str, type[Loss]]
) -> str:
    text = format_loss(part, losses=losses)
    # A suffix in the middle of a sum would take the terms before it along.
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
    # Read back, one that does not grow is a constant, so it is written as one.
    if isinstance(temperature, Exponential) and temperature.growth == 1:
        temperature = Constant(temperature(0))
    if isinstance(weight, Constant):
        every = temperature.every if isinstance(temperature, Exponential) else 1
        weight = exponential(weight.value, growth=1, every=every)
    plain = isinstance(weight, Exponential) and weight == exponential(
        weight.initial, growth=weight.growth, every=weight.every, maximum=weight.maximum
    )
    if not plain or loss.vector is not None:
        raise ValueError("loss: only the paper's schedules and vectors have a text form")
    assert isinstance(weight, Exponential)  # noqa: S101 (for the type checker)
    values: dict[str, Any] = {
        "p": loss.p,
        "lambda0": weight.initial,
        "rho": weight.growth,
        "r": weight.every,
        "normalize": loss.normalize,
    }
    if weight.maximum != exponential(1, growth=1).maximum:
        values["lambda_max"] = weight.maximum
    if isinstance(temperature, Constant):
        values = {"tau": temperature.value, **values}
    elif (
        isinstance(temperature, Exponential)
        and temperature.every == weight.every
        and temperature.maximum == exponential(1, growth=1).maximum
    ):
        values = {"tau": temperature.initial, **values, "tau_rho": temperature.growth}
        if temperature.minimum:
            values["tau_min"] = temperature.minimum
    else:
        raise ValueError("loss: only the paper's schedules and vectors have a text form")
    if loss.clamp is not None:
        values["clamp"] = loss.clamp
    if loss.smoothing:
        values["smoothing"] = loss.smoothing
    return ",".join(f"{name}={format_value(value)}" for name, value in values.items())
