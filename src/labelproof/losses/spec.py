"""Losses as text, the one place where strings become losses and losses become strings.

    10*nce+0.1*mae
    gce(q=0.7,clamp=1e-7)
    fl(gamma=0.5,detach=true)+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1)

A sum of terms, each a name with arguments in parentheses and an optional factor in front. `+sr`
binds to the whole sum on its left, once; parentheses group; `normalized(...)` takes any sum.
Nothing is evaluated: names come from a table and values are numbers, `true`, `false` or `none`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from typing_extensions import Unpack

from labelproof.losses.absolute_error import MeanAbsoluteError
from labelproof.losses.algebra import WeightedSum
from labelproof.losses.base import Loss, LossSettings
from labelproof.losses.cross_entropy import CrossEntropy
from labelproof.losses.focal import Focal
from labelproof.losses.generalized import GeneralizedCrossEntropy
from labelproof.losses.huberized import PartiallyHuberizedCrossEntropy
from labelproof.losses.negative import NegativeLearning
from labelproof.losses.normalized import Normalized
from labelproof.losses.reverse import LOG_ZERO, ReverseCrossEntropy
from labelproof.losses.sparse import SparseRegularized
from labelproof.losses.symmetric import SymmetricCrossEntropy
from labelproof.losses.syntax import (
    Call,
    Group,
    LossSyntaxError,
    Node,
    Sum,
    Term,
    nearest,
    parse,
)
from labelproof.schedules import Constant, Exponential, exponential

__all__ = [
    "LOSSES",
    "SPARSE_DEFAULTS",
    "format_loss",
    "format_value",
    "loss_arguments",
    "parse_loss",
]

LOSSES: Mapping[str, type[Loss]] = {
    "ce": CrossEntropy,
    "fl": Focal,
    "mae": MeanAbsoluteError,
    "rce": ReverseCrossEntropy,
    "gce": GeneralizedCrossEntropy,
    "sce": SymmetricCrossEntropy,
    "phuber": PartiallyHuberizedCrossEntropy,
    "nl": NegativeLearning,
}
"""Every elementary loss by the name it is written with; `n` before a name normalises it."""

_WRITTEN = {"log_zero": "A"}
_UNWRITTEN = {"generator"}
SPARSE_DEFAULTS: dict[str, Any] = {
    "tau": 0.5,
    "p": 0.1,
    "lambda0": 1.2,
    "rho": 1.03,
    "r": 1,
    "normalize": True,
    "clamp": None,
    "tau_rho": 1,
    "tau_min": 0,
    "smoothing": 0,
}


def parse_loss(
    text: str, *, losses: Mapping[str, type[Loss]] = LOSSES, **settings: Unpack[LossSettings]
) -> Loss:
    """Build the loss that `text` describes.

    Args:
        text: For instance `"10*nce+0.1*mae"` or `"gce(q=0.7)+sr(tau=0.5,p=0.1)"`.
        losses: The names that are known; extend it to write a loss of your own:
            `parse_loss("mine", losses={**LOSSES, "mine": MyLoss})`.
        **settings: `reduction`, `weight`, `ignore_index`, `check` for every part.

    Raises:
        LossSyntaxError: The text is not a loss; the message points at the place.

    Example:
        >>> parse_loss("gce(q=0.7)")
        GeneralizedCrossEntropy(q=0.7, clamp=None)
        >>> parse_loss("10*nce+0.1*may")
        Traceback (most recent call last):
            ...
        labelproof.losses.syntax.LossSyntaxError: unknown loss 'may', did you mean 'mae'?
          10*nce+0.1*may
                     ^
    """
    CrossEntropy(**settings)  # a mistake in the settings is none in the text, and is said as such
    return _Builder(text, losses, settings).build(parse(text))


def format_loss(loss: Loss, *, losses: Mapping[str, type[Loss]] = LOSSES) -> str:
    r"""Write a loss as the text that `parse_loss` reads.

    Hyperparameters are written out, so that a record stays true when a default changes; options
    that are off are not, nor is the customary $A = \log 10^{-4}$.

    Raises:
        ValueError: The loss holds something that has no text, such as a schedule of the user's.

    Example:
        >>> format_loss(parse_loss("10*nce + mae + sr(p=0.01)"))
        '10*nce+mae+sr(tau=0.5,p=0.01,lambda0=1.2,rho=1.03,r=1,normalize=true)'
    """
    if isinstance(loss, WeightedSum):
        return "+".join(
            _format_term(number, part, first=index == 0, losses=losses)
            for index, (number, part) in enumerate(loss.terms)
        )
    if isinstance(loss, SparseRegularized):
        if not isinstance(loss.base, Loss):
            raise ValueError(f"loss: {type(loss.base).__name__} has no text form")
        base = format_loss(loss.base, losses=losses)
        if _begins_regularised(loss.base):
            base = f"({base})"
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


def loss_arguments(family: type[Loss]) -> dict[str, Any]:
    """The arguments a loss is written with, and their defaults.

    >>> loss_arguments(SymmetricCrossEntropy)["alpha"]
    0.1
    """
    parameters = inspect.signature(family).parameters.values()
    return {
        _WRITTEN.get(parameter.name, parameter.name): parameter.default
        for parameter in parameters
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name not in _UNWRITTEN
    }


class _Builder:
    def __init__(self, text: str, losses: Mapping[str, type[Loss]], settings: LossSettings):
        self.text, self.losses, self.settings = text, losses, settings

    def build(self, node: Node) -> Loss:
        if isinstance(node, Sum):
            return self.build_sum(node)
        if isinstance(node, Group):
            inner = self.build(node.inner)
            return Normalized(inner) if node.normalized else inner
        return self.build_call(node)

    def build_sum(self, node: Sum) -> Loss:
        total: Loss | None = None
        regularised = False
        for term in node.terms:
            if isinstance(term.factor, Call) and term.factor.name.lower() == "sr":
                problem = _misplaced(term, total, regularised=regularised)
                if total is None or problem:
                    raise LossSyntaxError(problem, self.text, term.position)
                total = self.build_sparse(total, term.factor)
                regularised = True
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
        spoken = {written: name for name, written in _WRITTEN.items()}
        keywords = {spoken.get(key, key): value for key, value in given.items()}
        loss = self.guarded(call.position, lambda: family(**keywords, **self.settings))
        return Normalized(loss) if normalized else loss

    def find(self, call: Call) -> tuple[type[Loss], bool]:
        """The family a name stands for, and whether it is normalised; capitals do not matter."""
        for name in (call.name, call.name.lower()):
            if name in self.losses:
                return self.losses[name], False
            if name[:1].lower() == "n" and name[1:] in self.losses:
                return self.losses[name[1:]], True
        known = [*self.losses, *(f"n{key}" for key in self.losses), "sr", "normalized"]
        problem = f"unknown loss {call.name!r}{nearest(call.name, known)}"
        raise LossSyntaxError(problem, self.text, call.position)

    def build_sparse(self, base: Loss, call: Call) -> Loss:
        values = SPARSE_DEFAULTS | self.arguments(call, SPARSE_DEFAULTS)

        def make() -> Loss:
            temperature = exponential(
                values["tau"],
                growth=values["tau_rho"],
                every=values["r"],
                minimum=values["tau_min"],
            )
            return SparseRegularized(
                base,
                temperature=values["tau"] if values["tau_rho"] == 1 else temperature,
                p=values["p"],
                weight=exponential(values["lambda0"], growth=values["rho"], every=values["r"]),
                normalize=values["normalize"],
                clamp=values["clamp"],
                vector=values["smoothing"] or None,
            )

        return self.guarded(call.position, make)

    def arguments(self, call: Call, known: Mapping[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for argument in call.arguments:
            if argument.name not in known:
                takes = f"; {call.name} takes {', '.join(known)}" if known else " and takes none"
                problem = (
                    f"unknown argument {argument.name!r}{nearest(argument.name, known) or takes}"
                )
                raise LossSyntaxError(problem, self.text, argument.position)
            if argument.name in given:
                raise LossSyntaxError(
                    f"argument {argument.name!r} is given twice", self.text, argument.position
                )
            given[argument.name] = argument.value
        return given

    def guarded(self, position: int, make: Any) -> Any:
        """Turn a constructor's complaint about a value into one that points into the text."""
        try:
            return make()
        except (TypeError, ValueError) as error:
            problem = str(error)
            for name, written in _WRITTEN.items():
                problem = problem.replace(f"{name}:", f"{written}:")
            raise LossSyntaxError(problem, self.text, position) from error


def _misplaced(term: Term, total: Loss | None, *, regularised: bool) -> str:
    """What is wrong with an `sr` at its place in a sum, or nothing."""
    if total is None:
        return "'sr' regularises the sum on its left, so a loss must come first"
    if term.coefficient is not None:
        return "'sr' takes no factor in front; its weight is lambda0"
    if regularised:
        return (
            "'sr' is in this sum already, and a second one would penalise it twice; for a stronger "
            "penalty raise lambda0, and if both are meant, put the first with what it regularises "
            "in parentheses"
        )
    return ""


def _begins_regularised(loss: Loss) -> bool:
    """Whether a loss is written as a sum with an `sr` of its own, outside of parentheses."""
    if isinstance(loss, WeightedSum):
        number, first = loss.terms[0]
        return number == 1 and _begins_regularised(first)
    return isinstance(loss, SparseRegularized)


def _unwrapped(loss: Loss) -> Loss:
    """`1*loss` is written as the loss itself, so it is treated as it."""
    while isinstance(loss, WeightedSum) and loss.coefficients == [1.0]:
        ((_, loss),) = loss.terms
    return loss


def _format_term(
    number: float, part: Loss, *, first: bool, losses: Mapping[str, type[Loss]]
) -> str:
    text = format_loss(part, losses=losses)
    # A regularised part in the middle of a sum would take the terms before it along.
    if isinstance(part, SparseRegularized) and not (first and number == 1):
        text = f"({text})"
    return text if number == 1 else f"{format_value(number)}*{text}"


def _format_arguments(loss: Loss) -> str:
    written = []
    for parameter in inspect.signature(type(loss)).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD or parameter.name in _UNWRITTEN:
            continue
        value = getattr(loss, parameter.name)
        if value is None or value is False or (parameter.name, value) == ("log_zero", LOG_ZERO):
            continue
        written.append(f"{_WRITTEN.get(parameter.name, parameter.name)}={format_value(value)}")
    return f"({','.join(written)})" if written else ""


def _format_sparse(loss: SparseRegularized) -> str:
    weight, temperature = loss.weight_schedule, loss.temperature_schedule
    if isinstance(weight, Constant):
        every = temperature.every if isinstance(temperature, Exponential) else 1
        weight = exponential(weight.value, growth=1, every=every)
    plain = isinstance(weight, Exponential) and weight == exponential(
        weight.initial, growth=weight.growth, every=weight.every
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


def format_value(value: object) -> str:
    """Write an argument's value as the parser reads it, exactly.

    >>> format_value(1e-7), format_value(True), format_value(None)
    ('1e-7', 'true', 'none')
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    text = repr(float(cast(float, value))).removesuffix(".0")
    return text.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
