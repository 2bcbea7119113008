"""Names of losses in text: those of this package, and the user's own.

A user's Python file lists its losses in a table, as this package does:

    LOSSES = {"poly": PolyCrossEntropy}

The environment variable `LABELPROOF_LOSSES` names the file, so every process of a program knows it.
Its code is run, so only the user names it, never a record or a run. In records, a short hash of its
code follows the name, `poly@3f9c21`: changed code is another loss, and results of the old code are
never taken for those of the new. Without the hash, a name means the current code.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from labelproof.losses import asymmetric, cross_entropy, divergence, negative, normalized
from labelproof.losses.base import Loss, hyperparameters

LOSSES: Mapping[str, type[Loss]] = {
    "ce": cross_entropy.CrossEntropy,
    "fl": cross_entropy.Focal,
    "mae": cross_entropy.MeanAbsoluteError,
    "rce": cross_entropy.ReverseCrossEntropy,
    "gce": cross_entropy.GeneralizedCrossEntropy,
    "sce": cross_entropy.SymmetricCrossEntropy,
    "phuber": cross_entropy.PartiallyHuberizedCrossEntropy,
    "nl": negative.NegativeLearning,
    "agce": asymmetric.AsymmetricGeneralizedCrossEntropy,
    "aul": asymmetric.AsymmetricUnhinged,
    "ael": asymmetric.AsymmetricExponential,
    "amse": asymmetric.AsymmetricSquaredError,
    "negce": normalized.NormalizedNegativeCrossEntropy,
    "negfl": normalized.NormalizedNegativeFocal,
    "epsce": cross_entropy.EpsilonCrossEntropy,
    "epsfl": cross_entropy.EpsilonFocal,
    "js": divergence.JensenShannon,
    "taylor": cross_entropy.TaylorCrossEntropy,
    "bitempered": divergence.BiTempered,
}
"""Every elementary loss by its name in text; `n` before a name normalises it."""

WRITTEN = {"log_zero": "A"}
"""Arguments that have another name in text."""
SPOKEN = {written: name for name, written in WRITTEN.items()}
"""The inverse of `WRITTEN`."""
UNWRITTEN = {"generator"}
"""Arguments without a text form."""
SUFFIXES: Mapping[str, dict[str, Any]] = {
    "sr": {
        "tau": 0.5,
        "p": 0.1,
        "lambda0": 1.2,
        "rho": 1.03,
        "r": 1,
        "lambda_max": None,
        "normalize": True,
        "clamp": None,
        "tau_rho": 1,
        "tau_min": 0,
        "smoothing": 0,
    },
    "clip": {"delta": 1},
}
"""Suffixes that apply to the whole sum before them, sparse regularization and logit clipping, with
the defaults of their arguments."""


def loss_arguments(family: type[Loss]) -> dict[str, Any]:
    """The arguments of a loss in text, and their defaults."""
    return {
        WRITTEN.get(name, name): default
        for name, default in hyperparameters(family).items()
        if name not in UNWRITTEN
    }


LOSS_FILES = "LABELPROOF_LOSSES"
"""The environment variable that lists the files, separated as in `PATH`."""

VERSION = "@"
"""Separates a loss's name from the hash of its code."""

_DIGITS = 6
_TAKEN = {*SUFFIXES, "normalized", "apl", "nlnl"}
"""Reserved: words of the grammar, and rows of the paper's tables that mean other losses."""


def known_losses() -> Mapping[str, type[Loss]]:
    """Every loss that text can name: those of this package and the user's own.

    Raises:
        ValueError: A user's file has no losses, or unusable ones.
    """
    files = os.environ.get(LOSS_FILES, "")
    return {**LOSSES, **_loaded(files)} if files else LOSSES


@functools.cache
def _loaded(files: str) -> Mapping[str, type[Loss]]:
    loaded: dict[str, type[Loss]] = {}
    for file in files.split(os.pathsep):
        for name, family in load_losses(Path(file)).items():
            stem = name.partition(VERSION)[0]
            if any(other.partition(VERSION)[0] == stem for other in loaded):
                raise ValueError(f"{file}: {stem!r} is the name of a loss in another file too")
            loaded[name] = family
    return loaded


def load_losses(path: Path) -> dict[str, type[Loss]]:
    r"""The losses of a Python file, whose code is run, by their names with versions.

    Raises:
        ValueError: It has no losses, or unusable ones; the message says why.
    """
    table = getattr(_import(path), "LOSSES", None)
    if not isinstance(table, Mapping) or not table:
        raise ValueError(f"{path}: expected a table of losses: LOSSES = {{'mine': MyLoss}}")
    for name, family in table.items():
        if problem := _problem(name, family, table):
            raise ValueError(f"{path}: {problem}")
    return {f"{name}{VERSION}{_version(family)}": family for name, family in table.items()}


def _import(path: Path) -> ModuleType:
    place = path.expanduser().resolve()
    # A name of its own, so that a file called torch.py does no harm.
    name = f"_labelproof_losses_{hashlib.sha256(str(place).encode()).hexdigest()[:8]}"
    specification = importlib.util.spec_from_file_location(name, place)
    if specification is None or specification.loader is None:
        raise ValueError(f"{path}: expected a Python file, *.py, with losses of your own")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # where compilers and debuggers look for a class's code
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error
    return module


def _problem(name: Any, family: Any, table: Mapping[Any, Any]) -> str:
    """Why a loss cannot be written as text, or `""`."""
    taken = {*LOSSES, *_TAKEN, *(f"n{key}" for key in (*LOSSES, *table))}  # n... is normalised
    if not isinstance(name, str) or not re.fullmatch(r"[a-z_][a-z0-9_]*", name) or name in taken:
        return f"expected a name of small letters, digits and _ that is not taken, got {name!r}"
    if not (isinstance(family, type) and issubclass(family, Loss)):
        module = isinstance(family, type) and issubclass(family, nn.Module)
        hint = "; a module works in a training loop of your own, by labelproof.losses.as_loss"
        return (
            f"{name}: expected a class derived from labelproof.losses.Loss or PointwiseLoss, "
            f"got {getattr(family, '__qualname__', repr(family))}{hint if module else ''}"
        )
    arguments = loss_arguments(family)
    try:
        instance = family(reduction="none")
        wrong = [
            key
            for key, value in arguments.items()
            if not (value is None or isinstance(value, Real))
            or not hasattr(instance, SPOKEN.get(key, key))
        ]
    except Exception as error:
        wrong = [f"{type(error).__name__}: {error}"]
    else:
        if any(weight.requires_grad for weight in instance.parameters()):
            return (
                f"{name}: expected a loss without parameters of its own, which no command trains; "
                "train it in a loop of your own"
            )
    if not wrong:
        return ""
    return (
        f"{name}: expected an __init__ whose arguments have numbers, true, false or none as "
        "defaults and are kept in attributes of their names, and **settings for super().__init__; "
        f"got {', '.join(wrong)}"
    )


def _version(family: type[Loss]) -> str:
    """Hash of the code of a loss and of those base classes that are the user's own."""
    known = ("labelproof", "torch", "builtins", "abc", "typing")
    theirs = [each for each in family.__mro__ if each.__module__.split(".")[0] not in known]
    code = "\n".join(inspect.getsource(each) for each in theirs)
    lines = (line.rstrip() for line in code.splitlines())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_DIGITS]
