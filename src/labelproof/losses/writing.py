"""Losses written down, as the text that `parse_loss` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from labelproof.losses.algebra import WeightedSum
from labelproof.losses.base import Loss
from labelproof.losses.clipping import LogitClip
from labelproof.losses.names import SPOKEN, WRITTEN, loss_arguments
from labelproof.losses.normalized import Normalized
from labelproof.losses.own import known_losses
from labelproof.losses.reverse import LOG_ZERO
from labelproof.losses.sparse import SparseRegularized
from labelproof.schedules import Constant, Exponential, exponential

__all__ = ["format_loss", "format_value"]


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


def format_value(value: object) -> str:
    """Write an argument's value as the parser reads it, exactly.

    >>> format_value(1e-7), format_value(True), format_value(None)
    ('1e-7', 'true', 'none')
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    text = repr(float(cast(float, value))).removesuffix(".0")
    return text.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
