"""Losses as text, the one place where strings become losses.

    10*nce+0.1*mae
    gce(q=0.7,clamp=1e-7)
    fl(gamma=0.5,detach=true)+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1)

A sum of terms, each a name with arguments in parentheses and an optional factor in front. `+sr` and
`+clip` bind to the whole sum on their left, once each; parentheses group; `normalized(...)` takes
any sum.
Nothing is evaluated: names come from a table and values are numbers, `true`, `false` or `none`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import Unpack

from labelproof.losses.base import Loss, LossSettings, refuse_unknown
from labelproof.losses.clipping import LogitClip
from labelproof.losses.cross_entropy import CrossEntropy
from labelproof.losses.names import SPOKEN, SUFFIXES, WRITTEN, loss_arguments
from labelproof.losses.normalized import Normalized
from labelproof.losses.own import LOSS_FILES, VERSION, known_losses
from labelproof.losses.sparse import SparseRegularized
from labelproof.losses.syntax import (
    Call,
    Group,
    LossSyntaxError,
    Node,
    OwnLossError,
    Sum,
    Term,
    nearest,
    parse,
)
from labelproof.schedules import exponential

__all__ = ["parse_loss"]


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
        labelproof.losses.syntax.LossSyntaxError: unknown loss 'may', did you mean 'mae'?
          10*nce+0.1*may
                     ^
    """
    refuse_unknown(settings, "parse_loss", beside="the text and losses")
    CrossEntropy(**settings)  # a mistake in the settings is none in the text, and is said as such
    known = known_losses() if losses is None else losses
    return _Builder(text, known, settings).build(parse(text))


class _Builder:
    def __init__(self, text: str, losses: Mapping[str, type[Loss]], settings: LossSettings):
        self.text, self.losses, self.settings = text, losses, settings
        # Whoever writes a loss of their own means it as it is now.
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
                problem = _misplaced(name, term, first=total is None, again=name in suffixes)
                if total is None or problem:
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
        if own and {stem, stem[1:]} & self.families.keys():
            return OwnLossError(
                f"{name!r} is another version of a loss of your own; its code has changed since",
                *place,
            )
        if own:
            return OwnLossError(
                f"{name!r} is a loss from a file of someone's own, which --loss-file or "
                f"{LOSS_FILES} in the environment has to name",
                *place,
            )
        known = [*self.families, *(f"n{key}" for key in self.families), *SUFFIXES]
        known.append("normalized")
        # Torch's names and ours are spelled out: cross_entropy, CrossEntropyLoss.
        spelled = {family.__name__.lower(): key for key, family in self.families.items()}
        plain = name.lower().replace("_", "").removesuffix("loss")
        if plain in spelled:
            return LossSyntaxError(
                f"unknown loss {name!r}, did you mean {spelled[plain]!r}?", *place
            )
        near = nearest(name, known) or "; one from a file of your own is known by --loss-file"
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


def _misplaced(name: str, term: Term, *, first: bool, again: bool) -> str:
    """What is wrong with `sr` or `clip` at its place in a sum, or nothing."""
    does, number = {"sr": ("regularises", "lambda0"), "clip": ("clips", "delta")}[name]
    if first:
        return f"{name!r} {does} the sum on its left, so a loss must come first"
    if term.coefficient is not None:
        return f"{name!r} takes no factor in front; its number is {number}"
    if again:
        return (
            f"{name!r} is in this sum already; change its {number} instead, and if both are meant, "
            "put the first with what is on its left in parentheses"
        )
    return ""
